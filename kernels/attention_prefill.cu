// Prefill attention O = softmax(Q K^T / sqrt(d)) V with BF16 operands and FP32 accumulators, on mma.sync: Q, K, V and O
// are heads x n x 128, row-major. CAUSAL: a row attends to its own position and those before.
//
// FLOP:  4 heads d pairs
// Bytes: 8 heads n d
// (pairs: n n, or n (n + 1) / 2 where causal)
//
// Block: TILE_QUERIES rows of one head by WARPS warps of 16 or 32 rows, as in FlashAttention-2 (Dao 2023): scores of a
// tile of keys stay in registers, the softmax runs along (attention.cuh), probabilities are the operand of the second
// product as they are. Tiles of K and V follow one another through SLOTS slots of shared memory, SLOTS - 1 in flight
// (cp.async). 32 rows a warp: a fragment of K or V serves four products for one ldmatrix, so shared memory keeps up.
// Two blocks an SM: the softmax of one runs under the products of the other. Longest blocks first where causal.
// Rows of 256 bytes lie with 16-byte chunks swapped by row % 8: ldmatrix reads 8 rows without bank conflicts.
// Any n > 0 is right. Architectures: 8.0 and up (BF16 products, cp.async); on 10.0 not the fast way to tensor cores.
//
// Knobs (-D): CAUSAL, TILE_QUERIES (64, 128), TILE_KEYS (32, 64, 128), WARPS, SLOTS (2 up), BLOCKS an SM.
// Shared memory: 256 (TILE_QUERIES + SLOTS TILE_KEYS) bytes, dynamic.
#include "attention.cuh"
#include "mma.cuh"
#include "mma_bf16.cuh"
#include "shared.cuh"

#ifndef CAUSAL
#define CAUSAL 0
#endif
#ifndef TILE_QUERIES
#define TILE_QUERIES 128
#endif
#ifndef TILE_KEYS
#define TILE_KEYS 64
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif

#define THREADS (32 * WARPS)
#define WARP_ROWS (TILE_QUERIES / WARPS)
// Fragments: 16 rows of queries; 8 columns of keys, of dimensions; 16 deep.
#define ROW_TILES (WARP_ROWS / 16)
#define KEY_TILES (TILE_KEYS / 8)
#define DIM_TILES (HEAD_DIM / 8)
static_assert(WARP_ROWS % 16 == 0 && TILE_KEYS % 16 == 0 && SLOTS >= 2, "tiles are whole fragments");

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

// 16 bytes, or zeros where `inside` is false.
__device__ __forceinline__ void copy_async(u32 to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <u32 PENDING>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// As load_matrices, each matrix transposed.
__device__ __forceinline__ void load_transposed(u32 (&to)[4], u32 shared_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_row)
                 : "memory");
}

// Where a 16-byte chunk of a row lies.
__device__ __forceinline__ u32 chunk_offset(u32 row, u32 chunk) {
    return row * ROW_BYTES + (chunk ^ row % 8) * 16;
}

// ROWS rows from `first` on, zeros past the last one; 16 neighbouring threads load a row.
template <u32 ROWS>
__device__ __forceinline__ void load_rows(u32 to, const u16* __restrict__ from, u32 first, u32 n) {
    const u32 row = threadIdx.x / 16, chunk = threadIdx.x % 16;
    const u32 target = to + chunk_offset(row, chunk);
    const u16* const source = from + (u64)(first + row) * HEAD_DIM + chunk * 8;
    static_assert(ROWS % (THREADS / 16) == 0 && THREADS / 16 % 8 == 0, "a thread's rows are alike modulo 8");
#pragma unroll
    for (u32 i = 0; i < ROWS; i += THREADS / 16) {
        copy_async(target + i * ROW_BYTES, source + i * HEAD_DIM, first + row + i < n);
    }
}

#endif

// Grid: ceil(n / TILE_QUERIES) x heads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    attention_prefill(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
                      u16* __restrict__ out, u32 n) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    extern __shared__ uint4 storage[];
    const u32 query_tile = shared_address(storage), slots = query_tile + TILE_QUERIES * ROW_BYTES;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 head = (u64)blockIdx.y * n * HEAD_DIM;
    const u32 first_query = (gridDim.x - 1 - blockIdx.x) * TILE_QUERIES;
    const u32 seen = CAUSAL && first_query + TILE_QUERIES < n ? first_query + TILE_QUERIES : n;
    const u32 tiles = (seen + TILE_KEYS - 1) / TILE_KEYS;

    // K and V of tile after tile take turns in the slots.
    u32 loaded = 0, fill_slot = slots, slot = slots;
    const auto following = [&](u32 one) {
        return one == slots + (SLOTS - 1) * TILE_KEYS * ROW_BYTES ? slots : one + TILE_KEYS * ROW_BYTES;
    };
    const auto load_next = [&]() {
        if (loaded < 2 * tiles) {
            load_rows<TILE_KEYS>(fill_slot, (loaded % 2 == 0 ? keys : values) + head, loaded / 2 * TILE_KEYS, n);
        }
        ++loaded;
        fill_slot = following(fill_slot);
        commit_copies();
    };
    // Waits for the next slot and loads another tile to where the one before it was.
    const auto next_slot = [&]() {
        wait_copies<SLOTS - 2>();
        __syncthreads();
        load_next();
        const u32 next = slot;
        slot = following(slot);
        return next;
    };
    load_rows<TILE_QUERIES>(query_tile, queries + head, first_query, n);
#pragma unroll
    for (u32 i = 0; i < SLOTS - 1; ++i) {
        load_next();
    }

    // Rows and chunks that the lanes of ldmatrix point at; a step of 16 dimensions flips bits of the chunk.
    const u32 query_at = query_tile + chunk_offset(warp * WARP_ROWS + lane % 16, lane / 16);
    const u32 key_at = chunk_offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    const u32 value_at = chunk_offset(lane % 16, lane / 16);
    const u32 row = first_query + warp * WARP_ROWS + lane / 4;

    OnlineSoftmax softmax[ROW_TILES];
    float sums[ROW_TILES][DIM_TILES][4] = {};

#pragma unroll 1
    for (u32 tile = 0; tile < tiles; ++tile) {
        float scores[ROW_TILES][KEY_TILES][4] = {};
        const u32 key_from = next_slot() + key_at;
#pragma unroll
        for (u32 depth = 0; depth < HEAD_DIM / 16; ++depth) {
            u32 query[ROW_TILES][4];
#pragma unroll
            for (u32 i = 0; i < ROW_TILES; ++i) {
                load_matrices(query[i], (query_at ^ depth * 32) + i * 16 * ROW_BYTES);
            }
#pragma unroll
            for (u32 j = 0; j < KEY_TILES; j += 2) {
                u32 key[4];
                load_matrices(key, (key_from ^ depth * 32) + j * 8 * ROW_BYTES);
#pragma unroll
                for (u32 i = 0; i < ROW_TILES; ++i) {
                    const u32(&a)[4] = query[i];
                    mma_bf16(scores[i][j], a[0], a[1], a[2], a[3], key[0], key[1]);
                    mma_bf16(scores[i][j + 1], a[0], a[1], a[2], a[3], key[2], key[3]);
                }
            }
        }

        const u32 value_from = next_slot() + value_at;
        u32 probabilities[ROW_TILES][TILE_KEYS / 16][4];
#pragma unroll
        for (u32 i = 0; i < ROW_TILES; ++i) {
            const u32 own_row = first_query + warp * WARP_ROWS + 16 * i;
            if ((tile + 1) * TILE_KEYS > (CAUSAL && own_row < n ? own_row + 1 : n)) {
                mask_scores(scores[i], row + 16 * i, tile * TILE_KEYS, n, CAUSAL);
            }
            float correction[2];
            softmax[i].update(scores[i], correction);
            multiply_rows(sums[i], correction);
            pack_operand(probabilities[i], scores[i]);
        }
#pragma unroll
        for (u32 depth = 0; depth < TILE_KEYS / 16; ++depth) {
#pragma unroll
            for (u32 j = 0; j < DIM_TILES; j += 2) {
                u32 value[4];
                load_transposed(value, (value_from ^ j * 16) + depth * 16 * ROW_BYTES);
#pragma unroll
                for (u32 i = 0; i < ROW_TILES; ++i) {
                    const u32(&a)[4] = probabilities[i][depth];
                    mma_bf16(sums[i][j], a[0], a[1], a[2], a[3], value[0], value[1]);
                    mma_bf16(sums[i][j + 1], a[0], a[1], a[2], a[3], value[2], value[3]);
                }
            }
        }
    }

    // Through the queries' rows, which only this warp read, so that whole rows are stored.
    char* const staged = reinterpret_cast<char*>(storage) + warp * WARP_ROWS * ROW_BYTES;
#pragma unroll
    for (u32 i = 0; i < ROW_TILES; ++i) {
        float factor[2];
        softmax[i].finish(factor);
        multiply_rows(sums[i], factor);
#pragma unroll
        for (u32 j = 0; j < DIM_TILES; ++j) {
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                *reinterpret_cast<u32*>(staged + chunk_offset(16 * i + 8 * half + lane / 4, j) + lane % 4 * 4) =
                    bf16_pair(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (u32 i = lane / 16; i < WARP_ROWS; i += 2) {
        const u32 own = first_query + warp * WARP_ROWS + i;
        if (own < n) {
            *reinterpret_cast<uint4*>(out + head + (u64)own * HEAD_DIM + lane % 16 * 8) =
                *reinterpret_cast<const uint4*>(staged + chunk_offset(i, lane % 16));
        }
    }
#endif
}
