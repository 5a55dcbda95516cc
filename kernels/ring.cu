// Rings of nodes in memory that a chain of dependent loads walks through (ring.cuh).
//
// Shape: 2^bits nodes, `stride` bytes apart, of 8 bytes each. FLOP: not counted; bytes: 8 a node written.
// Block: any; grid-stride, any grid is right. Never timed. Architectures: all.
#include "ring.cuh"

// The word of each node is the address of the next one.
extern "C" __global__ void fill_ring(unsigned char* ring, u32 bits, u32 window_bits, u32 stride) {
    const u64 count = 1ull << bits;
    for (u64 step = (u64)blockIdx.x * blockDim.x + threadIdx.x; step < count; step += (u64)gridDim.x * blockDim.x) {
        const u64 node = ring_node(step, window_bits), next = ring_node((step + 1) & (count - 1), window_bits);
        *reinterpret_cast<u64*>(ring + node * stride) = (u64)(ring + next * stride);
    }
}
