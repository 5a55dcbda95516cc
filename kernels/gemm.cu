// General matrix product C = A B^T on the FP32 units: A is m x k, B is n x k, C is m x n, all row-major.
//
// FLOP:  2 m n k
// Bytes: 4 (m k + n k + m n)
//
// Block: a tile of 128 x 256 of C by 256 threads, 8 x 16 elements a thread, one block an SM. Each quarter of an SM
// issues one instruction a clock, so what is no FFMA costs one: 8 x 16 takes 6 shared loads for 128 FFMA. Registers lie
// in 2 banks that give one operand a clock, so an FFMA of three fresh operands costs 1.5 clocks and one that keeps the
// operand of the FFMA before it costs 1: the product of a step goes along columns of 8, to and fro.
// Global loads of a tile land transposed in the other half of shared memory, so that fragments are read as float4. A
// quad is loaded where the one before it was stored, 8 steps ahead of its own store; this hides global memory without
// asynchronous copies (one a word, with its address, they cost more issues) and leaves one barrier a tile.
// Past the last tile its loads are repeated and stored to where nobody reads: the loop has no branch.
// Any m, n, k is right; tiles that are whole, with k a multiple of TILE_K, take the path without guards.
// Architectures: all. 48 KiB of shared memory at TILE_K 16.
//
// Knobs (-D): TILE_K depth of a tile (8, 16), STORE_STEP and STORE_GAP at which of 8 steps the first quad is stored and
//   how many later each next one, GROUP rows of tiles that run together, for the L2.
#include "types.cuh"

#ifndef TILE_K
#define TILE_K 16
#endif
#ifndef STORE_STEP
#define STORE_STEP 2
#endif
#ifndef STORE_GAP
#define STORE_GAP 1
#endif
#ifndef GROUP
#define GROUP 8
#endif

#define TILE_M 128
#define TILE_N 256
#define THREADS 256

// Two neighbouring threads load the 8 words in depth of a row: 128 rows of A and, in two quads, 256 of B.
#define LOADED_DEPTH 8
#define LOADED_ROWS (THREADS / 2)
#define QUADS ((TILE_M + TILE_N) / LOADED_ROWS)
static_assert(STORE_STEP + (QUADS - 1) * STORE_GAP < LOADED_DEPTH - 1, "quads are stored before a tile's barrier");

struct Tiles {
    float a[2][TILE_K][TILE_M];
    float b[2][TILE_K][TILE_N];
};

// Odd quads in depth have their neighbouring 16 rows swapped: the 2 x 16 words that a warp stores at once (2 quads in
// depth, 16 rows) then lie in 32 different banks.
__device__ __forceinline__ constexpr u32 swizzled(u32 row, u32 depth) {
    return row ^ ((depth & 4) << 2);
}

// Four neighbours in depth of one row, zero outside of the matrix.
template <bool GUARDED>
__device__ __forceinline__ float4 quad(const float* __restrict__ from, bool inside, u32 at, u32 k) {
    if (!GUARDED) {
        return *reinterpret_cast<const float4*>(from);
    }
    return make_float4(inside && at + 0 < k ? from[0] : 0.0f, inside && at + 1 < k ? from[1] : 0.0f,
                       inside && at + 2 < k ? from[2] : 0.0f, inside && at + 3 < k ? from[3] : 0.0f);
}

// Four neighbours of a row of the result, of which `left` are inside.
template <bool GUARDED>
__device__ __forceinline__ void store_quad(float* to, float4 v, u32 left) {
    if (!GUARDED) {
        *reinterpret_cast<float4*>(to) = v;
    } else {
        const float values[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (u32 l = 0; l < 4; ++l) {
            if (l < left) {
                to[l] = values[l];
            }
        }
    }
}

template <u32 ROWS>
__device__ __forceinline__ void store_transposed(float (&tile)[TILE_K][ROWS], u32 depth, u32 row, float4 v) {
    tile[depth + 0][row] = v.x;
    tile[depth + 1][row] = v.y;
    tile[depth + 2][row] = v.z;
    tile[depth + 3][row] = v.w;
}

// COUNT quads of a tile's row, GAP words apart; with `swap` neighbouring ones change places.
template <u32 COUNT, u32 GAP>
__device__ __forceinline__ void load_fragment(float (&fragment)[4 * COUNT], const float* from, u32 swap) {
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
        const float4 v = *reinterpret_cast<const float4*>(from + (i ^ swap) * GAP);
        fragment[4 * i + 0] = v.x;
        fragment[4 * i + 1] = v.y;
        fragment[4 * i + 2] = v.z;
        fragment[4 * i + 3] = v.w;
    }
}

template <bool GUARDED>
__device__ __forceinline__ void tile_product(Tiles& tiles, const float* __restrict__ a, const float* __restrict__ b,
                                             float* __restrict__ c, u32 m, u32 n, u32 k, u32 tile_m, u32 tile_n) {
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    const u32 load_row = threadIdx.x / 2, load_depth = threadIdx.x % 2 * 4;
    const u32 store_row = swizzled(load_row, load_depth);
    const u32 rows[QUADS] = {tile_m + load_row, tile_n + load_row, tile_n + load_row + LOADED_ROWS};
    const bool inside[QUADS] = {rows[0] < m, rows[1] < n, rows[2] < n};
    const float* from[QUADS] = {a + (u64)rows[0] * k + load_depth, b + (u64)rows[1] * k + load_depth,
                                b + (u64)rows[2] * k + load_depth};
    u32 at = load_depth;
    float4 next[QUADS];

    // Warps tile C 2 x 4 by 64 x 64, lanes tile that 8 x 4. Lanes that differ in bit 0 share A's quad and those that
    // differ in bit 1 share B's, so that both halves of a warp read shared memory in one pass each.
    const u32 at_m = warp / 4 * 64 + lane / 2 % 8 * 4, at_n = warp % 4 * 64 + (lane % 2 + lane / 16 * 2) * 4;
    const u32 swizzled_m[2] = {at_m, swizzled(at_m, 4)};

    float sum[8][16] = {};
    float fragment_a[2][8], fragment_b[2][16];

    const auto load = [&](u32 i, u32 depth) { next[i] = quad<GUARDED>(from[i] + depth, inside[i], at + depth, k); };
    const auto store = [&](u32 half, u32 i, u32 depth) {
        if (i == 0) {
            store_transposed(tiles.a[half], depth + load_depth, store_row, next[i]);
        } else {
            store_transposed(tiles.b[half], depth + load_depth, store_row + (i - 1) * LOADED_ROWS, next[i]);
        }
    };
    const auto load_fragments = [&](u32 half, u32 depth) {
        const u32 odd = depth / 4 % 2;
        load_fragment<2, 32>(fragment_a[depth % 2], &tiles.a[half][depth][swizzled_m[odd]], 0);
        load_fragment<4, 16>(fragment_b[depth % 2], &tiles.b[half][depth][at_n], odd);
    };

#pragma unroll
    for (u32 depth = 0; depth < TILE_K; depth += LOADED_DEPTH) {
#pragma unroll
        for (u32 i = 0; i < QUADS; ++i) {
            load(i, depth);
            store(0, i, depth);
        }
    }
    u32 left = (k - 1) / TILE_K;
    u32 advance = left > 0 ? TILE_K : 0;
    at += advance;
#pragma unroll
    for (u32 i = 0; i < QUADS; ++i) {
        from[i] += advance;
        load(i, 0);
    }
    __syncthreads();
    load_fragments(0, 0);

#pragma unroll 1
    for (u32 half = 0;; --left) {
#pragma unroll
        for (u32 step = 0; step < TILE_K; ++step) {
            if (step == TILE_K - 1) {
                half ^= 1;
                __syncthreads();
            }
            load_fragments(half, (step + 1) % TILE_K);
#pragma unroll
            for (u32 i = 0; i < QUADS; ++i) {
                if (step % LOADED_DEPTH == STORE_STEP + i * STORE_GAP) {
                    const u32 stored = step / LOADED_DEPTH * LOADED_DEPTH, loaded = (stored + LOADED_DEPTH) % TILE_K;
                    store(half ^ 1, i, stored);
                    if (loaded == 0) {
                        if (i == 0) {
                            advance = left > 1 ? TILE_K : 0;
                            at += advance;
                        }
                        from[i] += advance;
                    }
                    load(i, loaded);
                }
            }
#pragma unroll
            for (u32 j = 0; j < 16; ++j) {
#pragma unroll
                for (u32 l = 0; l < 8; ++l) {
                    const u32 i = j % 2 == 0 ? l : 7 - l;
                    sum[i][j] = fmaf(fragment_a[step % 2][i], fragment_b[step % 2][j], sum[i][j]);
                }
            }
        }
        if (left == 0) {
            break;
        }
    }

#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        const u32 row = tile_m + at_m + i / 4 * 32 + i % 4;
#pragma unroll
        for (u32 j = 0; j < 16; j += 4) {
            const u32 column = tile_n + at_n + j / 4 * 16;
            store_quad<GUARDED>(c + (u64)row * n + column,
                                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]),
                                row < m && column < n ? n - column : 0);
        }
    }
}

// Grid: ceil(n / 256) x ceil(m / 128), any order of blocks. a, b and c are aligned to 16 bytes; k > 0.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_fp32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, u32 m, u32 n, u32 k) {
    __shared__ Tiles tiles;

    // Blocks go down columns of GROUP tiles: those that run at once share rows of A and B in the L2.
    const u32 block = blockIdx.y * gridDim.x + blockIdx.x, group = GROUP * gridDim.x;
    const u32 first = block / group * GROUP, height = gridDim.y - first < GROUP ? gridDim.y - first : GROUP;
    const u32 tile_m = (first + block % group % height) * TILE_M, tile_n = block % group / height * TILE_N;

    const bool whole = tile_m + TILE_M <= m && tile_n + TILE_N <= n && k % TILE_K == 0 && n % 4 == 0;
    if (whole) {
        tile_product<false>(tiles, a, b, c, m, n, k, tile_m, tile_n);
    } else {
        tile_product<true>(tiles, a, b, c, m, n, k, tile_m, tile_n);
    }
}
