"""The signed rank test on pairs: exact, conservative with ties, dual to its interval, blind to drift."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.paired import (
    detectable_shift,
    launches_a_side,
    noise_bound,
    paired_comparison,
    paired_interval,
    refuse_too_few,
    signed_rank_tail,
)
from perfgate.errors import ConfigurationError

EDGE = math.log1p(0.003)


def differences(least: int = 2, most: int = 14) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(-0.05, 0.05).map(lambda one: round(one, 6)), min_size=least, max_size=most)


@pytest.mark.parametrize("pairs", [1, 2, 5, 8])
def test_signed_rank_tail__is_the_count_of_all_signs(pairs: int) -> None:
    sums = [
        sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in itertools.product((0, 1), repeat=pairs)
    ]
    tail = signed_rank_tail(pairs)
    assert tail == pytest.approx([sum(one >= total for one in sums) / 2**pairs for total in range(len(tail))])


def test_signed_rank_tail__agrees_with_scipy() -> None:
    from scipy.stats import wilcoxon

    values = np.random.default_rng(7).normal(0.2, 1.0, 12)
    ours = paired_comparison(values - 0.0 + EDGE, 0.003)
    assert float(ours.p_slower) == pytest.approx(wilcoxon(values, alternative="greater", method="exact").pvalue)


def test_signed_rank_tail__of_many_pairs_is_exact() -> None:
    assert signed_rank_tail(60)[-1] == pytest.approx(0.5**60, rel=1e-12)
    assert signed_rank_tail(60)[0] == 1.0


def test_paired_comparison__twelve_clear_pairs_prove_what_they_can() -> None:
    found = paired_comparison(np.full(12, 0.01) + np.arange(12) * 1e-5, 0.003)
    assert float(found.p_slower) == pytest.approx(0.5**12)
    assert float(found.p_not_slower) == 1.0
    assert float(found.shift) == pytest.approx(0.01 + 5.5e-5)


@given(differences())
def test_paired_comparison__swapping_the_sides_mirrors_it(values: list[float]) -> None:
    one, other = paired_comparison(np.array(values), 0.003), paired_comparison(-np.array(values), 0.003)
    assert float(one.shift) == pytest.approx(-float(other.shift), abs=1e-12)
    assert (float(one.p_slower), float(one.p_not_slower)) == (float(other.p_faster), float(other.p_not_faster))


@given(differences())
def test_paired_comparison__a_pair_that_is_slower_never_raises_p(values: list[float]) -> None:
    before = float(paired_comparison(np.array(values), 0.003).p_slower)
    slower = np.array(values)
    slower[0] += 0.2
    assert float(paired_comparison(slower, 0.003).p_slower) <= before + 1e-12


def test_paired_comparison__what_lies_on_the_edge_proves_nothing() -> None:
    found = paired_comparison(np.full(12, EDGE), 0.003)
    assert float(found.p_slower) == 1.0
    assert float(found.p_not_slower) == 1.0


def test_paired_comparison__of_equal_sizes_ranks_what_speaks_against_the_claim_highest() -> None:
    found = paired_comparison(EDGE + np.array([0.01, 0.01, 0.01, -0.01]), 0.003)
    assert float(found.p_slower) == signed_rank_tail(4)[1 + 2 + 3]


@given(differences(5), st.sampled_from([0.05, 0.1, 0.2]))
def test_paired_interval__is_dual_to_the_test(values: list[float], level: float) -> None:
    data = np.array(values)
    low, high = paired_interval(data, level)
    for margin in (0.001, 0.003, 0.02):
        found, edge = paired_comparison(data, margin), math.log1p(margin)
        # Exactly at an edge, and where sizes tie, the test is the more careful of the two.
        if float(found.p_slower) <= level:
            assert low > edge - 1e-8
        elif len({round(abs(one - edge), 8) for one in values}) == len(values):
            assert low <= edge + 1e-8
        if float(found.p_not_slower) <= level:
            assert high < edge + 1e-8


def test_paired_interval__of_too_few_pairs_is_infinite() -> None:
    low, high = paired_interval(np.array([0.01, 0.02]), 0.01)
    assert (low, high) == (-math.inf, math.inf)


def test_paired_interval__holds_the_shift() -> None:
    data = np.random.default_rng(3).normal(0.01, 0.002, (50, 12))
    low, high = paired_interval(data, 0.025)
    shift = paired_comparison(data, 0.003).shift
    assert np.all((low <= shift) & (shift <= high))
    assert np.mean((low <= 0.01) & (high >= 0.01)) > 0.85


def test_noise_bound__grows_with_spread_and_shrinks_with_pairs() -> None:
    few, many = np.tile([0.01, -0.01], 3), np.tile([0.01, -0.01], 12)
    assert float(noise_bound(few, 0.01)) > float(noise_bound(many, 0.01)) > 0
    assert float(noise_bound(np.array([0.01]), 0.01)) == math.inf


def test_refuse_too_few__names_how_many_it_takes() -> None:
    refuse_too_few(12, family=40, alpha=0.01)
    refuse_too_few(1, family=0, alpha=0.01)
    with pytest.raises(ConfigurationError, match="12 launches a side could not prove") as caught:
        refuse_too_few(12, family=41, alpha=0.01)
    assert "at least 14 launches" in caught.value.hint


@pytest.mark.parametrize(("family", "launches"), [(0, 12), (1, 12), (2, 12), (6, 14), (20, 16), (100, 18)])
def test_launches_a_side__grow_with_the_cases(family: int, launches: int) -> None:
    assert launches_a_side(family, 0.01) == launches


@pytest.mark.parametrize(("pairs", "family", "spread"), [(12, 1, 8e-4), (14, 6, 1e-3), (16, 20, 1.5e-3)])
def test_detectable_shift__is_found_in_19_of_20_checks(pairs: int, family: int, spread: float) -> None:
    level, random = 0.01 / family, np.random.default_rng(1)
    noise = random.normal(0, spread * np.sqrt(2), (2000, pairs))
    shift = float(np.median([detectable_shift(one, 0.003, level) for one in noise]))
    found = float(np.mean(paired_comparison(noise + shift, 0.003).p_slower <= level))
    assert 0.95 <= found <= 0.99


def test_detectable_shift__of_too_few_pairs_is_infinite() -> None:
    assert detectable_shift(np.zeros(6), 0.003, 0.01) == np.inf
    assert detectable_shift(np.zeros(1), 0.003, 0.5) == np.inf
