// Elementwise operations on BF16 arrays, computed in FP32 and rounded once: gelu (unary) and add (binary).
//
// Shape: arrays of n elements, any n, aligned to 16 bytes.
// FLOP:  gelu 8 n, add n
// Bytes: gelu 4 n, add 6 n
//
// gelu is the tanh form that GPT-2 and Gemma run, x/2 (1 + tanh(z)) with z = sqrt(2/pi) (x + 0.044715 x^3). Written as
// x / (1 + exp(-2z)) nothing cancels, and it takes two of the 16 special functions a clock of an SM; counted as a
// square, a cubic term, a sum and a scale of the argument, an exponential, a sum, a division and a product.
// A block takes a tile of BLOCK x UNROLL vectors of 8 elements: each thread UNROLL of them, BLOCK apart, all loads before
// the first use. Grid: as many blocks as tiles. Architectures: all; before sm_80 the rounding is done in integers.
//
// Knobs (-D): BLOCK threads a block, UNROLL vectors a thread, LOAD and STORE of vectors.cuh.
#include "bf16.cuh"
#include "fast_math.cuh"
#include "vectors.cuh"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef UNROLL
#define UNROLL 2
#endif

#define TILE (BLOCK * UNROLL)

// out[i] = operation(in[0][i], in[1][i], ...) for vectors of 8 elements; the last one may be short.
template <int INPUTS, typename Operation>
__device__ __forceinline__ void for_each_vector(const uint4* const (&in)[INPUTS], uint4* __restrict__ out, u64 count,
                                                Operation operation) {
    const u64 first = (u64)blockIdx.x * TILE + threadIdx.x, whole = count / VECTOR_HALVES;
    const int rest = (int)(count % VECTOR_HALVES);
    uint4 v[UNROLL][INPUTS];
    if (((u64)blockIdx.x + 1) * TILE <= whole) {
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
#pragma unroll
            for (int input = 0; input < INPUTS; ++input) {
                v[j][input] = load_vector(in[input] + first + j * BLOCK);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            store_vector(out + first + j * BLOCK, operation(v[j]));
        }
        return;
    }
    for (int j = 0; j < UNROLL; ++j) {
        const u64 at = first + j * BLOCK;
        const int end = at < whole ? VECTOR_HALVES : at == whole ? rest : 0;
#pragma unroll
        for (int input = 0; input < INPUTS; ++input) {
            v[0][input] = load_part(in[input] + at, 0, end, 0);
        }
        store_part(out + at, 0, end, operation(v[0]));
    }
}

__device__ __forceinline__ float gelu(float x) {
    constexpr float LOG2_E = 1.4426950408889634f, ROOT_2_OVER_PI = 0.7978845608028654f;
    constexpr float LINEAR = -2 * LOG2_E * ROOT_2_OVER_PI, CUBIC = 0.044715f * LINEAR;
    const float exponent = x * fmaf(CUBIC, x * x, LINEAR);
    return x * fast_reciprocal(1 + fast_exp2(exponent));
}

__device__ __forceinline__ u32 gelu_pair(u32 x) {
    return bf16_pair(gelu(bf16_low(x)), gelu(bf16_high(x)));
}

__device__ __forceinline__ u32 add_pair(u32 a, u32 b) {
    return bf16_pair(bf16_low(a) + bf16_low(b), bf16_high(a) + bf16_high(b));
}

// out[i] = gelu(x[i]).
extern "C" __global__ void __launch_bounds__(BLOCK)
    elementwise_gelu(const uint4* __restrict__ x, uint4* __restrict__ out, u64 count) {
    for_each_vector<1>({x}, out, count, [](const uint4(&v)[1]) {
        return make_uint4(gelu_pair(v[0].x), gelu_pair(v[0].y), gelu_pair(v[0].z), gelu_pair(v[0].w));
    });
}

// out[i] = a[i] + b[i].
extern "C" __global__ void __launch_bounds__(BLOCK)
    elementwise_add(const uint4* __restrict__ a, const uint4* __restrict__ b, uint4* __restrict__ out, u64 count) {
    for_each_vector<2>({a, b}, out, count, [](const uint4(&v)[2]) {
        return make_uint4(add_pair(v[0].x, v[1].x), add_pair(v[0].y, v[1].y), add_pair(v[0].z, v[1].z),
                          add_pair(v[0].w, v[1].w));
    });
}
