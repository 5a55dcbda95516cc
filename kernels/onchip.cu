// Reads of what is on the chip already: from the L2 cache, from shared memory.
//
// Shape: onchip_l2 reads an array of `vectors` 16-byte vectors, any count, `passes` times; onchip_shared has each block
// take BLOCK x UNROLL vectors of its own into shared memory and read them `passes` times from there. n = 4-byte words
// of the array.
// FLOP:  l2 0, shared 0
// Bytes: l2 4 n passes, shared 4 n passes
//
// Both are long for one launch, since a pass takes less time than starting a kernel. The tiles of all passes go round
// the blocks, so that a line of the L2 is asked for by other SMs in every pass, as reuse within a product is; .cg keeps
// the L1 out of it. 128 bytes a clock leave shared memory; one 16-byte load of a warp takes four clocks and its four
// additions as many issues of one in four schedulers.
// Block: BLOCK threads; any grid is right. Architectures: all. Shared memory: 16 BLOCK UNROLL bytes, 48 KiB at most.
//
// Knobs (-D): BLOCK threads a block, UNROLL vectors a thread.
#include "types.cuh"

#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

#define TILE (BLOCK * UNROLL)
#define LOAD_PTX "ld.global.cg.v4.u32"
#define LOAD_PTX_SHARED "ld.volatile.shared.v4.u32"

__device__ __forceinline__ uint4 load(const uint4* address) {
    uint4 v;
    asm volatile(LOAD_PTX " {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(address));
    return v;
}

// Volatile for the compiler and for the assembler, or either would read what does not change only once.
__device__ __forceinline__ uint4 load_shared(const uint4* address) {
    uint4 v;
    asm volatile(LOAD_PTX_SHARED " {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"((u32)__cvta_generic_to_shared(address)));
    return v;
}

__device__ __forceinline__ u32 sum_of(uint4 v) {
    return v.x + v.y + v.z + v.w;
}

// Stores the sum of a block's values, modulo 2^32: exact in any order.
__device__ __forceinline__ void store_sum(u32* partials, u32 sum) {
    __shared__ u32 warp_sums[BLOCK / 32];
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    }
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < BLOCK / 32; ++warp) {
            sum += warp_sums[warp];
        }
        partials[blockIdx.x] = sum;
    }
}

// partials[block] = sum of the words of the tiles block, block + blocks, ... of all passes; tile t is tile t % tiles of
// the array.
extern "C" __global__ void __launch_bounds__(BLOCK)
    onchip_l2(const uint4* __restrict__ in, u32* __restrict__ partials, u32 vectors, u32 passes) {
    const u32 tiles = (vectors + TILE - 1) / TILE;
    u32 sum = 0;
    for (u32 tile = blockIdx.x; tile < passes * tiles; tile += gridDim.x) {
        const u32 first = tile % tiles * TILE + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (u32 j = 0; j < UNROLL; ++j) {
            v[j] = first + j * BLOCK < vectors ? load(in + first + j * BLOCK) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (u32 j = 0; j < UNROLL; ++j) {
            sum += sum_of(v[j]);
        }
    }
    store_sum(partials, sum);
}

// partials[block] = passes x sum of the words of tile `block`.
extern "C" __global__ void __launch_bounds__(BLOCK)
    onchip_shared(const uint4* __restrict__ in, u32* __restrict__ partials, u32 passes) {
    __shared__ uint4 tile[TILE];
#pragma unroll
    for (u32 j = 0; j < UNROLL; ++j) {
        tile[threadIdx.x + j * BLOCK] = in[(u64)blockIdx.x * TILE + threadIdx.x + j * BLOCK];
    }
    __syncthreads();
    u32 sum = 0;
#pragma unroll 4
    for (u32 pass = 0; pass < passes; ++pass) {
        uint4 v[UNROLL];
#pragma unroll
        for (u32 j = 0; j < UNROLL; ++j) {
            v[j] = load_shared(tile + threadIdx.x + j * BLOCK);
        }
#pragma unroll
        for (u32 j = 0; j < UNROLL; ++j) {
            sum += sum_of(v[j]);
        }
    }
    store_sum(partials, sum);
}
