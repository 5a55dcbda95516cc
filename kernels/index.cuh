// Random places in an array: what a gather reads, and what its check recomputes.
#pragma once

#include "random.cuh"

// Uniform in [0, limit), but for a bias of limit / 2^32.
__device__ __forceinline__ u32 random_index(u64 seed, u64 index, u64 limit) {
    return (u32)(((random_bits(seed, index) >> 32) * limit) >> 32);
}
