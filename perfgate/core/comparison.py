"""Comparing two samples of launch statistics: rank tests with a margin, the shift and its interval.

Everything is on logarithms of positive values, so a shift is a ratio and swapping the sides changes
its sign. Every function takes arrays with the launches on the last axis and any shape before it: a
check passes one row a case, a simulation thousands of checks, through the same code.

Method: Mann and Whitney, Ann. Math. Stat. 18 (1947) 50, with the exact null distribution of U;
shift and interval: Hodges and Lehmann, Ann. Math. Stat. 34 (1963) 598. docs/statistics.md explains.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

# Logarithms closer than this are tied. 100 * 1.005 is 100.49999999999999: a value meant to lie on the
# margin must not fall on either side of it by rounding. Real steps are larger: 32 ns of 5 ms is 6e-6.
TIE = 1e-9
# The rank test compares locations and assumes like spreads: from this ratio on Welch's test must agree.
# At a nominal 5e-4 a candidate three times as noisy would be accused eight times as often.
SPREAD_RATIO = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two samples say about a margin; all fields have the shape of the cases.

    Attributes:
        shift: Hodges-Lehmann estimate of log(candidate / baseline).
        edge: log(1 + margin).
        p_slower: of "slower by at most the margin", small when the candidate is slower than that.
        p_faster: its mirror.
        p_not_slower: of "slower by the margin or more", small when it is not.
        p_not_faster: its mirror.
        spread_changed: one side spreads more than SPREAD_RATIO times as much as the other.
    """

    shift: Floats
    edge: Floats
    p_slower: Floats
    p_faster: Floats
    p_not_slower: Floats
    p_not_faster: Floats
    spread_changed: Booleans

    @property
    def p_equivalent(self) -> Floats:
        """The larger p-value of the two that together say "within the margin"."""
        return np.maximum(self.p_not_slower, self.p_not_faster)


def logarithms(values: ArrayLike) -> Floats:
    """Return the logarithms of times or cycles.

    Raises:
        ValueError: a value is not finite and positive (a rank test would take infinity for a clear
            win), or there is none.
    """
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        message = "no values to compare"
        raise ValueError(message)
    if not np.all(np.isfinite(array) & (array > 0)):
        message = "values to compare must be finite and positive"
        raise ValueError(message)
    return np.asarray(np.log(array), dtype=float)


@functools.lru_cache(maxsize=512)
def upper_tail(candidates: int, baselines: int) -> Floats:
    """Return P(U >= u) for u = 0 ... candidates * baselines when both samples are of one distribution.

    The counts are the coefficients of the Gaussian binomial, the product over i of
    (1 - q^(n + i)) / (1 - q^i), in integers: exact for any size.
    """
    short, long = sorted((candidates, baselines))
    top = short * long
    counts = [1] + [0] * top
    for step in range(1, short + 1):
        for degree in range(top, long + step - 1, -1):
            counts[degree] -= counts[degree - long - step]
        for degree in range(step, top + 1):
            counts[degree] += counts[degree - step]
    total = math.comb(short + long, short)
    tail = np.empty(top + 1)
    reached = 0
    for wins in range(top, -1, -1):  # symmetric: as many orders have `wins` as have `top - wins`
        reached += counts[top - wins]
        tail[wins] = reached / total
    tail.setflags(write=False)
    return tail


def comparison(candidate: Floats, baseline: Floats, margin: ArrayLike) -> Comparison:
    """Compare logarithms of the candidate's launches with the baseline's at a relative margin.

    A pair on the edge counts against each of the four claims, so ties can only weaken them.

    Args:
        candidate: shape (..., m).
        baseline: shape (..., n), or (n,).
        margin: relative, positive, shape (...) or a number.
    """
    edge = np.log1p(np.asarray(margin, dtype=float))
    pairs = _pairs(candidate, baseline)
    tail = upper_tail(candidate.shape[-1], baseline.shape[-1])
    limit = edge[..., None]

    def p(won: Booleans) -> Floats:
        return np.asarray(tail[np.count_nonzero(won, axis=-1)])

    tests = {
        "p_slower": p(pairs > limit + TIE),
        "p_faster": p(pairs < -limit - TIE),
        "p_not_slower": p(pairs < limit - TIE),
        "p_not_faster": p(pairs > -limit + TIE),
    }
    changed = spread_changed(candidate, baseline)
    if changed.any():
        welch = _Welch.of(candidate, baseline)
        bounds = {
            "p_slower": welch.p_above(edge),
            "p_faster": welch.p_below(-edge),
            "p_not_slower": welch.p_below(edge),
            "p_not_faster": welch.p_above(-edge),
        }
        tests = {name: np.where(changed, np.maximum(value, bounds[name]), value) for name, value in tests.items()}
    shift = np.asarray(np.median(pairs, axis=-1))
    return Comparison(shift=shift, edge=np.broadcast_to(edge, shift.shape), spread_changed=changed, **tests)


def shift_interval(candidate: Floats, baseline: Floats, level: ArrayLike) -> tuple[Floats, Floats]:
    """Return the shifts that the test does not reject at ``level`` on either side: confidence 1 - 2 level.

    Dual to ``comparison``: the lower bound lies above an edge exactly when "slower" is proven there.
    Infinite where so few launches can prove nothing at that level.
    """
    pairs = np.sort(_pairs(candidate, baseline), axis=-1)
    top = pairs.shape[-1]
    tail = upper_tail(candidate.shape[-1], baseline.shape[-1])
    level = np.broadcast_to(np.asarray(level, dtype=float), pairs.shape[:-1])
    # Least number of won pairs that rejects; top + 1 where none does.
    needed = top + 1 - np.searchsorted(tail[::-1], level * (1 + 1e-12), side="right")
    padded = np.concatenate([np.full((*pairs.shape[:-1], 1), -np.inf), pairs], axis=-1)
    low = np.take_along_axis(padded, (top + 1 - needed)[..., None], axis=-1)[..., 0]
    padded = np.concatenate([pairs, np.full((*pairs.shape[:-1], 1), np.inf)], axis=-1)
    high = np.take_along_axis(padded, (needed - 1)[..., None], axis=-1)[..., 0]
    changed = spread_changed(candidate, baseline)
    if changed.any():
        below, above = _Welch.of(candidate, baseline).interval(level)
        low = np.where(changed, np.minimum(low, below), low)
        high = np.where(changed, np.maximum(high, above), high)
    return low, high


def spread_changed(candidate: Floats, baseline: Floats) -> Booleans:
    """Tell where one side spreads more than SPREAD_RATIO times as much as the other; unknown from one launch is no."""
    shape = np.broadcast_shapes(candidate.shape[:-1], baseline.shape[:-1])
    if min(candidate.shape[-1], baseline.shape[-1]) < 2:
        return np.zeros(shape, dtype=bool)
    one, other = candidate.std(axis=-1, ddof=1), baseline.std(axis=-1, ddof=1)
    large, small = np.maximum(one, other), np.minimum(one, other)
    return np.asarray((large > SPREAD_RATIO * small) & (large > TIE))


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the narrowest pair of order statistics that holds the median with ``confidence``, None if none does.

    Distribution-free, from the binomial: six values' extremes hold it with 96.9 %.
    """
    ordered = sorted(values)
    count = len(ordered)
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - confidence:
            break
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


def _pairs(candidate: Floats, baseline: Floats) -> Floats:
    """Return all differences of a candidate's and a baseline's launch, shape (..., m * n)."""
    pairs = candidate[..., :, None] - baseline[..., None, :]
    return pairs.reshape(*pairs.shape[:-2], -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Welch:
    """Difference of two means with unequal variances (Welch, Biometrika 34 (1947) 28)."""

    difference: Floats
    error: Floats
    freedom: Floats

    @classmethod
    def of(cls, candidate: Floats, baseline: Floats) -> "_Welch":
        one = candidate.var(axis=-1, ddof=1) / candidate.shape[-1]
        other = baseline.var(axis=-1, ddof=1) / baseline.shape[-1]
        both = np.maximum(one + other, TIE**2)
        parts = one**2 / (candidate.shape[-1] - 1) + other**2 / (baseline.shape[-1] - 1)
        return cls(
            difference=candidate.mean(axis=-1) - baseline.mean(axis=-1),
            error=np.sqrt(both),
            freedom=both**2 / np.maximum(parts, TIE**4),
        )

    def p_above(self, edge: Floats) -> Floats:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.freedom, -(self.difference - edge) / self.error))

    def p_below(self, edge: Floats) -> Floats:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.freedom, (self.difference - edge) / self.error))

    def interval(self, level: Floats) -> tuple[Floats, Floats]:
        from scipy.special import stdtrit

        width = np.asarray(stdtrit(self.freedom, 1 - level)) * self.error
        return self.difference - width, self.difference + width
