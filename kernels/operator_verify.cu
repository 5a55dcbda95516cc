// Whether an operator's output is right, decided on the device: every element against a value recomputed in FP64 from
// the seeds of the inputs, which are uniform BF16 or FP32 numbers (own.cu, random.cuh); no input is read.
//
// Shape: see each kernel. FLOP and bytes: not counted, never timed. Block: 256 threads; any grid is right.
// Architectures: all.
#include "random.cuh"
#include "scan.cuh"

typedef unsigned short u16;

#define THREADS 256
#define HEAD_DIM 128

// What a comparison found. Starts as {0, 2^64 - 1, 0}; errors are not negative, so their bits order as they do.
struct Findings {
    u64 wrong;
    u64 first;
    u64 worst;
};

// One thread's findings.
class Finder {
  public:
    __device__ __forceinline__ explicit Finder(double tolerance) : tolerance_(tolerance) {}

    // `error` is relative to whatever the tolerance is relative to; one that is no number is infinite.
    __device__ __forceinline__ void note(u64 index, double error) {
        error = error == error ? error : __longlong_as_double(0x7FF0000000000000ll);
        worst_ = error > worst_ ? error : worst_;
        if (!(error <= tolerance_)) {
            ++wrong_;
            first_ = index < first_ ? index : first_;
        }
    }

    __device__ __forceinline__ void report(Findings* findings) const {
        if (wrong_ > 0) {
            atomicAdd(&findings->wrong, wrong_);
            atomicMin(&findings->first, first_);
        }
        if (worst_ > 0) {
            atomicMax(&findings->worst, (u64)__double_as_longlong(worst_));
        }
    }

  private:
    double tolerance_, worst_ = 0;
    u64 wrong_ = 0, first_ = ~0ull;
};

// Element `index` of fill_uniform_bf16: an odd multiple of 2^-8 in (-1, 1).
__device__ __forceinline__ float uniform_bf16(u64 seed, u64 index) {
    return (float)(2 * (int)(random_bits(seed, index) >> 56) - 255) * 0x1p-8f;
}

__device__ __forceinline__ double bf16(u16 bits) {
    return (double)__uint_as_float((u32)bits << 16);
}

__device__ __forceinline__ double relative(double actual, double expected, double scale) {
    return actual == expected ? 0.0 : fabs(actual - expected) / scale;
}

// out[i] = x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); errors relative to the element.
extern "C" __global__ void check_gelu(const u16* __restrict__ out, u64 count, u64 seed, double tolerance,
                                      Findings* findings) {
    Finder finder(tolerance);
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        const double x = uniform_bf16(seed, i);
        const double expected = x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        finder.note(i, relative(bf16(out[i]), expected, fabs(expected)));
    }
    finder.report(findings);
}

// out[i] = a[i] + b[i], of which FP32 holds the sum exactly, rounded to the nearest BF16, ties to even.
extern "C" __global__ void check_add(const u16* __restrict__ out, u64 count, u64 seed_a, u64 seed_b, double tolerance,
                                     Findings* findings) {
    Finder finder(tolerance);
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        const u32 bits = __float_as_uint(uniform_bf16(seed_a, i) + uniform_bf16(seed_b, i));
        const double expected = bf16((u16)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16));
        finder.note(i, relative(bf16(out[i]), expected, fabs(expected)));
    }
    finder.report(findings);
}

// *total += the sum of `count` numbers of fill_uniform, in units of 2^-24: exact, in any order.
extern "C" __global__ void sum_uniform(u64* total, u64 count, u64 seed) {
    long long sum = 0;
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        sum += (long long)(random_uniform(seed, i) * 0x1p24f);
    }
    atomicAdd(total, (u64)sum);
}

// The sum over the block, in every thread; `slots` of one value a warp.
__device__ __forceinline__ double block_sum(double value, double* slots) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        slots[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < THREADS / 32; ++warp) {
        value += slots[warp];
    }
    return value;
}

// out[r][c] = exp(x[r][c]) / s with s the row's sum; errors relative to the element.
extern "C" __global__ void __launch_bounds__(THREADS)
    check_softmax(const u16* __restrict__ out, u64 rows, u64 columns, u64 seed, double tolerance, Findings* findings) {
    __shared__ double slots[THREADS / 32];
    Finder finder(tolerance);
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        double sum = 0;
        for (u64 i = row * columns + threadIdx.x; i < (row + 1) * columns; i += THREADS) {
            sum += exp((double)uniform_bf16(seed, i));
        }
        sum = block_sum(sum, slots);
        for (u64 i = row * columns + threadIdx.x; i < (row + 1) * columns; i += THREADS) {
            const double expected = exp((double)uniform_bf16(seed, i)) / sum;
            finder.note(i, relative(bf16(out[i]), expected, expected));
        }
    }
    finder.report(findings);
}

// out[r][c] = n gamma[c] + beta[c] with n = (x[r][c] - mean) / sqrt(variance + epsilon). Errors are relative to the
// element and, weighted by `slack`, to what it was made of, |gamma| (|n| + 1) + |beta|: it may cancel.
extern "C" __global__ void __launch_bounds__(THREADS)
    check_layernorm(const u16* __restrict__ out, u64 rows, u64 columns, u64 seed, u64 seed_gamma, u64 seed_beta,
                    double epsilon, double slack, double tolerance, Findings* findings) {
    __shared__ double slots[THREADS / 32];
    Finder finder(tolerance);
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        double sum = 0, square = 0;
        for (u64 c = threadIdx.x; c < columns; c += THREADS) {
            sum += uniform_bf16(seed, row * columns + c);
        }
        const double mean = block_sum(sum, slots) / columns;
        for (u64 c = threadIdx.x; c < columns; c += THREADS) {
            const double difference = uniform_bf16(seed, row * columns + c) - mean;
            square += difference * difference;
        }
        const double scale = 1 / sqrt(block_sum(square, slots) / columns + epsilon);
        for (u64 c = threadIdx.x; c < columns; c += THREADS) {
            const double n = (uniform_bf16(seed, row * columns + c) - mean) * scale;
            const double gamma = uniform_bf16(seed_gamma, c), beta = uniform_bf16(seed_beta, c);
            const double expected = n * gamma + beta;
            const double made_of = fabs(gamma) * (fabs(n) + 1) + fabs(beta);
            finder.note(row * columns + c,
                        relative(bf16(out[row * columns + c]), expected, fabs(expected) + slack * made_of));
        }
    }
    finder.report(findings);
}

// out[p][d] = sum over keys of w v[key][d] with w the softmax of q k / sqrt(128), for the pairs p of sequence and query
// head; `queries` heads share keys and values. Scores of such numbers are under 12 in size: no maximum is subtracted.
// Errors are relative to the element and, times `deviations`, to the deviation sqrt(sum of (w v)^2) that relative
// errors of 1 in the weights, independent of each other, have in it. 256 threads a block.
extern "C" __global__ void __launch_bounds__(THREADS)
    check_attention_decode(const u16* __restrict__ out, u64 pairs, u64 queries, u64 context, u64 seed_q, u64 seed_k,
                           u64 seed_v, double deviations, double tolerance, Findings* findings) {
    __shared__ double query[HEAD_DIM], weights[THREADS], slots[THREADS / 32];
    __shared__ double halves[2][HEAD_DIM];
    Finder finder(tolerance);
    const u64 d = threadIdx.x % HEAD_DIM, half = threadIdx.x / HEAD_DIM;
    for (u64 p = blockIdx.x; p < pairs; p += gridDim.x) {
        const u64 cache = p / queries * context;
        __syncthreads();
        if (threadIdx.x < HEAD_DIM) {
            query[threadIdx.x] = uniform_bf16(seed_q, p * HEAD_DIM + threadIdx.x);
        }
        double sum = 0, value = 0, square = 0;
        for (u64 start = 0; start < context; start += THREADS) {
            const u64 key = start + threadIdx.x;
            __syncthreads();
            double score = 0;
            for (u64 i = 0; key < context && i < HEAD_DIM; ++i) {
                score = fma(query[i], (double)uniform_bf16(seed_k, (cache + key) * HEAD_DIM + i), score);
            }
            weights[threadIdx.x] = key < context ? exp(score * 0.08838834764831845) : 0.0;
            sum += weights[threadIdx.x];
            __syncthreads();
            for (u64 i = half; i < THREADS && start + i < context; i += 2) {
                const double term = weights[i] * uniform_bf16(seed_v, (cache + start + i) * HEAD_DIM + d);
                value += term;
                square = fma(term, term, square);
            }
        }
        sum = block_sum(sum, slots);
        if (half == 1) {
            halves[0][d] = value;
            halves[1][d] = square;
        }
        __syncthreads();
        if (half == 0) {
            const double expected = (value + halves[0][d]) / sum, deviation = sqrt(square + halves[1][d]) / sum;
            const double scale = fabs(expected) + deviations * deviation;
            finder.note(p * HEAD_DIM + d, relative(bf16(out[p * HEAD_DIM + d]), expected, scale));
        }
    }
    finder.report(findings);
}
