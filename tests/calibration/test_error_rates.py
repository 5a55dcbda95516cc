"""The error rates that docs/statistics.md promises, by seeded simulation of the product's own decisions.

Full-size figures: ``python -m benchmarks.judging``. Here each simulation is large enough that its
bounds lie three standard deviations away from the expected value.
"""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulated import Noise, Setting, Shape, coverage, outcome
from perfgate.core.comparison import comparison
from perfgate.core.multiplicity import is_rejected

QUIET = Setting(noise=Noise(launch=0.001))
BOUNDARY = replace(QUIET, change=QUIET.margin)


@pytest.mark.slow
@pytest.mark.parametrize("stages", [(6,), (3, 6)])
def test_family_error__with_every_case_exactly_at_the_margin(stages: tuple[int, ...]) -> None:
    found = outcome(replace(BOUNDARY, stages=stages), checks=10_000, seed=1)
    assert 0.002 <= found.accused <= 0.012
    assert found.confirmed <= 0.003  # fresh launches accuse by chance once in a hundred


@pytest.mark.slow
def test_family_error__when_both_looks_may_accuse_is_still_alpha() -> None:
    # 36 baseline launches let three candidate launches prove a case of twenty: unsplit looks would add up.
    found = outcome(replace(BOUNDARY, baseline_launches=36), checks=10_000, seed=2)
    assert 0.002 <= found.accused <= 0.012


def test_family_error__would_be_seen_without_the_correction_for_many_cases() -> None:
    # The simulation can fail: twenty uncorrected tests accuse in one check of six.
    generator = np.random.default_rng(3)
    baseline = QUIET.noise.sessions(generator, 2_000, 20, 12)
    candidate = QUIET.noise.sessions(generator, 2_000, 20, 6) + np.log1p(QUIET.margin)
    uncorrected = is_rejected(comparison(candidate, baseline, QUIET.margin).p_slower, QUIET.alpha)
    assert 0.12 <= uncorrected.any(axis=-1).mean() <= 0.22


@pytest.mark.slow
@pytest.mark.parametrize("shape", list(Shape))
def test_false_alarms__of_unchanged_code_whose_sessions_differ(shape: Shape) -> None:
    noise = Noise(launch=0.001, session=QUIET.margin / 5, shape=shape)
    found = outcome(replace(QUIET, noise=noise), checks=10_000, seed=4)
    assert found.accused <= 0.01
    assert found.confirmed <= 0.003


def test_false_alarms__come_when_sessions_differ_by_half_the_margin() -> None:
    # The limit that a check warns at is a quarter: well beyond it the error rate is gone.
    noise = Noise(launch=0.001, session=QUIET.margin / 2)
    assert outcome(replace(QUIET, noise=noise), checks=500, seed=5).accused > 0.2


@pytest.mark.parametrize(("spreads", "least", "most"), [(3.0, 0.84, 0.92), (3.5, 0.94, 0.99), (4.0, 0.98, 1.0)])
def test_power__of_one_slower_case_among_twenty(spreads: float, least: float, most: float) -> None:
    change = QUIET.margin + spreads * QUIET.noise.launch
    found = outcome(replace(QUIET, change=change, changed=1), checks=1_200, seed=6)
    assert least <= found.found <= most


def test_power__what_is_missed_at_one_and_a_half_margins_is_suspected() -> None:
    found = outcome(replace(QUIET, change=1.5 * QUIET.margin), checks=400, seed=7)
    assert found.found > 0.7
    assert found.found + found.suspected > 0.999


@pytest.mark.parametrize(("level", "confidence"), [(0.05, 0.90), (0.025, 0.95), (0.005, 0.99)])
def test_interval__holds_the_true_change_as_often_as_it_says(level: float, confidence: float) -> None:
    found = coverage(replace(QUIET, change=0.02), level=level, checks=1_000, seed=8)
    assert confidence - 0.004 <= found <= confidence + 0.03


def test_unchanged__is_said_of_most_unchanged_code_at_the_first_look() -> None:
    quiet = replace(QUIET, noise=Noise(launch=0.0005))
    found = outcome(quiet, checks=300, seed=9)
    assert found.unchanged > 0.99
    assert found.stopped_early > 0.95
