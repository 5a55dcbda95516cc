"""The numbers that docs/statistics.md works through are what the code gives."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.comparison import comparison, shift_interval, upper_tail
from perfgate.core.margin import prediction_bound, shrunken_spread
from perfgate.core.multiplicity import smallest_p, stage_levels

TEXT = (Path(__file__).parents[3] / "docs" / "statistics.md").read_text(encoding="utf-8")
MARGIN = 0.005


def row(name: str) -> list[float]:
    """The launches that the document lists, in microseconds."""
    found = re.search(rf"^{name} +((?:\d+\.\d+ *)+)$", TEXT, re.MULTILINE)
    assert found is not None
    return [float(value) for value in found.group(1).split()]


BASELINE, SLOWER, CONTRARY = np.log(row("baseline")), np.log(row("now")), np.log(row("contrary"))


def test_example__every_pair_is_won() -> None:
    assert (len(BASELINE), len(SLOWER)) == (12, 6)
    found = comparison(SLOWER, BASELINE, MARGIN)
    assert found.p_slower == 1 / 18_564
    assert f"{float(found.p_slower):.1e}" == "5.4e-05"
    assert "1 / 18,564 = 0.000054" in TEXT
    assert math.expm1(found.shift) == pytest.approx(0.0091, abs=5e-5)
    assert "+0.91 %" in TEXT


def test_example__its_interval() -> None:
    low, high = shift_interval(SLOWER, BASELINE, 0.01 / 20)
    assert (math.expm1(low), math.expm1(high)) == pytest.approx((0.0087, 0.0096), abs=5e-5)
    assert "+0.87 to +0.96 %" in TEXT


def test_example__one_contrary_launch() -> None:
    won = int((CONTRARY[:, None] - BASELINE[None, :] > math.log1p(MARGIN) + 1e-9).sum())
    assert won == 64
    assert upper_tail(6, 12)[won] == pytest.approx(0.0034, abs=5e-5)
    assert "64 of the 72 pairs, p = 0.0034" in TEXT


def test_example__what_launches_can_prove() -> None:
    for baseline in (6, 8, 12):
        largest = int(0.01 / smallest_p(6, baseline))
        assert re.search(rf"\| {baseline} \| [0-9.]+ \| {largest} \|", TEXT)
    assert stage_levels(0.01, (3, 6), family=20, baseline_launches=12) == (0.0, 0.01)


def test_example__the_margin_learned_from_three_sessions() -> None:
    spread = shrunken_spread(0.005, 3, 0.0006, None)
    bound = prediction_bound(spread, freedom=10, sessions=3, quantile=1 - 0.01 / 20)
    assert (spread, bound) == pytest.approx((0.0006, 0.00316), abs=5e-6)
    assert "0.32 %" in TEXT
