"""Whether an attention's output is right: all of it scanned for NaN, rows at tile edges recomputed in FP64."""

import math
from collections.abc import Sequence

import numpy as np

from perfgate.core.toolbox import Buffer, Toolbox, Verification
from perfgate.suite.filling import THREADS, covering_grid
from perfgate.suite.tally import Check, Scan

HEAD_DIM = 128
# Rounding to nearest with 8 bits.
_BF16_UNIT_ROUNDOFF = 2.0**-8
# Standard deviations that an error may reach: of 2^14 normal deviates, so many elements are compared, the largest is
# about 4.
_DEVIATIONS = 8.0
_EDGES_SEED = 0x5EED


def prefill_tolerance() -> float:
    """Return the largest error of an element, relative to the root of o² + s², o the element, s its deviation.

    O is rounded to BF16 once: an error of u |o| at most, u = 2^-8. Weights are rounded to BF16 before the second
    product (their sum is not), each by a relative error of at most u, with variance at most u²/3: independent
    of each other, so that o has the deviation u / sqrt(3) s, where s² is the sum of the squares of the terms
    w v. Eight of those deviations and u |o| are at most u sqrt(1 + 8² / 3) times the root of o² + s²
    (Cauchy-Schwarz). FP32 sums that are cut once for every few products, and powers, err by less than 2^-13,
    which that leaves room for.
    """
    return _BF16_UNIT_ROUNDOFF * math.sqrt(1 + _DEVIATIONS**2 / 3)


def edge_positions(heads: int, positions: int, tile: int) -> np.ndarray:
    """Return (head, row) of the first and the last row of a head and of a random tile of each: uint32 (count, 2)."""
    tiles = np.random.default_rng(_EDGES_SEED).integers(math.ceil(positions / tile), size=heads)
    rows = [
        (head, row)
        for head, first in enumerate(tiles * tile)
        for row in sorted({0, int(first), min(int(first) + tile, positions) - 1, positions - 1})
    ]
    return np.array(rows, dtype=np.uint32)


class RowCheck:
    """The check of all buffer sets; bound before anything is timed.

    Args:
        toolbox: the device.
        outputs: O of each buffer set i, whose Q, K and V were filled with the seeds 3 i, 3 i + 1 and 3 i + 2.
        heads, positions, causal: the attention; O is heads x positions x 128, row-major.
        tile: rows of O of one block.
    """

    def __init__(
        self, toolbox: Toolbox, outputs: Sequence[Buffer], *, heads: int, positions: int, causal: bool, tile: int
    ) -> None:
        self._toolbox = toolbox
        self._places = edge_positions(heads, positions, tile)
        count = len(self._places)
        places, self._results = toolbox.buffer(self._places.nbytes), toolbox.buffer(24 * count * HEAD_DIM)
        toolbox.write(places, self._places)
        rows = toolbox.kernel("attention_verify.cu", "attention_rows")
        self._commands = [
            rows.bind(
                grid=covering_grid(count, 1),
                block=(THREADS, 1, 1),
                args=(
                    output,
                    np.uint64(positions),
                    np.uint32(causal),
                    places,
                    np.uint64(count),
                    *(np.uint64(3 * index + place) for place in range(3)),
                    self._results,
                ),
            )
            for index, output in enumerate(outputs)
        ]
        elements = heads * positions * HEAD_DIM
        self._positions = positions
        self._scan = Scan(
            toolbox,
            [
                Check(
                    function="count_unwritten",
                    count=elements,
                    args=(output, np.uint64(elements)),
                    source="product_verify.cu",
                    defines={"RESULT": "bf16"},
                )
                for output in outputs
            ],
        )

    def verification(self) -> Verification:
        """Check the outputs of all buffer sets."""
        tolerance = prefill_tolerance()
        for index, (count, first) in enumerate(self._scan.found()):
            if count:
                head, row = divmod(first // HEAD_DIM, self._positions)
                detail = f"{count} elements are NaN, the first in row {row} of head {head} of buffer set {index}"
                return Verification(passed=False, error=math.nan, tolerance=tolerance, detail=detail)
        worst, where = 0.0, ""
        for index, command in enumerate(self._commands):
            command()
            error, place = self._largest_error()
            if error > worst:
                head, row = self._places[place]
                worst, where = error, f"; largest error in row {row} of head {head} of buffer set {index}"
        detail = f"{len(self._places)} rows at tile edges against FP64, the whole scanned for NaN{where}"
        return Verification(passed=worst <= tolerance, error=worst, tolerance=tolerance, detail=detail)

    def _largest_error(self) -> tuple[float, int]:
        """Return the largest relative error of a buffer set and the place of its row."""
        values = self._toolbox.read(self._results, np.float64, 3 * len(self._places) * HEAD_DIM)
        expected, deviation, actual = values.reshape(-1, 3).T
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            errors = np.abs(actual - expected) / np.hypot(expected, deviation)
        # A row of one key may be exactly 0.
        errors = np.where(actual == expected, 0.0, np.where(np.isfinite(errors), errors, np.inf))
        worst = int(np.argmax(errors))
        return float(errors[worst]), worst // HEAD_DIM
