"""Simulated histories of unchanged code: what is found in them by chance."""

import numpy as np
import pytest

from perfgate.core.history import histories, source_of_baseline
from perfgate.core.policy import Policy
from perfgate.core.trend import Movement
from tests.factories import make_baseline, make_trend_sessions

CASES = 20
MARGIN = 0.005


@pytest.mark.parametrize("sessions", [3, 6, 20])
@pytest.mark.parametrize("spread", [MARGIN / 20, MARGIN / 8, MARGIN / 4])
def test_history__of_unchanged_code_accuses_no_case(sessions: int, spread: float) -> None:
    """docs/statistics.md, "Over many sessions": none of 720 did; of 12 here none may."""
    generator = np.random.default_rng(sessions)
    for seed in range(12):
        levels = {f"bandwidth.case{index}": spread * generator.standard_normal(sessions) for index in range(CASES)}
        baseline = make_baseline(*make_trend_sessions(levels, spread=3e-4, seed=seed))
        (history,) = histories([source_of_baseline(baseline)], Policy())
        assert {one.movement for one in history.trends} == {Movement.STEADY}
