"""Elementwise operations on BF16 arrays, as language models run them: GELU (unary), the sum of two arrays (binary).

Every output element is compared with FP64 arithmetic on recomputed inputs; a sum of two BF16 numbers must
be the nearest one.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.core.operators import elementwise_work
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.core.units import bytes_text
from perfgate.suite.closeness import SOURCE as VERIFY_SOURCE
from perfgate.suite.closeness import Comparison, bf16_tolerance
from perfgate.suite.filling import BF16_BYTES, fill_uniform_bf16, poisoning
from perfgate.suite.sizes import (
    STREAM_OVER_L2,
    DoesNotFitError,
    array_bytes,
    buffer_sets,
    checked_footprint,
    predicted_stream_s,
)
from perfgate.suite.tally import Check

VERSION = 1
_SOURCE = "elementwise.cu"
_VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kernel of elementwise.cu: its inputs, FLOP an element and knobs (see the header of the file)."""

    name: str
    inputs: int
    flop_per_element: int
    tolerance: float
    block: int = 128
    unroll: int = 1
    load: int = 1
    store: int = 1

    @property
    def defines(self) -> dict[str, int]:
        """The knobs as the compiler gets them."""
        return {"BLOCK": self.block, "UNROLL": self.unroll, "LOAD": self.load, "STORE": self.store}


GELU = Operation(name="gelu", inputs=1, flop_per_element=8, tolerance=bf16_tolerance(0))
ADD = Operation(name="add", inputs=2, flop_per_element=1, tolerance=0.0)


def elementwise_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the elementwise operations; absent where the memory is unknown or too small to beat the L2 cache."""
    return tuple(_case(gpu, operation) for operation in (GELU, ADD))


def _case(gpu: Gpu, operation: Operation) -> Case | AbsentCase:
    try:
        case = elementwise_case(gpu, operation, array_bytes(gpu) // BF16_BYTES)
        checked_footprint(gpu, case.work.footprint_bytes)
    except DoesNotFitError as error:
        return AbsentCase(id=f"operator.{operation.name}", reason=str(error))
    return case


def elementwise_case(gpu: Gpu, operation: Operation, count: int) -> Case:
    """Return an operation on arrays of ``count`` BF16 elements, whether or not it suits the GPU."""
    work = elementwise_work(count, dtype="bf16", reads=operation.inputs, flop_per_element=operation.flop_per_element)
    sets = buffer_sets(gpu, work.moved_bytes, STREAM_OVER_L2)
    return Case(
        id=f"operator.{operation.name}[bytes={bytes_text(count * BF16_BYTES).replace(' ', '')}]",
        version=VERSION,
        work=replace(work, footprint_bytes=sets * work.moved_bytes),
        prepare=partial(_prepared, operation, count, sets),
        sources=(_SOURCE, "own.cu"),
        predicted_s=predicted_stream_s(gpu, work.moved_bytes),
    )


def _prepared(operation: Operation, count: int, sets: int, toolbox: Toolbox) -> Workload:
    padded_bytes = -(-count * BF16_BYTES // _VECTOR_BYTES) * _VECTOR_BYTES
    kernel = toolbox.kernel(_SOURCE, f"elementwise_{operation.name}", defines=operation.defines)
    tiles = -(-padded_bytes // (_VECTOR_BYTES * operation.block * operation.unroll))
    executions, outputs, checks = [], [], []
    for index in range(sets):
        seeds = [index * operation.inputs + place for place in range(operation.inputs)]
        inputs: list[Buffer] = [toolbox.buffer(padded_bytes) for _ in seeds]
        for seed, source in zip(seeds, inputs, strict=True):
            fill_uniform_bf16(toolbox, source, seed)
        output = toolbox.buffer(padded_bytes)
        executions.append(
            kernel.bind(grid=(tiles, 1, 1), block=(operation.block, 1, 1), args=(*inputs, output, np.uint64(count)))
        )
        outputs.append(output)
        checks.append(
            Check(
                function=f"check_{operation.name}",
                count=count,
                args=(output, np.uint64(count), *map(np.uint64, seeds), np.float64(operation.tolerance)),
                source=VERIFY_SOURCE,
            )
        )
    comparison = Comparison(
        toolbox, checks, tolerance=operation.tolerance, compared="all elements against FP64, relative to each"
    )
    return Workload(executions=tuple(executions), poison=poisoning(toolbox, outputs), verify=comparison.verification)
