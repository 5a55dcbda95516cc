// Element types of matrix products as they lie in memory, and what number each pattern is; without toolkit headers.
#pragma once

#include "types.cuh"

typedef double fp64;
typedef float fp32;
// FP32 in memory, of which a tensor core takes the upper 19 bits.
struct tf32 {
    float stored;
};
struct bf16 {
    unsigned short bits;
};
struct fp16 {
    unsigned short bits;
};
struct e4m3 {
    unsigned char bits;
};
struct int8 {
    signed char stored;
};
struct int32 {
    int stored;
};

// The number of a pattern of a sign, EXPONENT and FRACTION bits. Its fields, put where those of FP32 are, are the number
// but for the difference of the biases; a product with a power of two makes that good, and is right for subnormals.
template <u32 EXPONENT, u32 FRACTION>
__device__ __forceinline__ float widened(u32 bits) {
    const u32 magnitude = bits & ((1u << (EXPONENT + FRACTION)) - 1), sign = bits >> (EXPONENT + FRACTION) << 31;
    const float scale = __uint_as_float((254u - ((1u << (EXPONENT - 1)) - 1)) << 23);
    return __uint_as_float(__float_as_uint(__uint_as_float(magnitude << (23 - FRACTION)) * scale) | sign);
}

// The pattern of a number that the format holds exactly as a normal one.
template <u32 EXPONENT, u32 FRACTION>
__device__ __forceinline__ u32 narrowed(float value) {
    const u32 bits = __float_as_uint(value), bias = 127u - ((1u << (EXPONENT - 1)) - 1);
    return (bits >> 31 << (EXPONENT + FRACTION)) | (((bits & 0x7FFFFFFFu) >> (23 - FRACTION)) - (bias << FRACTION));
}

__device__ __forceinline__ double number(fp64 v) {
    return v;
}
__device__ __forceinline__ double number(fp32 v) {
    return v;
}
__device__ __forceinline__ double number(tf32 v) {
    return v.stored;
}
__device__ __forceinline__ double number(bf16 v) {
    return __uint_as_float((u32)v.bits << 16);
}
__device__ __forceinline__ double number(fp16 v) {
    const bool finite = (v.bits & 0x7C00) != 0x7C00;
    return finite ? widened<5, 10>(v.bits) : __uint_as_float(0x7F800000u | (u32)(v.bits & 0x3FF) << 13);
}
__device__ __forceinline__ double number(e4m3 v) {
    return (v.bits & 0x7F) != 0x7F ? widened<4, 3>(v.bits) : __uint_as_float(0x7FFFFFFFu);
}
__device__ __forceinline__ double number(int8 v) {
    return v.stored;
}
__device__ __forceinline__ double number(int32 v) {
    return v.stored;
}
