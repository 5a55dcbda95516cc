// General matrix product C = A B^T in FP64 on tensor cores: A is m x k, B is n x k, C is m x n, all row-major.
//
// FLOP:  2 m n k
// Bytes: 8 (m k + n k + m n)
//
// Block: see multistage.cuh. A product of 16 x 8 x 8 keeps a quarter of an SM busy for 32 clocks, so that what else is
// issued costs nothing and what counts is that its operands are there: a warp's 64 x 32 of C takes 12 loads of 16 bytes
// for 32 x 32 clocks of products. The order of terms is free, so that a thread takes neighbours in depth with one load
// for what the instruction has four apart.
// Architectures: all. 9.0 and later multiply 16 x 8 x 8 at once, 8.x 8 x 8 x 4; 7.5, which has no such unit, passes
// operands between the lanes that hold them and multiplies on the FP64 units.
#if __CUDA_ARCH__ < 800 && !defined(TILE_M)
#define TILE_M 64
#define TILE_N 64
#endif
#include "multistage.cuh"

struct ProductFp64 {
    typedef u64 Word;
    typedef double Out;
    static constexpr u32 UNITS = 2;

    // Rows g and g + 8, g = lane / 4, at depth lane % 4, then four deeper.
    struct A {
        double values[4];
    };
    // Row g of every eight, at the same depths.
    struct B {
        double values[WARP_N / MMA_N][2];
    };
    // Columns 2 (lane % 4) and the next one of row g, then of row g + 8.
    struct Sum {
        double values[WARP_N / MMA_N][4];
    };

    // Half of a warp reads four neighbours of four rows at once: those then lie in all banks.
    static __device__ __forceinline__ u32 swap(u32 row) {
        return row % 4 * 2;
    }

    // Element lane % 4 of row lane / 4.
    static __device__ __forceinline__ u32 own_a() {
        const u32 lane = threadIdx.x % 32;
        return chunk_offset<ProductFp64>(lane / 4, lane % 4 / 2) + lane % 2 * 8;
    }
    static __device__ __forceinline__ u32 own_b() {
        return own_a();
    }

    // The lane's own of some row and the four that are `four` fours deep: two chunks further each, before they are
    // swapped.
    static __device__ __forceinline__ double element(const u8* stages, u32 offset, u32 row, u32 four) {
        return *reinterpret_cast<const double*>(stages + (offset ^ four * 2 * CHUNK_BYTES) + row * ROW_BYTES);
    }

    static __device__ __forceinline__ void load(A& to, const u8* stages, u32 offset, u32 row, u32 unit) {
        to.values[0] = element(stages, offset, row, 2 * unit);
        to.values[1] = element(stages, offset, row + 8, 2 * unit);
        to.values[2] = element(stages, offset, row, 2 * unit + 1);
        to.values[3] = element(stages, offset, row + 8, 2 * unit + 1);
    }

    static __device__ __forceinline__ void load(B& to, const u8* stages, u32 offset, u32 row, u32 unit) {
#pragma unroll
        for (u32 j = 0; j < WARP_N / MMA_N; ++j) {
            to.values[j][0] = element(stages, offset, row + j * MMA_N, 2 * unit);
            to.values[j][1] = element(stages, offset, row + j * MMA_N, 2 * unit + 1);
        }
    }

    // c += a b for 8 x 8 x 4: lane 4 g + t holds a[g][t], b[t][g] and c[g][2 t], c[g][2 t + 1].
    static __device__ __forceinline__ void multiply_8x8x4(double& c0, double& c1, double a, double b) {
#if __CUDA_ARCH__ >= 800
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c0), "+d"(c1)
            : "d"(a), "d"(b));
#else
        const u32 lane = threadIdx.x % 32;
#pragma unroll
        for (u32 l = 0; l < 4; ++l) {
            const double own = __shfl_sync(0xFFFFFFFFu, a, lane / 4 * 4 + l);
            c0 = fma(own, __shfl_sync(0xFFFFFFFFu, b, lane % 4 * 8 + l), c0);
            c1 = fma(own, __shfl_sync(0xFFFFFFFFu, b, lane % 4 * 8 + 4 + l), c1);
        }
#endif
    }

    static __device__ __forceinline__ void multiply_16x8x8(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
        for (u32 l = 0; l < 2; ++l) {
            multiply_8x8x4(c[0], c[1], a[2 * l], b[l]);
            multiply_8x8x4(c[2], c[3], a[2 * l + 1], b[l]);
        }
#endif
    }

    static __device__ __forceinline__ void multiply(Sum& sum, const A& a, const B& b) {
#pragma unroll
        for (u32 j = 0; j < WARP_N / MMA_N; ++j) {
            multiply_16x8x8(sum.values[j], a.values, b.values[j]);
        }
    }

    template <bool GUARDED>
    static __device__ __forceinline__ void store(double* c, const Sum& sum, u32 row, u32 column, u32 m, u32 n) {
        column += threadIdx.x % 4 * 2;
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 at_m = row + threadIdx.x % 32 / 4 + half * 8;
#pragma unroll
            for (u32 j = 0; j < WARP_N / MMA_N; ++j) {
                const u32 at_n = column + j * MMA_N;
                const double2 v = make_double2(sum.values[j][2 * half], sum.values[j][2 * half + 1]);
                double* const to = c + (u64)at_m * n + at_n;
                if (!GUARDED) {
                    *reinterpret_cast<double2*>(to) = v;
                } else if (at_m < m && at_n < n) {
                    to[0] = v.x;
                    if (at_n + 1 < n) {
                        to[1] = v.y;
                    }
                }
            }
        }
    }
};

// Grid: any number of blocks; they walk over the tiles. a, b and c are aligned to 16 bytes; k > 0. Shared memory:
// STAGES times 128 (TILE_M + TILE_N) bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_fp64(const double* __restrict__ a, const double* __restrict__ b, double* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductFp64>(a, b, c, m, n, k);
}
