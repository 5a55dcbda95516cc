"""What the signed rank test on pairs accuses and finds, by simulation: twenty cases, margin 0.3 %."""

import numpy as np
import pytest

from perfgate.core.decision import decision
from perfgate.core.paired import launches_a_side, paired_comparison
from perfgate.core.verdict import CaseVerdict

CASES, MARGIN, ALPHA = 20, 0.003, 0.01
PAIRS = launches_a_side(CASES, ALPHA)


def regressed(change: float, spread: float, *, checks: int, seed: int, drift: float = 0.0) -> np.ndarray:
    """Tell which cases are called slower in simulated checks; the first case alone has the change."""
    random = np.random.default_rng(seed)
    launches = spread * random.standard_normal((checks, CASES, PAIRS, 2))
    order = np.where(random.random((checks, 1, PAIRS // 2, 1)) < 0.5, 1, -1)
    # ABBA or BAAB: the place of head less that of base is one launch, up and down.
    steps = (order * np.array([1, -1])).reshape(checks, 1, PAIRS)
    differences = launches[..., 1] - launches[..., 0] + drift * steps
    differences[:, 0] += np.log1p(change)
    family = decision(paired_comparison(differences, MARGIN), level=ALPHA, equivalence_level=0.05)
    return family.is_verdict(CaseVerdict.REGRESSED)


@pytest.mark.parametrize("drift", [0.0, 0.0003, 0.001])
def test_a_true_change_of_the_margin_is_accused_as_rarely_as_alpha_says(drift: float) -> None:
    random = np.random.default_rng(11)
    launches = 0.001 * random.standard_normal((4000, CASES, PAIRS, 2))
    differences = launches[..., 1] - launches[..., 0] + np.log1p(MARGIN)
    differences += drift * np.tile([1, -1], PAIRS // 2)
    family = decision(paired_comparison(differences, MARGIN), level=ALPHA, equivalence_level=0.05)
    rate = np.mean(family.is_verdict(CaseVerdict.REGRESSED).any(axis=1))
    assert rate < 0.014
    # A drift widens the pairs' spread, so it only makes the test more careful.
    assert rate > 0.001 or drift > 0


def test_unchanged_code_is_not_accused() -> None:
    assert not regressed(0.0, 0.001, checks=2000, seed=1).any()


@pytest.mark.parametrize(("spread", "least"), [(0.0008, 0.96), (0.001, 0.76)])
@pytest.mark.parametrize("drift", [0.0, 0.0003])
def test_half_a_percent_is_found_under_a_drift_too(spread: float, least: float, drift: float) -> None:
    found = regressed(0.005, spread, checks=1000, seed=2, drift=drift)
    assert found[:, 0].mean() > least
    assert not found[:, 1:].any()
