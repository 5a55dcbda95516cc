// The part of CUDA C++ that the kernels use, on one CPU thread: each GPU thread is a fibre that runs until it waits.
// Threads of a block run as far apart as barriers allow, so a missing barrier gives wrong results every time.
#pragma once

#include <ucontext.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct alignas(16) double2 {
    double x, y;
};
inline double2 make_double2(double x, double y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {

constexpr size_t STACK_BYTES = 1 << 16;

// Runs threads one after the other until one of them waits.
struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    unsigned thread;
    bool finished;
};
struct Barrier {
    unsigned arrived = 0, generation = 0;
};

inline ucontext_t scheduler;
inline std::vector<Fibre> fibres;
inline unsigned running, started;
inline bool backwards;
inline std::function<void()> body;
inline Barrier block_barrier, warp_barriers[32];

inline void wait(Barrier& barrier, unsigned threads) {
    const unsigned generation = barrier.generation;
    if (++barrier.arrived == threads) {
        barrier.arrived = 0;
        ++barrier.generation;
    }
    while (barrier.generation == generation) {
        swapcontext(&fibres[running].context, &scheduler);
    }
}

inline void enter() {
    while (started < blockDim.x) {
        fibres[running].thread = threadIdx.x = backwards ? blockDim.x - 1 - started : started;
        ++started;
        body();
    }
    fibres[running].finished = true;
    swapcontext(&fibres[running].context, &scheduler);
}

inline void start(Fibre& fibre) {
    fibre.finished = false;
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = STACK_BYTES;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, enter, 0);
    swapcontext(&scheduler, &fibre.context);
}

inline void run_block() {
    started = 0;
    for (running = 0; started < blockDim.x; ++running) {
        start(fibres[running]);
    }
    const unsigned used = running;
    for (bool waiting = true; waiting;) {
        waiting = false;
        for (running = 0; running < used; ++running) {
            if (!fibres[running].finished) {
                threadIdx.x = fibres[running].thread;
                swapcontext(&scheduler, &fibres[running].context);
                waiting = waiting || !fibres[running].finished;
            }
        }
    }
}

// Runs all blocks, one after the other; with `from_the_last` so do the threads of each.
inline void launch(uint3 grid, uint3 block, bool from_the_last, std::function<void()> kernel) {
    gridDim = grid;
    blockDim = block;
    backwards = from_the_last;
    body = kernel;
    fibres.resize(block.x);
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
            run_block();
        }
    }
}

}  // namespace host

inline void __syncthreads() { host::wait(host::block_barrier, blockDim.x); }

// What `read` makes of the values that the 32 lanes of the warp give, once all have.
template <typename Value, typename Read>
auto exchanged(const Value& value, Read read) {
    static Value values[1024];
    const unsigned self = threadIdx.x, first = self / 32 * 32;
    values[self] = value;
    host::wait(host::warp_barriers[self / 32], 32);
    const auto found = read(values + first, self - first);
    host::wait(host::warp_barriers[self / 32], 32);
    return found;
}

template <typename Value>
Value __shfl_xor_sync(unsigned, Value value, int distance) {
    return exchanged(value, [=](const Value* lanes, unsigned self) { return lanes[self ^ distance]; });
}

template <typename Value>
Value __shfl_sync(unsigned, Value value, int lane) {
    return exchanged(value, [=](const Value* lanes, unsigned) { return lanes[lane]; });
}

// Shared memory begins where the kernel's first address is taken.
inline const char* shared_begin;
inline size_t __cvta_generic_to_shared(const void* pointer) {
    if (shared_begin == nullptr) {
        shared_begin = static_cast<const char*>(pointer) - (1 << 24);
    }
    return static_cast<const char*>(pointer) - shared_begin;
}

template <typename Value>
Value atomicAdd(Value* address, Value value) {
    const Value before = *address;
    *address += value;
    return before;
}

template <typename Value>
Value atomicMin(Value* address, Value value) {
    const Value before = *address;
    *address = value < before ? value : before;
    return before;
}

template <typename Value>
Value atomicMax(Value* address, Value value) {
    const Value before = *address;
    *address = value > before ? value : before;
    return before;
}

// Blocks run one after the other: what one has written, the next one sees.
inline void __threadfence() {}

namespace host {

inline float bf16(unsigned pair, unsigned half) {
    const unsigned bits = half ? pair & 0xFFFF0000u : pair << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// mma.m16n8k16: each lane shows its fragments to its warp and computes its own elements.
struct Fragments {
    unsigned a[4], b[2];
};
inline void mma_bf16(float (&d)[4], std::array<unsigned, 4> a, std::array<unsigned, 2> b) {
    static Fragments shown[1024];
    const unsigned self = threadIdx.x, lane = self % 32;
    Fragments* const warp = shown + (self - lane);
    shown[self] = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    wait(warp_barriers[self / 32], 32);
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned left = warp[row % 8 * 4 + k % 8 / 2].a[row / 8 + 2 * (k / 8)];
            const unsigned right = warp[column * 4 + k % 8 / 2].b[k / 8];
            d[i] += bf16(left, k % 2) * bf16(right, k % 2);
        }
    }
    wait(warp_barriers[self / 32], 32);
}

inline unsigned transposed_8x8(unsigned pair) {
    static unsigned shown[1024];
    const unsigned self = threadIdx.x, lane = self % 32, g = lane / 4, t = lane % 4;
    shown[self] = pair;
    wait(warp_barriers[self / 32], 32);
    const unsigned* const warp = shown + (self - lane);
    const unsigned shift = 16 * (g % 2);
    const unsigned low = warp[2 * t * 4 + g / 2] >> shift & 0xFFFFu, high = warp[(2 * t + 1) * 4 + g / 2] >> shift;
    wait(warp_barriers[self / 32], 32);
    return low | high << 16;
}

}  // namespace host

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned found = 0;
    for (unsigned i = 0; i < 4; ++i) {
        found |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
    }
    return found;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
