// Matrix product of few rows with large weights, C = A B^T in BF16: A is m x k, B is n x k, C is m x n, row-major.
//
// FLOP:  2 m n k
// Bytes: 2 (m k + n k + m n)
//
// Memory-bound: B streams through once. A block makes 16 x TILE_N of C over all of k, so that nothing is added up between
// blocks. Its warps take turns along k, 64 bytes of each row at a time, and load what they multiply straight into
// registers, DEPTH turns ahead and without a barrier; their sums are added in order at the end, so that results do not
// vary. The order of terms is free, so that a lane takes 16 neighbouring bytes for two products, whose instruction has
// them apart. A, the same for all blocks, comes from the L2.
// Any m, n, k is right: rows outside repeat the last one and are not stored, terms outside are zero.
// Architectures: 8.0 and later, which have BF16.
//
// Knobs (-D): TILE_N rows of B a block; WARPS warps a block; DEPTH turns in flight; BLOCKS blocks an SM.
#include "mma.cuh"

#ifndef TILE_N
#define TILE_N 64
#endif
#ifndef WARPS
#define WARPS 16
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif

#define TILE_M 16
#define THREADS (32 * WARPS)
#define GROUPS (TILE_N / 8)
#define TURN_BYTES 64u
#define CHUNK_BYTES 16u

// What a lane multiplies in a turn: 16 bytes of two rows of A, and of a row of every eight of B.
struct Turn {
    uint4 a[2];
    uint4 b[GROUPS];
};

// 16 bytes that are read once.
__device__ __forceinline__ uint4 streamed(const uint4* from) {
#if __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
#else
    return *from;
#endif
}

__device__ __forceinline__ uint4 loaded(const uint4* from) {
#if __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
#else
    return *from;
#endif
}

// Up to 8 elements of a row that is not aligned, zeros beyond.
__device__ __forceinline__ uint4 gathered(const unsigned short* from, u32 left) {
    u32 words[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 low = 2 * i < left ? from[2 * i] : 0, high = 2 * i + 1 < left ? from[2 * i + 1] : 0;
        words[i] = low | high << 16;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// One turn at a depth; zeros beyond the row's end. Rows of B that are outside repeat the last group's.
template <bool ALIGNED>
__device__ __forceinline__ void load(Turn& turn, const unsigned short* a, u64 lower, const unsigned short* b,
                                     u32 groups, u32 at, u32 k) {
    if (at >= k) {
        turn = Turn{};
        return;
    }
    a += at;
    b += at;
    turn.a[0] = ALIGNED ? loaded(reinterpret_cast<const uint4*>(a)) : gathered(a, k - at);
    turn.a[1] = ALIGNED ? loaded(reinterpret_cast<const uint4*>(a + lower)) : gathered(a + lower, k - at);
#pragma unroll
    for (u32 j = 0; j < GROUPS; ++j) {
        turn.b[j] = ALIGNED ? streamed(reinterpret_cast<const uint4*>(b)) : gathered(b, k - at);
        b += j + 1 < groups ? 8 * (u64)k : 0;
    }
}

__device__ __forceinline__ void multiply(float (&sum)[GROUPS][4], const Turn& turn) {
    const u32 first[4] = {turn.a[0].x, turn.a[1].x, turn.a[0].y, turn.a[1].y};
    const u32 second[4] = {turn.a[0].z, turn.a[1].z, turn.a[0].w, turn.a[1].w};
#pragma unroll
    for (u32 j = 0; j < GROUPS; ++j) {
        const u32 first_b[2] = {turn.b[j].x, turn.b[j].y}, second_b[2] = {turn.b[j].z, turn.b[j].w};
        multiply_16x8<Operand::BF16>(sum[j], first, first_b);
        multiply_16x8<Operand::BF16>(sum[j], second, second_b);
    }
}

template <bool ALIGNED>
__device__ __forceinline__ void add_up(float (&sum)[GROUPS][4], const unsigned short* a, const unsigned short* b, u32 m,
                                       u32 n, u32 k) {
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u32 row_a = blockIdx.y * TILE_M + lane / 4, row_b = blockIdx.x * TILE_N + lane / 4;
    a += (u64)(row_a < m ? row_a : m - 1) * k;
    b += (u64)(row_b < n ? row_b : n - 1) * k;
    const u64 lower = row_a + 8 < m ? 8 * (u64)k : 0;
    const u32 groups = row_b < n ? (n - row_b + 7) / 8 : 1;

    const u32 stride = WARPS * TURN_BYTES / 2;
    u32 at = warp * (TURN_BYTES / 2) + lane % 4 * (CHUNK_BYTES / 2);
    Turn turns[DEPTH];
#pragma unroll
    for (u32 d = 0; d < DEPTH; ++d) {
        load<ALIGNED>(turns[d], a, lower, b, groups, at + d * stride, k);
    }
    const u32 rounds = (k + stride * DEPTH - 1) / (stride * DEPTH);
#pragma unroll 1
    for (u32 round = 0; round < rounds; ++round) {
#pragma unroll
        for (u32 d = 0; d < DEPTH; ++d) {
            multiply(sum, turns[d]);
            load<ALIGNED>(turns[d], a, lower, b, groups, at + (d + DEPTH) * stride, k);
        }
        at += DEPTH * stride;
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// Grid: ceil(n / TILE_N) x ceil(m / 16). a, b and c are aligned to 16 bytes; k > 0.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_skinny_bf16(const unsigned short* __restrict__ a, const unsigned short* __restrict__ b,
                     unsigned short* __restrict__ c, u32 m, u32 n, u32 k) {
    // One warp's sums after the other's; a row's neighbours lie 4 banks apart from the next row's.
    extern __shared__ uint4 shared[];
    float(*const sums)[TILE_M][TILE_N + 4] = reinterpret_cast<float(*)[TILE_M][TILE_N + 4]>(shared);

    float sum[GROUPS][4] = {};
    if (k % (CHUNK_BYTES / 2) == 0) {
        add_up<true>(sum, a, b, m, n, k);
    } else {
        add_up<false>(sum, a, b, m, n, k);
    }
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (u32 j = 0; j < GROUPS; ++j) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            sums[warp][lane / 4 + i / 2 * 8][8 * j + lane % 4 * 2 + i % 2] = sum[j][i];
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < TILE_M * TILE_N; i += THREADS) {
        const u32 row = i / TILE_N, column = i % TILE_N;
        float total = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; ++w) {
            total += sums[w][row][column];
        }
        const u32 at_m = blockIdx.y * TILE_M + row, at_n = blockIdx.x * TILE_N + column;
        if (at_m < m && at_n < n) {
            c[(u64)at_m * n + at_n] = (unsigned short)packed<Operand::BF16>(total, 0.0f);
        }
    }
}
#endif
