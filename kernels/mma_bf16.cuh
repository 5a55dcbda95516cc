// Tensor core steps on BF16 fragments, as a warp holds them (PTX ISA, "Matrix fragments for mma.m16n8k16"): with
// g = lane / 4 and t = lane % 4,
//   a: rows g and g + 8 of 16 at columns 2t, 2t + 1; then both at columns 2t + 8, 2t + 9
//   b: rows 2t, 2t + 1 of column g; then rows 2t + 8, 2t + 9
//   d: row g at columns 2t, 2t + 1; then row g + 8
// Architectures: sm_80 and later.
#pragma once

#include "types.cuh"

// d += a b, accumulated in FP32.
__device__ __forceinline__ void mma_bf16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The transpose of an 8 x 8 matrix of 16-bit elements of which a lane holds row g at columns 2t, 2t + 1.
__device__ __forceinline__ u32 transposed_8x8(u32 pair) {
    u32 found;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(found) : "r"(pair));
    return found;
}
