"""Rank tests with a margin: against scipy, at the edges, and the laws that hold for any data."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from perfgate.core.comparison import (
    comparison,
    logarithms,
    median_interval,
    shift_interval,
    spread_changed,
    upper_tail,
)

MARGIN = 0.005

times = st.floats(min_value=1e-6, max_value=1.0)
samples = st.lists(times, min_size=1, max_size=8)


def session(seed: int, count: int, *, shift: float = 0.0, spread: float = 1e-3) -> np.ndarray:
    return shift + spread * np.random.default_rng(seed).standard_normal(count)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 12), (3, 12), (6, 12), (12, 12), (12, 6), (5, 36)])
def test_upper_tail__is_scipys_exact_distribution(m: int, n: int) -> None:
    # scipy's p-value of "greater" for samples constructed to win exactly u pairs.
    tail = upper_tail(m, n)
    assert tail[0] == 1
    assert tail[-1] == 1 / math.comb(m + n, m)
    for seed in range(20):
        one, other = session(seed, m), session(seed + 1000, n)
        won = int((one[:, None] > other[None, :]).sum())
        expected = stats.mannwhitneyu(one, other, alternative="greater", method="exact").pvalue
        assert tail[won] == pytest.approx(expected, rel=1e-12)


def test_upper_tail__cannot_be_changed_by_who_reads_it() -> None:
    with pytest.raises(ValueError, match="read-only"):
        upper_tail(3, 4)[0] = 2


@pytest.mark.parametrize("shift", [0.0, 0.004, 0.0052, 0.006, -0.006])
def test_comparison__gives_the_p_values_of_scipys_test_at_the_margin(shift: float) -> None:
    candidate, baseline = session(1, 6, shift=shift), session(2, 12)
    edge = math.log1p(MARGIN)
    found = comparison(candidate, baseline, MARGIN)

    def p(values: np.ndarray, alternative: str) -> float:
        return float(stats.mannwhitneyu(values, baseline, alternative=alternative, method="exact").pvalue)

    assert found.p_slower == pytest.approx(p(candidate - edge, "greater"))
    assert found.p_faster == pytest.approx(p(candidate + edge, "less"))
    assert found.p_not_slower == pytest.approx(p(candidate - edge, "less"))
    assert found.p_not_faster == pytest.approx(p(candidate + edge, "greater"))
    assert found.p_equivalent == max(found.p_not_slower, found.p_not_faster)


def test_comparison__a_value_exactly_on_the_margin_counts_against_every_claim() -> None:
    # 100 * 1.005 is 100.49999999999999 in floating point.
    candidate, baseline = logarithms([100 * 1.005] * 6), logarithms([100.0] * 12)
    found = comparison(candidate, baseline, MARGIN)
    assert found.p_slower == 1
    assert found.p_not_slower == 1
    assert found.p_not_faster == pytest.approx(1 / math.comb(18, 6))


def test_comparison__equal_constants_are_equivalent_and_never_nan() -> None:
    found = comparison(logarithms([5.0] * 6), logarithms([5.0] * 12), MARGIN)
    assert found.shift == 0
    assert found.p_slower == 1
    assert found.p_equivalent == pytest.approx(1 / math.comb(18, 6))
    assert not found.spread_changed


def test_comparison__constants_that_differ_below_the_margin_are_equivalent() -> None:
    found = comparison(logarithms([5.0001] * 10), logarithms([5.0] * 10), MARGIN)
    assert found.p_slower == 1
    assert found.p_equivalent < 1e-4


def test_comparison__ties_of_the_event_clock_never_help_a_claim() -> None:
    # Times in steps of 32 ns: half of the candidate's launches are one step slower.
    step, base = 32e-9, 20e-6
    candidate = logarithms([base, base, base, base + step, base + step, base + step])
    baseline = logarithms([base] * 12)
    tied = comparison(candidate, baseline, 1e-6)
    broken = comparison(candidate, baseline - 1e-8 * np.arange(12), 1e-9)
    assert tied.p_slower > broken.p_slower


def test_comparison__one_launch_on_a_side_reaches_one_in_all() -> None:
    slow = comparison(logarithms([2.0]), logarithms([1.0] * 12), MARGIN)
    assert slow.p_slower == 1 / 13
    assert comparison(logarithms([2.0]), logarithms([1.0]), MARGIN).p_slower == 1 / 2


def test_comparison__zero_variance_and_unequal_sizes_are_not_significant_by_themselves() -> None:
    # pyperf's trap: three against two constants.
    found = comparison(logarithms([1.0, 1.0, 1.0]), logarithms([1.001, 1.001]), MARGIN)
    assert found.p_slower == 1
    assert found.p_faster == 1


def test_comparison__many_cases_give_what_each_gives_alone() -> None:
    candidates = np.stack([session(seed, 6, shift=0.001 * seed) for seed in range(10)])
    baselines = np.stack([session(seed + 50, 12) for seed in range(10)])
    margins = np.linspace(0.001, 0.01, 10)
    together = comparison(candidates, baselines, margins)
    for index in range(10):
        alone = comparison(candidates[index], baselines[index], margins[index])
        assert together.p_slower[index] == alone.p_slower
        assert together.p_equivalent[index] == alone.p_equivalent
        assert together.shift[index] == alone.shift


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_logarithms__refuses_what_is_no_time(bad: float) -> None:
    with pytest.raises(ValueError, match="finite and positive"):
        logarithms([1.0, bad])


def test_logarithms__refuses_nothing_at_all() -> None:
    with pytest.raises(ValueError, match="no values"):
        logarithms([])


def test_spread_changed__asks_welch_when_one_side_is_three_times_as_noisy() -> None:
    quiet, noisy = session(1, 12, spread=1e-4), session(2, 6, spread=1e-3, shift=0.007)
    assert spread_changed(noisy, quiet)
    found = comparison(noisy, quiet, MARGIN)
    welch = stats.ttest_ind(noisy - math.log1p(MARGIN), quiet, equal_var=False, alternative="greater").pvalue
    rank = stats.mannwhitneyu(noisy - math.log1p(MARGIN), quiet, alternative="greater", method="exact").pvalue
    assert found.p_slower == pytest.approx(max(welch, rank))


def test_spread_changed__of_one_launch_is_unknown_and_of_constants_is_no() -> None:
    assert not spread_changed(session(1, 1), session(2, 12))
    assert not spread_changed(logarithms([1.0] * 6), logarithms([2.0] * 6))
    assert spread_changed(session(1, 6), logarithms([2.0] * 6))


def test_comparison__constants_against_noise_use_the_noise_that_there_is() -> None:
    found = comparison(session(3, 6, shift=0.02), np.zeros(12), MARGIN)
    assert found.spread_changed
    assert found.p_slower < 1e-4


@pytest.mark.parametrize("level", [0.05, 0.01, 5e-4, 1e-4])
def test_shift_interval__is_dual_to_the_test(level: float) -> None:
    for seed in range(60):
        candidate, baseline = session(seed, 6, shift=0.006), session(seed + 500, 12)
        low, high = shift_interval(candidate, baseline, level)
        found = comparison(candidate, baseline, MARGIN)
        assert (low > math.log1p(MARGIN)) == (found.p_slower <= level)
        assert (high < math.log1p(MARGIN)) == (found.p_not_slower <= level)
        assert low <= found.shift <= high


def test_shift_interval__is_dual_where_welch_has_a_say_too() -> None:
    for seed in range(60):
        candidate, baseline = session(seed, 6, shift=0.009, spread=2e-3), session(seed + 500, 12, spread=1e-4)
        low, _ = shift_interval(candidate, baseline, 0.001)
        found = comparison(candidate, baseline, MARGIN)
        assert (low > math.log1p(MARGIN)) == (found.p_slower <= 0.001)


def test_shift_interval__is_infinite_where_nothing_can_be_proven() -> None:
    low, high = shift_interval(session(1, 2), session(2, 3), 1e-3)
    assert (low, high) == (-math.inf, math.inf)


def test_shift_interval__takes_a_level_for_each_case() -> None:
    candidates, baselines = np.stack([session(1, 6)] * 2), np.stack([session(2, 12)] * 2)
    low, high = shift_interval(candidates, baselines, np.array([0.05, 0.001]))
    assert low[1] < low[0]
    assert high[0] < high[1]


def test_median_interval__is_the_extremes_of_six_and_none_of_five() -> None:
    assert median_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0)
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([float(value) for value in range(12)]) == (2.0, 9.0)


@given(candidate=samples, baseline=samples, scale=st.floats(min_value=1e-3, max_value=1e3))
def test_comparison__scaling_all_times_changes_nothing(
    candidate: list[float], baseline: list[float], scale: float
) -> None:
    one = comparison(logarithms(candidate), logarithms(baseline), 0.01)
    other = comparison(
        logarithms([scale * value for value in candidate]), logarithms([scale * b for b in baseline]), 0.01
    )
    edge = math.log1p(0.01)
    pairs = np.abs(np.subtract.outer(logarithms(candidate), logarithms(baseline)))
    if np.all(np.abs(np.abs(pairs) - edge) > 1e-8):  # no pair within rounding of the edge
        assume(one.spread_changed == other.spread_changed)  # a ratio of exactly three is rounding's choice
        assert one.p_slower == pytest.approx(other.p_slower, rel=1e-5)
        assert one.p_equivalent == pytest.approx(other.p_equivalent, rel=1e-5)
    assert one.shift == pytest.approx(other.shift, abs=1e-9)


@given(candidate=samples, baseline=samples)
def test_comparison__swapping_sides_inverts_the_ratio(candidate: list[float], baseline: list[float]) -> None:
    one = comparison(logarithms(candidate), logarithms(baseline), 0.01)
    other = comparison(logarithms(baseline), logarithms(candidate), 0.01)
    assert one.shift == pytest.approx(-other.shift, abs=1e-12)
    assert one.p_slower == pytest.approx(other.p_faster, rel=1e-9)
    assert one.p_not_slower == pytest.approx(other.p_not_faster, rel=1e-9)
    assert one.p_equivalent == pytest.approx(other.p_equivalent, rel=1e-9)


@given(candidate=samples, baseline=samples)
def test_comparison__a_further_launch_slower_than_all_never_weakens_slower(
    candidate: list[float], baseline: list[float]
) -> None:
    slowest = math.log(max(baseline)) + math.log1p(0.01) + 0.1
    one, two = logarithms(candidate), np.append(logarithms(candidate), slowest)
    base = logarithms(baseline)
    if not (spread_changed(one, base) or spread_changed(two, base)):
        assert comparison(two, base, 0.01).p_slower <= comparison(one, base, 0.01).p_slower


@given(candidate=samples, baseline=samples)
def test_comparison__is_never_both_slower_and_unchanged(candidate: list[float], baseline: list[float]) -> None:
    found = comparison(logarithms(candidate), logarithms(baseline), 0.01)
    for value in (found.p_slower, found.p_faster, found.p_not_slower, found.p_not_faster):
        assert 0 < value <= 1
    assert found.p_slower + found.p_not_slower >= 1 - 1e-9
