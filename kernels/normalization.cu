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
//   8, BLOCKS_PER_SM that registers must leave room for, LOAD and STORE of vectors.cuh.
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
#ifndef BLOCKS_PER_SM
#define BLOCKS_PER_SM 1
#endif

#define WARPS (BLOCK / 32)

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

// Reads a row; what is not there is the filler.
__device__ __forceinline__ void load_row(Elements& x, const u16* __restrict__ matrix, const Row& row, float filler) {
    const uint4* const from = (const uint4*)(matrix + row.start + row.head);
    uint4 v[VECTORS];
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            v[i] = load_vector(from + row.index(i));
        }
    }
    x.edge = row.has_edge() ? unpacked(matrix[row.start + row.edge()]) : filler;
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

// Rounds and writes a row.
__device__ __forceinline__ void store_row(u16* __restrict__ matrix, const Row& row, const Elements& x) {
    uint4* const to = (uint4*)(matrix + row.start + row.head);
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            store_vector(to + row.index(i), packed(x.of[i]));
        }
    }
    if (row.has_edge()) {
        matrix[row.start + row.edge()] = (u16)bf16_pair(x.edge, 0);
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

// The combination of all threads' values, in every thread; `slots` of one value a warp, free again after the next
// barrier.
template <typename Combine>
__device__ __forceinline__ float block_combined(float value, float* slots, Combine combine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    if (WARPS == 1) {
        return value;
    }
    if (threadIdx.x % 32 == 0) {
        slots[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = slots[threadIdx.x % WARPS];
#pragma unroll
    for (int distance = WARPS / 2; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    return value;
}

__device__ __forceinline__ float block_maximum(float value, float* slots) {
    return block_combined(value, slots, [](float a, float b) { return fmaxf(a, b); });
}

__device__ __forceinline__ float block_sum(float value, float* slots) {
    return block_combined(value, slots, [](float a, float b) { return a + b; });
}

// out[r][c] = exp(x[r][c] - m) / s, with the maximum m of the row and the sum s of its numerators.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
    normalization_softmax(const u16* __restrict__ in, u16* __restrict__ out, u32 rows, u32 columns) {
    constexpr float LOG2_E = 1.4426950408889634f;
    __shared__ float maxima[WARPS], sums[WARPS];
    const float none = __uint_as_float(0xFF800000u);
    for (u32 r = blockIdx.x; r < rows; r += gridDim.x) {
        const Row row(r, columns);
        Elements x;
        load_row(x, in, row, none);
        float maximum = none, sum = 0;
        for_each_element(x, [&](float element) { maximum = fmaxf(maximum, element); });
        const float offset = -LOG2_E * block_maximum(maximum, maxima);
        for_each_element(x, [&](float& element) {
            element = fast_exp2(fmaf(LOG2_E, element, offset));
            sum += element;
        });
        const float factor = fast_reciprocal(block_sum(sum, sums));
        for_each_element(x, [&](float& element) { element *= factor; });
        store_row(out, row, x);
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

// Scales and shifts a thread's normalised elements; row.head is 2 SKIPPED_WORDS or one more. A copy of the code for each
// number of words costs a quarter of the instructions of choosing words while it runs.
template <int SKIPPED_WORDS>
__device__ __forceinline__ void transform(Elements& x, const Row& row, const uint4* __restrict__ gamma,
                                          const uint4* __restrict__ beta, float scale) {
    const bool is_odd = row.head % 2 != 0;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        if (row.has(i)) {
            const u32 at = row.index(i);
            uint4 gammas = gamma[at], betas = beta[at];
            if (!ALIGNED && (SKIPPED_WORDS > 0 || is_odd)) {
                gammas = askew_vector<SKIPPED_WORDS>(gammas, gamma[at + 1], is_odd);
                betas = askew_vector<SKIPPED_WORDS>(betas, beta[at + 1], is_odd);
            }
            float g[VECTOR_HALVES], b[VECTOR_HALVES];
            unpack(g, gammas);
            unpack(b, betas);
#pragma unroll
            for (int j = 0; j < VECTOR_HALVES; ++j) {
                x.of[i][j] = fmaf(x.of[i][j] * scale, g[j], b[j]);
            }
        }
    }
}

// out[r][c] = (x[r][c] - mean) / sqrt(variance + epsilon) gamma[c] + beta[c], with mean and variance of the row.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
    normalization_layernorm(const u16* __restrict__ in, const u16* __restrict__ gamma, const u16* __restrict__ beta,
                            u16* __restrict__ out, u32 rows, u32 columns, float epsilon) {
    __shared__ float sums[WARPS], squares[WARPS];
    const uint4 *const gammas = (const uint4*)gamma, *const betas = (const uint4*)beta;
    for (u32 r = blockIdx.x; r < rows; r += gridDim.x) {
        const Row row(r, columns);
        Elements x;
        load_row(x, in, row, 0);
        float sum = 0, square = 0;
        for_each_element(x, [&](float element) { sum += element; });
        const float mean = block_sum(sum, sums) / (float)columns;
        for_each_element(x, [&](float& element) { element -= mean; });
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) {
            if (row.has(i)) {
#pragma unroll
                for (int j = 0; j < VECTOR_HALVES; ++j) {
                    square = fmaf(x.of[i][j], x.of[i][j], square);
                }
            }
        }
        square += row.has_edge() ? x.edge * x.edge : 0;
        const float scale = rsqrtf(block_sum(square, squares) / (float)columns + epsilon);
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
        if (row.has_edge()) {
            x.edge = fmaf(x.edge * scale, unpacked(gamma[row.edge()]), unpacked(beta[row.edge()]));
        }
        store_row(out, row, x);
    }
}
