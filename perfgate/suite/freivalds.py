"""Whether C = A B^T, in milliseconds: Freivalds' check over all of C, exact dot products where tiles meet.

R. Freivalds, Probabilistic machines can use less running time, IFIP 1977: C x is compared with A (B^T x) for
a random vector x. With x of +1 and -1 an error in one element moves its row's entry by as much.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfgate.core.toolbox import Buffer, Toolbox, Verification
from perfgate.suite.filling import THREADS, covering_grid
from perfgate.suite.tally import Check, Scan

_WARPS = THREADS // 32
_SEED = np.uint64(0x5EED)
_SOURCE = "product_verify.cu"
# Standard deviations that the largest of many errors may reach.
_DEVIATIONS = 8.0

# A, B and C of one buffer set.
Operands = tuple[Buffer, Buffer, Buffer]


def corner_positions(shape: tuple[int, int], tile: tuple[int, int]) -> np.ndarray:
    """Return the (row, column) of the corners of all tiles of a matrix, uint32 of shape (count, 2)."""
    edges = [
        sorted({*range(0, size, step), *range(step - 1, size, step), size - 1})
        for size, step in zip(shape, tile, strict=True)
    ]
    return np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.uint32)


class ProductCheck:
    """The check of all buffer sets of a matrix product; prepared before anything is timed.

    An error of an element is told relative to the standard deviation of the elements. It may be that of
    the accumulator and, of an element c, ``result_roundoff`` |c|, which is taken off before comparing. An
    entry of C x is a sum of n elements with random signs, which multiplies errors and deviation by
    sqrt(n); errors of storing, at most u and with variance at most u²/3 each, may reach eight of their
    standard deviations there.

    Args:
        toolbox: the device.
        operands: A (m x k), B (n x k) and C (m x n) of each buffer set, row-major.
        shape: m, n, k.
        tile: rows and columns of C of one block.
        defines: OPERAND and RESULT, types of elements.cuh.
        deviation: standard deviation of an element of C.
        accumulator_tolerance: largest error of an accumulator, in standard deviations of an element.
        result_roundoff: largest relative error of storing a result.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        operands: Sequence[Operands],
        *,
        shape: tuple[int, int, int],
        tile: tuple[int, int],
        defines: Mapping[str, str],
        deviation: float,
        accumulator_tolerance: float,
        result_roundoff: float,
    ) -> None:
        self._toolbox = toolbox
        self._shape = m, n, k = shape
        self._defines = defines
        self._deviation = deviation
        self._roundoff = result_roundoff
        self._corner_tolerance = accumulator_tolerance
        self._row_tolerance = math.hypot(accumulator_tolerance, _DEVIATIONS * result_roundoff / math.sqrt(3))
        self._positions = corner_positions((m, n), tile)
        self._signs, self._inner, self._expected, self._actual = (toolbox.buffer(8 * size) for size in (n, k, m, m))
        self._dots = toolbox.buffer(16 * len(self._positions))
        places = toolbox.buffer(self._positions.nbytes)
        toolbox.write(places, self._positions)
        self._bound("fill_signs", covering_grid(n), (self._signs, np.uint64(n), _SEED))()
        elements = np.uint64(m * n)
        self._scan = Scan(
            toolbox,
            [
                Check(
                    function="count_unwritten",
                    count=int(elements),
                    args=(c, elements),
                    source=_SOURCE,
                    defines=defines,
                )
                for _, _, c in operands
            ],
        )
        self._commands = [self._checking(a, b, c, places) for a, b, c in operands]

    def _bound(self, function: str, grid: tuple[int, int, int], args: tuple[Any, ...]) -> Callable[[], None]:
        kernel = self._toolbox.kernel(_SOURCE, function, defines=self._defines)
        return kernel.bind(grid=grid, block=(THREADS, 1, 1), args=args)

    def _checking(self, a: Buffer, b: Buffer, c: Buffer, places: Buffer) -> tuple[Callable[[], None], ...]:
        rows, columns, depth = (np.uint64(size) for size in self._shape)
        count = len(self._positions)
        a_rows, inner = covering_grid(int(rows), _WARPS), covering_grid(int(depth), 32)
        dots = (a, b, c, columns, depth, places, np.uint64(count), self._dots)
        return (
            self._bound("multiply_transposed", inner, (b, columns, depth, self._signs, self._inner)),
            self._bound("multiply_operand", a_rows, (a, rows, depth, self._inner, self._expected)),
            self._bound("multiply_result", a_rows, (c, rows, columns, self._signs, self._actual)),
            self._bound("dot_products", covering_grid(count, _WARPS), dots),
        )

    def verification(self) -> Verification:
        """Check the outputs of all buffer sets; tells the error that is largest beside its tolerance."""
        compared = f"C x against A (B^T x) in FP64, {len(self._positions)} exact dot products at tile corners"
        for index, (count, first) in enumerate(self._scan.found()):
            if count:
                row, column = divmod(first, self._shape[1])
                detail = (
                    f"{count} elements are unwritten, the first at row {row}, column {column} of buffer set {index}"
                )
                return Verification(passed=False, error=math.nan, tolerance=self._row_tolerance, detail=detail)
        worst = _Miss(error=0.0, tolerance=self._row_tolerance, where="")
        for index, commands in enumerate(self._commands):
            for command in commands:
                command()
            for miss in (self._row_miss(f" of buffer set {index}"), self._corner_miss(f" of buffer set {index}")):
                worst = max(worst, miss, key=lambda one: one.share)
        place = f"; largest error at {worst.where}" if worst.where else ""
        passed = worst.error <= worst.tolerance
        return Verification(passed=passed, error=worst.error, tolerance=worst.tolerance, detail=compared + place)

    def _row_miss(self, of: str) -> "_Miss":
        m, n, _ = self._shape
        expected = self._toolbox.read(self._expected, np.float64, m)
        actual = self._toolbox.read(self._actual, np.float64, m)
        errors = _errors(expected, actual, 0.0, math.sqrt(n) * self._deviation)
        row = int(np.argmax(errors))
        return _Miss(error=float(errors[row]), tolerance=self._row_tolerance, where=f"row {row}{of}")

    def _corner_miss(self, of: str) -> "_Miss":
        exact, actual = self._toolbox.read(self._dots, np.float64, 2 * len(self._positions)).reshape(-1, 2).T
        errors = _errors(exact, actual, self._roundoff, self._deviation)
        place = int(np.argmax(errors))
        row, column = self._positions[place]
        where = f"row {row}, column {column}{of}"
        return _Miss(error=float(errors[place]), tolerance=self._corner_tolerance, where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Miss:
    """The largest error of a comparison."""

    error: float
    tolerance: float
    where: str

    @property
    def share(self) -> float:
        """Error over tolerance; an exact comparison misses by nothing or by infinitely much."""
        return self.error / self.tolerance if self.tolerance else math.inf if self.error else 0.0


def _errors(expected: np.ndarray, actual: np.ndarray, roundoff: float, deviation: float) -> np.ndarray:
    """Return errors beyond that of storing, in standard deviations; what is not finite is infinitely wrong."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.maximum(np.abs(actual - expected) - roundoff * np.abs(expected), 0.0) / deviation
    return np.where(np.isfinite(errors), errors, np.inf)
