// The most that the units of an SM do: fused multiply-adds, exponentials, tensor-core products, from registers.
//
// Shape: THREADS threads a block, one block an SM, all at once; `rounds` rounds a thread.
// FLOP:  fma_fp32 2 t c s, fma_fp64 2 t c s, fma_fp16x2 4 t c s, ex2 t c s, mma_bf16 4096 w p, wgmma_bf16 524288 g p
//        for t threads of c chains of s steps, w warps or g groups of 4 warps that issue p products each; an exponential
//        counts as one.
// Bytes: 0 (operands stay on the SM; the results are written once)
//
// FMA chains. A step of a chain is x = -x + b: one machine instruction that takes every operand, with exact results,
// since x stays a whole number that the significand holds. Two steps bring x home; in the last step of a round b is
// larger by 1, so x ends larger by the number of rounds and the check counts every round of every chain exactly.
// CHAINS chains a thread and 32 warps hide the 4 cycles (FP64 8) that a step waits. A round is CHAINS x STEPS
// instructions to three of the loop.
// Architectures: all; BF16 from 8.0, wgmma on 9.0a.
#include "types.cuh"

#ifndef CHAINS
#define CHAINS 8
#endif
#ifndef STEPS
#define STEPS 128
#endif
#define THREADS 1024

// A whole number below 2^bits for each chain of each thread, spread over all bits by a Weyl sequence.
__device__ __forceinline__ u32 start_of(u32 thread, u32 chain, u32 bits) {
    return (thread * CHAINS + chain) * 0x9E3779B9u >> (32 - bits);
}

__device__ __forceinline__ u32 thread_of_grid() {
    return blockIdx.x * THREADS + threadIdx.x;
}

// out[chain x threads + thread] = x after `rounds` rounds of STEPS steps: start + rounds.
template <typename Value, typename Start, typename Step>
__device__ __forceinline__ void run_chains(Value* __restrict__ out, u32 rounds, Start start, Step step) {
    const u32 thread = thread_of_grid(), threads = gridDim.x * THREADS;
    Value x[CHAINS];
#pragma unroll
    for (u32 c = 0; c < CHAINS; ++c) {
        x[c] = start(thread, c);
    }
#pragma unroll 1
    for (u32 round = 0; round < rounds; ++round) {
#pragma unroll
        for (u32 s = 0; s < STEPS; ++s) {
#pragma unroll
            for (u32 c = 0; c < CHAINS; ++c) {
                step(x[c], s == STEPS - 1);
            }
        }
    }
#pragma unroll
    for (u32 c = 0; c < CHAINS; ++c) {
        out[(u64)c * threads + thread] = x[c];
    }
}

// Starts below 2^22, at most 2^23 rounds. factor = -1, usual = 2^22, last = usual + 1: arguments, so that nothing folds.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    peak_fma_fp32(float* __restrict__ out, float factor, float usual, float last, u32 rounds) {
    run_chains(
        out, rounds, [](u32 thread, u32 chain) { return (float)start_of(thread, chain, 22); },
        [=](float& x, bool is_last) {
            asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(factor), "f"(is_last ? last : usual));
        });
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    peak_fma_fp64(double* __restrict__ out, double factor, double usual, double last, u32 rounds) {
    run_chains(
        out, rounds, [](u32 thread, u32 chain) { return (double)start_of(thread, chain, 32); },
        [=](double& x, bool is_last) {
            asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(x) : "d"(factor), "d"(is_last ? last : usual));
        });
}

// Two whole numbers below 2^10 as FP16, at most 2^10 rounds; out holds both. factor, usual and last are pairs too.
__device__ __forceinline__ u32 half_pair(u32 low, u32 high) {
    u32 pair;
    asm("{ .reg .f16 l, h; cvt.rn.f16.u32 l, %1; cvt.rn.f16.u32 h, %2; mov.b32 %0, {l, h}; }"
        : "=r"(pair)
        : "r"(low), "r"(high));
    return pair;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    peak_fma_fp16x2(u32* __restrict__ out, u32 factor, u32 usual, u32 last, u32 rounds) {
    run_chains(
        out, rounds,
        [](u32 thread, u32 chain) {
            const u32 start = start_of(thread, chain, 20);
            return half_pair(start & 0x3FF, start >> 10);
        },
        [=](u32& x, bool is_last) {
            asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(factor), "r"(is_last ? last : usual));
        });
}

// A step is x = 2^-x by MUFU.EX2, which ends at the number that it leaves alone, 0.641185744505, from any start.
extern "C" __global__ void __launch_bounds__(THREADS, 1) peak_ex2(float* __restrict__ out, u32 rounds) {
    run_chains(
        out, rounds, [](u32 thread, u32 chain) { return (float)start_of(thread, chain, 22) * 0x1p-22f; },
        [](float& x, bool) { asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(-x)); });
}

// Tensor cores, D += A B^T with A MROWS x 16 and B NCOLUMNS x 16. Operands are whole numbers up to 127 in BF16, as
// random as a product's, in SLICES depths of 16; all but the last enter once added and once subtracted a round, the last,
// of numbers up to 3, is added. So D ends as rounds x A_last B_last^T, exactly, and never leaves what FP32 holds.
#define SLICES 4

// D (16 x 64 a warp) by mma.sync m16n8k16: a has SLICES x 16 x 16, b SLICES x 64 x 16 elements, row-major. Every warp
// issues 8 (2 SLICES - 1) products a round; out = D of every warp. Block: MMA_WARPS warps.
#ifndef MMA_WARPS
#define MMA_WARPS 8
#endif
#define MMA_TILES 8

extern "C" __global__ void __launch_bounds__(32 * MMA_WARPS, 1)
    peak_mma_bf16(const u32* __restrict__ a, const u32* __restrict__ b, float* __restrict__ out, u32 rounds) {
#if __CUDA_ARCH__ >= 800
    const u32 lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    u32 left[SLICES][4], right[SLICES][MMA_TILES][2];
    float d[MMA_TILES][4] = {};
#pragma unroll
    for (u32 s = 0; s < SLICES; ++s) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            left[s][i] = a[(s * 16 + row + i % 2 * 8) * 8 + pair + i / 2 * 4];
        }
#pragma unroll
        for (u32 t = 0; t < MMA_TILES; ++t) {
#pragma unroll
            for (u32 i = 0; i < 2; ++i) {
                right[s][t][i] = b[(s * MMA_TILES * 8 + t * 8 + row) * 8 + pair + i * 4];
            }
        }
    }
    const auto multiply = [&](u32 s, u32 t, u32 sign) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(d[t][0]), "+f"(d[t][1]), "+f"(d[t][2]), "+f"(d[t][3])
            : "r"(left[s][0] ^ sign), "r"(left[s][1] ^ sign), "r"(left[s][2] ^ sign), "r"(left[s][3] ^ sign),
              "r"(right[s][t][0]), "r"(right[s][t][1]));
    };
#pragma unroll 1
    for (u32 round = 0; round < rounds; ++round) {
#pragma unroll
        for (u32 s = 0; s < SLICES; ++s) {
#pragma unroll
            for (u32 negative = 0; negative < (s < SLICES - 1 ? 2 : 1); ++negative) {
#pragma unroll
                for (u32 t = 0; t < MMA_TILES; ++t) {
                    multiply(s, t, negative ? 0x80008000u : 0u);
                }
            }
        }
    }
#pragma unroll
    for (u32 t = 0; t < MMA_TILES; ++t) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            out[((u64)warp * 16 + row + i / 2 * 8) * (8 * MMA_TILES) + t * 8 + pair * 2 + i % 2] = d[t][i];
        }
    }
#endif
}

// D (64 x 256 a warpgroup) by wgmma m64n256k16, both operands in shared memory: a has SLICES x 64 x 16, b SLICES x 256 x
// 16 elements, row-major. Every group issues 2 SLICES - 1 products a round; out = D of every group. Block: WGMMA_GROUPS
// groups of 128 threads.
#ifndef WGMMA_GROUPS
#define WGMMA_GROUPS 2
#endif
#ifndef PENDING
#define PENDING 1
#endif
#ifndef REPEATS
#define REPEATS 4
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Shared memory holds blocks of 8 rows x 16 bytes, the two that make a row's depth of 16 behind each other: 128 bytes
// from one to the other, 256 to the next 8 rows; no swizzle.
__device__ __forceinline__ u64 descriptor(const void* tile) {
    u64 address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(tile));
    return (address & 0x3FFFF) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

__device__ __forceinline__ void store_tile(u32* tile, const u32* __restrict__ from, u32 rows) {
    for (u32 word = threadIdx.x; word < rows * 8; word += blockDim.x) {
        const u32 row = word / 8, pair = word % 8;
        tile[row / 8 * 64 + pair / 4 * 32 + row % 8 * 4 + pair % 4] = from[word];
    }
}

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
    "+f"(d[i + 6]), "+f"(d[i + 7])
#define D32(i) D8(i), D8(i + 8), D8(i + 16), D8(i + 24)

template <int SIGN>
__device__ __forceinline__ void multiply_group(float (&d)[128], u64 a, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, 1, %130, 1, 0, 0;"
        : D32(0), D32(32), D32(64), D32(96)
        : "l"(a), "l"(b), "n"(SIGN));
}
#endif

extern "C" __global__ void __launch_bounds__(128 * WGMMA_GROUPS, 1)
    peak_wgmma_bf16(const u32* __restrict__ a, const u32* __restrict__ b, float* __restrict__ out, u32 rounds) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ alignas(128) u32 left[SLICES][64 * 8];
    __shared__ alignas(128) u32 right[SLICES][256 * 8];
    for (u32 s = 0; s < SLICES; ++s) {
        store_tile(left[s], a + s * 64 * 8, 64);
        store_tile(right[s], b + s * 256 * 8, 256);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u32 group = (blockIdx.x * blockDim.x + threadIdx.x) / 128;
    float d[128] = {};
    u64 left_at[SLICES], right_at[SLICES];
#pragma unroll
    for (u32 s = 0; s < SLICES; ++s) {
        left_at[s] = descriptor(left[s]);
        right_at[s] = descriptor(right[s]);
    }
#pragma unroll 1
    for (u32 round = 0; round < rounds; ++round) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (u32 repeat = 0; repeat < REPEATS; ++repeat) {
#pragma unroll
            for (u32 s = 0; s < SLICES; ++s) {
                multiply_group<1>(d, left_at[s], right_at[s]);
                if (s < SLICES - 1) {
                    multiply_group<-1>(d, left_at[s], right_at[s]);
                }
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const u32 row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (u32 i = 0; i < 128; ++i) {
        out[((u64)group * 64 + row + i / 2 % 2 * 8) * 256 + i / 4 * 8 + column + i % 2] = d[i];
    }
#endif
}
