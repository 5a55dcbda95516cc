"""Softmax and layernorm of the rows of a BF16 matrix, at a width of language models and at an odd one.

Every output element is compared with FP64 arithmetic on recomputed inputs.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Work
from perfgate.core.gpu import Gpu
from perfgate.core.operators import SoftmaxAlgorithm, layernorm_work, softmax_work
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.closeness import BF16_UNIT_ROUNDOFF, Comparison, bf16_tolerance, fp32_error
from perfgate.suite.closeness import SOURCE as VERIFY_SOURCE
from perfgate.suite.filling import BF16_BYTES, fill_uniform_bf16, poisoning
from perfgate.suite.sizes import STREAM_OVER_L2, DoesNotFitError, buffer_sets, predicted_stream_s, stream_size
from perfgate.suite.tally import Check

VERSION = 1
_SOURCE = "normalization.cu"
_VECTOR_BYTES = 16
_VECTOR_ELEMENTS = _VECTOR_BYTES // BF16_BYTES
# The hidden size of models of some 70 billion parameters; one less, where no two rows are aligned alike.
_WIDTHS = (8192, 8191)
_MOST_ROWS, _LEAST_ROWS = 65536, 256
# As PyTorch's.
_EPSILON = 1e-5
NAMES = ("softmax", "layernorm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Knobs of normalization.cu (see the header of the file)."""

    block: int = 256
    blocks_per_sm: int = 4
    load: int = 0
    store: int = 0

    def vectors(self, columns: int) -> int:
        """Whole vectors a thread for rows of a width."""
        return max(1, -(-(columns // _VECTOR_ELEMENTS) // self.block))

    def defines(self, columns: int) -> dict[str, int]:
        """The knobs as the compiler gets them."""
        return {
            "BLOCK": self.block,
            "VECTORS": self.vectors(columns),
            "ALIGNED": int(columns % _VECTOR_ELEMENTS == 0),
            "BLOCKS_PER_SM": self.blocks_per_sm,
            "LOAD": self.load,
            "STORE": self.store,
        }

    def additions(self, columns: int) -> int:
        """Roundings that a term of a row's sum passes: those of a thread's chain and of a tree over the block."""
        return self.vectors(columns) * _VECTOR_ELEMENTS + 1 + int(math.log2(self.block))


# The best on an H200 (docs/figures/operators.md): to shift scale and offset of layernorm into place takes registers.
_ASKEW = Knobs(block=128, store=1)


def normalization_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return softmax and layernorm; absent where the memory is unknown or too small to beat the L2 cache."""
    return tuple(_case(gpu, name, columns) for name in NAMES for columns in _WIDTHS)


def _case(gpu: Gpu, name: str, columns: int) -> Case | AbsentCase:
    try:
        rows = stream_size(gpu, _MOST_ROWS, _LEAST_ROWS, lambda size: _work(name, size, columns).moved_bytes)
    except DoesNotFitError as error:
        return AbsentCase(id=f"operator.{name}[columns={columns}]", reason=str(error))
    is_askew = columns % _VECTOR_ELEMENTS != 0
    return normalization_case(gpu, name, rows, columns, _ASKEW if name == "layernorm" and is_askew else Knobs())


def _work(name: str, rows: int, columns: int) -> Work:
    if name == "softmax":
        return softmax_work(rows, columns, dtype="bf16", algorithm=SoftmaxAlgorithm.ON_CHIP)
    return layernorm_work(rows, columns, dtype="bf16")


def normalization_case(gpu: Gpu, name: str, rows: int, columns: int, knobs: Knobs = Knobs()) -> Case:
    """Return ``"softmax"`` or ``"layernorm"`` of a matrix, whether or not it suits the GPU."""
    work = _work(name, rows, columns)
    sets = buffer_sets(gpu, work.moved_bytes, STREAM_OVER_L2)
    prepare = _prepared_softmax if name == "softmax" else _prepared_layernorm
    return Case(
        id=f"operator.{name}[rows={rows},columns={columns}]",
        version=VERSION,
        work=replace(work, footprint_bytes=sets * work.moved_bytes),
        prepare=partial(prepare, _Layout(name=name, rows=rows, columns=columns, sets=sets, knobs=knobs)),
        sources=(_SOURCE, "own.cu"),
        predicted_s=predicted_stream_s(gpu, work.moved_bytes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A kernel at one size."""

    name: str
    rows: int
    columns: int
    sets: int
    knobs: Knobs

    def buffer(self, toolbox: Toolbox, rows: int) -> Buffer:
        """Return room for rows, in whole vectors."""
        return toolbox.buffer(-(-rows * self.columns // _VECTOR_ELEMENTS) * _VECTOR_BYTES)

    def workload(
        self,
        toolbox: Toolbox,
        parameters: int,
        scalars: tuple[np.generic, ...],
        expected_by: tuple[np.generic, ...],
        tolerance: float,
    ) -> Workload:
        """Bind the kernel to (matrix, parameters of a row, output, shape, scalars), its check to their seeds."""
        kernel = toolbox.kernel(_SOURCE, f"normalization_{self.name}", defines=self.knobs.defines(self.columns))
        executions, outputs, checks = [], [], []
        for index in range(self.sets):
            heights = (self.rows, *[1] * parameters)
            seeds = range(index * len(heights), (index + 1) * len(heights))
            inputs = [self.buffer(toolbox, height) for height in heights]
            output = self.buffer(toolbox, self.rows)
            for seed, source in zip(seeds, inputs, strict=True):
                fill_uniform_bf16(toolbox, source, seed)
            args = (*inputs, output, np.uint32(self.rows), np.uint32(self.columns), *scalars)
            executions.append(kernel.bind(grid=(self.rows, 1, 1), block=(self.knobs.block, 1, 1), args=args))
            outputs.append(output)
            checks.append(
                Check(
                    function=f"check_{self.name}",
                    count=self.rows,
                    per_block=1,
                    args=(output, *map(np.uint64, (self.rows, self.columns, *seeds)), *expected_by),
                    source=VERIFY_SOURCE,
                )
            )
        compared = "all elements against FP64, relative to each"
        comparison = Comparison(toolbox, checks, tolerance=tolerance, compared=compared)
        return Workload(
            executions=tuple(executions), poison=poisoning(toolbox, outputs), verify=comparison.verification
        )


def _prepared_softmax(layout: _Layout, toolbox: Toolbox) -> Workload:
    tolerance = bf16_tolerance(layout.knobs.additions(layout.columns))
    return layout.workload(toolbox, 0, (), (np.float64(tolerance),), tolerance)


def _prepared_layernorm(layout: _Layout, toolbox: Toolbox) -> Workload:
    """Errors of the sums are relative to what an element was made of, not to the element: it may cancel."""
    tolerance = BF16_UNIT_ROUNDOFF
    slack = fp32_error(layout.knobs.additions(layout.columns)) / tolerance
    expected_by = tuple(map(np.float64, (_EPSILON, slack, tolerance)))
    return layout.workload(toolbox, 2, (np.float32(_EPSILON),), expected_by, tolerance)
