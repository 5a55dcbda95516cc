// Latencies of single operations: chains in which every operation needs the result of the one before it.
//
// Shape: steps = 32 rounds operations, one execution of a chain. FLOP: 0; bytes: 0 (nothing streams).
// One step is one machine instruction, or what is said at its kernel; the loop's own three instructions a round of 32
// steps issue while a step waits. The launch is in the time of an execution, so chains last about a millisecond at least.
// Everything is inline PTX that the compiler may neither move nor drop. Architectures: all.
#include "ring.cuh"

#define STEPS_PER_ROUND 32

#define RING_BITS 8
#define RING_NODES (1 << RING_BITS)

// Words of 32 bits, a stride of 4 KiB apart.
#define ATOMIC_WORDS 1024
#define ATOMIC_STRIDE 1024

// Where a walk through global memory stands: it goes on in the next execution, so that a ring larger than a cache is
// never walked from its begin twice.
struct Walk {
    u64 address;
    u64 steps;
    u64 preloaded;
};

template <typename Step>
__device__ __forceinline__ void repeated(u32 rounds, Step step) {
#pragma unroll 1
    for (u32 round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < STEPS_PER_ROUND; ++i) {
            step();
        }
    }
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
    u64 address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(pointer));
    return (u32)address;
}

// A step is a load of the next node's address that the L1 caches: LDG.E.64 R, [R]. One thread. The nodes are brought
// into the L1 before, by loads that do not wait for each other; walk->preloaded = the sum of their words.
extern "C" __global__ void latency_l1(const unsigned char* ring, u32 nodes, u32 stride, Walk* walk, u32 rounds) {
    u64 sum = 0;
#pragma unroll 8
    for (u32 node = 0; node < nodes; ++node) {
        sum += *reinterpret_cast<const u64*>(ring + (u64)node * stride);
    }
    u64 at = walk->address;
    repeated(rounds, [&] { asm volatile("ld.global.u64 %0, [%0];" : "+l"(at)::"memory"); });
    walk->address = at;
    walk->steps += (u64)rounds * STEPS_PER_ROUND;
    walk->preloaded = sum;
}

// A step is a load of the next node's address that no L1 serves: LDG.E.64.STRONG.GPU R, [R]. One thread.
extern "C" __global__ void latency_global(Walk* walk, u32 rounds) {
    u64 at = walk->address;
    repeated(rounds, [&] { asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at)::"memory"); });
    walk->address = at;
    walk->steps += (u64)rounds * STEPS_PER_ROUND;
}

// A step is a load of the next node's address from shared memory: LDS R, [R]. RING_NODES threads make the ring, the
// first one walks it; out = the node it ends at.
extern "C" __global__ void __launch_bounds__(RING_NODES) latency_shared(u32* __restrict__ out, u32 rounds) {
    __shared__ u32 ring[RING_NODES];
    const u32 base = shared_address(ring), step = threadIdx.x, next = (step + 1) % RING_NODES;
    ring[ring_node(step, RING_BITS)] = base + 4 * (u32)ring_node(next, RING_BITS);
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 at = base + 4 * (u32)ring_node(0, RING_BITS);
        repeated(rounds, [&] { asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory"); });
        *out = (at - base) / 4;
    }
}

// A step hands every lane's value to another one: SHFL.IDX R, R, R, 0x1f. One warp. Lanes 0 to 30 hand on in a ring and
// lane 31 keeps its own, so that no count of steps that is a power of two brings all values home.
extern "C" __global__ void __launch_bounds__(32) latency_shuffle(u32* __restrict__ out, u32 rounds) {
    const u32 lane = threadIdx.x, source = lane < 31 ? (lane + 1) % 31 : lane;
    u32 value = 100 + lane;
    repeated(rounds, [&] {
        asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xFFFFFFFF;" : "+r"(value) : "r"(source) : "memory");
    });
    out[lane] = value;
}

// A step is a barrier of the block: BAR.SYNC. Any number of warps up to 32. At the end all values go round by one warp
// and a lane, over a last barrier: out[t] = rounds + (t + 33) % threads.
extern "C" __global__ void __launch_bounds__(1024) latency_barrier(u32* __restrict__ out, u32 rounds) {
    __shared__ u32 values[1024];
    repeated(rounds, [&] { asm volatile("bar.sync 0;" ::: "memory"); });
    values[threadIdx.x] = rounds + threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 33) % blockDim.x];
}

// A step adds the value that the step before found to a word of shared memory: ATOMS.ADD R, [R], R. One thread. The
// word, 1 at first, goes through the Fibonacci numbers modulo 2^32; out = the word. Its address depends on the thread
// for the compiler's eyes: it would add up a warp's addends by shuffles before one atomic on an address of all threads.
extern "C" __global__ void __launch_bounds__(32) latency_atomic_shared(u32* __restrict__ out, u32 rounds) {
    __shared__ u32 words[32];
    words[threadIdx.x] = 1;
    u32 found = 0;
    const u32 address = shared_address(words + threadIdx.x);
    repeated(rounds, [&] { asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(found) : "r"(address) : "memory"); });
    out[threadIdx.x] = words[threadIdx.x];
}

// The same in global memory, for one word after the other of ATOMIC_WORDS that lie in different parts of the L2, since
// some are further away than others: ATOMG.E.ADD R, [R + offset], R. ATOMIC_WORDS threads set them to 1, the first one
// goes on. Thread 0 is lane 0, which the compiler does not know.
extern "C" __global__ void __launch_bounds__(ATOMIC_WORDS) latency_atomic_global(u32* __restrict__ words, u32 rounds) {
    words[threadIdx.x * ATOMIC_STRIDE] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 found = 0, lane;
        asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
#pragma unroll 1
        for (u32 round = 0; round < rounds; ++round) {
            const u32* const first = words + lane + round * STEPS_PER_ROUND % ATOMIC_WORDS * ATOMIC_STRIDE;
#pragma unroll
            for (u32 i = 0; i < STEPS_PER_ROUND; ++i) {
                asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(found) : "l"(first + i * ATOMIC_STRIDE) : "memory");
            }
        }
    }
}

// A step adds 1 to a word of shared memory that all threads of the block add to, each after its own last addition
// returned: LOP3 and ATOMS.ADD. `mask` is 0, which the compiler does not know: by it the addend depends on what was
// found, and the address on the thread. out = the word.
extern "C" __global__ void __launch_bounds__(1024)
    latency_atomic_shared_contended(u32* __restrict__ out, u32 mask, u32 rounds) {
    __shared__ u32 words[1024];
    words[threadIdx.x] = 0;
    __syncthreads();
    u32 found = 0;
    const u32 address = shared_address(words + (threadIdx.x & mask));
    repeated(rounds, [&] {
        const u32 addend = (found & mask) | 1;
        asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(found) : "r"(address), "r"(addend) : "memory");
    });
    __syncthreads();
    if (threadIdx.x == 0) {
        *out = words[0];
    }
}

// The same for a word of global memory that a warp on every SM adds to: LOP3 and ATOMG.E.ADD.64. 64 bits, so that the
// word does not come round: an execution adds threads x steps.
extern "C" __global__ void __launch_bounds__(32)
    latency_atomic_global_contended(u64* __restrict__ words, u32 mask, u32 rounds) {
    u64* const word = words + (threadIdx.x & mask);
    u64 found = 0;
    repeated(rounds, [&] {
        const u64 addend = (found & mask) | 1;
        asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(found) : "l"(word), "l"(addend) : "memory");
    });
}

// A step stores a count and waits until the whole system sees it: ST and __threadfence_system(), which is MEMBAR.SC.SYS,
// ERRBAR and CCTL.IVALL (of the L1). One thread; *out = steps.
extern "C" __global__ void latency_fence_system(u32* __restrict__ out, u32 rounds) {
    u32 count = 0;
    repeated(rounds, [&] {
        ++count;
        asm volatile("st.global.u32 [%0], %1;" ::"l"(out), "r"(count) : "memory");
        __threadfence_system();
    });
}
