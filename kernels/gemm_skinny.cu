// Matrix product of few rows with large weights, C = A B^T in BF16: A is m x k, B is n x k, C is m x n, row-major.
//
// FLOP:  2 m n k
// Bytes: 2 (m k + n k + m n)
//
// Memory-bound: B streams through once. A block makes 16 x TILE_N of C over all of k, so that nothing is added up
// between blocks. Its warps take turns along k, 128 bytes of each row at a time, and load what they multiply straight
// into registers, each load anew as soon as it was used and without a barrier; their sums are added in order at the
// end, so that results do not vary. The order of terms is free, so that a lane takes 16 neighbouring bytes for two
// products, whose instruction has them apart. A, the same for all blocks, comes from the L2.
// Any m, n, k is right: rows outside repeat others and are not stored, terms outside are zero.
// Architectures: 8.0 and later, which have BF16.
//
// Knobs (-D): TILE_N rows of B a block; WARPS warps a block; BLOCKS blocks an SM.
#include "mma.cuh"

#ifndef TILE_N
#define TILE_N 64
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif

#define TILE_M 16
#define THREADS (32 * WARPS)
#define GROUPS (TILE_N / 8)
#define TURN 64u
#define CHUNK 8u
// Rows of sums lie 8 banks apart, so that what half of a warp stores at once lies in all banks.
#define PITCH (TILE_N + 8)

typedef unsigned short u16;

// 16 bytes that are read once.
__device__ __forceinline__ uint4 streamed(const u16* from) {
#if __CUDA_ARCH__
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
#else
    return *reinterpret_cast<const uint4*>(from);
#endif
}

// Up to 8 elements of a row from `at` on, zeros beyond its end.
__device__ __forceinline__ uint4 gathered(const u16* row, u32 at, u32 k) {
    u32 words[4] = {};
#pragma unroll
    for (u32 i = 0; i < CHUNK; ++i) {
        if (at + i < k) {
            words[i / 2] |= (u32)row[at + i] << 16 * (i % 2);
        }
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Eight rows of a turn, whole lines: a lane holds a chunk of row lane / 8 and of the fourth row from there.
struct Lines {
    uint4 upper, lower;
};

// The same as fragments: lane 4 g + t holds chunks t and 4 + t of row `row_of(g)`.
struct Fragment {
    uint4 first, second;
};
__device__ __forceinline__ u32 row_of(u32 g) {
    return g / 2 + g % 2 * 4;
}

__device__ __forceinline__ uint4 exchanged_words(uint4 v) {
    return make_uint4(__shfl_xor_sync(0xFFFFFFFFu, v.x, 4), __shfl_xor_sync(0xFFFFFFFFu, v.y, 4),
                      __shfl_xor_sync(0xFFFFFFFFu, v.z, 4), __shfl_xor_sync(0xFFFFFFFFu, v.w, 4));
}

// Lanes of odd g hold the second half of lines: they give that of the upper row for the first half of the lower one.
__device__ __forceinline__ Fragment fragment_of(const Lines& lines) {
    const bool is_odd = threadIdx.x / 4 % 2 == 1;
    const uint4 received = exchanged_words(is_odd ? lines.upper : lines.lower);
    return Fragment{is_odd ? received : lines.upper, is_odd ? lines.lower : received};
}

// 16 rows of A by 8 rows of B by 64.
__device__ __forceinline__ void multiply(float (&sum)[4], const Fragment (&a)[2], const Fragment& b) {
    const uint4 upper[2] = {a[0].first, a[0].second}, lower[2] = {a[1].first, a[1].second};
    const uint4 columns[2] = {b.first, b.second};
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        const u32 a_first[4] = {upper[i].x, lower[i].x, upper[i].y, lower[i].y};
        const u32 b_first[2] = {columns[i].x, columns[i].y};
        const u32 a_second[4] = {upper[i].z, lower[i].z, upper[i].w, lower[i].w};
        const u32 b_second[2] = {columns[i].z, columns[i].w};
        multiply_16x8<Operand::BF16>(sum, a_first, b_first);
        multiply_16x8<Operand::BF16>(sum, a_second, b_second);
    }
}

// Eight rows of a turn, of which a lane's are `row` and the fourth from there; rows outside repeat the last one.
template <bool GUARDED>
__device__ __forceinline__ Lines lines_of(const u16* matrix, u32 row, u32 rows, u32 at, u32 k) {
    if (!GUARDED) {
        const u16* const upper = matrix + (u64)row * k + at;
        return Lines{streamed(upper), streamed(upper + 4 * (u64)k)};
    }
    const u32 upper = row < rows ? row : rows - 1, lower = row + 4 < rows ? row + 4 : rows - 1;
    return Lines{gathered(matrix + (u64)upper * k, at, k), gathered(matrix + (u64)lower * k, at, k)};
}

// What a warp multiplies: 16 rows of A, TILE_N of B.
template <bool GUARDED>
struct Turn {
    Lines a[2], b[GROUPS];

    __device__ __forceinline__ void load_a(u32 i, const u16* matrix, u32 m, u32 at, u32 k) {
        a[i] = lines_of<GUARDED>(matrix, blockIdx.y * TILE_M + 8 * i + threadIdx.x % 32 / 8, m, at, k);
    }
    __device__ __forceinline__ void load_b(u32 j, const u16* matrix, u32 n, u32 at, u32 k) {
        b[j] = lines_of<GUARDED>(matrix, blockIdx.x * TILE_N + 8 * j + threadIdx.x % 32 / 8, n, at, k);
    }
    __device__ __forceinline__ void load(const u16* a, const u16* b, u32 m, u32 n, u32 at, u32 k) {
#pragma unroll
        for (u32 j = 0; j < GROUPS; ++j) {
            load_b(j, b, n, at, k);
        }
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            load_a(i, a, m, at, k);
        }
    }
};

// Adds a turn to the sums; with RELOADED the turn at `at` takes its place, each part as soon as it is free.
template <bool GUARDED, bool RELOADED>
__device__ __forceinline__ void add(float (&sum)[GROUPS][4], Turn<GUARDED>& turn, const u16* a, const u16* b, u32 m,
                                    u32 n, u32 at, u32 k) {
    Fragment rows[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        rows[i] = fragment_of(turn.a[i]);
        if (RELOADED) {
            turn.load_a(i, a, m, at, k);
        }
    }
#pragma unroll
    for (u32 j = 0; j < GROUPS; ++j) {
        const Fragment columns = fragment_of(turn.b[j]);
        if (RELOADED) {
            turn.load_b(j, b, n, at, k);
        }
        multiply(sum[j], rows, columns);
    }
}

template <bool GUARDED>
__device__ __forceinline__ void add_up(float (&sum)[GROUPS][4], const u16* a, const u16* b, u32 m, u32 n, u32 k) {
    const u32 own = threadIdx.x / 32 * TURN + threadIdx.x % 8 * CHUNK;
    Turn<GUARDED> turn;
    if (GUARDED) {
#pragma unroll 1
        for (u32 at = 0; at < k; at += WARPS * TURN) {
            turn.load(a, b, m, n, at + own, k);
            add<GUARDED, false>(sum, turn, a, b, m, n, 0, k);
        }
        return;
    }
    turn.load(a, b, m, n, own, k);
#pragma unroll 1
    for (u32 at = WARPS * TURN; at < k; at += WARPS * TURN) {
        add<GUARDED, true>(sum, turn, a, b, m, n, at + own, k);
    }
    add<GUARDED, false>(sum, turn, a, b, m, n, 0, k);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// Grid: ceil(n / TILE_N) x ceil(m / 16). a, b and c are aligned to 16 bytes; k > 0. Shared memory: 64 WARPS
// (TILE_N + 8) bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_skinny_bf16(const u16* __restrict__ a, const u16* __restrict__ b, u16* __restrict__ c, u32 m, u32 n, u32 k) {
    extern __shared__ uint4 shared[];
    float* const sums = reinterpret_cast<float*>(shared);

    float sum[GROUPS][4] = {};
    if (m % TILE_M == 0 && n % TILE_N == 0 && k % (WARPS * TURN) == 0) {
        add_up<false>(sum, a, b, m, n, k);
    } else {
        add_up<true>(sum, a, b, m, n, k);
    }
    // Where fragments had row 8 j + g of B they have column 8 j + row_of(g) of C.
    const u32 warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (u32 j = 0; j < GROUPS; ++j) {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            float* const row = sums + (warp * TILE_M + row_of(g) + 8 * i) * PITCH + 8 * j;
            row[row_of(2 * t)] = sum[j][2 * i];
            row[row_of(2 * t + 1)] = sum[j][2 * i + 1];
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < TILE_M * TILE_N / 2; i += THREADS) {
        const u32 row = i / (TILE_N / 2), column = i % (TILE_N / 2) * 2;
        float first = 0, second = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; ++w) {
            const float* const from = sums + (w * TILE_M + row) * PITCH + column;
            first += from[0];
            second += from[1];
        }
        const u32 at_m = blockIdx.y * TILE_M + row, at_n = blockIdx.x * TILE_N + column;
        if (at_m < m && at_n < n) {
            u16* const to = c + (u64)at_m * n + at_n;
            const u32 pair = packed<Operand::BF16>(first, second);
            to[0] = (u16)pair;
            if (at_n + 1 < n) {
                to[1] = (u16)(pair >> 16);
            }
        }
    }
}
#endif
