"""The sum of a large FP32 array to one value, the same bits in every execution.

Elements are odd multiples of 2^-24, so that the exact sum is one of integers, which the device recomputes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.core.operators import reduction_work
from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.core.units import bytes_text
from perfgate.suite.closeness import FP32_UNIT_ROUNDOFF
from perfgate.suite.closeness import SOURCE as VERIFY_SOURCE
from perfgate.suite.filling import THREADS, WORD_BYTES, covering_grid, fill_uniform, poisoning
from perfgate.suite.sizes import (
    STREAM_OVER_L2,
    DoesNotFitError,
    array_bytes,
    buffer_sets,
    checked_footprint,
    predicted_stream_s,
)

VERSION = 1
_SOURCE = "reduction.cu"
_VECTOR_BYTES = 16
# Standard deviations that an error may reach.
_DEVIATIONS = 8.0
# fill_uniform's elements are multiples of it; their sum in this unit is what the device counts, from 0.
_ELEMENT_UNIT = 2.0**-24
_ZERO = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Knobs of reduction.cu (see the header of the file)."""

    block: int = 1024
    unroll: int = 16
    load: int = 1

    @property
    def defines(self) -> dict[str, int]:
        """The knobs as the compiler gets them."""
        return {"BLOCK": self.block, "UNROLL": self.unroll, "LOAD": self.load}


def sum_tolerance(knobs: Knobs) -> float:
    """Return the largest error of the sum, relative to the standard deviation sqrt(n / 3) of n uniform numbers.

    An addition that makes a partial sum of i elements, of variance i/3, errs by at most u = 2^-24 of it, so
    with a variance of at most u² i/9 (the statistical model of freivalds.py). In a tile of T elements there
    are T/c chains of c = ``unroll`` additions, u² (T/c) (c²/2)/9 in all, and a tree of log2(T/c) levels,
    u² T/9 each; the tiles' sums are added in FP64. Relative to T/3 that is u² (c/6 + log2(T/c) / 3), of
    which eight deviations are taken. Rounding the result to FP32 adds u of the result, at most 8 of its own
    deviations: 8 u.
    """
    levels = math.log2(4 * knobs.block)
    return _DEVIATIONS * FP32_UNIT_ROUNDOFF * (math.sqrt(knobs.unroll / 6 + levels / 3) + 1)


def reduction_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the sum; absent where the memory is unknown or too small to beat the L2 cache."""
    try:
        case = sum_case(gpu, array_bytes(gpu) // WORD_BYTES)
        checked_footprint(gpu, case.work.footprint_bytes)
    except DoesNotFitError as error:
        return (AbsentCase(id="operator.sum", reason=str(error)),)
    return (case,)


def sum_case(gpu: Gpu, count: int, knobs: Knobs = Knobs()) -> Case:
    """Return the sum of ``count`` FP32 elements, whether or not it suits the GPU."""
    work = reduction_work(count, dtype="fp32")
    sets = buffer_sets(gpu, work.read_bytes, STREAM_OVER_L2)
    return Case(
        id=f"operator.sum[bytes={bytes_text(count * WORD_BYTES).replace(' ', '')}]",
        version=VERSION,
        work=replace(work, footprint_bytes=sets * work.moved_bytes),
        prepare=partial(_prepared, count, sets, knobs),
        sources=(_SOURCE, "data.cu"),
        predicted_s=predicted_stream_s(gpu, work.read_bytes),
    )


def _prepared(count: int, sets: int, knobs: Knobs, toolbox: Toolbox) -> Workload:
    padded_bytes = -(-count * WORD_BYTES // _VECTOR_BYTES) * _VECTOR_BYTES
    tiles = -(-padded_bytes // (_VECTOR_BYTES * knobs.block * knobs.unroll))
    kernel = toolbox.kernel(_SOURCE, "reduction_sum", defines=knobs.defines)
    arrived, partials = toolbox.buffer(WORD_BYTES), toolbox.buffer(tiles * WORD_BYTES)
    toolbox.write(arrived, np.zeros(1, dtype=np.uint32))
    executions, results = [], []
    for seed in range(sets):
        source, result = toolbox.buffer(padded_bytes), toolbox.buffer(WORD_BYTES)
        fill_uniform(toolbox, source, seed)
        args = (source, result, partials, arrived, np.uint64(count))
        executions.append(kernel.bind(grid=(tiles, 1, 1), block=(knobs.block, 1, 1), args=args))
        results.append(result)
    check = SumCheck(toolbox, results, count=count, tolerance=sum_tolerance(knobs))
    return Workload(
        executions=tuple(executions), poison=poisoning(toolbox, [*results, partials]), verify=check.verification
    )


class SumCheck:
    """The check of all buffer sets, whose seeds are their indices; prepared before anything is timed."""

    def __init__(self, toolbox: Toolbox, results: Sequence[Buffer], *, count: int, tolerance: float) -> None:
        self._toolbox = toolbox
        self._results = results
        self._count = count
        self._tolerance = tolerance
        self._total = toolbox.buffer(_ZERO.nbytes)
        self._commands = [
            toolbox.kernel(VERIFY_SOURCE, "sum_uniform").bind(
                grid=covering_grid(count),
                block=(THREADS, 1, 1),
                args=(self._total, np.uint64(count), np.uint64(seed)),
            )
            for seed, _ in enumerate(results)
        ]

    def verification(self) -> Verification:
        """Compare every sum with the exact one."""
        detail, worst = f"the sum of {self._count} elements against the exact one", 0.0
        for index, (result, command) in enumerate(zip(self._results, self._commands, strict=True)):
            self._toolbox.write(self._total, _ZERO)
            command()
            exact = int(self._toolbox.read(self._total, np.int64, 1)[0]) * _ELEMENT_UNIT
            found = float(self._toolbox.read(result, np.float32, 1)[0])
            error = abs(found - exact) / math.sqrt(self._count / 3)
            worst = max(worst, error) if math.isfinite(error) else math.inf
            if not error <= self._tolerance:
                detail = f"{detail}: {found} instead of {exact} in buffer set {index}"
                break
        return Verification(passed=worst <= self._tolerance, error=worst, tolerance=self._tolerance, detail=detail)
