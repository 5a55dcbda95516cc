"""GPUs judged by their peers: robust outliers of one population, and groups that are off as a whole.

A GPU is slow where it lies above the median of the others by more than the margin between chips, and by more than
chance allows: its distance over a robust scale (1.4826 x MAD, Hampel, JASA 69 (1974) 383) is compared with Student's
t, at an error rate divided by cases x GPUs. A scale from few peers is uncertain, so the degrees of freedom are those
that a MAD is worth: 0.37 a peer, its efficiency (Rousseeuw and Croux, JASA 88 (1993) 1273).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Fewer others say nothing about how GPUs differ.
LEAST_PEERS = 3
MAD_TO_DEVIATION = 1.4826
MAD_EFFICIENCY = 0.37
# A scale below this is rounding: no two GPUs agree better.
LEAST_SCALE = 1e-5
# Above this many GPUs leaving one out changes nothing that is printed.
_MOST_LEFT_OUT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTest:
    """GPUs of one population in one case.

    Attributes:
        deviations: logarithm of each value over the median of the others, shape (gpus,).
        p_values: one-sided, of lying so far above the others by chance, uncorrected, shape (gpus,); 1 where there
            are fewer than three others.
    """

    deviations: Floats
    p_values: Floats


def peer_test(values: Floats, errors: Floats, reference: npt.NDArray[np.bool_] | None = None) -> PeerTest:
    """Compare each GPU with the others.

    Args:
        values: logarithms of what each GPU measured, shape (gpus,).
        errors: relative standard error of each value, shape (gpus,); no GPU is known better than that.
        reference: which GPUs count as the others; all by default.
    """
    from scipy.special import stdtr

    others = np.ones(values.shape, dtype=bool) if reference is None else reference
    centers, scales, counts = _levels(values, others)
    deviations = values - centers
    scales = np.maximum(np.maximum(scales, errors), LEAST_SCALE)
    freedom = np.maximum(MAD_EFFICIENCY * (counts - 1), 0.5)
    # The median of the others is uncertain too: pi / 2 of a mean's variance.
    distance = deviations / (scales * np.sqrt(1 + math.pi / 2 / np.maximum(counts, 1)))
    p_values = np.where(counts >= LEAST_PEERS, stdtr(freedom, -distance), 1.0)
    return PeerTest(deviations=np.where(counts > 0, deviations, 0.0), p_values=p_values)


def robust_spread(values: Floats) -> float:
    """Return 1.4826 x MAD of logarithms; 0 for fewer than two."""
    if values.size < 2:
        return 0.0
    return float(MAD_TO_DEVIATION * np.median(np.abs(values - np.median(values))))


def _levels(values: Floats, others: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Return median, scale and number of the others of each GPU, without itself."""
    whole = values[others]
    counts = whole.size - others.astype(np.float64)
    if whole.size == 0:
        return values, np.zeros_like(values), counts
    if values.size > _MOST_LEFT_OUT:
        center = float(np.median(whole))
        return np.full_like(values, center), np.full_like(values, robust_spread(whole)), counts
    centers, scales = np.empty_like(values), np.empty_like(values)
    for index in range(values.size):
        mask = others.copy()
        mask[index] = False
        rest = values[mask]
        centers[index] = np.median(rest) if rest.size else values[index]
        scales[index] = robust_spread(rest)
    return centers, scales, counts


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowGroup:
    """GPUs that share an attribute and are slow together in one case.

    Attributes:
        attribute, value: what they share.
        members: indices of the GPUs.
        deviation: logarithm of their median over that of the rest.
        also: other attributes that the very same GPUs share.
    """

    attribute: str
    value: str
    members: tuple[int, ...]
    deviation: float
    also: tuple[tuple[str, str], ...] = ()


def slow_groups(
    values: Floats, attributes: Mapping[str, Sequence[str]], *, margin: float, alpha: float
) -> tuple[SlowGroup, ...]:
    """Return the groups that lie above the rest by more than the margin, broadest attribute first.

    Groups of two GPUs and more, against at least three others; the rank test of the whole (Mann and Whitney), at
    ``alpha`` over the number of groups that were looked at. A group that was found is no longer among the rest.

    Args:
        values: logarithms, shape (gpus,).
        attributes: by name, the value of each GPU; in the order in which they are looked at.
        margin: relative.
        alpha: error rate of all groups together.
    """
    from scipy.stats import mannwhitneyu  # type: ignore[attr-defined, unused-ignore]  # exported, but only in stubs

    levels = {name: _groups(labels) for name, labels in attributes.items()}
    looked_at = max(sum(len(groups) for groups in levels.values()), 1)
    rest = np.ones(values.shape, dtype=bool)
    found: list[SlowGroup] = []
    for name, groups in levels.items():
        # The slowest first: while it is among the rest, others look fast.
        for value, members in sorted(groups.items(), key=lambda item: -float(np.median(values[list(item[1])]))):
            inside = np.zeros(values.shape, dtype=bool)
            inside[list(members)] = True
            outside = rest & ~inside
            inside &= rest
            if inside.sum() < 2 or outside.sum() < LEAST_PEERS:
                continue
            deviation = float(np.median(values[inside]) - np.median(values[outside]))
            if deviation <= math.log1p(margin):
                continue
            p_value = mannwhitneyu(values[inside] - math.log1p(margin), values[outside], alternative="greater").pvalue
            if p_value > alpha / looked_at:
                continue
            rest &= ~inside
            same = tuple(
                (other, label)
                for other, others in levels.items()
                if other != name
                for label, seats in others.items()
                if seats == members
            )
            found.append(
                SlowGroup(
                    attribute=name,
                    value=value,
                    members=tuple(int(index) for index in np.flatnonzero(inside)),
                    deviation=deviation,
                    also=same,
                )
            )
    return tuple(found)


def _groups(labels: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the GPUs of each value; an empty value, and one that all share, is no group."""
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        if label:
            groups.setdefault(label, []).append(index)
    return {label: tuple(members) for label, members in groups.items() if 2 <= len(members) < len(labels)}
