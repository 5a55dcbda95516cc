"""The Mermaid chart: positions between 0 and 1, in the order of the numbers, labels that cannot break out."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.report import CaseResult, RooflinePosition
from perfgate.core.verdict import CaseVerdict
from perfgate.report.quadrant import MOST_POINTS, render_quadrant
from tests.golden.reports import HOSTILE, UNCHANGED, gemm_case

POINT = re.compile(r'^    "([^"]*)": \[([\d.]+), ([\d.]+)\]$', re.MULTILINE)


def placed(case_id: str, intensity: float | None, rate: float | None) -> CaseResult:
    position = RooflinePosition(intensity_flop_per_byte=intensity, rate_flop_per_s=rate)
    return CaseResult(id=case_id, family="a", verdict=CaseVerdict.UNCHANGED, roofline=position)


def test_render_quadrant__needs_two_positions() -> None:
    assert render_quadrant(()) == ""
    assert render_quadrant((*UNCHANGED, gemm_case())) == ""
    assert render_quadrant((gemm_case(), placed("a", None, 1.0), placed("b", 1.0, None))) == ""
    assert render_quadrant((replace(gemm_case(), roofline=None), gemm_case())) == ""


def test_render_quadrant__is_logarithmic_and_says_where_its_axes_end() -> None:
    chart = render_quadrant((placed("low", 1.0, 1e12), placed("middle", 10.0, 1e13), placed("high", 100.0, 1e14)))
    points = {name: (float(x), float(y)) for name, x, y in POINT.findall(chart)}
    assert points == {"low": (0.167, 0.167), "middle": (0.5, 0.5), "high": (0.833, 0.833)}
    assert 'x-axis "from 0.32 FLOP/byte" --> "to 3.2e+02 FLOP/byte"' in chart
    assert 'y-axis "from 316 GFLOP/s" --> "to 316 TFLOP/s"' in chart


def test_render_quadrant__places_equal_cases_in_the_middle() -> None:
    points = POINT.findall(render_quadrant((placed("a", 2.0, 1e12), placed("b", 2.0, 1e12))))
    assert [point[1:] for point in points] == [("0.500", "0.500")] * 2


def test_render_quadrant__draws_no_more_points_than_can_be_told_apart() -> None:
    chart = render_quadrant([placed(f"case{index}", index + 1.0, 1e12) for index in range(MOST_POINTS + 9)])
    assert len(POINT.findall(chart)) == MOST_POINTS


@given(st.lists(st.tuples(st.floats(1e-6, 1e9), st.floats(1.0, 1e18)), min_size=2, max_size=9))
def test_render_quadrant__stays_on_the_chart_in_order(values: list[tuple[float, float]]) -> None:
    chart = render_quadrant([placed(f"case{index}", x, y) for index, (x, y) in enumerate(values)])
    places = [(float(x), float(y)) for _, x, y in POINT.findall(chart)]
    assert len(places) == len(values)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places)
    for one, place in zip(values, places, strict=True):
        assert all(place[0] <= other[1][0] for other in zip(values, places, strict=True) if one[0] <= other[0][0])


def test_render_quadrant__hostile_names_stay_in_their_quotes() -> None:
    chart = render_quadrant((placed(HOSTILE, 1.0, 1e12), placed('x"]\nend', 2.0, 1e13)))
    assert len(chart.splitlines()) == 6
    assert len(POINT.findall(chart)) == 2
