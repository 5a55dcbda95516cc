// Whether a matrix product is right, decided on the device: Freivalds' check and exact dot products.
//
// Shape: see each kernel. FLOP and bytes: not counted, never timed. Block: 256 threads, grid-stride: any grid is right.
// All sums in FP64, whose rounding is 2^-29 of FP32's; sums of INT8 products are exact. Architectures: all.
//
// Knobs (-D): OPERAND and RESULT, types of elements.cuh.
#include "elements.cuh"
#include "random.cuh"
#include "scan.cuh"

#ifndef OPERAND
#define OPERAND fp32
#endif
#ifndef RESULT
#define RESULT fp32
#endif

// The words that poison a result: NaN, or the least INT32, which no sum of INT8 products reaches before depth 2^17.
template <typename Element>
__device__ __forceinline__ bool is_unwritten(Element v) {
    const u64 bits = (u64)__double_as_longlong(number(v));
    return (bits & 0x7FFFFFFFFFFFFFFFull) > 0x7FF0000000000000ull;
}
__device__ __forceinline__ bool is_unwritten(int32 v) {
    return (u32)v.stored == 0x80000000u;
}

extern "C" __global__ void count_unwritten(const RESULT* __restrict__ out, u64 count, Tally* tally) {
    scan(count, tally, [=](u64 i) { return is_unwritten(out[i]); });
}

// x[i] = +1 or -1 at random: with it every element of a row enters Freivalds' check with the same weight.
extern "C" __global__ void fill_signs(double* __restrict__ x, u64 count, u64 seed) {
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        x[i] = random_bits(seed, i) >> 63 ? 1.0 : -1.0;
    }
}

__device__ __forceinline__ double warp_sum(double value) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xFFFFFFFFu, value, distance);
    }
    return value;
}

// y = M x for a row-major matrix; one warp a row.
template <typename Element>
__device__ __forceinline__ void product(const Element* __restrict__ matrix, u64 rows, u64 columns,
                                        const double* __restrict__ x, double* __restrict__ y) {
    const u64 lane = threadIdx.x % 32;
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        const Element* const from = matrix + row * columns;
        double sum = 0;
#pragma unroll 8
        for (u64 i = lane; i < columns; i += 32) {
            sum = fma(number(from[i]), x[i], sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            y[row] = sum;
        }
    }
}

extern "C" __global__ void multiply_operand(const OPERAND* __restrict__ matrix, u64 rows, u64 columns,
                                            const double* __restrict__ x, double* __restrict__ y) {
    product(matrix, rows, columns, x, y);
}

extern "C" __global__ void multiply_result(const RESULT* __restrict__ matrix, u64 rows, u64 columns,
                                           const double* __restrict__ x, double* __restrict__ y) {
    product(matrix, rows, columns, x, y);
}

// y = M^T x for a row-major matrix; 256 threads a block take 32 columns, 8 rows at once.
extern "C" __global__ void __launch_bounds__(256)
    multiply_transposed(const OPERAND* __restrict__ matrix, u64 rows, u64 columns, const double* __restrict__ x,
                        double* __restrict__ y) {
    __shared__ double sums[8][32];
    const u64 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u64 start = (u64)blockIdx.x * 32; start < columns; start += (u64)gridDim.x * 32) {
        const u64 column = start + lane;
        double sum = 0;
        if (column < columns) {
#pragma unroll 8
            for (u64 row = warp; row < rows; row += 8) {
                sum = fma(number(matrix[row * columns + column]), x[row], sum);
            }
        }
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && column < columns) {
            for (int other = 1; other < 8; ++other) {
                sum += sums[other][lane];
            }
            y[column] = sum;
        }
        __syncthreads();
    }
}

// results[p] = {row i of A times row j of B in FP64, c[i][j]} for positions[p] = {i, j}: A is m x k, B is n x k, C is
// m x n, all row-major; one warp a position.
extern "C" __global__ void dot_products(const OPERAND* __restrict__ a, const OPERAND* __restrict__ b,
                                        const RESULT* __restrict__ c, u64 n, u64 k, const u32* __restrict__ positions,
                                        u64 count, double* __restrict__ results) {
    const u64 lane = threadIdx.x % 32;
    for (u64 p = thread_index() / 32; p < count; p += thread_count() / 32) {
        const u64 i = positions[2 * p], j = positions[2 * p + 1];
        double sum = 0;
#pragma unroll 8
        for (u64 l = lane; l < k; l += 32) {
            sum = fma(number(a[i * k + l]), number(b[j * k + l]), sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            results[2 * p] = sum;
            results[2 * p + 1] = number(c[i * n + j]);
        }
    }
}
