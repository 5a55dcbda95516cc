// General matrix product C = A B^T on the FP32 units: A is m x k, B is n x k, C is m x n, all row-major.
//
// FLOP:  2 m n k
// Bytes: 4 (m k + n k + m n)
//
// Block: a tile of 128 x 256 of C by 256 threads, 8 x 16 elements a thread. One warp instruction issues a clock in each
// quarter of an SM, so every instruction that is no FFMA costs one: 8 x 16 needs 6 shared loads for 128 FFMA (8 x 8:
// 4 for 64, which also fills the 128 bytes a clock of shared memory). 128 accumulators and two fragments of 24 take
// about 210 registers: one block an SM. Tiles are 8 deep; global loads of the next one are in flight while one is
// computed, and land transposed in the other half of shared memory, so that fragments are read as float4.
// Any m, n, k is right; tiles that are whole, with k a multiple of 8, take the path without guards.
// Architectures: all.
#include "types.cuh"

#define TILE_M 128
#define TILE_N 256
#define TILE_K 8
#define THREADS 256

// Rows of 4 more than a multiple of 32 words: the 2 x 16 words that a warp stores at once (2 quads of depth, 16 rows)
// then lie in 32 different banks, and rows stay aligned for float4.
#define STRIDE_M (TILE_M + 4)
#define STRIDE_N (TILE_N + 4)

struct Tiles {
    float a[2][TILE_K][STRIDE_M];
    float b[2][TILE_K][STRIDE_N];
};

// Four neighbours in depth of one row, zero outside of the matrix.
template <bool GUARDED>
__device__ __forceinline__ float4 quad(const float* __restrict__ row, bool inside, u32 at, u32 k) {
    if (!GUARDED) {
        return *reinterpret_cast<const float4*>(row + at);
    }
    return make_float4(inside && at + 0 < k ? row[at + 0] : 0.0f, inside && at + 1 < k ? row[at + 1] : 0.0f,
                       inside && at + 2 < k ? row[at + 2] : 0.0f, inside && at + 3 < k ? row[at + 3] : 0.0f);
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

template <u32 STRIDE>
__device__ __forceinline__ void store_transposed(float (&tile)[TILE_K][STRIDE], u32 at, u32 row, float4 v) {
    tile[at + 0][row] = v.x;
    tile[at + 1][row] = v.y;
    tile[at + 2][row] = v.z;
    tile[at + 3][row] = v.w;
}

// COUNT quads of a tile's row, GAP words apart.
template <u32 COUNT, u32 GAP>
__device__ __forceinline__ void load_fragment(float (&fragment)[4 * COUNT], const float* row) {
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
        const float4 v = *reinterpret_cast<const float4*>(row + i * GAP);
        fragment[4 * i + 0] = v.x;
        fragment[4 * i + 1] = v.y;
        fragment[4 * i + 2] = v.z;
        fragment[4 * i + 3] = v.w;
    }
}

template <bool GUARDED>
__device__ __forceinline__ void tile_product(Tiles& tiles, const float* __restrict__ a, const float* __restrict__ b,
                                             float* __restrict__ c, u32 m, u32 n, u32 k) {
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    // Loading: two neighbouring threads take a row's 8 words; 128 rows at once.
    const u32 load_row = threadIdx.x / 2, load_at = threadIdx.x % 2 * 4;
    const u32 row_a = blockIdx.y * TILE_M + load_row, row_b = blockIdx.x * TILE_N + load_row;
    const bool has_a = row_a < m, has_b0 = row_b < n, has_b1 = row_b + TILE_N / 2 < n;
    const float* const from_a = a + (u64)row_a * k;
    const float* const from_b0 = b + (u64)row_b * k;
    const float* const from_b1 = from_b0 + (u64)(TILE_N / 2) * k;

    // Computing: warps tile C 2 x 4 by 64 x 64, lanes tile that 8 x 4. Lanes that differ in bit 0 share A's quad and
    // those that differ in bit 1 share B's, so that both halves of a warp read shared memory in one pass each.
    const u32 warp_m = warp / 4 * 64, warp_n = warp % 4 * 64;
    const u32 lane_m = lane / 2 % 8 * 4, lane_n = (lane % 2 + lane / 16 * 2) * 4;
    const u32 at_m = warp_m + lane_m, at_n = warp_n + lane_n;

    float sum[8][16] = {};
    float fragment_a[2][8], fragment_b[2][16];

    float4 next_a = quad<GUARDED>(from_a, has_a, load_at, k);
    float4 next_b0 = quad<GUARDED>(from_b0, has_b0, load_at, k);
    float4 next_b1 = quad<GUARDED>(from_b1, has_b1, load_at, k);
    store_transposed(tiles.a[0], load_at, load_row, next_a);
    store_transposed(tiles.b[0], load_at, load_row, next_b0);
    store_transposed(tiles.b[0], load_at, load_row + TILE_N / 2, next_b1);
    __syncthreads();
    load_fragment<2, 32>(fragment_a[0], &tiles.a[0][0][at_m]);
    load_fragment<4, 16>(fragment_b[0], &tiles.b[0][0][at_n]);

    u32 half = 0;
    for (u32 at = TILE_K;; at += TILE_K) {
        const bool last = at >= k;
        if (!last) {
            next_a = quad<GUARDED>(from_a, has_a, at + load_at, k);
            next_b0 = quad<GUARDED>(from_b0, has_b0, at + load_at, k);
            next_b1 = quad<GUARDED>(from_b1, has_b1, at + load_at, k);
        }
#pragma unroll
        for (u32 step = 0; step < TILE_K; ++step) {
            if (step == TILE_K - 1 && !last) {
                // The other half was last read before the barrier of the tile before.
                half ^= 1;
                store_transposed(tiles.a[half], load_at, load_row, next_a);
                store_transposed(tiles.b[half], load_at, load_row, next_b0);
                store_transposed(tiles.b[half], load_at, load_row + TILE_N / 2, next_b1);
                __syncthreads();
            }
            // The fragment of the next step; past the last tile's last step it is read and not used.
            const u32 next_step = (step + 1) % TILE_K;
            load_fragment<2, 32>(fragment_a[(step + 1) % 2], &tiles.a[half][next_step][at_m]);
            load_fragment<4, 16>(fragment_b[(step + 1) % 2], &tiles.b[half][next_step][at_n]);
#pragma unroll
            for (u32 i = 0; i < 8; ++i) {
#pragma unroll
                for (u32 j = 0; j < 16; ++j) {
                    sum[i][j] = fmaf(fragment_a[step % 2][i], fragment_b[step % 2][j], sum[i][j]);
                }
            }
        }
        if (last) {
            break;
        }
    }

#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        const u32 row = blockIdx.y * TILE_M + at_m + i / 4 * 32 + i % 4;
#pragma unroll
        for (u32 j = 0; j < 16; j += 4) {
            const u32 column = blockIdx.x * TILE_N + at_n + j / 4 * 16;
            store_quad<GUARDED>(c + (u64)row * n + column,
                                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]),
                                row < m && column < n ? n - column : 0);
        }
    }
}

// Grid: ceil(n / 256) x ceil(m / 128). a, b and c are aligned to 16 bytes; k > 0.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_fp32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, u32 m, u32 n, u32 k) {
    __shared__ Tiles tiles;
    const bool whole =
        (blockIdx.y + 1) * TILE_M <= m && (blockIdx.x + 1) * TILE_N <= n && k % TILE_K == 0 && n % 4 == 0;
    if (whole) {
        tile_product<false>(tiles, a, b, c, m, n, k);
    } else {
        tile_product<true>(tiles, a, b, c, m, n, k);
    }
}
