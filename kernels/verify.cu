// Whether an output is right, decided on the device: exact comparison of streams, Freivalds' check and exact dot
// products for matrix products. Inputs are not read where they can be recomputed from their seed (random.cuh).
//
// Shape: see each kernel. FLOP and bytes: not counted, never timed. Block: 256 threads, grid-stride: any grid is right.
// All sums in FP64, whose rounding is 2^-29 of FP32's. Architectures: all.
#include "pattern.cuh"
#include "random.cuh"

// What a scan found. Starts as {0, 2^64 - 1}.
struct Tally {
    u64 wrong;
    u64 first;
};

__device__ __forceinline__ u64 thread_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ u64 thread_count() {
    return (u64)gridDim.x * blockDim.x;
}

// Counts the indices below `count` for which `is_wrong` holds.
template <typename Predicate>
__device__ __forceinline__ void scan(u64 count, Tally* tally, Predicate is_wrong) {
    u64 wrong = 0, first = ~0ull;
    for (u64 i = thread_index(); i < count; i += thread_count()) {
        if (is_wrong(i)) {
            ++wrong;
            first = i < first ? i : first;
        }
    }
    if (wrong > 0) {
        atomicAdd(&tally->wrong, wrong);
        atomicMin(&tally->first, first);
    }
}

// NaN, by its bits: a comparison could be optimised away.
extern "C" __global__ void count_nan(const u32* __restrict__ out, u64 count, Tally* tally) {
    scan(count, tally, [=](u64 i) { return (out[i] & 0x7FFFFFFFu) > 0x7F800000u; });
}

// out[i] is the random pattern i of `seed`.
extern "C" __global__ void check_copy(const u32* __restrict__ out, u64 count, u64 seed, Tally* tally) {
    scan(count, tally, [=](u64 i) { return out[i] != random_normal_pattern(seed, i); });
}

// out[i] is the word i of the write kernel's pattern.
extern "C" __global__ void check_write(const u32* __restrict__ out, u64 count, u32 seed, Tally* tally) {
    scan(count, tally, [=](u64 i) { return out[i] != pattern_word(seed, i); });
}

// a[i] is b[i] + scale c[i], rounded once, with b and c uniform from their seeds.
extern "C" __global__ void check_triad(const u32* __restrict__ a, u64 count, u64 seed_b, u64 seed_c, float scale,
                                       Tally* tally) {
    scan(count, tally, [=](u64 i) {
        const float expected = fmaf(scale, random_uniform(seed_c, i), random_uniform(seed_b, i));
        return a[i] != __float_as_uint(expected);
    });
}

// partials[p] is the sum modulo 2^32 of the words of the tiles p, p + count, p + 2 count, ... of `tile_words` each,
// out of `words` random patterns of `seed`. 256 threads a block.
extern "C" __global__ void __launch_bounds__(256)
    check_read(const u32* __restrict__ partials, u64 count, u64 words, u64 tile_words, u64 seed, Tally* tally) {
    __shared__ u32 total;
    for (u64 p = blockIdx.x; p < count; p += gridDim.x) {
        if (threadIdx.x == 0) {
            total = 0;
        }
        __syncthreads();
        u32 sum = 0;
        for (u64 start = p * tile_words; start < words; start += count * tile_words) {
            for (u64 i = start + threadIdx.x; i < start + tile_words && i < words; i += blockDim.x) {
                sum += random_normal_pattern(seed, i);
            }
        }
        atomicAdd(&total, sum);
        __syncthreads();
        if (threadIdx.x == 0 && partials[p] != total) {
            atomicAdd(&tally->wrong, 1ull);
            atomicMin(&tally->first, p);
        }
        __syncthreads();
    }
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
extern "C" __global__ void multiply(const float* __restrict__ matrix, u64 rows, u64 columns,
                                    const double* __restrict__ x, double* __restrict__ y) {
    const u64 lane = threadIdx.x % 32;
    for (u64 row = thread_index() / 32; row < rows; row += thread_count() / 32) {
        const float* const from = matrix + row * columns;
        double sum = 0;
#pragma unroll 8
        for (u64 i = lane; i < columns; i += 32) {
            sum = fma((double)from[i], x[i], sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            y[row] = sum;
        }
    }
}

// y = M^T x for a row-major matrix; 256 threads a block take 32 columns, 8 rows at once.
extern "C" __global__ void __launch_bounds__(256)
    multiply_transposed(const float* __restrict__ matrix, u64 rows, u64 columns, const double* __restrict__ x,
                        double* __restrict__ y) {
    __shared__ double sums[8][32];
    const u64 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u64 start = (u64)blockIdx.x * 32; start < columns; start += (u64)gridDim.x * 32) {
        const u64 column = start + lane;
        double sum = 0;
        if (column < columns) {
#pragma unroll 8
            for (u64 row = warp; row < rows; row += 8) {
                sum = fma((double)matrix[row * columns + column], x[row], sum);
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
extern "C" __global__ void dot_products(const float* __restrict__ a, const float* __restrict__ b,
                                        const float* __restrict__ c, u64 n, u64 k, const u32* __restrict__ positions,
                                        u64 count, double* __restrict__ results) {
    const u64 lane = threadIdx.x % 32;
    for (u64 p = thread_index() / 32; p < count; p += thread_count() / 32) {
        const u64 i = positions[2 * p], j = positions[2 * p + 1];
        double sum = 0;
#pragma unroll 8
        for (u64 l = lane; l < k; l += 32) {
            sum = fma((double)a[i * k + l], (double)b[j * k + l], sum);
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            results[2 * p] = sum;
            results[2 * p + 1] = c[i * n + j];
        }
    }
}
