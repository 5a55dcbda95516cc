// Matrix product C = A B^T on the tensor cores of Hopper: A is m x k, B is n x k, C is m x n, all row-major.
//
// FLOP:  2 m n k
// Bytes: e (m k + n k) + r m n (e and r are the sizes of an operand and of a result)
//
// Block: a tile of 128 x 256 of C at a time by two warpgroups of 64 x 256 each, the widest product that one instruction
// makes: it reads least shared memory for its work. A third warpgroup has one thread at work, which feeds them: STAGES
// steps of 128 bytes in depth lie in shared memory, copied by the copy engine (TMA) and swizzled so that the tensor
// cores read them without bank conflicts. Blocks work in clusters of two, one above the other: each loads half of the
// rows of B for both, which takes a third off what the L2 serves.
// As many blocks as SMs work through all tiles, in groups of GROUP clusters down: those that run at once share rows of A
// and B in the L2. While a tile is stored, box by box of 64 rows x 128 bytes through shared memory, the next one's
// operands are on their way.
// Power decides how fast a large product runs on an H200, and with it the data: all of a significand's bits are random.
// Any m, n, k is right whose rows of A, B and C are multiples of 16 bytes, which is what a tensor map can describe.
// Architectures: 9.0 (sm_90a); elsewhere this file is empty.
//
// Knobs (-D): STAGES, SLOTS boxes of C in flight a warpgroup, GROUP, CLUSTER blocks (1, 2). 226 KiB of shared memory.
#include "types.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "hopper.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef GROUP
#define GROUP 8
#endif
#ifndef CLUSTER
#define CLUSTER 2
#endif

#define TILE_M 128
#define TILE_N 256
#define ROW_BYTES 128
#define WARPGROUP 128
#define MAKERS 2
#define THREADS ((MAKERS + 1) * WARPGROUP)
// Rows of C that a warpgroup makes, and of a box.
#define ROWS 64
// Of the 65536 of an SM, for 384 threads: what the feeding warpgroup does not need goes to the other two.
#define FEEDER_REGISTERS 40
#define MAKER_REGISTERS 232

#define A_BYTES (TILE_M * ROW_BYTES)
#define B_BYTES (TILE_N * ROW_BYTES)
#define B_SHARE (B_BYTES / CLUSTER)
#define BOX_BYTES (ROWS * ROW_BYTES)
// Instructions of a stage; each takes 32 bytes in depth, whatever the type.
#define PRODUCTS 4

// Shared memory: the stages, A before B, each; boxes of C by warpgroup; barriers of full and of empty stages.
#define STAGE_BYTES (A_BYTES + B_BYTES)

struct Bf16 {
    typedef float Sum;
    static constexpr u32 OPERAND_BYTES = 2, RESULT_BYTES = 2;
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], u64 a, u64 b) {
        WGMMA("m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0", WGMMA_FLOAT);
    }
    static __device__ __forceinline__ u32 packed(float low, float high) {
        u32 pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
};

struct Fp16 {
    typedef float Sum;
    static constexpr u32 OPERAND_BYTES = 2, RESULT_BYTES = 2;
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], u64 a, u64 b) {
        WGMMA("m64n256k16.f32.f16.f16", ", 1, 1, 0, 0", WGMMA_FLOAT);
    }
    static __device__ __forceinline__ u32 packed(float low, float high) {
        u32 pair;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
};

struct Tf32 {
    typedef float Sum;
    static constexpr u32 OPERAND_BYTES = 4, RESULT_BYTES = 4;
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], u64 a, u64 b) {
        WGMMA("m64n256k8.f32.tf32.tf32", ", 1, 1", WGMMA_FLOAT);
    }
};

struct Fp8 {
    typedef float Sum;
    static constexpr u32 OPERAND_BYTES = 1, RESULT_BYTES = 2;
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], u64 a, u64 b) {
        WGMMA("m64n256k32.f32.e4m3.e4m3", ", 1, 1", WGMMA_FLOAT);
    }
    static __device__ __forceinline__ u32 packed(float low, float high) {
        return Bf16::packed(low, high);
    }
};

struct Int8 {
    typedef int Sum;
    static constexpr u32 OPERAND_BYTES = 1, RESULT_BYTES = 4;
    static __device__ __forceinline__ void multiply(Sum (&sums)[128], u64 a, u64 b) {
        WGMMA("m64n256k32.s32.s8.s8", "", WGMMA_INT);
    }
};

// Which tiles a block makes: those of its cluster, one after the other.
struct Tiles {
    u32 rows, columns, clusters, index;

    __device__ __forceinline__ Tiles(u32 m, u32 n)
        : rows((m + TILE_M * CLUSTER - 1) / (TILE_M * CLUSTER)),
          columns((n + TILE_N - 1) / TILE_N),
          clusters(gridDim.x / CLUSTER),
          index(blockIdx.x / CLUSTER) {}
    __device__ __forceinline__ bool are_left() const {
        return index < rows * columns;
    }
    __device__ __forceinline__ void next() {
        index += clusters;
    }
    // Clusters go down columns of GROUP.
    __device__ __forceinline__ u32 group_row() const {
        return index / (GROUP * columns) * GROUP;
    }
    __device__ __forceinline__ u32 height() const {
        return rows - group_row() < GROUP ? rows - group_row() : GROUP;
    }
    __device__ __forceinline__ u32 first_row(u32 rank) const {
        return ((group_row() + index % (GROUP * columns) % height()) * CLUSTER + rank) * TILE_M;
    }
    __device__ __forceinline__ u32 first_column() const {
        return index % (GROUP * columns) / height() * TILE_N;
    }
};

// Where in the ring of stages a warpgroup is.
struct Place {
    u32 stage = 0, parity = 0;

    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ u32 stage_at(u32 shared, u32 stage) {
    return shared + stage * STAGE_BYTES;
}

// Fills stages for as long as there are tiles; one thread.
template <typename Format>
__device__ __forceinline__ void feed(const TensorMap* a, const TensorMap* b, u32 shared, u32 full, u32 empty, u32 rank,
                                     Tiles tiles, u32 steps) {
    constexpr u32 DEPTH = ROW_BYTES / Format::OPERAND_BYTES;
    acquire_map(a);
    acquire_map(b);
    Place place;
    for (; tiles.are_left(); tiles.next()) {
        const u32 row = tiles.first_row(rank), column = tiles.first_column() + rank * (TILE_N / CLUSTER);
        for (u32 step = 0; step < steps; ++step, place.next()) {
            barrier_wait(empty + 8 * place.stage, place.parity ^ 1);
            const u32 arrived = full + 8 * place.stage, to = stage_at(shared, place.stage);
            barrier_announce(arrived, STAGE_BYTES);
            load_box(to, a, step * DEPTH, row, arrived);
            if (CLUSTER == 1) {
                load_box(to + A_BYTES, b, step * DEPTH, column, arrived);
            } else {
                load_box_to_all(to + A_BYTES + rank * B_SHARE, b, step * DEPTH, column, arrived, (1 << CLUSTER) - 1);
            }
        }
    }
}

// A row of a box is 128 bytes, its 16-byte chunks swizzled by the row.
__device__ __forceinline__ u32 chunk_at(u32 box, u32 row, u32 chunk) {
    return box + row * ROW_BYTES + ((chunk ^ (row % 8)) << 4);
}

// The elements of a warp's sums: 4 i and 4 i + 1 are neighbours in the row lane / 4 of its 16, at column
// 8 i + lane % 4 * 2; 4 i + 2 and 4 i + 3 the same 8 rows below.
template <typename Format>
__device__ __forceinline__ void write_box(u32 box, const typename Format::Sum* sums) {
    const u32 lane = threadIdx.x % 32, first = threadIdx.x % WARPGROUP / 32 * 16;
    if constexpr (Format::RESULT_BYTES == 2) {
        // Each lane addresses a row of one of four 8 x 8 matrices: two below each other, two beside.
        const u32 row = first + lane % 16, chunk = lane / 16;
#pragma unroll
        for (u32 i = 0; i < 8; i += 2) {
            const typename Format::Sum* const from = sums + 4 * i;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                             chunk_at(box, row, i + chunk)),
                         "r"(Format::packed(from[0], from[1])), "r"(Format::packed(from[2], from[3])),
                         "r"(Format::packed(from[4], from[5])), "r"(Format::packed(from[6], from[7]))
                         : "memory");
        }
    } else {
        const u32 row = first + lane / 4, chunk = lane % 4 / 2, within = lane % 2 * 8;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                u32 pair[2];
                memcpy(pair, sums + 4 * i + 2 * half, sizeof pair);
                asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(
                                 chunk_at(box, row + 8 * half, 2 * i + chunk) + within),
                             "r"(pair[0]), "r"(pair[1])
                             : "memory");
            }
        }
    }
}

// Makes the rows of a tile that are this warpgroup's, for as long as there are tiles.
template <typename Format>
__device__ __forceinline__ void make(const TensorMap* c, u32 shared, u32 boxes, u32 full, u32 empty, u32 rank,
                                     Tiles tiles, u32 steps) {
    typedef typename Format::Sum Sum;
    constexpr u32 BOX_COLUMNS = ROW_BYTES / Format::RESULT_BYTES, BOXES = TILE_N / BOX_COLUMNS;
    const u32 warpgroup = threadIdx.x / WARPGROUP, thread = threadIdx.x % WARPGROUP;
    const bool is_storing = thread == 0;
    const u32 own_boxes = boxes + warpgroup * SLOTS * BOX_BYTES;
    if (is_storing) {
        acquire_map(c);
    }
    // A thread for each block of the cluster tells it that this warpgroup is done with a stage.
    const auto release = [&](u32 stage) {
        if (thread < CLUSTER) {
            barrier_arrive(empty + 8 * stage, thread);
        }
    };
    Place place;
    for (; tiles.are_left(); tiles.next()) {
        Sum sums[128] = {};
        u32 last = 0;
        for (u32 step = 0; step < steps; ++step, place.next()) {
            barrier_wait(full + 8 * place.stage, place.parity);
            const u32 from = stage_at(shared, place.stage);
            const u64 a = rows_of_128_bytes(from + warpgroup * BOX_BYTES), b = rows_of_128_bytes(from + A_BYTES);
            products_begin();
#pragma unroll
            for (u32 i = 0; i < PRODUCTS; ++i) {
                Format::multiply(sums, a + 2 * i, b + 2 * i);
            }
            products_commit();
            products_done<1>();
            if (step > 0) {
                release(last);
            }
            last = place.stage;
        }
        products_done<0>();
        products_written(sums);
        release(last);

        const u32 row = tiles.first_row(rank) + warpgroup * ROWS, column = tiles.first_column();
#pragma unroll
        for (u32 i = 0; i < BOXES; ++i) {
            const u32 box = own_boxes + i % SLOTS * BOX_BYTES;
            if (is_storing) {
                stores_have_read<SLOTS - 1>();
            }
            named_barrier(1 + warpgroup, WARPGROUP);
            write_box<Format>(box, sums + i * BOX_COLUMNS / 2);
            shared_written();
            named_barrier(1 + warpgroup, WARPGROUP);
            if (is_storing) {
                store_box(c, box, column + i * BOX_COLUMNS, row);
            }
        }
    }
    if (is_storing) {
        stores_have_read<0>();
    }
}

template <typename Format>
__device__ __forceinline__ void product(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n,
                                        u32 k) {
    extern __shared__ unsigned char unaligned[];
    const u32 shared = (shared_address(unaligned) + 1023) & ~1023u;
    const u32 boxes = shared + STAGES * STAGE_BYTES;
    const u32 full = boxes + MAKERS * SLOTS * BOX_BYTES, empty = full + 8 * STAGES;
    const u32 rank = cluster_rank();
    const Tiles tiles(m, n);
    const u32 steps = (k * Format::OPERAND_BYTES + ROW_BYTES - 1) / ROW_BYTES;

    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; ++stage) {
            barrier_start(full + 8 * stage, 1);
            barrier_start(empty + 8 * stage, MAKERS * CLUSTER);
        }
        barriers_started();
    }
    cluster_barrier();

    // The last barrier: no block leaves while another one of its cluster may still write to it.
    if (threadIdx.x >= MAKERS * WARPGROUP) {
        fewer_registers<FEEDER_REGISTERS>();
        if (threadIdx.x == MAKERS * WARPGROUP) {
            feed<Format>(a, b, shared, full, empty, rank, tiles, steps);
        }
        cluster_barrier();
    } else {
        more_registers<MAKER_REGISTERS>();
        make<Format>(c, shared, boxes, full, empty, rank, tiles, steps);
        cluster_barrier();
    }
}

// Grid: any multiple of CLUSTER; as many blocks as SMs are best. a and b are maps of A and B with boxes of 128 bytes by
// 128 rows, c one of C with boxes of 128 bytes by 64 rows; all with the swizzle of 128 bytes. k > 0.
#define CLUSTERED __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)

extern "C" __global__ void CLUSTERED gemm_bf16(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n, u32 k) {
    product<Bf16>(a, b, c, m, n, k);
}

extern "C" __global__ void CLUSTERED gemm_fp16(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n, u32 k) {
    product<Fp16>(a, b, c, m, n, k);
}

extern "C" __global__ void CLUSTERED gemm_tf32(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n, u32 k) {
    product<Tf32>(a, b, c, m, n, k);
}

extern "C" __global__ void CLUSTERED gemm_fp8(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n, u32 k) {
    product<Fp8>(a, b, c, m, n, k);
}

extern "C" __global__ void CLUSTERED gemm_int8(const TensorMap* a, const TensorMap* b, const TensorMap* c, u32 m, u32 n, u32 k) {
    product<Int8>(a, b, c, m, n, k);
}
#endif
