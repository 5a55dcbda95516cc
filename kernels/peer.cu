// Both ways at once between two GPUs: one kernel that copies to the other GPU's memory and from it.
//
// Shape: two copies of `vectors` 16-byte vectors each, any count; n = 4 vectors words.
// FLOP:  0
// Bytes: 8 n over the link: 4 n read, 4 n written (each also written or read in the GPU's own memory)
//
// Even blocks send, odd blocks fetch, so that both directions of the link have work from the first block to the last.
// Each thread moves UNROLL vectors, BLOCK apart, all loads before the first store: a link's latency is a microsecond.
// Block: BLOCK threads; two blocks a tile of BLOCK x UNROLL vectors. Architectures: all.
//
// Knobs (-D): BLOCK threads a block, UNROLL vectors a thread.
#include "types.cuh"

#ifndef BLOCK
#define BLOCK 512
#endif
#ifndef UNROLL
#define UNROLL 4
#endif

// sent_to[i] = sent[i] and fetched_to[i] = fetched[i]; sent_to and fetched lie in the other GPU's memory.
extern "C" __global__ void __launch_bounds__(BLOCK)
    peer_exchange(const uint4* __restrict__ sent, uint4* __restrict__ sent_to, const uint4* __restrict__ fetched,
                  uint4* __restrict__ fetched_to, u64 vectors) {
    const bool sends = blockIdx.x % 2 == 0;
    const uint4* const from = sends ? sent : fetched;
    uint4* const to = sends ? sent_to : fetched_to;
    const u64 first = (u64)(blockIdx.x / 2) * (BLOCK * UNROLL) + threadIdx.x;
    uint4 v[UNROLL];
#pragma unroll
    for (u32 j = 0; j < UNROLL; ++j) {
        if (first + j * BLOCK < vectors) {
            v[j] = from[first + j * BLOCK];
        }
    }
#pragma unroll
    for (u32 j = 0; j < UNROLL; ++j) {
        if (first + j * BLOCK < vectors) {
            to[first + j * BLOCK] = v[j];
        }
    }
}
