"""The rules by which other tools call a benchmark slower, written down from their sources, for comparison.

Each takes what both sides measured of one case and answers one question: would it be called slower?
Given to each: all samples, favouring those that look at one process only.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.stats
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What was measured of one case: seconds, shape (launches, blocks, samples) a side.

    Attributes:
        baseline_clock_hz: SM clock of each block, shape (launches, blocks, 1); ones where it is unknown.
        candidate_clock_hz: the same of the candidate.
        family: number of cases judged together.
        seed: of resampling.
    """

    baseline: Floats
    candidate: Floats
    baseline_clock_hz: Floats
    candidate_clock_hz: Floats
    family: int = 1
    seed: int = 0


def nvbench_legacy(sides: Sides) -> bool:
    """nvbench_compare.py: means differ by more than the smaller of the two relative standard deviations."""
    one, other = sides.baseline.ravel(), sides.candidate.ravel()
    noise = min(one.std(ddof=1) / one.mean(), other.std(ddof=1) / other.mean())
    return bool(other.mean() / one.mean() - 1 > noise)


def nvbench_robust(sides: Sides) -> bool:
    """nvbench_compare_robust.py: [minimum, third quartile] disjoint by half a percent, in time and in cycles."""

    def is_disjoint(one: Floats, other: Floats) -> bool:
        return bool(other.min() > 1.005 * np.quantile(one, 0.75))

    cycles = (sides.baseline * sides.baseline_clock_hz, sides.candidate * sides.candidate_clock_hz)
    return is_disjoint(sides.baseline, sides.candidate) and is_disjoint(*cycles)


def asv(sides: Sides) -> bool:
    """Airspeed velocity, continuous: medians beyond a factor 1.1, and Mann-Whitney p < 0.002 on the samples."""
    one, other = sides.baseline.ravel(), sides.candidate.ravel()
    return bool(np.median(other) / np.median(one) > 1.1 and scipy.stats.mannwhitneyu(one, other).pvalue < 0.002)


def criterion(sides: Sides, resamples: int = 400) -> bool:
    """criterion.rs: p < 0.05 by a bootstrapped t, and the 95 % interval of the means' ratio beyond 1 %."""
    generator = np.random.default_rng(sides.seed)
    one, other = sides.baseline.ravel(), sides.candidate.ravel()
    means = [
        values[generator.integers(0, values.size, (resamples, values.size))].mean(axis=1) for values in (one, other)
    ]
    low = np.quantile(means[1] / means[0], 0.025) - 1
    return bool(low > 0.01)  # an interval beyond 1 % implies p < 0.05


def ratio_of_means(sides: Sides, threshold: float) -> bool:
    """github-action-benchmark and pytest-benchmark: one mean a side, beyond a fixed ratio."""
    return bool(sides.candidate.mean() / sides.baseline.mean() > threshold)


def pyperf(sides: Sides) -> bool:
    """Pyperf, compare_to: two-sided Student t at 95 % on the values of all processes, here block means."""
    one, other = sides.baseline.mean(axis=-1).ravel(), sides.candidate.mean(axis=-1).ravel()
    return bool(other.mean() > one.mean() and scipy.stats.ttest_ind(one, other).pvalue < 0.05)


def benchmatrix(sides: Sides, threshold: float, resamples: int = 2_000) -> bool:
    """benchmatrix: BCa interval of the ratio of medians over runs, Bonferroni, wholly beyond the threshold."""
    one, other = (np.median(side.reshape(side.shape[0], -1), axis=1) for side in (sides.baseline, sides.candidate))

    def ratio(first: Floats, second: Floats, axis: int = -1) -> Floats:
        return np.asarray(np.median(second, axis=axis) / np.median(first, axis=axis))

    arguments = {
        "n_resamples": resamples,
        "confidence_level": 1 - 0.05 / sides.family,
        "rng": np.random.default_rng(sides.seed),
        "vectorized": True,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        low = scipy.stats.bootstrap((one, other), ratio, method="BCa", **arguments).confidence_interval.low
        if not np.isfinite(low):  # its own fallback where BCa is degenerate
            low = scipy.stats.bootstrap((one, other), ratio, method="percentile", **arguments).confidence_interval.low
    return bool(low > 1 + threshold)


RULES: Mapping[str, Callable[[Sides], bool]] = {
    "nvbench compare, legacy": nvbench_legacy,
    "nvbench compare, robust": nvbench_robust,
    "asv continuous": asv,
    "criterion.rs": criterion,
    "github-action-benchmark, 200 %": partial(ratio_of_means, threshold=2.0),
    "github-action-benchmark, 105 %": partial(ratio_of_means, threshold=1.05),
    "pytest-benchmark, mean 5 %": partial(ratio_of_means, threshold=1.05),
    "pyperf compare_to": pyperf,
    "benchmatrix, 1 %": partial(benchmatrix, threshold=0.01),
    "benchmatrix, 5 %": partial(benchmatrix, threshold=0.05),
}
