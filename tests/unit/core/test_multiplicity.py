"""Holm over the cases, shares of alpha over the looks, and what so few launches can prove at all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.multiplicity import (
    can_reject,
    holm,
    holm_levels,
    impossible,
    is_rejected,
    required_launches,
    smallest_p,
    stage_levels,
)
from perfgate.errors import ConfigurationError, ExitCode

p_values = st.lists(st.floats(min_value=1e-6, max_value=1.0), min_size=1, max_size=12)


def stepwise(p: list[float], alpha: float) -> set[int]:
    """Holm's procedure as his paper tells it: smallest first, stop at the first that is not rejected."""
    rejected: set[int] = set()
    for rank, index in enumerate(sorted(range(len(p)), key=lambda one: p[one])):
        if p[index] > alpha / (len(p) - rank):
            break
        rejected.add(index)
    return rejected


@given(p=p_values, alpha=st.sampled_from([0.01, 0.05, 0.2]))
def test_holm__rejects_what_the_stepwise_procedure_rejects(p: list[float], alpha: float) -> None:
    adjusted = holm(np.array(p))
    clear = np.abs(adjusted - alpha) > 1e-9
    expected = stepwise(p, alpha)
    assert all((adjusted[index] <= alpha) == (index in expected) for index in range(len(p)) if clear[index])


def test_holm__worked_example_and_families_side_by_side() -> None:
    adjusted = holm(np.array([[0.01, 0.04, 0.03], [0.5, 0.5, 0.001]]))
    assert adjusted == pytest.approx(np.array([[0.03, 0.06, 0.06], [1.0, 1.0, 0.003]]))


def test_holm__of_an_empty_family_is_empty() -> None:
    assert holm(np.array([])).size == 0


def test_holm_levels__are_alpha_over_the_cases_left() -> None:
    assert holm_levels(np.array([0.5, 0.001, 0.2]), 0.03) == pytest.approx([0.03, 0.01, 0.015])


def test_is_rejected__equality_rejects_and_a_level_of_zero_never_does() -> None:
    assert is_rejected(np.array(3 * (1 / 60)), 0.05)
    assert not is_rejected(np.array(0.0), 0.0)


@pytest.mark.parametrize(("baseline", "reached", "largest"), [(6, 0.0011, 9), (8, 0.00033, 30), (12, 5.4e-5, 185)])
def test_smallest_p__bounds_the_family(baseline: int, reached: float, largest: int) -> None:
    assert smallest_p(6, baseline) == pytest.approx(reached, rel=0.02)
    assert can_reject(0.01, family=largest, candidate_launches=6, baseline_launches=baseline)
    assert not can_reject(0.01, family=largest + 1, candidate_launches=6, baseline_launches=baseline)


def test_can_reject__not_without_launches() -> None:
    assert not can_reject(0.01, family=1, candidate_launches=0, baseline_launches=12)


def test_stage_levels__a_look_that_could_prove_nothing_gets_nothing() -> None:
    assert stage_levels(0.01, (3, 6), family=20, baseline_launches=12) == (0.0, 0.01)
    assert stage_levels(0.01, (3, 6), family=2, baseline_launches=12) == (0.005, 0.005)
    # A share that two others leave behind may then be enough.
    assert stage_levels(0.01, (2, 4, 6), family=10, baseline_launches=12) == (0.0, 0.0, 0.01)
    assert stage_levels(0.01, (2, 4, 6), family=9, baseline_launches=12) == (0.0, 0.005, 0.005)


def test_stage_levels__are_all_zero_when_nothing_can_be_proven() -> None:
    assert stage_levels(0.01, (3,), family=20, baseline_launches=12) == (0.0,)
    assert stage_levels(0.01, (1, 1), family=1, baseline_launches=1) == (0.0, 0.0)


@given(
    family=st.integers(1, 60),
    baseline=st.integers(1, 40),
    stages=st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True).map(sorted),
)
def test_stage_levels__never_spend_more_than_alpha_and_what_is_given_can_be_used(
    family: int, baseline: int, stages: list[int]
) -> None:
    levels = stage_levels(0.01, stages, family=family, baseline_launches=baseline)
    assert sum(levels) == pytest.approx(0.01) or not any(levels)
    for launches, level in zip(stages, levels, strict=True):
        assert level == 0 or smallest_p(launches, baseline) * family <= level * (1 + 1e-9)


def test_required_launches__is_the_fewest_that_do() -> None:
    assert required_launches(0.01, family=20, baseline_launches=12) == 5
    assert math.comb(16, 4) < 20 / 0.01 <= math.comb(17, 5)
    assert required_launches(0.01, family=200, baseline_launches=1, most=100) is None


def test_impossible__is_a_configuration_error_that_names_what_would_do() -> None:
    error = impossible(0.01, family=20, candidate_launches=3, baseline_launches=12)
    assert isinstance(error, ConfigurationError)
    assert error.exit_code is ExitCode.USAGE
    assert "3 candidate launches against 12" in error.message
    assert "0.0022" in error.message
    assert "at least 5 launches" in error.hint
    hopeless = impossible(0.01, family=200, candidate_launches=3, baseline_launches=1)
    assert "more than 1 launches" in hopeless.hint
