"""Prefill attention: O = softmax(Q K^T / sqrt(128)) V in BF16, causal and not: one sequence of 8192, 16 heads.

Operands are random and about normal. The whole of O is scanned for NaN; rows at the edges of the kernel's tiles are
compared with rows recomputed in FP64.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import legacy_pipe
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.attention_check import HEAD_DIM, RowCheck
from perfgate.suite.filling import THREADS, covering_grid, poisoning
from perfgate.suite.gemm_mma import is_legacy
from perfgate.suite.sizes import (
    MATRIX_OVER_L2,
    DoesNotFitError,
    buffer_sets,
    checked_footprint,
    checked_tensor_s,
)

VERSION = 1
POSITIONS = 8192
HEADS = 16
_DATA = "attention_data.cu"
_PIPE = "bf16-tensor"
_ELEMENT_BYTES = 2
_ROW_BYTES = HEAD_DIM * _ELEMENT_BYTES
# The swizzle of tensor maps is 128 bytes wide and repeats after this many, where tiles begin in shared memory.
_BOX_COLUMNS = 64
_SWIZZLE_BYTES = 1024
_BLACKWELL_OF_100_KB = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillKernel:
    """A kernel of prefill attention; the header of its source says what the knobs are.

    Attributes:
        source: its file.
        threads: of a block.
        tile_queries: rows of O that a block makes.
        shared_bytes: dynamic shared memory of a block.
        defines: its knobs, but for CAUSAL.
        box_rows: of tensor maps of Q, K and V, where it takes those and no pointers.
    """

    source: str
    threads: int
    tile_queries: int
    shared_bytes: int
    defines: Mapping[str, int] = field(default_factory=dict)
    box_rows: int | None = None

    def operands(self, toolbox: Toolbox, matrices: Sequence[Buffer], rows: int) -> tuple[Buffer, ...]:
        """Return what it takes for Q, K and V, each of so many rows."""
        if self.box_rows is None:
            return tuple(matrices)
        shape, box = (rows, HEAD_DIM), (self.box_rows, _BOX_COLUMNS)
        return tuple(
            toolbox.tensor_map(matrix, shape=shape, box=box, element_bytes=_ELEMENT_BYTES) for matrix in matrices
        )


def mma_kernel(*, tile_queries: int, tile_keys: int, slots: int, warps: int = 4, blocks: int = 2) -> PrefillKernel:
    """Return the mma.sync kernel with these knobs."""
    return PrefillKernel(
        source="attention_prefill.cu",
        threads=32 * warps,
        tile_queries=tile_queries,
        shared_bytes=_ROW_BYTES * (tile_queries + slots * tile_keys),
        defines={
            "TILE_QUERIES": tile_queries,
            "TILE_KEYS": tile_keys,
            "SLOTS": slots,
            "WARPS": warps,
            "BLOCKS": blocks,
        },
    )


# Two blocks an SM, of 164 KB of shared memory and more. The best of its knobs on an H200 (docs/figures/).
MMA = mma_kernel(tile_queries=128, tile_keys=64, slots=2)
# The same of 100 KB, less 1 KB a block.
MMA_SMALL = mma_kernel(tile_queries=128, tile_keys=32, slots=2)
# Tiles of Q, K and V of 128 rows; two stages of K and of V, each with two barriers, and one of Q.
WGMMA = PrefillKernel(
    source="attention_prefill_wgmma.cu",
    threads=384,
    tile_queries=128,
    shared_bytes=_SWIZZLE_BYTES + 5 * 128 * _ROW_BYTES + 9 * 8,
    box_rows=128,
)


def prefill_kernel(compute_capability: str | None) -> PrefillKernel:
    """Return the kernel that an architecture runs.

    Raises:
        DoesNotFitError: there is none, and why.
    """
    if compute_capability is None:
        message = "the GPU does not tell its compute capability, which the kernel follows from"
        raise DoesNotFitError(message)
    major, minor = (int(part) for part in compute_capability.split("."))
    if major < 8:
        message = f"the tensor cores of compute capability {compute_capability} have no BF16"
        raise DoesNotFitError(message)
    if (major, minor) == (9, 0):
        return WGMMA
    return MMA_SMALL if compute_capability in ("8.6", "8.9") or major == _BLACKWELL_OF_100_KB else MMA


def attention_prefill_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return prefill attention, all keys and causal; absent where architecture, memory or time forbids it."""
    return tuple(_case(gpu, causal) for causal in (False, True))


def prefill_work(gpu: Gpu, *, heads: int, positions: int, causal: bool) -> Work:
    """Return the work: 2 FLOP a product of both matrix products; Q, K, V read once, O written once."""
    pairs = positions * (positions + 1) // 2 if causal else positions**2
    matrix_bytes = heads * positions * _ROW_BYTES
    return Work(
        work_flop=4 * heads * HEAD_DIM * pairs,
        read_bytes=3 * matrix_bytes,
        write_bytes=matrix_bytes,
        footprint_bytes=buffer_sets(gpu, 4 * matrix_bytes, MATRIX_OVER_L2, at_least=2) * 4 * matrix_bytes,
        dtype="bf16",
        pipe=legacy_pipe(_PIPE) if is_legacy(gpu) else _PIPE,
    )


def fill_normal(toolbox: Toolbox, buffer: Buffer, seed: int) -> None:
    """Fill with random BF16 numbers, about normal, of variance 1."""
    count = buffer.size_bytes // _ELEMENT_BYTES
    toolbox.kernel(_DATA, "fill_normal_bf16").bind(
        grid=covering_grid(count), block=(THREADS, 1, 1), args=(buffer, np.uint64(count), np.uint64(seed))
    )()


def prepared_prefill(
    kernel: PrefillKernel, heads: int, positions: int, causal: bool, sets: int, toolbox: Toolbox
) -> Workload:
    """Prepare prefill attention of any size with a kernel."""
    matrix_bytes = heads * positions * _ROW_BYTES
    bound = toolbox.kernel(kernel.source, "attention_prefill", defines={**kernel.defines, "CAUSAL": int(causal)})
    grid = (math.ceil(positions / kernel.tile_queries), heads, 1)
    executions, outputs = [], []
    for index in range(sets):
        matrices = [toolbox.buffer(matrix_bytes) for _ in range(3)]
        for place, matrix in enumerate(matrices):
            fill_normal(toolbox, matrix, 3 * index + place)
        outputs.append(toolbox.buffer(matrix_bytes))
        executions.append(
            bound.bind(
                grid=grid,
                block=(kernel.threads, 1, 1),
                args=(*kernel.operands(toolbox, matrices, heads * positions), outputs[-1], np.uint32(positions)),
                shared_bytes=kernel.shared_bytes,
            )
        )
    check = RowCheck(toolbox, outputs, heads=heads, positions=positions, causal=causal, tile=kernel.tile_queries)
    return Workload(executions=tuple(executions), poison=poisoning(toolbox, outputs), verify=check.verification)


def _case(gpu: Gpu, causal: bool) -> Case | AbsentCase:
    identity = f"operator.attention_prefill[heads={HEADS},n={POSITIONS},causal={causal:d}]"
    try:
        kernel = prefill_kernel(gpu.compute_capability)
        work = prefill_work(gpu, heads=HEADS, positions=POSITIONS, causal=causal)
        checked_footprint(gpu, work.footprint_bytes)
        predicted_s = checked_tensor_s(gpu, "bf16", work.work_flop)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    return Case(
        id=identity,
        version=VERSION,
        work=work,
        prepare=partial(prepared_prefill, kernel, HEADS, POSITIONS, causal, work.footprint_bytes // work.moved_bytes),
        sources=(kernel.source, _DATA),
        unit=Unit.CYCLES,
        predicted_s=predicted_s,
    )
