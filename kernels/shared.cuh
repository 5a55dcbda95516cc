// Shared memory as instructions address it.
#pragma once

#include "types.cuh"

__device__ __forceinline__ u32 shared_address(const void* pointer) {
    return (u32)__cvta_generic_to_shared(pointer);
}
