// General matrix products C = A B^T on tensor cores by mma.sync: A is m x k, B is n x k, C is m x n, all row-major.
//
// FLOP:  2 m n k
// Bytes: e (m k + n k) + r m n (e and r are the sizes of an operand and of a result)
//
// Accumulated in FP32, INT8 in INT32; BF16, FP16, FP32, BF16 and INT32 are stored. Block: see multistage.cuh; a step is
// 128 bytes deep, four units of 32, for which ldmatrix brings fragments of any type.
// Architectures: 8.0 and later; 7.5 has FP16 and INT8. FP8 where it has a unit of its own: 8.9 and 12.0 (on 9.0 and
// 10.0 mma.sync widens it to FP16, and measures that). 9.0 runs WGMMA instead.
#include "mma.cuh"
#include "multistage.cuh"

typedef unsigned short u16;

template <Operand OPERAND, typename Element, typename Accumulator, typename Result>
struct ProductMma {
    typedef Element Word;
    typedef Result Out;
    static constexpr u32 UNITS = 4;
    static_assert(WARP_N % 16 == 0, "B is loaded in 16 rows");

    struct A {
        u32 values[4];
    };
    struct B {
        u32 values[WARP_N / MMA_N][2];
    };
    struct Sum {
        Accumulator values[WARP_N / MMA_N][4];
    };

    // ldmatrix reads one chunk of eight rows at once.
    static __device__ __forceinline__ u32 swap(u32 row) {
        return row % 8;
    }

    static __device__ __forceinline__ u32 own_a() {
        const u32 lane = threadIdx.x % 32;
        return chunk_offset<ProductMma>(lane % 16, lane / 16);
    }
    static __device__ __forceinline__ u32 own_b() {
        const u32 lane = threadIdx.x % 32;
        return chunk_offset<ProductMma>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    }

    // Units are two chunks apart, before they are swapped.
    static __device__ __forceinline__ u32 matrix(const u8* stages, u32 offset, u32 row, u32 unit) {
        return shared_address(stages) + (offset ^ unit * 2 * CHUNK_BYTES) + row * ROW_BYTES;
    }

    static __device__ __forceinline__ void load(A& to, const u8* stages, u32 offset, u32 row, u32 unit) {
        load_matrices(to.values, matrix(stages, offset, row, unit));
    }

    static __device__ __forceinline__ void load(B& to, const u8* stages, u32 offset, u32 row, u32 unit) {
#pragma unroll
        for (u32 j = 0; j < WARP_N / MMA_N; j += 2) {
            u32 values[4];
            load_matrices(values, matrix(stages, offset, row + j * MMA_N, unit));
            to.values[j][0] = values[0];
            to.values[j][1] = values[1];
            to.values[j + 1][0] = values[2];
            to.values[j + 1][1] = values[3];
        }
    }

    static __device__ __forceinline__ void multiply(Sum& sum, const A& a, const B& b) {
#pragma unroll
        for (u32 j = 0; j < WARP_N / MMA_N; ++j) {
            multiply_16x8<OPERAND>(sum.values[j], a.values, b.values[j]);
        }
    }

    template <bool GUARDED>
    static __device__ __forceinline__ void store(Result* c, const Sum& sum, u32 row, u32 column, u32 m, u32 n) {
        column += threadIdx.x % 4 * 2;
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            const u32 at_m = row + threadIdx.x % 32 / 4 + half * 8;
#pragma unroll
            for (u32 j = 0; j < WARP_N / MMA_N; ++j) {
                const u32 at_n = column + j * MMA_N;
                if (!GUARDED) {
                    store_pair(c + (u64)at_m * n + at_n, &sum.values[j][2 * half], 2);
                } else if (at_m < m && at_n < n) {
                    store_pair(c + (u64)at_m * n + at_n, &sum.values[j][2 * half], n % 2 == 0 ? 2 : n - at_n);
                }
            }
        }
    }

    // `count` of two neighbours; where it is constantly two, the row is aligned to both.
    static __device__ __forceinline__ void store_pair(u16* to, const float* sum, u32 count) {
        const u32 pair = packed<OPERAND>(sum[0], sum[1]);
        if (count == 2 && reinterpret_cast<u64>(to) % 4 == 0) {
            *reinterpret_cast<u32*>(to) = pair;
            return;
        }
        to[0] = (u16)pair;
        if (count > 1) {
            to[1] = (u16)(pair >> 16);
        }
    }
    template <typename Stored>
    static __device__ __forceinline__ void store_pair(Stored* to, const Accumulator* sum, u32 count) {
        to[0] = sum[0];
        if (count > 1) {
            to[1] = sum[1];
        }
    }
};

// Grid: any number of blocks; they walk over the tiles. a, b and c are aligned to 16 bytes; k > 0. Shared memory:
// STAGES times 128 (TILE_M + TILE_N) bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_fp16(const u16* __restrict__ a, const u16* __restrict__ b, u16* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductMma<Operand::FP16, u16, float, u16>>(a, b, c, m, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_int8(const u8* __restrict__ a, const u8* __restrict__ b, int* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductMma<Operand::INT8, u8, int, int>>(a, b, c, m, n, k);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_bf16(const u16* __restrict__ a, const u16* __restrict__ b, u16* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductMma<Operand::BF16, u16, float, u16>>(a, b, c, m, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_tf32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductMma<Operand::TF32, u32, float, float>>(a, b, c, m, n, k);
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gemm_fp8(const u8* __restrict__ a, const u8* __restrict__ b, u16* __restrict__ c, u32 m, u32 n, u32 k) {
    product<ProductMma<Operand::E4M3, u8, float, u16>>(a, b, c, m, n, k);
}
#endif
