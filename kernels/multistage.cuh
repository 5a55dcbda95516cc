// C = A B^T in tiles on tensor cores that every architecture has: A is m x k, B is n x k, C is m x n, all row-major.
//
// Operands come through a ring of STAGES tiles in shared memory, each 128 bytes deep, that cp.async fills in the
// background; what is multiplied is in registers one unit before. Blocks stay and walk over tiles: the loads of the
// next tile run while the last one is stored. Rows of a tile are 128 bytes, whose eight chunks of 16 are swapped from
// row to row, so that what a warp loads at once lies in different banks.
//
// Any m, n, k is right: chunks outside are filled with zeros, rows that are no multiple of 16 bytes are copied by
// elements. Architectures: all; without cp.async (7.5) loads wait.
//
// Knobs (-D): TILE_M, TILE_N tile of C; WARPS_M, WARPS_N how warps divide it; STAGES tiles in flight; BLOCKS blocks an
//   SM; GROUP rows of tiles that run together, for the L2.
#pragma once

#include "shared.cuh"

typedef unsigned char u8;

#ifndef TILE_M
#define TILE_M 128
#endif
#ifndef TILE_N
#define TILE_N 128
#endif
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 4
#endif
#ifndef STAGES
#define STAGES 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef GROUP
#define GROUP 8
#endif

#define THREADS (32 * WARPS_M * WARPS_N)
#define WARP_M (TILE_M / WARPS_M)
#define WARP_N (TILE_N / WARPS_N)
#define MMA_M 16
#define MMA_N 8
#define ROW_BYTES 128u
#define CHUNK_BYTES 16u
#define ROWS_AT_ONCE (THREADS / (ROW_BYTES / CHUNK_BYTES))
#define STAGE_BYTES ((TILE_M + TILE_N) * ROW_BYTES)

// Where a chunk of a row of a tile lies.
template <typename Product>
__device__ __forceinline__ u32 chunk_offset(u32 row, u32 chunk) {
    return row * ROW_BYTES + (chunk ^ Product::swap(row)) * CHUNK_BYTES;
}

// 16 bytes from global to shared memory; with GUARDED zeros where not `inside`.
template <bool GUARDED>
__device__ __forceinline__ void copy_chunk(u8* stages, u32 offset, const u8* from, bool inside) {
#if __CUDA_ARCH__ >= 800
    if (GUARDED) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(stages) + offset),
                     "l"(from), "r"(inside ? 16 : 0)
                     : "memory");
    } else {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(stages) + offset),
                     "l"(from)
                     : "memory");
    }
#else
    const uint4 zeros = make_uint4(0, 0, 0, 0);
    *reinterpret_cast<uint4*>(stages + offset) = inside ? *reinterpret_cast<const uint4*>(from) : zeros;
#endif
}

__device__ __forceinline__ void close_stage() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the last PENDING stages have arrived.
template <u32 PENDING>
__device__ __forceinline__ void wait_for_stages() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

template <typename Word>
__device__ __forceinline__ void copy_words(u8* to, const u8* from, u32 left) {
#pragma unroll
    for (u32 i = 0; i < CHUNK_BYTES; i += sizeof(Word)) {
        *reinterpret_cast<Word*>(to + i) = i < left ? *reinterpret_cast<const Word*>(from + i) : Word(0);
    }
}

// The rows of one operand that a tile takes, as one thread loads them: one chunk of every ROWS_AT_ONCE-th row.
template <typename Product, u32 ROWS, bool GUARDED>
struct Panel {
    static_assert(ROWS % ROWS_AT_ONCE == 0 && ROWS_AT_ONCE % 8 == 0, "all threads load, and swap chunks alike");
    static constexpr u32 PASSES = ROWS / ROWS_AT_ONCE;

    const u8* from;
    u32 rows_left, at;

    __device__ __forceinline__ void move_to(const void* matrix, u32 first_row, u32 rows, u32 row_bytes) {
        const u32 row = first_row + threadIdx.x / 8;
        at = threadIdx.x % 8 * CHUNK_BYTES;
        from = static_cast<const u8*>(matrix) + (u64)row * row_bytes + at;
        rows_left = row < rows ? rows - row : 0;
    }

    // Loads this thread's chunk of the pass-th row.
    __device__ __forceinline__ void fetch(u32 pass, u8* stages, u32 offset, const void* matrix, u32 row_bytes) {
        const u32 row = pass * ROWS_AT_ONCE;
        const u8* const source = from + (u64)row_bytes * row;
        offset += row * ROW_BYTES;
        if (!GUARDED) {
            copy_chunk<false>(stages, offset, source, true);
            return;
        }
        const u32 left = row < rows_left && at < row_bytes ? row_bytes - at : 0;
        if (row_bytes % CHUNK_BYTES == 0) {
            copy_chunk<true>(stages, offset, left > 0 ? source : static_cast<const u8*>(matrix), left > 0);
        } else {
            copy_words<typename Product::Word>(stages + offset, source, left);
        }
    }

    __device__ __forceinline__ void advance() {
        from += ROW_BYTES;
        at += ROW_BYTES;
    }
};

// The product, given how fragments of 16 x 8 of C are loaded, multiplied and stored:
//   Word              unsigned integer as large as an element
//   UNITS             how many times a step loads fragments; even
//   A, B, Sum         fragments: 16 rows of A, WARP_N rows of B, 16 x WARP_N of C
//   swap(row)         what the chunks of a row of shared memory are swapped by, the same for every eighth row
//   own_a(), own_b()  what a lane loads first of a tile, in bytes from its begin
//   load(A&, stages, offset, row, unit), load(B&, ...)   offset is that of the tile and the lane's own
//   multiply(Sum&, A, B), store<GUARDED>(c, Sum, row, column, m, n)
template <typename Product, bool GUARDED>
__device__ __forceinline__ void multistage_product(u8* stages, const void* a, const void* b, typename Product::Out* c,
                                                   u32 m, u32 n, u32 k) {
    static_assert(Product::UNITS % 2 == 0, "fragments alternate");
    const u32 row_bytes = k * sizeof(typename Product::Word), steps = (row_bytes + ROW_BYTES - 1) / ROW_BYTES;
    const u32 height = (m + TILE_M - 1) / TILE_M, width = (n + TILE_N - 1) / TILE_N, tiles = height * width;
    const u32 warp_m = threadIdx.x / 32 / WARPS_N * WARP_M, warp_n = threadIdx.x / 32 % WARPS_N * WARP_N;

    // Blocks go down columns of GROUP tiles: those that run at once share rows of A and B in the L2.
    const auto place = [&](u32 tile, u32& tile_m, u32& tile_n) {
        const u32 first = tile / (GROUP * width) * GROUP, rows = height - first < GROUP ? height - first : GROUP;
        tile_m = (first + tile % (GROUP * width) % rows) * TILE_M;
        tile_n = tile % (GROUP * width) / rows * TILE_N;
    };

    // What is loaded next: `fetch_left` steps of a tile, into the stage that was multiplied last.
    Panel<Product, TILE_M, GUARDED> panel_a;
    Panel<Product, TILE_N, GUARDED> panel_b;
    constexpr u32 PASSES = panel_a.PASSES + panel_b.PASSES;
    const u32 own = chunk_offset<Product>(threadIdx.x / 8, threadIdx.x % 8);
    u32 fetched_tile = blockIdx.x, fetch_left = 0, into = own;
    const auto begin_tile = [&] {
        fetch_left = ~0u;
        if (fetched_tile < tiles) {
            u32 tile_m, tile_n;
            place(fetched_tile, tile_m, tile_n);
            panel_a.move_to(a, tile_m, m, row_bytes);
            panel_b.move_to(b, tile_n, n, row_bytes);
            fetch_left = steps;
        }
    };
    const auto fetch = [&](u32 first, u32 end) {
        if (fetched_tile >= tiles) {
            return;
        }
#pragma unroll
        for (u32 pass = first; pass < end; ++pass) {
            if (pass < panel_a.PASSES) {
                panel_a.fetch(pass, stages, into, a, row_bytes);
            } else {
                panel_b.fetch(pass - panel_a.PASSES, stages, into + TILE_M * ROW_BYTES, b, row_bytes);
            }
        }
    };
    const auto end_stage = [&] {
        close_stage();
        panel_a.advance();
        panel_b.advance();
        --fetch_left;
        into = into == own + (STAGES - 1) * STAGE_BYTES ? own : into + STAGE_BYTES;
    };

    // Rows of A are loaded anew as soon as they are multiplied, for which B must be there twice.
    typename Product::A fragment_a[WARP_M / MMA_M];
    typename Product::B fragment_b[2];
    const u32 own_a = warp_m * ROW_BYTES + Product::own_a();
    const u32 own_b = (TILE_M + warp_n) * ROW_BYTES + Product::own_b();
    u32 stage = 0;
    const auto load_a = [&](u32 unit, u32 i) {
        Product::load(fragment_a[i], stages, stage + own_a, i * MMA_M, unit);
    };
    const auto load_b = [&](u32 unit) { Product::load(fragment_b[unit % 2], stages, stage + own_b, 0, unit); };

    begin_tile();
#pragma unroll
    for (u32 i = 0; i + 1 < STAGES; ++i) {
        fetch(0, PASSES);
        end_stage();
        if (fetch_left == 0) {
            fetched_tile += gridDim.x;
            begin_tile();
        }
    }
    wait_for_stages<STAGES - 2>();
    __syncthreads();
    load_b(0);
#pragma unroll
    for (u32 i = 0; i < WARP_M / MMA_M; ++i) {
        load_a(0, i);
    }
#pragma unroll 1
    for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        typename Product::Sum sum[WARP_M / MMA_M] = {};
        u32 left = steps;
#pragma unroll 1
        while (left > 0) {
            // As many steps as both tiles have left, the one that is multiplied and the one that is loaded.
            u32 run = left < fetch_left ? left : fetch_left;
            left -= run;
#pragma unroll 1
            for (; run > 0; --run) {
#pragma unroll
                for (u32 unit = 0; unit < Product::UNITS; ++unit) {
                    const u32 next = (unit + 1) % Product::UNITS;
                    if (next == 0) {
                        wait_for_stages<STAGES - 2>();
                        __syncthreads();
                        stage = stage == (STAGES - 1) * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
                    }
                    load_b(next);
#pragma unroll
                    for (u32 i = 0; i < WARP_M / MMA_M; ++i) {
                        Product::multiply(sum[i], fragment_a[i], fragment_b[unit % 2]);
                        load_a(next, i);
                        if (unit == 0) {
                            fetch(i * PASSES / (WARP_M / MMA_M), (i + 1) * PASSES / (WARP_M / MMA_M));
                        }
                    }
                    if (unit == 0) {
                        end_stage();
                    }
                }
            }
            if (fetch_left == 0) {
                fetched_tile += gridDim.x;
                begin_tile();
            }
        }
        u32 tile_m, tile_n;
        place(tile, tile_m, tile_n);
#pragma unroll
        for (u32 i = 0; i < WARP_M / MMA_M; ++i) {
            Product::template store<GUARDED>(c, sum[i], tile_m + warp_m + i * MMA_M, tile_n + warp_n, m, n);
        }
    }
    wait_for_stages<0>();
}

// The product on the path without guards where tiles are whole.
template <typename Product>
__device__ __forceinline__ void product(const void* a, const void* b, typename Product::Out* c, u32 m, u32 n, u32 k) {
    extern __shared__ uint4 stages[];
    u8* const bytes = reinterpret_cast<u8*>(stages);
    if (m % TILE_M == 0 && n % TILE_N == 0 && k * sizeof(typename Product::Word) % ROW_BYTES == 0) {
        multistage_product<Product, false>(bytes, a, b, c, m, n, k);
    } else {
        multistage_product<Product, true>(bytes, a, b, c, m, n, k);
    }
}
