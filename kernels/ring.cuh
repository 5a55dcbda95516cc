// A ring of nodes in random order, walked by a chain of dependent loads: the order is a pure function of the step, so
// that rings of any size are made in parallel and the node that a walk ends at is known.
#pragma once

#include "types.cuh"

// A bijection of the numbers below 2^bits: multiplications by odd numbers and shifts to the right, each of which is one.
__device__ __forceinline__ u64 shuffled(u64 x, u32 bits) {
    const u64 mask = (1ull << bits) - 1;
    const u32 half = (bits + 1) / 2;
    x = x * 0x9E3779B97F4A7C15ull & mask;
    x ^= x >> half;
    x = x * 0xBF58476D1CE4E5B9ull & mask;
    return x ^ x >> half;
}

// The node at a step of the ring. Windows of 2^window_bits neighbours follow each other, in random order inside.
__device__ __forceinline__ u64 ring_node(u64 step, u32 window_bits) {
    const u64 inside = step & ((1ull << window_bits) - 1);
    return (step - inside) + shuffled(inside, window_bits);
}
