"""The rule: from p-values of a family to verdicts, look by look."""

import math

import numpy as np
import pytest

from perfgate.core.comparison import Comparison, comparison
from perfgate.core.decision import VERDICTS, Decision, decision, is_beyond, is_confirmed, is_settled, staged
from perfgate.core.verdict import CaseVerdict

MARGIN = 0.005


def compared(*shifts: float, m: int = 6, n: int = 12, spread: float = 1e-4, seed: int = 0) -> Comparison:
    generator = np.random.default_rng(seed)
    candidates = np.array(shifts)[:, None] + spread * generator.standard_normal((len(shifts), m))
    return comparison(candidates, spread * generator.standard_normal((len(shifts), n)), MARGIN)


def verdicts(found: Comparison, level: float = 0.01, equivalence_level: float = 0.05) -> tuple[CaseVerdict, ...]:
    return decision(found, level=level, equivalence_level=equivalence_level).verdicts()


def test_decision__gives_each_verdict_where_it_is_earned() -> None:
    found = compared(0.02, -0.02, 0.0)
    assert verdicts(found) == (CaseVerdict.REGRESSED, CaseVerdict.IMPROVED, CaseVerdict.UNCHANGED)


def test_decision__what_is_beyond_the_margin_but_not_proven_is_suspected() -> None:
    found = compared(0.02, 0.003, m=2, n=2)
    assert verdicts(found) == (CaseVerdict.SUSPECTED, CaseVerdict.INCONCLUSIVE)


def test_decision__an_estimate_exactly_on_the_margin_is_not_beyond_it() -> None:
    edge = math.log1p(MARGIN)
    found = comparison(np.full((1, 2), edge), np.zeros((1, 2)), MARGIN)
    assert not is_beyond(found)[0]
    assert verdicts(found) == (CaseVerdict.INCONCLUSIVE,)


def test_decision__a_level_of_zero_accuses_nobody_but_unchanged_is_still_found() -> None:
    assert verdicts(compared(0.02, 0.0), level=0.0) == (CaseVerdict.SUSPECTED, CaseVerdict.UNCHANGED)


def test_decision__many_cases_ask_for_more() -> None:
    one = compared(0.02, m=3)
    many = comparison(np.full((20, 3), 0.02), np.zeros((20, 12)), MARGIN)
    assert verdicts(one) == (CaseVerdict.REGRESSED,)
    assert set(verdicts(many)) == {CaseVerdict.SUSPECTED}


def test_is_confirmed__tests_each_accused_case_alone() -> None:
    assert is_confirmed(compared(0.02, 0.0, m=3), 0.01).tolist() == [True, False]


def looks(*rows: tuple[float, ...]) -> list[Comparison]:
    """Two looks at checks of as many cases: 3 launches, then 6."""
    shifts = np.array(rows)
    generator = np.random.default_rng(1)
    candidates = shifts[..., None] + 1e-4 * generator.standard_normal((*shifts.shape, 6))
    baseline = 1e-4 * generator.standard_normal((*shifts.shape, 12))
    return [comparison(candidates[..., :count], baseline, MARGIN) for count in (3, 6)]


def test_staged__stops_when_all_is_unchanged_or_a_regression_is_found() -> None:
    found, stopped = staged(
        looks((0.0, 0.0), (0.02, 0.0), (0.005, 0.0)), levels=(0.005, 0.005), equivalence_levels=(0.025, 0.025)
    )
    assert stopped.tolist() == [0, 0, 1]
    assert found.is_verdict(CaseVerdict.REGRESSED).tolist() == [[False, False], [True, False], [False, False]]


def test_staged__a_look_without_a_level_goes_on_to_the_next() -> None:
    found, stopped = staged(looks((0.02, 0.0)), levels=(0.0, 0.01), equivalence_levels=(0.025, 0.025))
    assert stopped.tolist() == [1]
    assert found.is_verdict(CaseVerdict.REGRESSED).tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("names", "settled"),
    [
        (("unchanged", "improved"), True),
        (("regressed", "inconclusive"), True),
        (("unchanged", "suspected"), False),
        (("inconclusive", "improved"), False),
    ],
)
def test_is_settled__follows_from_the_verdicts(names: tuple[str, ...], settled: bool) -> None:
    places = np.array([VERDICTS.index(CaseVerdict(name)) for name in names])
    assert is_settled(Decision(verdict=places, p_adjusted=np.ones(2), level=np.ones(2))) == settled
