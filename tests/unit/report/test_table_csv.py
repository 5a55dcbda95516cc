"""CSV: numbers in base units, nothing that a spreadsheet runs, every line complete in itself."""

import csv
import io
from dataclasses import replace

import pytest

from perfgate.core.report import CaseResult
from perfgate.core.verdict import CaseVerdict
from perfgate.report.table_csv import COLUMNS, render_csv
from tests.golden.reports import REPORTS, hostile, recorded_and_injected, regressed


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("situation", REPORTS)
def test_render_csv__has_one_line_a_case(situation: str) -> None:
    report = REPORTS[situation]()
    found = lines(render_csv(report))
    assert len(found) == len(report.cases) == render_csv(report).count("\n") - 1
    assert all(set(line) == set(COLUMNS) for line in found)


def test_render_csv__writes_numbers_in_base_units() -> None:
    line = next(one for one in lines(render_csv(regressed())) if one["case"] == "gemm.bf16[n=4096]")
    assert float(line["candidate_s"]) == pytest.approx(194.909e-6)
    assert (line["change"], line["change_low"], line["change_high"]) == ("0.034", "0.032", "0.036")
    assert (line["margin"], line["margin_source"]) == ("0.01", "same-chip-calibrated")
    assert (line["gated"], line["confirmed"], line["accepted"]) == ("true", "true", "")
    assert (line["bound"], line["causes"], line["work_flop"]) == ("compute", "compiler-changed", str(2 * 4096**3))


def test_render_csv__leaves_the_unknown_empty() -> None:
    bare = CaseResult(id="a.b", family="a", verdict=CaseVerdict.NEW, gated=False)
    line = lines(render_csv(replace(regressed(), cases=(bare,))))[0]
    assert line["gated"] == "false"
    for name in ("baseline_s", "change", "margin", "work_flop", "bound", "roof", "confirmed", "p_slower"):
        assert line[name] == ""


def test_render_csv__says_recorded_and_injected_in_every_line() -> None:
    for line in lines(render_csv(recorded_and_injected())):
        assert line["device_kind"] == "recorded"
        assert line["injected"] == "gemm.* +3% (ran +3.12 %); launch.gap hang"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", " =1", "\t=1", "\r\n=1"])
def test_render_csv__no_text_is_a_formula(name: str) -> None:
    report = replace(regressed(), cases=(replace(regressed().cases[0], id=name),))
    cell = lines(render_csv(report))[0]["case"]
    assert cell.startswith("'")
    assert cell.lstrip("' ").startswith(name.strip()[0])


def test_render_csv__negative_numbers_stay_numbers() -> None:
    improved = next(one for one in lines(render_csv(regressed())) if one["verdict"] == "improved")
    assert float(improved["change"]) == pytest.approx(-0.026)


def test_render_csv__keeps_hostile_text_in_its_cell() -> None:
    found = lines(render_csv(hostile()))
    assert [line["check_verdict"] for line in found] == ["regressed"] * 3
