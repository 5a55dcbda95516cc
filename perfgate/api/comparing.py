"""Whether results are right: compared on the host with a reference, element by element."""

import math
from collections.abc import Sequence

import numpy as np

from perfgate.core.toolbox import Verification


def relative_errors(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the error of every element, relative to its own size or that of the array (root mean square) if larger.

    A sum that cancels to nearly nothing is not wrong by as much as it is small. What is not finite on
    one side alone is infinitely wrong; equal infinities and NaN on both sides are right.
    """
    with np.errstate(all="ignore"):
        if np.issubdtype(expected.dtype, np.integer) and np.issubdtype(actual.dtype, np.integer):
            return np.where(actual == expected, 0.0, np.inf)
        one, other = actual.astype(np.float64), expected.astype(np.float64)
        finite = other[np.isfinite(other)]
        size = math.sqrt(float(np.mean(finite**2))) if finite.size else 0.0
        scale = np.maximum(np.abs(other), size)
        errors = np.where(one == other, 0.0, np.abs(one - other) / np.where(scale > 0, scale, 1.0))
        same_nan = np.isnan(one) & np.isnan(other)
    return np.where(same_nan, 0.0, np.where(np.isfinite(errors), errors, np.inf))


def compared(
    pairs: Sequence[tuple[str, np.ndarray, np.ndarray]], tolerance: float, about: str = "the reference"
) -> Verification:
    """Compare outputs with what is expected of them.

    Args:
        pairs: name, actual and expected values of each output.
        tolerance: largest relative error.
        about: what they are compared with.
    """
    worst, place = 0.0, ""
    for name, actual, expected in pairs:
        if actual.size != expected.size:
            detail = f"{name} has {actual.size} elements, {about} {expected.size}"
            return Verification(passed=False, error=math.inf, tolerance=tolerance, detail=detail)
        errors = relative_errors(actual.reshape(-1), expected.reshape(-1))
        wrong = np.flatnonzero(errors > tolerance)
        if wrong.size:
            first = int(wrong[0])
            found, wanted = actual.reshape(-1)[first], expected.reshape(-1)[first]
            detail = (
                f"{name}: {wrong.size} of {errors.size} elements differ from {about}, the first at index {first}:"
                f" {found:.6g} instead of {wanted:.6g}"
            )
            return Verification(passed=False, error=float(errors.max()), tolerance=tolerance, detail=detail)
        if errors.size and float(errors.max()) > worst:
            worst, place = float(errors.max()), f"; largest error in {name}"
    return Verification(passed=True, error=worst, tolerance=tolerance, detail=f"all elements against {about}{place}")
