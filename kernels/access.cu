// Copies whose reads are not whole lines one after the other: narrow, off alignment, strided, gathered.
//
// Shape: `count` elements of WIDTH 32-bit words are written in order, any count; n = WIDTH count words. Element i is
// read at offset + stride i (access_copy) or at indices[i] (access_gather).
// FLOP:  copy 0, gather 0
// Bytes: copy 8 n, gather 12 n
//
// What memory moves is more: sectors of 32 bytes, of which a stride or a gather uses a part. A block takes a tile of
// BLOCK x UNROLL elements; each thread has UNROLL of them, BLOCK apart, and all its loads are under way before the
// first store, since narrow elements need many in flight. A gather's indices are read in a first round of loads.
// Block: BLOCK threads, a block a tile. Architectures: all.
//
// Knobs (-D): WIDTH words an element (1, 2, 4), BLOCK threads a block, UNROLL elements a thread,
//   LOAD   0 plain   1 .nc.L1::no_allocate   2 .cs (evict first)
//   STORE  0 plain   1 .cs (evict first)
#include "index.cuh"

#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef UNROLL
#define UNROLL 8
#endif
#ifndef LOAD
#define LOAD 1
#endif
#ifndef STORE
#define STORE 1
#endif

#define TILE (BLOCK * UNROLL)

#if LOAD == 0
#define LOAD_PTX "ld.global"
#elif LOAD == 2
#define LOAD_PTX "ld.global.cs"
#else
#define LOAD_PTX "ld.global.nc.L1::no_allocate"
#endif

#if STORE == 0
#define STORE_PTX "st.global"
#else
#define STORE_PTX "st.global.cs"
#endif

__device__ __forceinline__ u32 load(const u32* address) {
    u32 v;
    asm volatile(LOAD_PTX ".u32 %0, [%1];" : "=r"(v) : "l"(address));
    return v;
}

__device__ __forceinline__ void store(u32* address, u32 v) {
    asm volatile(STORE_PTX ".u32 [%0], %1;" ::"l"(address), "r"(v) : "memory");
}

#if WIDTH == 1
typedef u32 Element;
#elif WIDTH == 2
typedef uint2 Element;

__device__ __forceinline__ Element load(const Element* address) {
    Element v;
    asm volatile(LOAD_PTX ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address));
    return v;
}

__device__ __forceinline__ void store(Element* address, Element v) {
    asm volatile(STORE_PTX ".v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(v.x), "r"(v.y) : "memory");
}
#else
typedef uint4 Element;

__device__ __forceinline__ Element load(const Element* address) {
    Element v;
    asm volatile(LOAD_PTX ".v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}

__device__ __forceinline__ void store(Element* address, Element v) {
    asm volatile(STORE_PTX ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
#endif

// Calls body(first element of this thread, elements of this thread); the count is UNROLL, a constant, in all blocks but
// the last.
template <typename Body>
__device__ __forceinline__ void with_tile(u64 count, Body body) {
    const u64 tile = (u64)blockIdx.x * TILE, first = tile + threadIdx.x;
    if (tile + TILE <= count) {
        body(first, UNROLL);
    } else if (first < count) {
        body(first, (int)((count - first + BLOCK - 1) / BLOCK));
    }
}

// out[i] = in[offset + stride i], in elements.
extern "C" __global__ void __launch_bounds__(BLOCK)
    access_copy(const Element* __restrict__ in, Element* __restrict__ out, u64 offset, u64 stride, u64 count) {
    with_tile(count, [&](u64 first, int mine) {
        const Element* const from = in + offset + first * stride;
        Element v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < mine) {
                v[j] = load(from + j * BLOCK * stride);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < mine) {
                store(out + first + j * BLOCK, v[j]);
            }
        }
    });
}

// out[i] = in[indices[i]], in elements; n words of indices, in and out each.
extern "C" __global__ void __launch_bounds__(BLOCK)
    access_gather(const Element* __restrict__ in, const u32* __restrict__ indices, Element* __restrict__ out,
                  u64 count) {
    with_tile(count, [&](u64 first, int mine) {
        u32 at[UNROLL];
        Element v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < mine) {
                at[j] = load(indices + first + j * BLOCK);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < mine) {
                v[j] = load(in + at[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            if (j < mine) {
                store(out + first + j * BLOCK, v[j]);
            }
        }
    });
}

// Random places below `limit`. Grid-stride: any grid is right; never timed.
extern "C" __global__ void access_indices(u32* __restrict__ out, u64 count, u64 seed, u64 limit) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        out[i] = random_index(seed, i, limit);
    }
}
