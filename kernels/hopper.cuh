// What Hopper adds to CUDA C++, as the instructions themselves: barriers of transactions, the copy engine (TMA), clusters
// and products of a warpgroup (WGMMA). PTX ISA 8.0; without toolkit headers. Shared memory is named by 32-bit addresses.
#pragma once

#include "types.cuh"

// A tensor map as cuTensorMapEncodeTiled writes it.
struct alignas(64) TensorMap {
    u64 words[16];
};

__device__ __forceinline__ u32 shared_address(const void* pointer) {
    return (u32)__cvta_generic_to_shared(pointer);
}

// ---- Barriers. A phase is over when all have arrived and all bytes that were announced have landed.

__device__ __forceinline__ void barrier_start(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ __forceinline__ void barriers_started() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces bytes.
__device__ __forceinline__ void barrier_announce(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at the barrier of the same place in another block of the cluster, or in the own one. No ordinary writes are
// released to that block: a release at the scope of the cluster is a fence of the whole GPU, hundreds of cycles long.
__device__ __forceinline__ void barrier_arrive(u32 barrier, u32 rank) {
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}\n" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
        "@!over bra WAIT;\n"
        "}\n" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

// Waits for `threads` threads of the block that name the same barrier; 0 is that of __syncthreads.
__device__ __forceinline__ void named_barrier(u32 name, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- Clusters.

__device__ __forceinline__ u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Need not be reached by whole warps at once.
__device__ __forceinline__ void cluster_barrier() {
    asm volatile(
        "barrier.cluster.arrive.release;\n"
        "barrier.cluster.wait.acquire;\n" ::
            : "memory");
}

// ---- The copy engine. Coordinates are the column and the row of a box's first element; what lies outside of the
// matrix is read as zero and not written.

// Before the first use of a map that the host wrote.
__device__ __forceinline__ void acquire_map(const TensorMap* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
}

__device__ __forceinline__ void load_box(u32 to, const TensorMap* map, u32 column, u32 row, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            to),
        "l"(map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
}

// The same for several blocks of the cluster, bit by rank: to the same place, and announced to the same barrier, in each.
__device__ __forceinline__ void load_box_to_all(u32 to, const TensorMap* map, u32 column, u32 row, u32 barrier,
                                                u32 ranks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(column), "r"(row), "h"((unsigned short)ranks)
        : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap* map, u32 from, u32 column, u32 row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n"
        "cp.async.bulk.commit_group;\n" ::"l"(map),
        "r"(from), "r"(column), "r"(row)
        : "memory");
}

// Waits until of this thread's stores all but the last COUNT have read their shared memory.
template <u32 COUNT>
__device__ __forceinline__ void stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(COUNT) : "memory");
}

// Makes what this thread wrote to shared memory visible to the copy engine.
__device__ __forceinline__ void shared_written() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- Registers of a warpgroup, taken from and given to a pool of the block.

template <u32 COUNT>
__device__ __forceinline__ void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <u32 COUNT>
__device__ __forceinline__ void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// ---- Products of a warpgroup: 64 x 256 elements, both operands in shared memory with their depth contiguous.

// Rows of 128 bytes, swizzled as the copy engine does: groups of 8 rows are 1024 bytes apart (in units of 16).
__device__ __forceinline__ u64 rows_of_128_bytes(u32 address) {
    return (u64)((address & 0x3FFFF) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

__device__ __forceinline__ void products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void products_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all but the last COUNT groups of products are done.
template <u32 COUNT>
__device__ __forceinline__ void products_done() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(COUNT) : "memory");
}

// Registers that products have written: nothing reads them earlier than here.
template <typename Sum>
__device__ __forceinline__ void products_written(Sum (&sums)[128]);

template <>
__device__ __forceinline__ void products_written(float (&sums)[128]) {
#pragma unroll
    for (u32 i = 0; i < 128; ++i) {
        asm volatile("" : "+f"(sums[i])::"memory");
    }
}

template <>
__device__ __forceinline__ void products_written(int (&sums)[128]) {
#pragma unroll
    for (u32 i = 0; i < 128; ++i) {
        asm volatile("" : "+r"(sums[i])::"memory");
    }
}

#define WGMMA_REGISTERS \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
    "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
    "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
    "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, " \
    "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, " \
    "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_4(C, i) C(sums[i]), C(sums[i + 1]), C(sums[i + 2]), C(sums[i + 3])
#define WGMMA_16(C, i) WGMMA_4(C, i), WGMMA_4(C, i + 4), WGMMA_4(C, i + 8), WGMMA_4(C, i + 12)
#define WGMMA_64(C, i) WGMMA_16(C, i), WGMMA_16(C, i + 16), WGMMA_16(C, i + 32), WGMMA_16(C, i + 48)
#define WGMMA_SUMS(C) WGMMA_64(C, 0), WGMMA_64(C, 64)
#define WGMMA_FLOAT(sum) "+f"(sum)
#define WGMMA_INT(sum) "+r"(sum)

// sums += a b^T: TYPES are the shape and the types, SIGNS the factors of a float product.
#define WGMMA(TYPES, SIGNS, C)                                                                                    \
    asm volatile("wgmma.mma_async.sync.aligned." TYPES " {" WGMMA_REGISTERS "}, %128, %129, 1" SIGNS ";"           \
                 : WGMMA_SUMS(C)                                                                                  \
                 : "l"(a), "l"(b))
