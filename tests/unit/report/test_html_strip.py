"""Strips: launches and intervals in margins. And the session's charts."""

import re
from dataclasses import replace

import pytest

from perfgate.core.case import Unit
from perfgate.core.report import CaseResult, Estimate, Margin, MarginSource
from perfgate.core.roofs import Roofs, measured_roofs
from perfgate.core.run import Launch
from perfgate.report import html_roofline
from perfgate.report.html_run import render_run_html
from perfgate.report.html_session import render_session
from perfgate.report.html_strip import launch_changes, render_strip
from perfgate.storage.gpu_table import read_gpu_table
from tests.factories import make_run
from tests.golden import documents
from tests.golden.reports import bandwidth_case
from tests.unit.report.html_reader import read_page

COPY = "bandwidth.copy[bytes=4GiB]"
MARGIN = Margin(relative=0.01, source=MarginSource.POLICY)


def case_of(change: float, low: float | None = None, high: float | None = None) -> CaseResult:
    estimate = Estimate(value=change, low=low, high=high)
    return replace(bandwidth_case(COPY, 2e-3, 0.0), baseline=Estimate(value=2e-3), change=estimate, margin=MARGIN)


def place(svg: str, kind: str) -> float:
    found = re.search(rf'class="{kind}" d="M([\d.]+)', svg)
    assert found
    return float(found[1])


def test_strip__places_the_baseline_in_the_middle_and_margins_at_equal_steps() -> None:
    middle, slower, faster = (place(render_strip(case_of(one)), "here") for one in (0.0, 0.01, -0.02))
    assert middle == 66
    assert slower - middle == pytest.approx(20)
    assert faster - middle == pytest.approx(-40)


@pytest.mark.parametrize(("change", "edge"), [(0.5, 128.0), (-0.5, 4.0)])
def test_strip__what_is_far_beyond_sits_at_the_edge_with_an_arrow(change: float, edge: float) -> None:
    svg = render_strip(case_of(change))
    assert place(svg, "here") == edge
    assert 'class="beyond"' in svg
    assert 'class="beyond"' not in render_strip(case_of(0.03))


def test_strip__shows_launches_from_top_to_bottom_against_the_baseline() -> None:
    run = make_run({COPY: [2.00e-3, 2.02e-3, 1.98e-3]})
    result = case_of(0.0, -0.01, 0.01)
    assert launch_changes(result, run) == pytest.approx((0.0, 0.01, -0.01))
    svg = render_strip(result, run)
    assert 'd="M66.0 4.0h0M86.0 11.0h0M46.0 18.0h0"' in svg
    assert "3 launches from -1.00 % to +1.00 %" in svg
    assert 'class="interval" d="M46.0 11H86.0"' in svg


def test_strip__has_a_scale_where_it_is_asked_for() -> None:
    texts = [one.text for one in read_page(render_strip(case_of(0.0), labelled=True)).all("text")]
    assert texts == ["-1.0 %", "baseline", "+1.0 %"]
    assert read_page(render_strip(case_of(0.0))).all("text") == []


def test_strip__needs_a_change_and_a_margin() -> None:
    assert render_strip(replace(case_of(0.0), change=None)) == ""
    assert render_strip(replace(case_of(0.0), margin=None)) == ""
    assert render_strip(replace(case_of(0.0), margin=replace(MARGIN, relative=0.0))) == ""


def test_launch_changes__are_unknown_without_run_or_baseline() -> None:
    run = make_run({COPY: [2e-3]})
    assert launch_changes(case_of(0.0), None) == ()
    assert launch_changes(replace(case_of(0.0), baseline=None), run) == ()
    assert launch_changes(replace(case_of(0.0), id="other"), run) == ()
    assert launch_changes(replace(case_of(0.0), unit=Unit.CYCLES, baseline=Estimate(value=2e-3 * 1.98e9)), run) == (
        pytest.approx((0.0,))
    )


def test_session__has_a_chart_for_each_quantity_and_the_same_as_a_table() -> None:
    run = make_run({COPY: [2e-3] * 3})
    page = read_page(render_session(run))
    assert page.faults == []
    labels = [one.attributes["aria-label"] for one in page.all("svg")]
    assert labels == ["SM clock by launch: 1.98 GHz", "temperature by launch: 40 °C", "power by launch: 500 W"]
    assert len(page.all("path", class_="launch")) == 9
    assert "complete" in page.one("table").text


def test_session__tells_how_launches_ended_and_what_was_not_read() -> None:
    whole = make_run({COPY: [2e-3] * 2})
    dead = Launch(index=2, started_utc="2026-11-30T12:01:00Z", cases={}, failure="killed by SIGSEGV")
    lame = replace(whole.launches[1], failures={"gemm.x": "out of memory"})
    page = read_page(render_session(replace(whole, launches=(whole.launches[0], lame, dead))))
    text = page.one("table").text
    assert "killed by SIGSEGV" in text
    assert "gemm.x: out of memory" in text
    assert "unknown" in text
    assert len(page.all("path", class_="launch")) == 6


def test_session__of_one_launch_is_a_point_and_of_none_nothing() -> None:
    assert 'd="M150.0' in render_session(make_run({COPY: [2e-3]}))
    assert render_session(make_run({})) == ""


def test_run_page__shows_what_was_measured_and_judges_nothing() -> None:
    run = documents.run()
    page = read_page(render_run_html(run, measured_roofs(run, read_gpu_table())))
    assert page.faults == []
    assert "Nothing was judged." in page.one("header").text
    assert len(page.one("section", id="cases").text.split("µs")) > 2
    assert all(case_id in page.one("section", id="cases").text for case_id in run.cases)
    assert "gemm.bf16[n=4096]: " in page.all("figure", class_="roofline")[0].text
    assert "needs compute capability 8.9" in page.one("section", id="details").text
    assert page.all("section", id="failures") == []


def test_run_page__tells_what_failed_and_draws_no_blot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_roofline, "MOST_PICTURED", 1)
    run = documents.run()
    ended = replace(run.launches[0], failure="hung", failures={"launch.submit": "timed out"})
    page = read_page(render_run_html(replace(run, launches=(ended, *run.launches[1:])), Roofs(gpu_name="x")))
    failed = page.one("section", id="failures").text
    assert "launch 1: hung" in failed
    assert "launch 1, launch.submit: timed out" in failed
    assert "the table has them" in page.one("section", id="roofline").text


def test_run_page__without_cases_has_no_picture() -> None:
    page = read_page(render_run_html(make_run({}), Roofs(gpu_name="x")))
    assert page.faults == []
    assert page.all("section", id="roofline") == []
