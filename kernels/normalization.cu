// Softmax and layernorm of the rows of a BF16 matrix, computed in FP32: a row is read once, kept in registers, and
// written once.
//
// Shape: r rows of c columns, dense, aligned to 16 bytes, c / 8 up to BLOCK VECTORS; gamma and beta of c elements,
// aligned to 16 bytes and readable up to the next multiple of 8.
// FLOP:  softmax 5 r c, layernorm 8 r c
// Bytes: softmax 4 r c, layernorm 4 r c + 4 c
//
// A block takes a row at a time, as the 16-byte vectors that lie whole in it, VECTORS a thread. Where c is no multiple
// of 8, a row starts and ends inside of vectors that it shares with its neighbours: those elements, up to 14, go to one
// thread each. gamma and beta then lie askew to the row's vectors and are shifted into place.
// Elements stay in registers as FP32 from the load to the rounding, so each costs one exponential: two would take 9 of
// the 16 that an SM of an H200 can do a clock. Mean and squared deviations of layernorm are two passes over them: no
// cancellation. Several blocks an SM, so that some load while others reduce. Grid: any, rows go round the blocks.
// Architectures: all; before sm_80 the rounding is done in integers.
//
// Knobs (-D): BLOCK threads a block (a power of two, at least 32), VECTORS a thread, ALIGNED 1 where c is a multiple of
//   8, ROWS of layernorm that a block takes at once, BLOCKS_PER_SM that registers must leave room for, LOAD and STORE of
//   vectors.cuh.
#include "bf16.cuh"
#include "fast_math.cuh"
#include "vectors.cuh"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
#ifndef ALIGNED
#define ALIGNED 0
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 1
#endif

#define WARPS (BLOCK / 32)
// Rows so far apart start at the same place in a vector.
#define ROW_STEP VECTOR_HALVES

// Where a row lies: `head` elements before its first whole vector, `vectors` of those, and the rest.
struct Row {
    u64 start;
    u32 columns, head, vectors, edges;

    __device__ __forceinline__ Row(u64 row, u32 columns) : start(row * columns), columns(columns) {
        const u32 before = ALIGNED ? 0 : (u32)((0 - start) % VECTOR_HALVES);
        head = before < columns ? before : columns;
        vectors = (columns - head) / VECTOR_HALVES;
        edges = ALIGNED ? 0 : columns - vectors * VECTOR_HALVES;
    }

    // Vectors of a thread: threadIdx.x, and every BLOCK-th from there on.
    __device__ __forceinline__ u32 index(int i) const { return threadIdx.x + i * BLOCK; }
    __device__ __forceinline__ bool has(int i) const { return index(i) < vectors; }
    __device__ __forceinline__ bool has_edge() const { return !ALIGNED && threadIdx.x < edges; }
    // Column of the thread's element beside the vectors, of those before or of those after them.
    __device__ __forceinline__ u32 edge() const { return threadIdx.x + (threadIdx.x < head ? 0 : columns - edges); }
};

// A thread's elements of a row, and the one beside the vectors.
struct Elements {
    float of[VECTORS][VECTOR_HALVES];
    float edge;
};

__device__ __forceinline__ void unpack(float (&elements)[VECTOR_HALVES], uint4 v) {
    elements[0] = bf16_low(v.x);
    elements[1] = bf16_high(v.x);
    elements[2] = bf16_low(v.y);
    elements[3] = bf16_high(v.y);
    elements[4] = bf16_low(v.z);
    elements[5] = bf16_high(v.z);
    elements[6] = bf16_low(v.w);
    elements[7] = bf16_high(v.w);
}

__device__ __forceinline__ uint4 packed(const float (&elements)[VECTOR_HALVES]) {
    return make_uint4(bf16_pair(elements[0], elements[1]), bf16_pair(elements[2], elements[3]),
                      bf16_pair(elements[4], elements[5]), bf16_pair(elements[6], elements[7]));
}

__device__ __forceinline__ float unpacked(u16 element) {
    return bf16_low(element);
}

// Reads a row, `offset` elements behind `row` and aligned alike; what is not there is the filler.
__device__ __forceinline__ void load_row(Elements& x, const u16* __restrict__ matrix, const Row& row, u64 offset,
                                         float filler) {
    const uint4* const from = (const uint4*)(matrix + offset + row.start + row.head);
    uint4 v[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            v[i] = load_vector(from + row.index(i));
        }
    }
    x.edge = row.has_edge() ? unpacked(matrix[offset + row.start + row.edge()]) : filler;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            unpack(x.of[i], v[i]);
        } else {
#pragma unroll
            for (int j = 0; j < VECTOR_HALVES; ++j) {
                x.of[i][j] = filler;
            }
        }
    }
}

// Rounds and writes a row, `offset` elements behind `row`.
__device__ __forceinline__ void store_row(u16* __restrict__ matrix, const Row& row, u64 offset, const Elements& x) {
    uint4* const to = (uint4*)(matrix + offset + row.start + row.head);
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            store_vector(to + row.index(i), packed(x.of[i]));
        }
    }
    if (row.has_edge()) {
        matrix[offset + row.start + row.edge()] = (u16)bf16_pair(x.edge, 0);
    }
}

// Calls body(element) for all of a thread's.
template <typename Body>
__device__ __forceinline__ void for_each_element(Elements& x, Body body) {
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
#pragma unroll
        for (int j = 0; j < VECTOR_HALVES; ++j) {
            body(x.of[i][j]);
        }
    }
    if (!ALIGNED) {
        body(x.edge);
    }
}

// The combinations of all threads' values, in every thread; `slots` of one of each a warp, free again after the next
// barrier.
template <int COUNT, typename Combine>
__device__ __forceinline__ void combine_block(float (&values)[COUNT], float (&slots)[COUNT][WARPS], Combine combine) {
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            values[k] = combine(values[k], __shfl_xor_sync(0xFFFFFFFFu, values[k], distance));
        }
        if (threadIdx.x % 32 == 0) {
            slots[k][threadIdx.x / 32] = values[k];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        values[k] = slots[k][threadIdx.x % WARPS];
#pragma unroll
        for (int distance = WARPS / 2; distance > 0; distance /= 2) {
            values[k] = combine(values[k], __shfl_xor_sync(0xFFFFFFFFu, values[k], distance));
        }
    }
}

template <int COUNT>
__device__ __forceinline__ void sum_block(float (&values)[COUNT], float (&slots)[COUNT][WARPS]) {
    combine_block(values, slots, [](float a, float b) { return a + b; });
}

// out[r][c] = exp(x[r][c] - m) / s, with the maximum m of the row and the sum s of its numerators.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
    normalization_softmax(const u16* __restrict__ in, u16* __restrict__ out, u32 rows, u32 columns) {
    constexpr float LOG2_E = 1.4426950408889634f;
    __shared__ float maxima[1][WARPS], sums[1][WARPS];
    const float none = __uint_as_float(0xFF800000u);
    for (u32 r = blockIdx.x; r < rows; r += gridDim.x) {
        const Row row(r, columns);
        Elements x;
        load_row(x, in, row, 0, none);
        float maximum[1] = {none}, sum[1] = {0};
        for_each_element(x, [&](float element) { maximum[0] = fmaxf(maximum[0], element); });
        combine_block(maximum, maxima, [](float a, float b) { return fmaxf(a, b); });
        const float offset = -LOG2_E * maximum[0];
        for_each_element(x, [&](float& element) {
            element = fast_exp2(fmaf(LOG2_E, element, offset));
            sum[0] += element;
        });
        sum_block(sum, sums);
        const float factor = fast_reciprocal(sum[0]);
        for_each_element(x, [&](float& element) { element *= factor; });
        store_row(out, row, 0, x);
    }
}

// Four words from an element on: SKIPPED_WORDS words into the pair of vectors, and one element more where `is_odd`.
template <int SKIPPED_WORDS>
__device__ __forceinline__ uint4 askew_vector(uint4 a, uint4 b, bool is_odd) {
    const u32 w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    u32 shifted[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        shifted[i] = __funnelshift_r(w[SKIPPED_WORDS + i], w[SKIPPED_WORDS + i + 1], is_odd ? 16 : 0);
    }
    return make_uint4(shifted[0], shifted[1], shifted[2], shifted[3]);
}

// Scales and shifts a thread's elements, each row normalised by its own `scale`; row.head is 2 SKIPPED_WORDS or one more.
// A copy of the code for each number of words costs a quarter of the instructions of choosing words while it runs. Loads
// beyond the row go to its last vector, so that no branch keeps those of a thread from being in flight together.
template <int SKIPPED_WORDS>
__device__ __forceinline__ void transform(Elements (&x)[ROWS], const Row& row, const uint4* __restrict__ gamma,
                                          const uint4* __restrict__ beta, const float (&scale)[ROWS]) {
    const u32 last = (row.columns - 1) / VECTOR_HALVES;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (ALIGNED && !row.has(i)) {
            continue;
        }
        const u32 at = ALIGNED ? row.index(i) : min(row.index(i), last);
        uint4 gammas = gamma[at], betas = beta[at];
        if (!ALIGNED) {
            const u32 next = min(at + 1, last);
            gammas = askew_vector<SKIPPED_WORDS>(gammas, gamma[next], row.head % 2 != 0);
            betas = askew_vector<SKIPPED_WORDS>(betas, beta[next], row.head % 2 != 0);
        }
        float g[VECTOR_HALVES], b[VECTOR_HALVES];
        unpack(g, gammas);
        unpack(b, betas);
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
#pragma unroll
            for (int j = 0; j < VECTOR_HALVES; ++j) {
                x[k].of[i][j] = fmaf(x[k].of[i][j] * scale[k], g[j], b[j]);
            }
        }
    }
}

// The sum of a thread's squares; elements beside the row count nothing.
__device__ __forceinline__ float squares(const Elements& x, const Row& row) {
    float sum = row.has_edge() ? x.edge * x.edge : 0;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
#pragma unroll
            for (int j = 0; j < VECTOR_HALVES; ++j) {
                sum = fmaf(x.of[i][j], x.of[i][j], sum);
            }
        }
    }
    return sum;
}

// out[r][c] = (x[r][c] - mean) / sqrt(variance + epsilon) gamma[c] + beta[c], with mean and variance of the row.
// A block takes ROWS rows at once, which lie ROW_STEP apart: they are aligned alike, and share loads and shifts.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
    normalization_layernorm(const u16* __restrict__ in, const u16* __restrict__ gamma, const u16* __restrict__ beta,
                            u16* __restrict__ out, u32 rows, u32 columns, float epsilon) {
    __shared__ float sums[ROWS][WARPS], square_sums[ROWS][WARPS];
    const uint4 *const gammas = (const uint4*)gamma, *const betas = (const uint4*)beta;
    for (u32 group = blockIdx.x; group / ROW_STEP * ROW_STEP * ROWS < rows; group += gridDim.x) {
        const u32 first = group / ROW_STEP * ROW_STEP * ROWS + group % ROW_STEP;
        if (first >= rows) {
            continue;
        }
        const Row row(first, columns);
        Elements x[ROWS];
        float mean[ROWS] = {}, scale[ROWS];
#pragma unroll
        for (u32 k = 0; k < ROWS; ++k) {
            // A row past the last one is the first one again, and not stored.
            const u64 offset = first + k * ROW_STEP < rows ? (u64)k * ROW_STEP * columns : 0;
            load_row(x[k], in, row, offset, 0);
        }
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            for_each_element(x[k], [&](float element) { mean[k] += element; });
        }
        sum_block(mean, sums);
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            mean[k] /= (float)columns;
            for_each_element(x[k], [&](float& element) { element -= mean[k]; });
            scale[k] = squares(x[k], row);
        }
        sum_block(scale, square_sums);
#pragma unroll
        for (int k = 0; k < ROWS; ++k) {
            scale[k] = rsqrtf(scale[k] / (float)columns + epsilon);
        }
        const u32 skipped_words = ALIGNED ? 0 : row.head / 2;
        if (skipped_words == 0) {
            transform<0>(x, row, gammas, betas, scale);
        } else if (skipped_words == 1) {
            transform<1>(x, row, gammas, betas, scale);
        } else if (skipped_words == 2) {
            transform<2>(x, row, gammas, betas, scale);
        } else {
            transform<3>(x, row, gammas, betas, scale);
        }
#pragma unroll
        for (u32 k = 0; k < ROWS; ++k) {
            if (row.has_edge()) {
                x[k].edge = fmaf(x[k].edge * scale[k], unpacked(gamma[row.edge()]), unpacked(beta[row.edge()]));
            }
            if (k == 0 || first + k * ROW_STEP < rows) {
                store_row(out, row, (u64)k * ROW_STEP * columns, x[k]);
            }
        }
    }
}
