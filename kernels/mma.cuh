// Tensor-core instructions of one warp, as every architecture since 7.5 has them: fragments from shared memory,
// products of 16 x 8 and 32 bytes of depth. A fragment's registers hold four bytes of depth each, whatever the type: of
// 16 rows of A those of lane / 4 and that plus 8 at depth 4 (lane % 4), then both at 16 bytes more; of 8 rows of B that
// of lane / 4 at the same two depths. A sum's hold columns 2 (lane % 4) and the next one of row lane / 4, then of that
// plus 8.
#pragma once

#include "types.cuh"

// Elements of a product.
enum class Operand { FP16, BF16, TF32, E4M3, INT8 };

// Four matrices of 8 rows of 16 bytes; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(u32 (&to)[4], u32 shared_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_row)
                 : "memory");
}

#define MMA(SHAPE_AND_TYPES, CONSTRAINT)                                                                     \
    asm("mma.sync.aligned." SHAPE_AND_TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : CONSTRAINT(c[0]), CONSTRAINT(c[1]), CONSTRAINT(c[2]), CONSTRAINT(c[3])                              \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <Operand OPERAND>
__device__ __forceinline__ void multiply_16x8(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    if (OPERAND == Operand::FP16) {
        MMA("m16n8k16.row.col.f32.f16.f16.f32", "+f");
    } else if (OPERAND == Operand::BF16) {
        MMA("m16n8k16.row.col.f32.bf16.bf16.f32", "+f");
    } else if (OPERAND == Operand::TF32) {
        MMA("m16n8k8.row.col.f32.tf32.tf32.f32", "+f");
    }
#if __CUDA_ARCH__ >= 890
    if (OPERAND == Operand::E4M3) {
        MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32", "+f");
    }
#endif
#else
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
    }
#endif
}

template <Operand OPERAND>
__device__ __forceinline__ void multiply_16x8(int (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    MMA("m16n8k32.row.col.s32.s8.s8.s32", "+r");
#else
#pragma unroll
    for (u32 part = 0; part < 4; ++part) {
        const u32 row = part % 2;
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(c[2 * row]), "+r"(c[2 * row + 1])
            : "r"(a[part]), "r"(b[part / 2]));
    }
#endif
}
#undef MMA

// Two neighbours of a row, rounded to nearest.
template <Operand OPERAND>
__device__ __forceinline__ u32 packed(float first, float second) {
    u32 pair;
#if __CUDA_ARCH__ >= 800
    if (OPERAND == Operand::FP16) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    }
#else
    asm("{ .reg .f16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high}; }"
        : "=r"(pair)
        : "f"(first), "f"(second));
#endif
    return pair;
}
