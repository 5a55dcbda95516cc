// Streaming through device memory: read, write, copy, triad.
//
// Shape: arrays of `vectors` 16-byte vectors, any count, aligned to 16 bytes; words are 32 bits, n = 4 vectors words.
// FLOP:  read 0, write 0, copy 0, triad 2 n (one fused multiply-add an element)
// Bytes: read 4 n, write 4 n, copy 8 n, triad 12 n
//
// A tile is BLOCK x UNROLL vectors: each thread moves UNROLL of them, BLOCK apart, all loads before the first use.
// Little's law asks an H200 for 9 to 12 KiB in flight an SM; 16 bytes x UNROLL a thread at full occupancy are
// 32 KiB x UNROLL. Tiles go round the blocks, so the grid chooses the mapping: as many blocks as tiles, or as many as
// fit at once. Architectures: all.
// Note: a copy by the SM's copy engine (cp.async.bulk through shared memory) reached 4228 GB/s where this one has 4309.
//
// Knobs (-D): BLOCK threads a block, UNROLL vectors a thread,
//   LOAD   0 plain   1 .nc.L1::no_allocate   2 .cs (evict first)   3 as 1 with .L2::256B (sm_80 and later, else 1)
//   STORE  0 plain   1 .cs (evict first)     2 .L1::no_allocate    3 .wt
#include "pattern.cuh"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#ifndef LOAD
#define LOAD 1
#endif
#ifndef STORE
#define STORE 1
#endif

#define TILE (BLOCK * UNROLL)

#if LOAD == 0
#define LOAD_PTX "ld.global.v4.u32"
#elif LOAD == 2
#define LOAD_PTX "ld.global.cs.v4.u32"
#elif LOAD == 3 && __CUDA_ARCH__ >= 800
#define LOAD_PTX "ld.global.nc.L1::no_allocate.L2::256B.v4.u32"
#else
#define LOAD_PTX "ld.global.nc.L1::no_allocate.v4.u32"
#endif

#if STORE == 0
#define STORE_PTX "st.global.v4.u32"
#elif STORE == 2
#define STORE_PTX "st.global.L1::no_allocate.v4.u32"
#elif STORE == 3
#define STORE_PTX "st.global.wt.v4.u32"
#else
#define STORE_PTX "st.global.cs.v4.u32"
#endif

__device__ __forceinline__ uint4 load(const uint4* address) {
    uint4 v;
    asm volatile(LOAD_PTX " {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(address));
    return v;
}

__device__ __forceinline__ void store(uint4* address, uint4 v) {
    asm volatile(STORE_PTX " [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

// Calls body(first vector of this thread, vectors of this thread) for each tile of this block. The count is UNROLL, a
// constant, in all tiles but the array's last.
template <typename Body>
__device__ __forceinline__ void for_each_tile(u64 vectors, Body body) {
    for (u64 tile = blockIdx.x; tile * TILE < vectors; tile += gridDim.x) {
        const u64 first = tile * TILE + threadIdx.x;
        if ((tile + 1) * TILE <= vectors) {
            body(first, UNROLL);
        } else if (first < vectors) {
            body(first, (int)((vectors - first + BLOCK - 1) / BLOCK));
        }
    }
}

// partials[block] = sum of the block's words modulo 2^32: exact in any order, so the check is equality.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bandwidth_read(const uint4* __restrict__ in, u32* __restrict__ partials, u64 vectors) {
    __shared__ u32 warp_sums[BLOCK / 32];
    u32 sum = 0;
    for_each_tile(vectors, [&](u64 first, int count) {
        uint4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            v[j] = j < count ? load(in + first + j * BLOCK) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            sum += v[j].x + v[j].y + v[j].z + v[j].w;
        }
    });
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

// out[i] = pattern_word(seed, i).
extern "C" __global__ void __launch_bounds__(BLOCK) bandwidth_write(uint4* __restrict__ out, u32 seed, u64 vectors) {
    for_each_tile(vectors, [&](u64 first, int count) {
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            const u32 word = pattern_word(seed, 4 * (first + j * BLOCK));
            if (j < count) {
                store(out + first + j * BLOCK,
                      make_uint4(word, word + PATTERN_STEP, word + 2 * PATTERN_STEP, word + 3 * PATTERN_STEP));
            }
        }
    });
}

// out[i] = in[i].
extern "C" __global__ void __launch_bounds__(BLOCK)
    bandwidth_copy(const uint4* __restrict__ in, uint4* __restrict__ out, u64 vectors) {
    for_each_tile(vectors, [&](u64 first, int count) {
        uint4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < count) {
                v[j] = load(in + first + j * BLOCK);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < count) {
                store(out + first + j * BLOCK, v[j]);
            }
        }
    });
}

__device__ __forceinline__ u32 triad(u32 b, u32 c, float scale) {
    return __float_as_uint(fmaf(scale, __uint_as_float(c), __uint_as_float(b)));
}

// a[i] = b[i] + scale c[i], rounded once.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bandwidth_triad(const uint4* __restrict__ b, const uint4* __restrict__ c, uint4* __restrict__ a, float scale,
                    u64 vectors) {
    for_each_tile(vectors, [&](u64 first, int count) {
        uint4 vb[UNROLL], vc[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < count) {
                vb[j] = load(b + first + j * BLOCK);
                vc[j] = load(c + first + j * BLOCK);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < count) {
                store(a + first + j * BLOCK,
                      make_uint4(triad(vb[j].x, vc[j].x, scale), triad(vb[j].y, vc[j].y, scale),
                                 triad(vb[j].z, vc[j].z, scale), triad(vb[j].w, vc[j].w, scale)));
            }
        }
    });
}
