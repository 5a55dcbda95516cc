// Random BF16 numbers that are close to normal: element `index` of stream `seed` is a pure function of the two.
#pragma once

#include "random.cuh"

// The sum of eight random bytes, less its mean, over its deviation sqrt(8 (256^2 - 1) / 12): mean 0, variance 1, at most
// 4.88, and exact in whole numbers but for one product and its rounding to BF16, ties to even.
__device__ __forceinline__ float random_normal(u64 seed, u64 index) {
    const u64 bits = random_bits(seed, index), odd = 0x00FF00FF00FF00FFull;
    const u64 pairs = (bits & odd) + ((bits >> 8) & odd);
    const int sum = (int)((pairs * 0x0001000100010001ull) >> 48);
    const u32 exact = __float_as_uint((float)(sum - 1020) * 0.0047842f);
    return __uint_as_float((exact + 0x7FFFu + ((exact >> 16) & 1)) & 0xFFFF0000u);
}
