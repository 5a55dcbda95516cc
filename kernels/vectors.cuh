// Vectors of 16 bytes through device memory, with cache hints, and the ends of arrays that do not fill one.
//
// Knobs (-D): LOAD   0 plain   1 .nc.L1::no_allocate   2 .cs (evict first)
//                    3 as 1 with .L2::256B (sm_80 and later, else 1)
//             STORE  0 plain   1 .cs (evict first)     2 .L1::no_allocate    3 .wt
#pragma once

#include "types.cuh"

#ifndef LOAD
#define LOAD 1
#endif
#ifndef STORE
#define STORE 1
#endif

#if LOAD == 0
#define LOAD_PTX "ld.global.v4.u32"
#elif LOAD == 2
#define LOAD_PTX "ld.global.cs.v4.u32"
#elif LOAD == 3 && __CUDA_ARCH__ >= 800
#define LOAD_PTX "ld.global.nc.L1::no_allocate.L2::256B.v4.u32"
#else
#define LOAD_PTX "ld.global.nc.L1::no_allocate.v4.u32"
#endif

#if STORE == 0
#define STORE_PTX "st.global.v4.u32"
#elif STORE == 2
#define STORE_PTX "st.global.L1::no_allocate.v4.u32"
#elif STORE == 3
#define STORE_PTX "st.global.wt.v4.u32"
#else
#define STORE_PTX "st.global.cs.v4.u32"
#endif

typedef unsigned short u16;

// Elements of 16 bits in a vector.
#define VECTOR_HALVES 8

__device__ __forceinline__ uint4 load_vector(const uint4* address) {
    uint4 v;
    asm volatile(LOAD_PTX " {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(address));
    return v;
}

__device__ __forceinline__ void store_vector(uint4* address, uint4 v) {
    asm volatile(STORE_PTX " [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ u32 loaded_pair(const u16* address, int at, int begin, int end, u32 filler) {
    const u32 low = at >= begin && at < end ? address[at] : filler & 0xFFFFu;
    const u32 high = at + 1 >= begin && at + 1 < end ? address[at + 1] : filler & 0xFFFFu;
    return low | high << 16;
}

// Elements [begin, end) of a vector of 16-bit elements, a filler's lower half elsewhere; reads no others.
__device__ __forceinline__ uint4 load_part(const uint4* address, int begin, int end, u32 filler) {
    const u16* const elements = (const u16*)address;
    return make_uint4(loaded_pair(elements, 0, begin, end, filler), loaded_pair(elements, 2, begin, end, filler),
                      loaded_pair(elements, 4, begin, end, filler), loaded_pair(elements, 6, begin, end, filler));
}

__device__ __forceinline__ void store_pair(u16* address, int at, int begin, int end, u32 pair) {
    if (at >= begin && at < end) {
        address[at] = (u16)pair;
    }
    if (at + 1 >= begin && at + 1 < end) {
        address[at + 1] = (u16)(pair >> 16);
    }
}

// Writes elements [begin, end) of a vector of 16-bit elements and no others.
__device__ __forceinline__ void store_part(uint4* address, int begin, int end, uint4 v) {
    u16* const elements = (u16*)address;
    store_pair(elements, 0, begin, end, v.x);
    store_pair(elements, 2, begin, end, v.y);
    store_pair(elements, 4, begin, end, v.z);
    store_pair(elements, 6, begin, end, v.w);
}
