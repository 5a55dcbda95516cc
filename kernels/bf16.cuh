// BF16 pairs in 32-bit words, the element of the lower address in the lower half; arithmetic is FP32's.
#pragma once

#include "types.cuh"

__device__ __forceinline__ float bf16_low(u32 pair) {
    return __uint_as_float(pair << 16);
}

__device__ __forceinline__ float bf16_high(u32 pair) {
    return __uint_as_float(pair & 0xFFFF0000u);
}

// Rounds to nearest, ties to even, two at once; before sm_80 in integers.
__device__ __forceinline__ u32 bf16_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    const u32 l = __float_as_uint(low), h = __float_as_uint(high);
    const u32 rounded_low = low == low ? (l + 0x7FFFu + ((l >> 16) & 1)) >> 16 : 0x7FFFu;
    const u32 rounded_high = high == high ? (h + 0x7FFFu + ((h >> 16) & 1)) & 0xFFFF0000u : 0x7FFF0000u;
    return rounded_high | rounded_low;
#endif
}
