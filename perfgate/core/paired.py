"""Comparing launches that were measured in pairs, one of each side right after the other.

Judged are the logarithms of the pairs' ratios, by the exact signed rank test (Wilcoxon, Biometrics
Bulletin 1 (1945) 80) against an edge, and the shift of Hodges and Lehmann with the interval dual to it.
What drifts slower than a pair lasts cancels: a drift of 0.03 % a launch blinds an unpaired rank test,
and taking all of one side first accuses it. Everything works on arrays with the pairs on the last axis.
"""

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from perfgate.core.comparison import TIE, Comparison, Floats
from perfgate.errors import ConfigurationError

# Even with one case fewer find too little; with more cases the correction asks for more pairs.
_LEAST_LAUNCHES = 12
# The smallest p-value that the pairs reach is at most this part of what the correction asks for: a test that
# rejects only where every pair agrees finds half of what it could.
_SLACK = 16
# Student's t at which a change is called detectable: the rank test then finds it in 96 to 98 of 100 checks.
_FOUND = 0.99


def launches_a_side(family: int, alpha: float) -> int:
    """Return how many launches a side judge so many cases: even, at least 12.

    Found of +0.5 % at a margin of 0.3 %, launches spreading by 0.08, 0.1 and 0.15 % (tests/calibration): one
    case and 12 launches 99.7, 95 and 64 %; 6 cases and 14 launches 99, 90 and 47 %; 20 cases and 16 launches
    98, 85 and 35 %.
    """
    return next(count for count in range(_LEAST_LAUNCHES, 200, 2) if max(family, 1) * 0.5**count * _SLACK <= alpha)


@functools.lru_cache(maxsize=256)
def signed_rank_tail(pairs: int) -> Floats:
    """Return P(W >= w) for w = 0 ... n (n + 1) / 2, W the sum of the ranks 1 ... n that carry a plus by a fair coin.

    Subsets of {1 ... n} by their sum, counted in integers: exact for any n.
    """
    top = pairs * (pairs + 1) // 2
    counts = [1] + [0] * top
    for rank in range(1, pairs + 1):
        for total in range(top, rank - 1, -1):
            counts[total] += counts[total - rank]
    tail = np.empty(top + 1)
    reached = 0
    for total in range(top, -1, -1):
        reached += counts[total]
        tail[total] = reached / 2**pairs
    tail.setflags(write=False)
    return tail


def paired_comparison(differences: Floats, margin: ArrayLike) -> Comparison:
    """Compare two sides by the logarithms of their pairs' ratios, head over base.

    Ties count against each of the four claims: a pair on the edge as one on the wrong side of it, and of
    two pairs as far from the edge the one on the wrong side as the farther.

    Args:
        differences: shape (..., n).
        margin: relative, positive, shape (...) or a number.
    """
    edge = np.log1p(np.asarray(margin, dtype=float))
    limit = edge[..., None]
    tail = signed_rank_tail(differences.shape[-1])

    def p(beyond: Floats) -> Floats:
        return np.asarray(tail[_rank_sum(beyond)])

    shift = np.median(_walsh_averages(differences), axis=-1)
    return Comparison(
        shift=np.asarray(shift),
        edge=np.broadcast_to(edge, np.shape(shift)),
        p_slower=p(differences - limit),
        p_faster=p(-limit - differences),
        p_not_slower=p(limit - differences),
        p_not_faster=p(differences + limit),
        spread_changed=np.zeros(np.shape(shift), dtype=bool),
    )


def paired_interval(differences: Floats, level: ArrayLike) -> tuple[Floats, Floats]:
    """Return the shifts that the test does not reject at ``level`` on either side: confidence 1 - 2 level.

    Order statistics of the Walsh averages; infinite where so few pairs can prove nothing at that level.
    """
    averages = np.sort(_walsh_averages(differences), axis=-1)
    top = averages.shape[-1]
    tail = signed_rank_tail(differences.shape[-1])
    level = np.broadcast_to(np.asarray(level, dtype=float), averages.shape[:-1])
    # Least rank sum that rejects; as many Walsh averages must lie beyond an edge. top + 1 where none does.
    needed = top + 1 - np.searchsorted(tail[::-1], level * (1 + 1e-12), side="right")
    low = np.concatenate([np.full((*averages.shape[:-1], 1), -np.inf), averages], axis=-1)
    high = np.concatenate([averages, np.full((*averages.shape[:-1], 1), np.inf)], axis=-1)
    return (
        np.take_along_axis(low, (top + 1 - needed)[..., None], axis=-1)[..., 0],
        np.take_along_axis(high, (needed - 1)[..., None], axis=-1)[..., 0],
    )


def noise_bound(differences: Floats, level: float) -> Floats:
    """Return what the mean of so many pairs may be off by chance: Student's t at ``level`` times its standard error."""
    from scipy.special import stdtrit

    count = differences.shape[-1]
    if count < 2:
        return np.full(differences.shape[:-1], np.inf)
    error = differences.std(axis=-1, ddof=1) / np.sqrt(count)
    return np.asarray(stdtrit(count - 1, 1 - level) * error)


def detectable_shift(differences: Floats, margin: float, level: float) -> float:
    """Return the shift that as many pairs, as noisy as these, find beyond a margin in 19 of 20 checks.

    Student's t at both rates, for the signed rank test's efficiency with normal differences, 3 / pi; infinite
    where so few pairs reject nothing at that level.
    """
    from scipy.special import stdtrit

    count = differences.shape[-1]
    if count < 2 or 0.5**count > level:
        return math.inf
    error = float(differences.std(ddof=1)) / math.sqrt(count * 3 / math.pi)
    return math.log1p(margin) + float(stdtrit(count - 1, 1 - level) + stdtrit(count - 1, _FOUND)) * error


def refuse_too_few(pairs: int, *, family: int, alpha: float) -> None:
    """Refuse a number of pairs with which nothing could be proven.

    Raises:
        ConfigurationError: says how many launches a side it takes.
    """
    if family and family * 0.5**pairs > alpha * (1 + 1e-12):
        needed = next(count for count in range(2, 200, 2) if family * 0.5**count <= alpha)
        raise ConfigurationError(
            f"{pairs} launches a side could not prove any regression: the smallest p-value is {0.5**pairs:.2g}, and"
            f" {family} gated cases at alpha {alpha:g} need {alpha / family:.2g}",
            hint=f"measure at least {needed} launches a side (--launches {needed}), or fewer cases",
        )


def _rank_sum(beyond: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return the sum of the ranks of what lies beyond zero, ranked by size; ties rank and count against it."""
    won = beyond > TIE
    size = np.abs(beyond)
    # Sizes within a tie of each other get one key: in it what is won is ranked before what is lost.
    order = np.lexsort((~won, np.round(size / TIE)), axis=-1)
    ranks = np.empty(beyond.shape, dtype=np.intp)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, beyond.shape[-1] + 1), beyond.shape), axis=-1)
    return np.asarray(np.where(won, ranks, 0).sum(axis=-1))


def _walsh_averages(differences: Floats) -> Floats:
    """Return the averages of all pairs of differences, each with itself too, shape (..., n (n + 1) / 2)."""
    first, second = np.triu_indices(differences.shape[-1])
    return np.asarray((differences[..., first] + differences[..., second]) / 2)
