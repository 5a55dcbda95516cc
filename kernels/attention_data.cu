// Operands of attention, made on the device: a pure function of seed and index (random_normal.cuh).
//
// Shape: one array of `count` BF16 numbers, any count. FLOP: not counted; bytes: 2 count written.
// Block: 256 threads, grid-stride; any grid is right. Never timed. Architectures: all.
#include "random_normal.cuh"

typedef unsigned short u16;

// BF16, about normal, variance 1.
extern "C" __global__ void fill_normal_bf16(u16* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        out[i] = (u16)(__float_as_uint(random_normal(seed, i)) >> 16);
    }
}
