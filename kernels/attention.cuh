// What both paths of prefill attention share: the online softmax on a warp's fragments, the layout of a result.
//
// A fragment holds 16 rows of a warp, 8 columns to four registers: columns 2 (lane % 4) and the next of row lane / 4,
// then of row lane / 4 + 8. mma.m16n8 and wgmma lay results out so, and two neighbours, packed, are the first operand's
// fragment of the next product: probabilities never leave the registers.
#pragma once

#include "bf16.cuh"
#include "fast_math.cuh"

typedef unsigned short u16;

#define HEAD_DIM 128
#define ROW_BYTES (2 * HEAD_DIM)
// Scores are taken in powers of two: log2(e) / sqrt(HEAD_DIM).
#define SCORE_SCALE (1.4426950408889634f * 0.08838834764831845f)

// Running softmax of the two rows that a thread shares with three neighbours: maximum of the scores, and this thread's
// part of the sum of the powers.
struct OnlineSoftmax {
    float top[2] = {__int_as_float(0xFF800000), __int_as_float(0xFF800000)};
    float sum[2] = {};

    // Turns scores into powers relative to the new maximum; returns in `correction` what earlier powers must be
    // multiplied with. At least one score of each row so far is finite.
    template <u32 TILES>
    __device__ __forceinline__ void update(float (&scores)[TILES][4], float (&correction)[2]) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            float highest = top[half];
#pragma unroll
            for (u32 i = 0; i < TILES; ++i) {
                highest = fmaxf(highest, fmaxf(scores[i][2 * half], scores[i][2 * half + 1]));
            }
            highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFFu, highest, 1));
            highest = fmaxf(highest, __shfl_xor_sync(0xFFFFFFFFu, highest, 2));
            const float offset = highest * SCORE_SCALE;
            correction[half] = fast_exp2(fmaf(top[half], SCORE_SCALE, -offset));
            top[half] = highest;
            float added = 0.0f;
#pragma unroll
            for (u32 i = 0; i < TILES; ++i) {
#pragma unroll
                for (u32 l = 2 * half; l < 2 * half + 2; ++l) {
                    scores[i][l] = fast_exp2(fmaf(scores[i][l], SCORE_SCALE, -offset));
                    added += scores[i][l];
                }
            }
            sum[half] = fmaf(sum[half], correction[half], added);
        }
    }

    // What the rows of the result are multiplied with in the end.
    __device__ __forceinline__ void finish(float (&factor)[2]) const {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
            float whole = sum[half];
            whole += __shfl_xor_sync(0xFFFFFFFFu, whole, 1);
            whole += __shfl_xor_sync(0xFFFFFFFFu, whole, 2);
            factor[half] = 1.0f / whole;
        }
    }
};

// Takes keys out of the softmax: those after the row's own where attention is causal, those past the last one.
template <u32 TILES>
__device__ __forceinline__ void mask_scores(float (&scores)[TILES][4], u32 row, u32 first_key, u32 n, bool causal) {
    const u32 column = first_key + threadIdx.x % 4 * 2;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        const u32 own = row + 8 * half, last = causal && own < n - 1 ? own : n - 1;
#pragma unroll
        for (u32 i = 0; i < TILES; ++i) {
#pragma unroll
            for (u32 l = 0; l < 2; ++l) {
                if (column + 8 * i + l > last) {
                    scores[i][2 * half + l] = __int_as_float(0xFF800000);
                }
            }
        }
    }
}

template <u32 TILES>
__device__ __forceinline__ void multiply_rows(float (&values)[TILES][4], const float (&factor)[2]) {
#pragma unroll
    for (u32 i = 0; i < TILES; ++i) {
#pragma unroll
        for (u32 l = 0; l < 4; ++l) {
            values[i][l] *= factor[l / 2];
        }
    }
}

// Powers of 16 columns as the first operand of a product.
template <u32 TILES>
__device__ __forceinline__ void pack_operand(u32 (&operand)[TILES / 2][4], const float (&powers)[TILES][4]) {
#pragma unroll
    for (u32 i = 0; i < TILES / 2; ++i) {
#pragma unroll
        for (u32 l = 0; l < 4; ++l) {
            const float* const from = powers[2 * i + l / 2] + l % 2 * 2;
            operand[i][l] = bf16_pair(from[0], from[1]);
        }
    }
}
