// Scans of an output on the device: how many of its elements are wrong, and which is the first. Grid-stride: any grid.
#pragma once

#include "types.cuh"

// What a scan found. Starts as {0, 2^64 - 1}.
struct Tally {
    u64 wrong;
    u64 first;
};

__device__ __forceinline__ u64 thread_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ u64 thread_count() {
    return (u64)gridDim.x * blockDim.x;
}

// Counts the indices below `count` for which `is_wrong` holds.
template <typename Predicate>
__device__ __forceinline__ void scan(u64 count, Tally* tally, Predicate is_wrong) {
    u64 wrong = 0, first = ~0ull;
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        if (is_wrong(i)) {
            ++wrong;
            first = i < first ? i : first;
        }
    }
    if (wrong > 0) {
        atomicAdd(&tally->wrong, wrong);
        atomicMin(&tally->first, first);
    }
}
