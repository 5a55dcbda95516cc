"""Comparisons on the device within a tolerance: how many elements are off, the first of them, the largest error."""

import math
from collections.abc import Sequence

import numpy as np

from perfgate.core.toolbox import Toolbox, Verification
from perfgate.suite.filling import THREADS, covering_grid
from perfgate.suite.tally import Check

SOURCE = "operator_verify.cu"
# Rounding to nearest: half a unit in the last place of 8 bits, of 24.
BF16_UNIT_ROUNDOFF = 2.0**-8
FP32_UNIT_ROUNDOFF = 2.0**-24
# What functions of the special function unit, constants and products add to the roundings of a sum, in units of FP32's
# roundoff: two such functions of 4 each, an argument of up to 4, and few products.
_FUNCTIONS = 16
# struct Findings of operator_verify.cu: wrong elements, index of the first one, bits of the largest error.
_NOTHING_FOUND = np.array([0, np.iinfo(np.uint64).max, 0], dtype=np.uint64)


def fp32_error(additions: int) -> float:
    """Return the largest relative error of an FP32 result that takes a sum of positive terms and few other steps.

    Every term of a sum passes ``additions`` roundings of 2^-24 at most (Higham, Accuracy and Stability of Numerical
    Algorithms, 4.2).
    """
    return (additions + _FUNCTIONS) * FP32_UNIT_ROUNDOFF


def bf16_tolerance(additions: int) -> float:
    """Return the largest relative error of such a result that is rounded to BF16 once: 2^-8 and FP32's own."""
    return BF16_UNIT_ROUNDOFF + fp32_error(additions)


class Comparison:
    """Checks of all buffer sets, bound before anything is timed; the last argument of each is its findings.

    Args:
        toolbox: the device.
        checks: one a buffer set; the tolerance is among their arguments.
        tolerance: the same, for the verdict.
        compared: what was compared with what.
    """

    def __init__(self, toolbox: Toolbox, checks: Sequence[Check], *, tolerance: float, compared: str) -> None:
        self._toolbox = toolbox
        self._tolerance = tolerance
        self._compared = compared
        self._findings = [toolbox.buffer(_NOTHING_FOUND.nbytes) for _ in checks]
        self._commands = [
            toolbox.kernel(check.source, check.function).bind(
                grid=covering_grid(check.count, check.per_block), block=(THREADS, 1, 1), args=(*check.args, findings)
            )
            for check, findings in zip(checks, self._findings, strict=True)
        ]

    def verification(self) -> Verification:
        """Compare the outputs of all buffer sets."""
        for findings, command in zip(self._findings, self._commands, strict=True):
            self._toolbox.write(findings, _NOTHING_FOUND)
            command()
        worst, detail = 0.0, self._compared
        for index, buffer in enumerate(self._findings):
            found = self._toolbox.read(buffer, np.uint64, len(_NOTHING_FOUND))
            wrong, first, error = int(found[0]), int(found[1]), float(found[2:].view(np.float64)[0])
            if wrong and detail == self._compared:
                detail = f"{self._compared}: {wrong} wrong, the first at index {first} of buffer set {index}"
            worst = math.inf if wrong and not math.isfinite(error) else max(worst, error)
        passed = detail == self._compared
        return Verification(passed=passed, error=worst, tolerance=self._tolerance, detail=detail)
