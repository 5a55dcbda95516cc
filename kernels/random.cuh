// Counter-based random data: element `index` of stream `seed` is a pure function of the two, so a verifier recomputes
// any element without reading an input.
#pragma once

#include "types.cuh"

// 64 random bits. SplitMix64, the `index`-th output of a generator seeded with `seed` (Steele, Lea, Flood: Fast
// splittable pseudorandom number generators, OOPSLA 2014, figure 17, with Stafford's mix 13).
__device__ __forceinline__ u64 random_bits(u64 seed, u64 index) {
    u64 z = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Uniform on the odd multiples of 2^-24 in (-1, 1): mean exactly 0, variance 1/3, never 0, every value exact in FP32.
__device__ __forceinline__ float random_uniform(u64 seed, u64 index) {
    const int odd = 2 * (int)(random_bits(seed, index) >> 40) + 1 - (1 << 24);
    return (float)odd * 0x1p-24f;
}

// The pattern of a normal finite FP32 number: random sign and significand, exponent field uniform on 1..254.
__device__ __forceinline__ u32 random_normal_pattern(u64 seed, u64 index) {
    const u64 bits = random_bits(seed, index);
    const u32 exponent = 1 + (u32)(((bits >> 32) * 254) >> 32);
    return ((u32)bits & 0x807FFFFFu) | (exponent << 23);
}
