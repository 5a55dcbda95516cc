// Whether the output of a stream is right, decided on the device by exact comparison. Inputs are not read: they are
// recomputed from their seed (random.cuh).
//
// Shape: see each kernel. FLOP and bytes: not counted, never timed. Block: 256 threads, grid-stride: any grid is right.
// Architectures: all.
#include "index.cuh"
#include "pattern.cuh"
#include "scan.cuh"

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

// out holds elements of `width` words; element i is the random one at offset + stride i of `seed`. `count` words.
extern "C" __global__ void check_strided(const u32* __restrict__ out, u64 count, u64 width, u64 offset, u64 stride,
                                         u64 seed, Tally* tally) {
    scan(count, tally, [=](u64 i) {
        return out[i] != random_normal_pattern(seed, (offset + i / width * stride) * width + i % width);
    });
}

// out[i] is the random pattern of `seed` at the random place i below `limit` of `seed_indices`.
extern "C" __global__ void check_gather(const u32* __restrict__ out, u64 count, u64 seed, u64 seed_indices, u64 limit,
                                        Tally* tally) {
    scan(count, tally, [=](u64 i) {
        return out[i] != random_normal_pattern(seed, random_index(seed_indices, i, limit));
    });
}

// partials[p] is `times` the sum modulo 2^32 of the words of the tiles p, p + count, ... below `tiles`, where tile t is
// tile t % (tiles of the array) of `words` random patterns of `seed`. 256 threads a block.
extern "C" __global__ void __launch_bounds__(256)
    check_rereads(const u32* __restrict__ partials, u64 count, u64 words, u64 tile_words, u64 tiles, u32 times,
                  u64 seed, Tally* tally) {
    __shared__ u32 total;
    const u64 distinct = (words + tile_words - 1) / tile_words;
    for (u64 p = blockIdx.x; p < count; p += gridDim.x) {
        if (threadIdx.x == 0) {
            total = 0;
        }
        __syncthreads();
        u32 sum = 0;
        for (u64 tile = p; tile < tiles; tile += count) {
            const u64 start = tile % distinct * tile_words;
            for (u64 i = start + threadIdx.x; i < start + tile_words && i < words; i += blockDim.x) {
                sum += random_normal_pattern(seed, i);
            }
        }
        atomicAdd(&total, sum);
        __syncthreads();
        if (threadIdx.x == 0 && partials[p] != times * total) {
            atomicAdd(&tally->wrong, 1ull);
            atomicMin(&tally->first, p);
        }
        __syncthreads();
    }
}
