"""Reads of what is on the chip already: an array within the L2 cache, tiles in shared memory.

Sums of random words modulo 2^32, compared exactly with recomputed ones. One execution reads the same
data many times, since a single pass takes less time than starting a kernel.
"""

from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, MemoryLevel, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import shared_bandwidth_bytes_per_s
from perfgate.core.toolbox import Toolbox, Workload
from perfgate.suite.filling import WORD_BYTES, fill_normal_patterns
from perfgate.suite.sizes import size_axis
from perfgate.suite.tally import Check, exact_workload

VERSION = 1
_SOURCE = "onchip.cu"
_VECTOR_BYTES = 16

# Knobs: the best of benchmarks/sweep_access.py on an H200 (docs/figures/bandwidth.md).
_L2_BLOCK, _L2_UNROLL, _L2_BLOCKS_PER_SM = 128, 2, 8
_SHARED_BLOCK, _SHARED_UNROLL, _SHARED_BLOCKS_PER_SM = 512, 4, 2

# An SM may be far from the slice that a line lives in, and a copy is then kept near it: a third of the L2 fits twice.
_L2_SHARE = 3
_L2_BYTES_PER_SM = 2**24
_SHARED_PASSES = 4096
# Of the sizes that a suite may choose; below it an array does not occupy all SMs.
_SMALLEST_L2_BYTES = 2**18
# On the slow side, for planning: bytes a clock and SM of the L2 (A100 19, H200 38, RTX 4090 13), and of its rate.
_L2_BYTES_PER_CLOCK_PER_SM = 12
_SHARED_EFFICIENCY = 0.75


def l2_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the read of an array that stays in the L2; absent where the GPU does not tell its cache or its SMs."""
    reason = _unknown(gpu) or ("" if gpu.l2_bytes else "the GPU does not tell the size of its L2 cache")
    resident_bytes = 2 ** ((gpu.l2_bytes or 0) // _L2_SHARE).bit_length() // 2
    if not reason and resident_bytes < _SMALLEST_L2_BYTES:
        reason = f"a third of an L2 cache of {gpu.l2_bytes} bytes is too small for all SMs to read from"
    if reason:
        return (AbsentCase(id="bandwidth.l2_read", reason=reason),)
    sm_count, clock_hz = gpu.sm_count or 1, gpu.sm_clock_max_hz or 1.0
    passes = -(-sm_count * _L2_BYTES_PER_SM // resident_bytes)
    read_bytes = passes * resident_bytes
    return (
        Case(
            id=f"bandwidth.l2_read[bytes={size_axis(resident_bytes)}]",
            version=VERSION,
            work=Work(
                read_bytes=read_bytes,
                footprint_bytes=resident_bytes,
                memory_level=MemoryLevel.L2,
            ),
            prepare=partial(_prepared_l2, resident_bytes, passes, sm_count * _L2_BLOCKS_PER_SM),
            sources=(_SOURCE, "data.cu"),
            predicted_s=read_bytes / (_L2_BYTES_PER_CLOCK_PER_SM * sm_count * clock_hz),
        ),
    )


def shared_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the read of shared memory on all SMs; absent where the GPU does not tell how many it has."""
    reason = _unknown(gpu)
    if reason:
        return (AbsentCase(id="bandwidth.shared", reason=reason),)
    blocks = (gpu.sm_count or 1) * _SHARED_BLOCKS_PER_SM
    tile_bytes = _SHARED_BLOCK * _SHARED_UNROLL * _VECTOR_BYTES
    read_bytes = blocks * tile_bytes * _SHARED_PASSES
    return (
        Case(
            id=f"bandwidth.shared[bytes={size_axis(tile_bytes)}]",
            version=VERSION,
            work=Work(
                read_bytes=read_bytes,
                footprint_bytes=blocks * tile_bytes,
                memory_level=MemoryLevel.SHARED,
            ),
            prepare=partial(_prepared_shared, blocks),
            sources=(_SOURCE, "data.cu"),
            unit=Unit.CYCLES,
            predicted_s=read_bytes / (_SHARED_EFFICIENCY * (shared_bandwidth_bytes_per_s(gpu) or 1.0)),
        ),
    )


def _unknown(gpu: Gpu) -> str:
    return "" if gpu.sm_count and gpu.sm_clock_max_hz else "the GPU does not tell its SMs or their clock"


def _prepared_l2(resident_bytes: int, passes: int, blocks: int, toolbox: Toolbox) -> Workload:
    tile_bytes = _L2_BLOCK * _L2_UNROLL * _VECTOR_BYTES
    tiles = -(-resident_bytes // tile_bytes)
    source, partials = toolbox.buffer(resident_bytes), toolbox.buffer(blocks * WORD_BYTES)
    fill_normal_patterns(toolbox, source, 0)
    kernel = toolbox.kernel(_SOURCE, "onchip_l2", defines={"BLOCK": _L2_BLOCK, "UNROLL": _L2_UNROLL})
    execution = kernel.bind(
        grid=(blocks, 1, 1),
        block=(_L2_BLOCK, 1, 1),
        args=(source, partials, np.uint32(resident_bytes // _VECTOR_BYTES), np.uint32(passes)),
    )
    check = Check(
        function="check_rereads",
        count=blocks,
        per_block=1,
        args=(
            partials,
            np.uint64(blocks),
            np.uint64(resident_bytes // WORD_BYTES),
            np.uint64(tile_bytes // WORD_BYTES),
            np.uint64(tiles * passes),
            np.uint32(1),
            np.uint64(0),
        ),
    )
    return exact_workload(toolbox, [execution], [partials], [check], "sums of all passes by block")


def _prepared_shared(blocks: int, toolbox: Toolbox) -> Workload:
    tile_bytes = _SHARED_BLOCK * _SHARED_UNROLL * _VECTOR_BYTES
    source, partials = toolbox.buffer(blocks * tile_bytes), toolbox.buffer(blocks * WORD_BYTES)
    fill_normal_patterns(toolbox, source, 0)
    kernel = toolbox.kernel(_SOURCE, "onchip_shared", defines={"BLOCK": _SHARED_BLOCK, "UNROLL": _SHARED_UNROLL})
    execution = kernel.bind(
        grid=(blocks, 1, 1), block=(_SHARED_BLOCK, 1, 1), args=(source, partials, np.uint32(_SHARED_PASSES))
    )
    tile_words = tile_bytes // WORD_BYTES
    check = Check(
        function="check_rereads",
        count=blocks,
        per_block=1,
        args=(
            partials,
            np.uint64(blocks),
            np.uint64(blocks * tile_words),
            np.uint64(tile_words),
            np.uint64(blocks),
            np.uint32(_SHARED_PASSES),
            np.uint64(0),
        ),
    )
    return exact_workload(toolbox, [execution], [partials], [check], "sums of each block's tile by passes")
