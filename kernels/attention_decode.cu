// Decode attention: one new query a sequence against its cache, query heads sharing key-value heads in groups (GQA).
//
// Shape: q and out [b][h][128], k and v [b][g][n][128], dense BF16; h / g query heads a group, at most 8; any n >= 1.
//   `partials`: 8 x 130 floats a block, `arrived`: a word for each of b g, 0.
// FLOP:  512 b h n
// Bytes: 512 b g n + 512 b h
//
// The cache is read once for all queries of a group: 16 keys at a time, the tensor cores make S^T = K Q^T (16 keys x 8
// queries, of which a group fills its number) and O^T += V^T P^T (128 x 8). Queries are the narrow side, so nothing
// is padded to 16, and maximum and sum of a query lie in the lanes that scale its accumulators.
// No shared memory on the way: the sum over d may go in any order, so each lane loads 16 contiguous bytes of a row of K
// and takes them for the fragment's elements, with Q in the same order; pairs of V rows are interleaved by byte
// permutations, again at d of the lane's own choice. K is loaded for the next step as soon as S has used it, V after O:
// each warp has 4 to 8 KiB in flight always.
// Grid: splits of the context x b g (flash decoding); each warp takes every WARPS-th step of its block's share. Warps
// are combined in shared memory, blocks by the last one to arrive for a pair of sequence and head, in the order of
// the splits: one launch, the same bits every time. It leaves `arrived` at 0.
// Numerators are rounded to BF16 for the second product, as flash attention does; their sum is not.
// Architectures: sm_80 and later (the tensor cores of sm_75 have no BF16); before, an empty kernel.
//
// Knobs (-D): WARPS a block, BLOCKS_PER_SM that registers must leave room for, LOAD of vectors.cuh.
#include "bf16.cuh"
#include "fast_math.cuh"
#include "mma_bf16.cuh"
#include "vectors.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 3
#endif

#define THREADS (WARPS * 32)
#define HEAD_DIM 128
#define ROW_VECTORS (HEAD_DIM / VECTOR_HALVES)
#define STEP_KEYS 16
#define MOST_QUERIES 8

// Numerators and their sums hold for a maximum; this brings them to a common one. Nothing seen weighs nothing.
__device__ __forceinline__ float weight(float maximum, float common) {
    return maximum == __uint_as_float(0xFF800000u) ? 0.0f : fast_exp2(maximum - common);
}

// What a block found for its keys, or the pair's blocks for all: maxima and sums of a group's queries, and sums of
// weighted values.
struct Part {
    float maximum[MOST_QUERIES];
    float sum[MOST_QUERIES];
    float values[MOST_QUERIES][HEAD_DIM];
};

// The keys of a warp's step, in fragments' order: rows g and g + 8, four quarters of a row.
struct Keys {
    uint4 upper[4], lower[4];
};
// The values: rows 2t, 2t + 1, 2t + 8 and 2t + 9, two halves of a row.
struct Values {
    uint4 rows[4][2];
};

__device__ __forceinline__ void load_keys(Keys& keys, const uint4* __restrict__ k, u32 step, u32 context) {
    const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const u32 upper = min(step * STEP_KEYS + g, context - 1), lower = min(step * STEP_KEYS + g + 8, context - 1);
#pragma unroll
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        keys.upper[quarter] = load_vector(k + upper * ROW_VECTORS + 4 * quarter + t);
        keys.lower[quarter] = load_vector(k + lower * ROW_VECTORS + 4 * quarter + t);
    }
}

__device__ __forceinline__ void load_values(Values& values, const uint4* __restrict__ v, u32 step, u32 context) {
    const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        const u32 row = min(step * STEP_KEYS + 2 * t + i % 2 + 8 * (i / 2), context - 1);
        values.rows[i][0] = load_vector(v + row * ROW_VECTORS + g);
        values.rows[i][1] = load_vector(v + row * ROW_VECTORS + 8 + g);
    }
}

// Scores of 16 keys (rows g, g + 8) and the queries 2t, 2t + 1.
__device__ __forceinline__ void multiply_keys(float (&scores)[4], const Keys& keys, const uint4 (&q)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        scores[i] = 0;
    }
#pragma unroll
    for (int quarter = 0; quarter < 4; ++quarter) {
        const uint4 a = keys.upper[quarter], b = keys.lower[quarter];
        mma_bf16(scores, a.x, b.x, a.y, b.y, q[quarter].x, q[quarter].y);
        mma_bf16(scores, a.z, b.z, a.w, b.w, q[quarter].z, q[quarter].w);
    }
}

// Word `index` of a vector, by a constant.
__device__ __forceinline__ u32 word(uint4 v, int index) {
    return index == 0 ? v.x : index == 1 ? v.y : index == 2 ? v.z : v.w;
}

// Accumulators i = 4 half + pair: d = 64 half + 8 g + 2 pair (elements 0, 1) and the next (2, 3) of queries 2t, 2t + 1.
__device__ __forceinline__ void multiply_values(float (&out)[8][4], const Values& values, u32 p0, u32 p1) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
            const u32 a = word(values.rows[0][half], pair), b = word(values.rows[1][half], pair);
            const u32 c = word(values.rows[2][half], pair), d = word(values.rows[3][half], pair);
            mma_bf16(out[4 * half + pair], __byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632),
                     __byte_perm(c, d, 0x5410), __byte_perm(c, d, 0x7632), p0, p1);
        }
    }
}

// The combination over the lanes that hold the same queries.
template <typename Combine>
__device__ __forceinline__ float over_keys(float value, Combine combine) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
        value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    return value;
}

// A warp's part: the steps first, first + WARPS, ... before `end`.
__device__ __forceinline__ void attend(Part& part, const uint4* __restrict__ q, const uint4* __restrict__ k,
                                       const uint4* __restrict__ v, u32 first, u32 end, u32 context, u32 queries,
                                       float scale) {
    const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float none = __uint_as_float(0xFF800000u);
    uint4 query[4];
#pragma unroll
    for (u32 quarter = 0; quarter < 4; ++quarter) {
        query[quarter] = g < queries ? q[g * ROW_VECTORS + 4 * quarter + t] : make_uint4(0, 0, 0, 0);
    }
    float maximum[2] = {none, none}, sum[2] = {0, 0}, out[8][4] = {};
    Keys keys;
    Values values;
    if (first < end) {
        load_keys(keys, k, first, context);
        load_values(values, v, first, context);
    }
    for (u32 step = first; step < end; step += WARPS) {
        const u32 next = step + WARPS;
        float scores[4];
        multiply_keys(scores, keys, query);
        if (next < end) {
            load_keys(keys, k, next, context);
        }
        float rescale[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float& upper = scores[i];
            float& lower = scores[i + 2];
            upper = step * STEP_KEYS + g < context ? upper * scale : none;
            lower = step * STEP_KEYS + g + 8 < context ? lower * scale : none;
            const float found = over_keys(fmaxf(upper, lower), [](float a, float b) { return fmaxf(a, b); });
            const float before = maximum[i];
            maximum[i] = fmaxf(before, found);
            rescale[i] = fast_exp2(before - maximum[i]);
            upper = fast_exp2(upper - maximum[i]);
            lower = fast_exp2(lower - maximum[i]);
            sum[i] = fmaf(sum[i], rescale[i], upper + lower);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            out[i][0] *= rescale[0];
            out[i][1] *= rescale[1];
            out[i][2] *= rescale[0];
            out[i][3] *= rescale[1];
        }
        const u32 p0 = transposed_8x8(bf16_pair(scores[0], scores[1]));
        const u32 p1 = transposed_8x8(bf16_pair(scores[2], scores[3]));
        multiply_values(out, values, p0, p1);
        if (next < end) {
            load_values(values, v, next, context);
        }
    }
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
        const float total = over_keys(sum[i], [](float a, float b) { return a + b; });
        if (g == 0) {
            part.maximum[2 * t + i] = maximum[i];
            part.sum[2 * t + i] = total;
        }
#pragma unroll
        for (u32 j = 0; j < 8; ++j) {
            const u32 d = j / 4 * 64 + g * 8 + j % 4 * 2;
            part.values[2 * t + i][d] = out[j][i];
            part.values[2 * t + i][d + 1] = out[j][i + 2];
        }
    }
}

// The combination of `count` parts for two neighbouring d of a query; the maximum and sum of all, too.
struct Combined {
    float maximum, sum, low, high;
};

__device__ __forceinline__ Combined combined(const Part* parts, u32 count, u32 query, u32 d) {
    Combined all = {__uint_as_float(0xFF800000u), 0, 0, 0};
    for (u32 i = 0; i < count; ++i) {
        all.maximum = fmaxf(all.maximum, parts[i].maximum[query]);
    }
#pragma unroll 4
    for (u32 i = 0; i < count; ++i) {
        const float factor = weight(parts[i].maximum[query], all.maximum);
        all.sum = fmaf(parts[i].sum[query], factor, all.sum);
        all.low = fmaf(parts[i].values[query][d], factor, all.low);
        all.high = fmaf(parts[i].values[query][d + 1], factor, all.high);
    }
    return all;
}

// out = softmax(scale q k^T) v; `scale` includes log2 of e.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    attention_decode(const uint4* __restrict__ q, const uint4* __restrict__ k, const uint4* __restrict__ v,
                     u32* __restrict__ out, float* partials, u32* arrived, u32 queries, u32 context, float scale) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    __shared__ Part parts[WARPS];
    __shared__ bool is_last;
    const u32 splits = gridDim.x, pair = blockIdx.y, warp = threadIdx.x / 32;
    const u64 steps = (context + STEP_KEYS - 1) / STEP_KEYS, cache = (u64)pair * context * ROW_VECTORS;
    const u32 begin = (u32)(steps * blockIdx.x / splits), end = (u32)(steps * (blockIdx.x + 1) / splits);
    const u64 first_query = (u64)pair * queries;
    attend(parts[warp], q + first_query * ROW_VECTORS, k + cache, v + cache, begin + warp, end, context, queries, scale);
    __syncthreads();

    Part* const of_pair = (Part*)partials + (u64)pair * splits;
    Part& found = of_pair[blockIdx.x];
    for (u32 i = threadIdx.x; i < queries * HEAD_DIM / 2; i += THREADS) {
        const u32 query = i / (HEAD_DIM / 2), d = i % (HEAD_DIM / 2) * 2;
        const Combined all = combined(parts, WARPS, query, d);
        found.values[query][d] = all.low;
        found.values[query][d + 1] = all.high;
        if (d == 0) {
            found.maximum[query] = all.maximum;
            found.sum[query] = all.sum;
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(&arrived[pair], 1u) == splits - 1;
    }
    __syncthreads();
    if (!is_last) {
        return;
    }
    __threadfence();
    for (u32 i = threadIdx.x; i < queries * HEAD_DIM / 2; i += THREADS) {
        const Combined all = combined(of_pair, splits, i / (HEAD_DIM / 2), i % (HEAD_DIM / 2) * 2);
        out[first_query * (HEAD_DIM / 2) + i] = bf16_pair(all.low / all.sum, all.high / all.sum);
    }
    if (threadIdx.x == 0) {
        arrived[pair] = 0;
    }
#endif
}
