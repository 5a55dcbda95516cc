"""Whether C = A B^T, in milliseconds: Freivalds' check over all of C, exact dot products where tiles meet.

R. Freivalds, Probabilistic machines can use less running time, IFIP 1977: C x is compared with A (B^T x) for
a random vector x. With x of +1 and -1 an error in one element moves its row's entry by as much.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from perfgate.core.toolbox import Buffer, Toolbox, Verification
from perfgate.suite.filling import THREADS, covering_grid
from perfgate.suite.tally import Check, Scan

_WARPS = THREADS // 32
_SEED = np.uint64(0x5EED)
# Standard deviations that an error may reach: of 2^24 normal deviates the largest is about 5.3.
_DEVIATIONS = 8.0
# Standard deviation of a product of two numbers uniform in (-1, 1).
_PRODUCT_DEVIATION = 1.0 / 3.0


def rounding_tolerance(unit_roundoff: float, depth: int) -> float:
    """Return the largest error of a dot product of ``depth`` uniform numbers, relative to its standard deviation.

    Adding term i rounds a partial sum of i products, of variance i/9, to a relative error of at most u,
    so with variance at most u²/3 (the statistical model of rounding: Higham and Mary, A new approach to
    probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019). The sum over i is
    u² depth² / 54; the result has variance depth / 9; their ratio is u² depth / 6. Eight standard
    deviations are 8 u sqrt(depth / 6): 1.2e-5 for FP32 and 4096. Summation in several partial sums
    rounds less. Operands cut to TF32 err by about 2e-4.

    Both checks share it: an entry of C x is a sum of n elements with random signs, which multiplies
    error and deviation by sqrt(n).
    """
    return _DEVIATIONS * unit_roundoff * math.sqrt(depth / 6)


def corner_positions(shape: tuple[int, int], tile: tuple[int, int]) -> np.ndarray:
    """Return the (row, column) of the corners of all tiles of a matrix, uint32 of shape (count, 2)."""
    edges = [
        sorted({*range(0, size, step), *range(step - 1, size, step), size - 1})
        for size, step in zip(shape, tile, strict=True)
    ]
    return np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.uint32)


class ProductCheck:
    """The check of all buffer sets of a matrix product; prepared before anything is timed.

    Args:
        toolbox: the device.
        operands: A (m x k), B (n x k) and C (m x n) of each buffer set, FP32, row-major.
        shape: m, n, k.
        tile: rows and columns of C of one block.
        tolerance: see ``rounding_tolerance``.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        operands: Sequence[tuple[Buffer, Buffer, Buffer]],
        *,
        shape: tuple[int, int, int],
        tile: tuple[int, int],
        tolerance: float,
    ) -> None:
        self._toolbox = toolbox
        self._shape = m, n, k = shape
        self._tolerance = tolerance
        self._positions = corner_positions((m, n), tile)
        self._signs, self._inner, self._expected, self._actual = (toolbox.buffer(8 * size) for size in (n, k, m, m))
        self._dots = toolbox.buffer(16 * len(self._positions))
        places = toolbox.buffer(self._positions.nbytes)
        toolbox.write(places, self._positions)
        toolbox.kernel("verify.cu", "fill_signs").bind(
            grid=covering_grid(n), block=(THREADS, 1, 1), args=(self._signs, np.uint64(n), _SEED)
        )()
        elements = np.uint64(m * n)
        self._scan = Scan(
            toolbox,
            [Check(function="count_nan", count=int(elements), args=(c, elements)) for _, _, c in operands],
        )
        self._commands = [self._bound(a, b, c, places) for a, b, c in operands]

    def _bound(self, a: Buffer, b: Buffer, c: Buffer, places: Buffer) -> tuple[Callable[[], None], ...]:
        rows, columns, depth = (np.uint64(size) for size in self._shape)
        count = len(self._positions)
        steps = (
            ("multiply_transposed", covering_grid(int(depth), 32), (b, columns, depth, self._signs, self._inner)),
            ("multiply", covering_grid(int(rows), _WARPS), (a, rows, depth, self._inner, self._expected)),
            ("multiply", covering_grid(int(rows), _WARPS), (c, rows, columns, self._signs, self._actual)),
            (
                "dot_products",
                covering_grid(count, _WARPS),
                (a, b, c, columns, depth, places, np.uint64(count), self._dots),
            ),
        )
        return tuple(
            self._toolbox.kernel("verify.cu", function).bind(grid=grid, block=(THREADS, 1, 1), args=args)
            for function, grid, args in steps
        )

    def verification(self) -> Verification:
        """Check the outputs of all buffer sets."""
        compared = f"C x against A (B^T x) in FP64, {len(self._positions)} exact dot products at tile corners"
        for index, (count, first) in enumerate(self._scan.found()):
            if count:
                row, column = divmod(first, self._shape[1])
                detail = f"{count} elements are NaN, the first at row {row}, column {column} of buffer set {index}"
                return Verification(passed=False, error=math.nan, tolerance=self._tolerance, detail=detail)
        worst, place = 0.0, ""
        for index, commands in enumerate(self._commands):
            for command in commands:
                command()
            for error, where in (self._row_error(), self._corner_error()):
                if error > worst:
                    worst, place = error, f"; largest error at {where} of buffer set {index}"
        return Verification(
            passed=worst <= self._tolerance, error=worst, tolerance=self._tolerance, detail=compared + place
        )

    def _row_error(self) -> tuple[float, str]:
        m, n, k = self._shape
        expected = self._toolbox.read(self._expected, np.float64, m)
        actual = self._toolbox.read(self._actual, np.float64, m)
        errors = _errors(expected, actual, math.sqrt(n * k) * _PRODUCT_DEVIATION)
        row = int(np.argmax(errors))
        return float(errors[row]), f"row {row}"

    def _corner_error(self) -> tuple[float, str]:
        exact, actual = self._toolbox.read(self._dots, np.float64, 2 * len(self._positions)).reshape(-1, 2).T
        errors = _errors(exact, actual, math.sqrt(self._shape[2]) * _PRODUCT_DEVIATION)
        place = int(np.argmax(errors))
        row, column = self._positions[place]
        return float(errors[place]), f"row {row}, column {column}"


def _errors(expected: np.ndarray, actual: np.ndarray, deviation: float) -> np.ndarray:
    """Return errors relative to a standard deviation; what is not finite is infinitely wrong."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(actual - expected) / deviation
    return np.where(np.isfinite(errors), errors, np.inf)
