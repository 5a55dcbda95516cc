// Rows of an attention's result, recomputed in FP64 from the seeds of the operands: no operand is read.
//
// Shape: see the kernel. FLOP and bytes: not counted, never timed. Block: 256 threads; any grid is right.
// Architectures: all.
#include "random_normal.cuh"

typedef unsigned short u16;

#define THREADS 256
#define HEAD_DIM 128
// Threads that share a dimension of the result, each with every second key.
#define SHARES (THREADS / HEAD_DIM)

// For each positions[p] = {head, row} and dimension d results[p][d] = {o, deviation, out[head][row][d]}: o the sum over
// the row's keys of w v with w the softmax of q k / sqrt(128), deviation the root of the sum of (w v)^2, which is what
// independent relative errors of 1 in the weights make of o. Scores of such numbers are at most 270 in size and FP64
// holds their powers, so no maximum is subtracted.
extern "C" __global__ void __launch_bounds__(THREADS)
    attention_rows(const u16* __restrict__ out, u64 n, u32 causal, const u32* __restrict__ positions, u64 count,
                   u64 seed_q, u64 seed_k, u64 seed_v, double* __restrict__ results) {
    __shared__ double query[HEAD_DIM], weights[THREADS], partials[3][THREADS];
    const u32 dimension = threadIdx.x % HEAD_DIM, share = threadIdx.x / HEAD_DIM;
    for (u64 p = blockIdx.x; p < count; p += gridDim.x) {
        const u64 first = positions[2 * p] * n, row = positions[2 * p + 1], keys = causal ? row + 1 : n;
        if (threadIdx.x < HEAD_DIM) {
            query[threadIdx.x] = random_normal(seed_q, (first + row) * HEAD_DIM + threadIdx.x);
        }
        double total = 0, sum = 0, square = 0;
        for (u64 start = 0; start < keys; start += THREADS) {
            const u64 key = start + threadIdx.x;
            __syncthreads();
            double score = 0;
            for (u64 i = 0; key < keys && i < HEAD_DIM; ++i) {
                score = fma(query[i], (double)random_normal(seed_k, (first + key) * HEAD_DIM + i), score);
            }
            weights[threadIdx.x] = key < keys ? exp(score * 0.08838834764831845) : 0.0;
            __syncthreads();
            for (u64 i = share; i < THREADS && start + i < keys; i += SHARES) {
                const double v = random_normal(seed_v, (first + start + i) * HEAD_DIM + dimension);
                const double term = weights[i] * v;
                total += weights[i];
                sum += term;
                square = fma(term, term, square);
            }
        }
        partials[0][threadIdx.x] = total;
        partials[1][threadIdx.x] = sum;
        partials[2][threadIdx.x] = square;
        __syncthreads();
        if (share == 0) {
            for (u32 other = HEAD_DIM; other < THREADS; other += HEAD_DIM) {
                total += partials[0][other + dimension];
                sum += partials[1][other + dimension];
                square += partials[2][other + dimension];
            }
            double* const result = results + (p * HEAD_DIM + dimension) * 3;
            const u16 bits = out[(first + row) * HEAD_DIM + dimension];
            result[0] = sum / total;
            result[1] = sqrt(square) / total;
            result[2] = (double)__uint_as_float((u32)bits << 16);
        }
        __syncthreads();
    }
}
