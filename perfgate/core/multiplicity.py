"""Many cases, several looks, one error rate for the check.

Holm's step-down procedure over the cases (Scand. J. Stat. 6 (1979) 65) bounds the probability that
any unchanged case is accused; the looks share that error rate in equal parts (Bonferroni), and a look
at which nothing could be proven takes no part.
"""

import math
from collections.abc import Sequence

import numpy as np

from perfgate.core.comparison import Floats
from perfgate.errors import ConfigurationError

# Ranks make p-values fractions such as 1/20: equality with a level must not depend on rounding.
_ROUNDING = 1 + 1e-12


def holm(p: Floats) -> Floats:
    """Return p-values adjusted over the last axis (the family): reject where they are at most alpha."""
    count = p.shape[-1]
    if count == 0:
        return p
    order = np.argsort(p, axis=-1, kind="stable")
    scaled = np.take_along_axis(p, order, axis=-1) * np.arange(count, 0, -1)
    stepped = np.minimum(np.maximum.accumulate(scaled, axis=-1), 1.0)
    adjusted = np.empty_like(stepped)
    np.put_along_axis(adjusted, order, stepped, axis=-1)
    return adjusted


def holm_levels(p: Floats, alpha: float) -> Floats:
    """Return the level at which Holm's procedure tests each case of the last axis: alpha / (n - rank)."""
    count = p.shape[-1]
    order = np.argsort(p, axis=-1, kind="stable")
    levels = np.empty_like(p)
    np.put_along_axis(levels, order, np.broadcast_to(alpha / np.arange(count, 0, -1), p.shape), axis=-1)
    return levels


def is_rejected(p: Floats, level: float | Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Tell where a p-value is at most its level, rounding apart; a level of zero rejects nothing."""
    return np.asarray((p <= np.asarray(level) * _ROUNDING) & (np.asarray(level) > 0))


def smallest_p(candidate_launches: int, baseline_launches: int) -> float:
    """Return the smallest p-value that the rank test can reach: every candidate launch beyond every baseline one."""
    return 1 / math.comb(candidate_launches + baseline_launches, candidate_launches)


def can_reject(level: float, *, family: int, candidate_launches: int, baseline_launches: int) -> bool:
    """Tell whether the clearest case of a family could be proven at ``level``."""
    if min(candidate_launches, baseline_launches) < 1:
        return False
    return smallest_p(candidate_launches, baseline_launches) * family <= level * _ROUNDING


def stage_levels(alpha: float, stages: Sequence[int], *, family: int, baseline_launches: int) -> tuple[float, ...]:
    """Return each look's share of ``alpha``; zero for a look at which nothing could be proven.

    The earliest look that could not reject with its share loses it to the others, until all that are
    left can. All zero when even the last look could not with the whole of alpha.
    """
    active = list(stages)
    while active:
        share = alpha / len(active)
        unable = [
            launches
            for launches in active
            if not can_reject(share, family=family, candidate_launches=launches, baseline_launches=baseline_launches)
        ]
        if not unable:
            return tuple(share if launches in active else 0.0 for launches in stages)
        active.remove(min(unable))
    return (0.0,) * len(stages)


def required_launches(alpha: float, *, family: int, baseline_launches: int, most: int = 200) -> int | None:
    """Return the fewest candidate launches with which a case of the family could be proven; None beyond ``most``."""
    return next(
        (
            launches
            for launches in range(1, most + 1)
            if can_reject(alpha, family=family, candidate_launches=launches, baseline_launches=baseline_launches)
        ),
        None,
    )


def impossible(alpha: float, *, family: int, candidate_launches: int, baseline_launches: int) -> ConfigurationError:
    """Return the error that says why no regression could be proven, and what would make it possible."""
    reached = smallest_p(candidate_launches, baseline_launches)
    needed = required_launches(alpha, family=family, baseline_launches=baseline_launches)
    remedy = (
        f"measure at least {needed} launches, or record a baseline with more than {baseline_launches}"
        if needed
        else f"record a baseline with more than {baseline_launches} launches"
    )
    return ConfigurationError(
        f"{candidate_launches} candidate launches against {baseline_launches} of the baseline could not prove any "
        f"regression: the smallest p-value is {reached:.2g}, and {family} gated cases at alpha {alpha:g} "
        f"need {alpha / family:.2g}",
        hint=f"{remedy}; fewer gated cases or a larger alpha would do too.",
    )
