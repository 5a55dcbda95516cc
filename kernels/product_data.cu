// Operands of matrix products, made on the device: a pure function of seed and index (random.cuh).
//
// Shape: one array of `count` elements, any count. FLOP: not counted; bytes: those of the array written.
// Block: 256 threads, grid-stride; any grid is right. Never timed. Architectures: all.
//
// Knobs (-D): OPERAND, a type of elements.cuh.
#include "elements.cuh"
#include "random.cuh"

#ifndef OPERAND
#define OPERAND fp32
#endif

// An odd multiple of 2^-BITS in (-1, 1), each as likely: mean exactly 0, variance (1 - 4^-BITS) / 3, never 0.
template <u32 BITS>
__device__ __forceinline__ double odd_multiple(u64 random) {
    const long long odd = 2 * (long long)(random >> (64 - BITS)) + 1 - (1ll << BITS);
    return (double)odd / (double)(1ull << BITS);
}

// As many bits as a significand has: every value is exact, and all of its bits vary.
__device__ __forceinline__ void draw(fp64& to, u64 random) {
    to = odd_multiple<53>(random);
}
__device__ __forceinline__ void draw(fp32& to, u64 random) {
    to = (float)odd_multiple<24>(random);
}
__device__ __forceinline__ void draw(tf32& to, u64 random) {
    to.stored = (float)odd_multiple<11>(random);
}
__device__ __forceinline__ void draw(bf16& to, u64 random) {
    to.bits = (unsigned short)narrowed<8, 7>((float)odd_multiple<8>(random));
}
__device__ __forceinline__ void draw(fp16& to, u64 random) {
    to.bits = (unsigned short)narrowed<5, 10>((float)odd_multiple<11>(random));
}
__device__ __forceinline__ void draw(e4m3& to, u64 random) {
    to.bits = (unsigned char)narrowed<4, 3>((float)odd_multiple<4>(random));
}
// All 256 values, each as likely.
__device__ __forceinline__ void draw(int8& to, u64 random) {
    to.stored = (signed char)((int)(random >> 56) - 128);
}

extern "C" __global__ void fill_operand(OPERAND* __restrict__ out, u64 count, u64 seed) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        draw(out[i], random_bits(seed, i));
    }
}
