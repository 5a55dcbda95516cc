// The sum of an FP32 array, the same bits in every execution.
//
// Shape: an array of n elements, any n, aligned to 16 bytes. `partials`: a float a block; `arrived`: one word, 0.
// FLOP:  n - 1
// Bytes: 4 n + 4
//
// A block sums a tile of BLOCK x UNROLL vectors of 4 elements in FP32: each thread a chain of UNROLL in each of 4
// components, then a tree over components, lanes and warps. The block that arrives last adds the blocks' sums in FP64, in
// their order, whoever it is: the result does not depend on the order of arrival, and one launch does all. It leaves
// `arrived` at 0. Grid: as many blocks as tiles. Architectures: all.
//
// Knobs (-D): BLOCK threads a block, UNROLL vectors a thread, LOAD of vectors.cuh.
#include "vectors.cuh"

#ifndef BLOCK
#define BLOCK 1024
#endif
#ifndef UNROLL
#define UNROLL 8
#endif

#define TILE (BLOCK * UNROLL)
#define WARPS (BLOCK / 32)

// The sum over the block, in thread 0; `slots` of one value a warp, free again after the next barrier.
template <typename Value>
__device__ __forceinline__ Value block_sum(Value value, Value* slots) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    }
    if (threadIdx.x % 32 == 0) {
        slots[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < WARPS ? slots[threadIdx.x] : Value(0);
        for (int distance = 16; distance > 0; distance /= 2) {
            value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
        }
    }
    return value;
}

__device__ __forceinline__ float element(const uint4* __restrict__ in, u64 at, u64 count) {
    return at < count ? ((const float*)in)[at] : 0.0f;
}

// *out = the sum of in[0] to in[count - 1].
extern "C" __global__ void __launch_bounds__(BLOCK)
    reduction_sum(const uint4* __restrict__ in, float* __restrict__ out, float* partials, u32* arrived, u64 count) {
    __shared__ float slots[WARPS];
    __shared__ double wide_slots[WARPS];
    __shared__ bool is_last;
    const u64 first = (u64)blockIdx.x * TILE + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    if (((u64)blockIdx.x + 1) * TILE <= count / 4) {
        uint4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            v[j] = load_vector(in + first + j * BLOCK);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            sum.x += __uint_as_float(v[j].x);
            sum.y += __uint_as_float(v[j].y);
            sum.z += __uint_as_float(v[j].z);
            sum.w += __uint_as_float(v[j].w);
        }
    } else {
        for (int j = 0; j < UNROLL; ++j) {
            const u64 at = 4 * (first + j * BLOCK);
            sum.x += element(in, at, count);
            sum.y += element(in, at + 1, count);
            sum.z += element(in, at + 2, count);
            sum.w += element(in, at + 3, count);
        }
    }
    const float block = block_sum((sum.x + sum.y) + (sum.z + sum.w), slots);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = block;
        __threadfence();
        is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) {
        return;
    }
    __threadfence();
    double total = 0;
#pragma unroll 8
    for (u32 i = threadIdx.x; i < gridDim.x; i += BLOCK) {
        total += (double)partials[i];
    }
    total = block_sum(total, wide_slots);
    if (threadIdx.x == 0) {
        *out = (float)total;
        *arrived = 0;
    }
}
