"""Whether results are right: compared on the host with a reference, element by element."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfgate.core.toolbox import Verification

# What is compared at once: in the caches of a core, where a pass over it costs a fifth of one through memory.
_CHUNK = 2**17


def relative_errors(actual: np.ndarray, expected: np.ndarray, size: float | None = None) -> np.ndarray:
    """Return the error of every element, relative to its own size or that of the array (root mean square) if larger.

    A sum that cancels to nearly nothing is not wrong by as much as it is small. What is not finite on
    one side alone is infinitely wrong; equal infinities and NaN on both sides are right.

    Args:
        actual: what was computed.
        expected: of the same shape.
        size: of the array that these are a part of; by default of ``expected`` itself.
    """
    if _are_integers(actual, expected):
        return np.where(actual == expected, 0.0, np.inf)
    size = typical_size(expected) if size is None else size
    with np.errstate(all="ignore"):
        # Neighbours differ by what either type holds exactly: no need of doubles for two that are not.
        wide = np.result_type(actual, expected, np.float32)
        one, other = actual.astype(wide, copy=False), expected.astype(wide, copy=False)
        scale = np.maximum(np.abs(other), wide.type(size))
        errors: np.ndarray = np.abs(one - other) / np.where(scale > 0, scale, wide.type(1))
        if np.isfinite(errors).all():
            return errors
        errors = np.where(one == other, wide.type(0), errors)
        same_nan = np.isnan(one) & np.isnan(other)
    return np.asarray(np.where(same_nan, wide.type(0), np.where(np.isfinite(errors), errors, wide.type(np.inf))))


def typical_size(expected: np.ndarray) -> float:
    """Return the root mean square of what is finite; 0 where nothing is."""
    flat = expected.reshape(-1)
    total, count = 0.0, 0
    with np.errstate(all="ignore"):
        for part in _chunks(flat):
            wide = part.astype(np.float64)
            squares = float(np.dot(wide, wide))
            if not math.isfinite(squares):
                finite = wide[np.isfinite(wide)]
                squares, count = float(np.dot(finite, finite)), count + finite.size - wide.size
            total, count = total + squares, count + wide.size
    return math.sqrt(total / count) if count else 0.0


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
        found = _compared(actual.reshape(-1), expected.reshape(-1), tolerance)
        if found.wrong:
            detail = (
                f"{name}: {found.wrong} of {actual.size} elements differ from {about}, the first at index"
                f" {found.first}: {actual.flat[found.first]:.6g} instead of {expected.flat[found.first]:.6g}"
            )
            return Verification(passed=False, error=found.error, tolerance=tolerance, detail=detail)
        if found.error > worst:
            worst, place = found.error, f"; largest error in {name}"
    return Verification(passed=True, error=worst, tolerance=tolerance, detail=f"all elements against {about}{place}")


@dataclass(frozen=True, slots=True)
class _Found:
    """How many elements are wrong, the first of them, and the largest error."""

    wrong: int
    first: int
    error: float


def _compared(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> _Found:
    """Compare two flat arrays; most of them are right, and a part of one that is cannot be looked at too fast."""
    size: float | None = 0.0 if _are_integers(actual, expected) else None
    wrong, first, error = 0, 0, 0.0
    for begin, (one, other) in enumerate(zip(_chunks(actual), _chunks(expected), strict=True)):
        if one.dtype == other.dtype and np.array_equal(one, other):
            continue
        size = typical_size(expected) if size is None else size
        errors = relative_errors(one, other, size)
        places = np.flatnonzero(errors > tolerance)
        if places.size and not wrong:
            first = begin * _CHUNK + int(places[0])
        wrong += places.size
        error = max(error, float(errors.max()))
    return _Found(wrong, first, error)


def _chunks(flat: np.ndarray) -> Iterator[np.ndarray]:
    return (flat[begin : begin + _CHUNK] for begin in range(0, flat.size, _CHUNK))


def _are_integers(actual: np.ndarray, expected: np.ndarray) -> bool:
    return np.issubdtype(expected.dtype, np.integer) and np.issubdtype(actual.dtype, np.integer)
