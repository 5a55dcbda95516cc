"""What the picture is made from."""

from dataclasses import replace

import pytest

from perfgate.core.report import Estimate
from perfgate.core.roofs import measured_roofs
from perfgate.core.run import Injection
from perfgate.core.verdict import CaseVerdict
from perfgate.report.roofline_chart import chart_of_report, chart_of_run
from tests.unit.report.roofline_reports import CROWDED, TABLE, make_placed_report, make_session


def test_chart_of_report__splits_cases_by_whether_they_have_an_intensity() -> None:
    chart = chart_of_report(make_placed_report(CROWDED))
    assert {case.id for case in chart.rows} == {
        "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]", "bandwidth.write[bytes=4GiB]",
        "pattern.gather[bytes=4GiB]", "peak.fma[dtype=fp32]", "launch.gap",
    }  # fmt: skip
    assert [ridge.flop_per_byte for ridge in chart.ridges] == sorted(ridge.flop_per_byte for ridge in chart.ridges)
    assert chart.title == "Roofline of NVIDIA H200: regressed"


def test_chart_of_report__shows_measured_or_needed_roofs_only() -> None:
    chart = chart_of_report(make_placed_report())
    assert [roof.key for roof in chart.memory] == ["dram"]
    assert {roof.key for roof in chart.compute} == {"fp32", "bf16-tensor"}


def test_chart_of_report__leaves_out_what_was_not_measured() -> None:
    report = make_placed_report()
    first = replace(report.cases[0], candidate_s=None, verdict=CaseVerdict.MISSING)
    chart = chart_of_report(replace(report, cases=(first, *report.cases[1:])))
    assert first.id not in {case.id for case in (*chart.points, *chart.rows)}


def test_chart_of_report__scales_intervals_in_cycles_to_time() -> None:
    report = make_placed_report()
    cycles = Estimate(value=1000.0, low=990.0, high=1020.0, confidence=0.95)
    case = replace(report.cases[0], candidate=cycles)
    found = chart_of_report(replace(report, cases=(case,))).rows[0]
    assert found.low_s == pytest.approx(0.99 * case.candidate_s)
    assert found.high_s == pytest.approx(1.02 * case.candidate_s)
    bare = replace(case, candidate=None, change=None, work=replace(case.work))
    assert chart_of_report(replace(report, cases=(bare,))).rows[0].low_s is None


def test_chart_of_run__says_recorded_and_rehearsed() -> None:
    run = replace(make_session(), device_kind="recorded", injected=(Injection(pattern="gemm.*", requested="+3%"),))
    footer = chart_of_run(run, measured_roofs(run, TABLE)).footer[-1]
    assert footer.startswith("RECORDED, not measured on this machine")
    assert "rehearsed: gemm.* +3%" in footer


def test_chart__of_a_partition_names_it() -> None:
    run = make_session()
    part = replace(run, gpu=replace(run.gpu, mig_profile="1g.18gb", ecc_enabled=None))
    footer = chart_of_run(part, measured_roofs(part, TABLE)).footer[0]
    assert "MIG 1g.18gb" in footer
    assert "ECC" not in footer


def test_chart_of_run__skips_cases_without_a_valid_launch() -> None:
    run = make_session()
    emptied = replace(run, launches=())
    assert chart_of_run(emptied, measured_roofs(emptied, TABLE)).points == ()
    assert len(chart_of_run(run, measured_roofs(run, TABLE)).points) == 3
