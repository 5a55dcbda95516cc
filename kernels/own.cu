// Data and checks for the cases of own suites: any element type, made and looked at on the device (random.cuh).
//
// Shape: one array of `count` elements, any count. FLOP: not counted; bytes: each element once. Block: 256 threads,
// grid-stride; any grid is right. Never timed. Architectures: all.
#include "random.cuh"

struct Tally {
    u64 wrong;
    u64 first;
};

__device__ __forceinline__ u64 first_index() {
    return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ u64 index_stride() {
    return (u64)gridDim.x * blockDim.x;
}

// An odd number in (-2^bits, 2^bits): so many bits of a significand hold it exactly, and it is never 0.
__device__ __forceinline__ long long random_odd(u64 seed, u64 index, int bits) {
    return 2 * (long long)(random_bits(seed, index) >> (64 - bits)) + 1 - (1ll << bits);
}

// Uniform FP64 in (-1, 1), on the odd multiples of 2^-53.
extern "C" __global__ void fill_uniform_fp64(double* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        out[i] = (double)random_odd(seed, i, 53) * 0x1p-53;
    }
}

// Uniform FP16 in (-1, 1), on the odd multiples of 2^-11; exact, so the FP32 pattern is only moved.
extern "C" __global__ void fill_uniform_fp16(unsigned short* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        const u32 bits = __float_as_uint((float)random_odd(seed, i, 11) * 0x1p-11f);
        const u32 exponent = ((bits >> 23) & 0xFFu) - 127u + 15u;
        out[i] = (unsigned short)(((bits >> 16) & 0x8000u) | (exponent << 10) | ((bits >> 13) & 0x3FFu));
    }
}

// Uniform BF16 in (-1, 1), on the odd multiples of 2^-8; exact, so the FP32 pattern is only cut.
extern "C" __global__ void fill_uniform_bf16(unsigned short* __restrict__ out, u64 count, u64 seed) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        out[i] = (unsigned short)(__float_as_uint((float)random_odd(seed, i, 8) * 0x1p-8f) >> 16);
    }
}

// Integers of 1, 2, 4 or 8 bytes, uniform in [0, limit) but for the modulo's bias; all patterns where limit is 0.
extern "C" __global__ void fill_integers(unsigned char* __restrict__ out, u64 count, u64 seed, u64 limit, u32 width) {
    for (u64 i = first_index(); i < count; i += index_stride()) {
        const u64 bits = random_bits(seed, i);
        const u64 value = limit == 0 ? bits : (bits >> 1) % limit;
        if (width == 1) {
            out[i] = (unsigned char)value;
        } else if (width == 2) {
            ((unsigned short*)out)[i] = (unsigned short)value;
        } else if (width == 4) {
            ((u32*)out)[i] = (u32)value;
        } else {
            ((u64*)out)[i] = value;
        }
    }
}

// Words that still hold the poison 0xFFFFFFFF: a NaN in every float format, or two.
extern "C" __global__ void count_poison(const u32* __restrict__ out, u64 count, Tally* tally) {
    u64 wrong = 0, first = ~0ull;
    for (u64 i = first_index(); i < count; i += index_stride()) {
        if (out[i] == 0xFFFFFFFFu) {
            ++wrong;
            first = i < first ? i : first;
        }
    }
    if (wrong > 0) {
        atomicAdd(&tally->wrong, wrong);
        atomicMin(&tally->first, first);
    }
}

// A hash of words by their places: two sums of mixed words, the same in whatever order they are added.
extern "C" __global__ void hash_words(const u32* __restrict__ words, u64 count, u64* sums) {
    u64 one = 0, other = 0;
    for (u64 i = first_index(); i < count; i += index_stride()) {
        const u64 mixed = random_bits(words[i], i);
        one += mixed;
        other += random_bits(mixed, i);
    }
    // One addition a warp: one a thread on the same two words took 25 ms for 256 MiB.
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        one += __shfl_xor_sync(0xFFFFFFFFu, one, lanes);
        other += __shfl_xor_sync(0xFFFFFFFFu, other, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], one);
        atomicAdd(&sums[1], other);
    }
}
