// Data of the cases, made on the device: a pure function of seed and index (random.cuh).
//
// Shape: one array of `count` 32-bit elements, any count. FLOP: not counted; bytes: 4 count written.
// Block: 256 threads, grid-stride; any grid is right. Never timed. Architectures: all.
#include "random.cuh"

__device__ __forceinline__ u64 first_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ u64 index_stride() {
    return (u64)gridDim.x * blockDim.x;
}

// Uniform FP32 in (-1, 1).
extern "C" __global__ void fill_uniform(float* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        out[i] = random_uniform(seed, i);
    }
}

// Random patterns, each a normal finite FP32 number.
extern "C" __global__ void fill_normal_patterns(u32* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        out[i] = random_normal_pattern(seed, i);
    }
}

// One word everywhere; 0xFFFFFFFF, a NaN in every float format and not a number that a case writes, poisons an output.
extern "C" __global__ void fill_word(u32* __restrict__ out, u64 count, u32 word) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        out[i] = word;
    }
}
