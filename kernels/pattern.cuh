// What the write kernel writes. A Weyl sequence: every word differs from its neighbours in about half of its bits, a
// word in the wrong place is seen, and it costs one addition.
#pragma once

#include "types.cuh"

#define PATTERN_STEP 0x9E3779B9u

__device__ __forceinline__ u32 pattern_word(u32 seed, u64 index) {
    return seed + (u32)index * PATTERN_STEP;
}
