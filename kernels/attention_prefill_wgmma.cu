// Prefill attention O = softmax(Q K^T / sqrt(d)) V with BF16 operands and FP32 accumulators, on Hopper's tensor cores:
// Q, K, V and O are heads x n x 128, row-major. CAUSAL: a row attends to its own position and those before.
//
// FLOP:  4 heads d pairs
// Bytes: 8 heads n d
// (pairs: n n, or n (n + 1) / 2 where causal)
//
// Block: 128 rows of one head by two warpgroups of 64 rows and a thread that feeds them, as in FlashAttention-3 (Shah
// et al. 2024). A warpgroup multiplies the scores of a tile of keys while it multiplies the probabilities of the tile
// before, and takes the softmax of those scores under the second product; the other warpgroup's products fill what is
// left. Probabilities stay in registers, as the first operand of their product; V is read transposed, as it lies. The
// copy engine (TMA) brings tiles of K and V to two stages each, swizzled so that the tensor cores read them without
// bank conflicts. Longest blocks first where causal.
// Any n > 0 is right: rows past the last of a head are those of the next one, which masks take out, or zero.
// Architectures: 9.0 (sm_90a); elsewhere this file is empty.
//
// Knob (-D): CAUSAL. Shared memory: 161 KiB and 72 bytes, dynamic.
#include "attention.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "hopper.cuh"

#ifndef CAUSAL
#define CAUSAL 0
#endif

#define WARPGROUP 128
#define MAKERS 2
#define THREADS ((MAKERS + 1) * WARPGROUP)
#define ROWS 64
#define TILE_QUERIES (MAKERS * ROWS)
#define TILE_KEYS 128
#define STAGES 2
#define KEY_TILES (TILE_KEYS / 8)
#define DIM_TILES (HEAD_DIM / 8)
// Of the 168 x 384 that a block has: what the feeding warpgroup does not need goes to the other two.
#define FEEDER_REGISTERS 24
#define MAKER_REGISTERS 240
// A box is as wide as the swizzle: a tile lies in two halves of 64 columns.
#define BOX_COLUMNS 64
#define BOX_ROW_BYTES 128
#define QUERY_BYTES (TILE_QUERIES * ROW_BYTES)
#define STAGE_BYTES (TILE_KEYS * ROW_BYTES)

// 64 rows x 128 columns, 16 deep: 8 columns to four of a thread's registers (attention.cuh).
static_assert(TILE_KEYS == HEAD_DIM, "scores and result are products of one shape");
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
#define SUMS                                                                                                          \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "  \
    "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define FOUR(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 1), FOUR(i + 2), FOUR(i + 3)

// a b^T (+ sums), both with their depth contiguous.
__device__ __forceinline__ void multiply_rows_by_rows(float (&sums)[16][4], u64 a, u64 b, u32 adding) {
    asm volatile("{ .reg .pred adding; setp.ne.b32 adding, %66, 0; " PRODUCT SUMS ", %64, %65, adding, 1, 1, 0, 0; }"
                 : SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12)
                 : "l"(a), "l"(b), "r"(adding));
}

// Rows of 128 bytes that are the depth of a product; its columns go on `stride` bytes further every 128 bytes.
__device__ __forceinline__ u64 columns_of_128_bytes(u32 address, u32 stride) {
    return rows_of_128_bytes(address) ^ 1ull << 16 ^ (u64)(stride >> 4) << 16;
}

// Registers that products have written: nothing reads them earlier than here, or computes them later.
template <u32 TILES>
__device__ __forceinline__ void products_written(float (&sums)[TILES][4]) {
#pragma unroll
    for (u32 i = 0; i < TILES; ++i) {
        asm volatile("" : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])::"memory");
    }
}

// sums + a b, of registers and of rows that are the depth.
__device__ __forceinline__ void multiply_registers(float (&sums)[16][4], const u32 (&a)[4], u64 b) {
    asm volatile(PRODUCT SUMS ", {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Stages of K or of V, each with a barrier that says it is full and one that says it is free.
struct Ring {
    u32 stages, barriers, stage = 0, parity = 0;

    __device__ __forceinline__ Ring(u32 first_stage, u32 first_barrier)
        : stages(first_stage), barriers(first_barrier) {}
    __device__ __forceinline__ u32 tile() const {
        return stages + stage * STAGE_BYTES;
    }
    __device__ __forceinline__ u32 full() const {
        return barriers + stage * 16;
    }
    __device__ __forceinline__ u32 free() const {
        return full() + 8;
    }
    __device__ __forceinline__ void wait() const {
        barrier_wait(full(), parity);
    }
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    // Of the warps that multiply one lane each: the stage may be filled again.
    __device__ __forceinline__ void release() {
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(free(), 0);
        }
        next();
    }
};

__device__ __forceinline__ void load_rows(u32 to, const TensorMap* map, u32 rows, u32 first, u32 barrier) {
    load_box(to, map, 0, first, barrier);
    load_box(to + rows * BOX_ROW_BYTES, map, BOX_COLUMNS, first, barrier);
}

// Fills the next stage.
__device__ __forceinline__ void fill(Ring& ring, const TensorMap* map, u32 first) {
    barrier_wait(ring.free(), ring.parity ^ 1);
    barrier_announce(ring.full(), STAGE_BYTES);
    load_rows(ring.tile(), map, TILE_KEYS, first, ring.full());
    ring.next();
}

// Where a 16-byte chunk of a row of the queries' tile lies.
__device__ __forceinline__ u32 chunk_offset(u32 row, u32 chunk) {
    return (chunk / 8 * TILE_QUERIES + row) * BOX_ROW_BYTES + (chunk % 8 ^ row % 8) * 16;
}

// Grid: ceil(n / 128) x heads. Maps of Q, K and V as heads n rows of 128, with boxes of 64 columns by 128 rows and the
// swizzle of 128 bytes.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_prefill(const TensorMap* queries, const TensorMap* keys, const TensorMap* values, u16* __restrict__ out,
                      u32 n) {
    extern __shared__ unsigned char unaligned[];
    const u32 shared = (shared_address(unaligned) + 1023) & ~1023u;
    const u32 key_stages = shared + QUERY_BYTES, value_stages = key_stages + STAGES * STAGE_BYTES;
    const u32 query_barrier = value_stages + STAGES * STAGE_BYTES, barriers = query_barrier + 8;
    Ring key_ring(key_stages, barriers), value_ring(value_stages, barriers + 16 * STAGES);

    const u32 head_row = blockIdx.y * n, first_query = (gridDim.x - 1 - blockIdx.x) * TILE_QUERIES;
    const u32 seen = CAUSAL && first_query + TILE_QUERIES < n ? first_query + TILE_QUERIES : n;
    const u32 tiles = (seen + TILE_KEYS - 1) / TILE_KEYS;

    if (threadIdx.x == 0) {
        barrier_start(query_barrier, 1);
        for (u32 i = 0; i < 2 * STAGES; ++i) {
            barrier_start(barriers + 16 * i, 1);
            barrier_start(barriers + 16 * i + 8, MAKERS * WARPGROUP / 32);
        }
        barriers_started();
    }
    __syncthreads();

    if (threadIdx.x >= MAKERS * WARPGROUP) {
        fewer_registers<FEEDER_REGISTERS>();
        if (threadIdx.x == MAKERS * WARPGROUP) {
            acquire_map(queries);
            acquire_map(keys);
            acquire_map(values);
            barrier_announce(query_barrier, QUERY_BYTES);
            load_rows(shared, queries, TILE_QUERIES, head_row + first_query, query_barrier);
            // Scores are one tile ahead.
#pragma unroll 1
            for (u32 tile = 0; tile <= tiles; ++tile) {
                if (tile < tiles) {
                    fill(key_ring, keys, head_row + tile * TILE_KEYS);
                }
                if (tile > 0) {
                    fill(value_ring, values, head_row + (tile - 1) * TILE_KEYS);
                }
            }
        }
        return;
    }

    more_registers<MAKER_REGISTERS>();
    const u32 group = threadIdx.x / WARPGROUP, lane = threadIdx.x % 32;
    const u32 group_row = first_query + group * ROWS, warp_row = threadIdx.x / 32 * 16;
    const u64 query = rows_of_128_bytes(shared + group * ROWS * BOX_ROW_BYTES);

    OnlineSoftmax softmax;
    float sums[DIM_TILES][4] = {}, scores[KEY_TILES][4], correction[2];
    u32 probabilities[TILE_KEYS / 16][4];

    const auto start_scores = [&]() {
        const u64 key = rows_of_128_bytes(key_ring.tile());
        products_begin();
#pragma unroll
        for (u32 depth = 0; depth < HEAD_DIM / 16; ++depth) {
            const u32 box = depth / 4 * BOX_ROW_BYTES, column = depth % 4 * 32;
            multiply_rows_by_rows(scores, query + (box * TILE_QUERIES + column) / 16,
                                  key + (box * TILE_KEYS + column) / 16, depth > 0);
        }
        products_commit();
    };
    const auto start_sums = [&]() {
        value_ring.wait();
        const u64 value = columns_of_128_bytes(value_ring.tile(), TILE_KEYS * BOX_ROW_BYTES);
        products_begin();
#pragma unroll
        for (u32 depth = 0; depth < TILE_KEYS / 16; ++depth) {
            multiply_registers(sums, probabilities[depth], value + depth * 16 * BOX_ROW_BYTES / 16);
        }
        products_commit();
    };
    // The wait for the keys after these keeps the compiler from moving this behind a wait for products.
    const auto take_scores = [&](u32 tile) {
        products_written(scores);
        key_ring.release();
        if ((tile + 1) * TILE_KEYS > (CAUSAL && group_row < n ? group_row + 1 : n)) {
            mask_scores(scores, first_query + warp_row + lane / 4, tile * TILE_KEYS, n, CAUSAL);
        }
        softmax.update(scores, correction);
        products_written(scores);
        if (tile + 1 < tiles) {
            key_ring.wait();
        }
    };

    barrier_wait(query_barrier, 0);
    key_ring.wait();
    start_scores();
    products_done<0>();
    take_scores(0);
    pack_operand(probabilities, scores);
#pragma unroll 1
    for (u32 tile = 1; tile < tiles; ++tile) {
        start_scores();
        start_sums();
        products_done<1>();
        take_scores(tile);
        products_done<0>();
        products_written(sums);
        value_ring.release();
        multiply_rows(sums, correction);
        pack_operand(probabilities, scores);
    }
    start_sums();
    float factor[2];
    softmax.finish(factor);
    products_done<0>();
    products_written(sums);
    multiply_rows(sums, factor);

    // Through the queries' rows, which only this warpgroup read, so that whole rows are stored.
    named_barrier(1 + group, WARPGROUP);
    unsigned char* const staged = unaligned + (shared - shared_address(unaligned));
#pragma unroll
    for (u32 j = 0; j < DIM_TILES; ++j) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 at = chunk_offset(warp_row + 8 * half + lane / 4, j) + lane % 4 * 4;
            *reinterpret_cast<u32*>(staged + at) = bf16_pair(sums[j][2 * half], sums[j][2 * half + 1]);
        }
    }
    __syncwarp();
#pragma unroll
    for (u32 i = lane / 16; i < 16; i += 2) {
        const u32 row = first_query + warp_row + i;
        if (row < n) {
            *reinterpret_cast<uint4*>(out + ((u64)head_row + row) * HEAD_DIM + lane % 16 * 8) =
                *reinterpret_cast<const uint4*>(staged + chunk_offset(warp_row + i, lane % 16));
        }
    }
}
#endif
