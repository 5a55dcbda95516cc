"""The terminal's report: verdict first and last, what moved with its cause, nothing lost at any width."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report.terminal import QUIET_LISTED, render_terminal
from tests.golden.reports import (
    REPORTS,
    UNCHANGED,
    hundred_cases,
    make_report,
    not_comparable,
    passed,
    recorded_and_injected,
    regressed,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [60, 80, 109, 110, 130, 150, 200])
@pytest.mark.parametrize("situation", REPORTS)
def test_render_terminal__stays_within_the_width(situation: str, width: int) -> None:
    text = render_terminal(REPORTS[situation](), width=width, verbose=True)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("situation", REPORTS)
def test_render_terminal__says_the_verdict_first_and_last(situation: str) -> None:
    report = REPORTS[situation]()
    lines = render_terminal(report, width=200).splitlines()
    assert report.verdict.value.split("-")[0] in lines[0].lower() or "no comparable" in lines[0].lower()
    assert report.verdict.value.upper().replace("-", " ") in lines[-1]
    assert lines[-1].endswith(f"Exit {report.exit_code}.")


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("situation", REPORTS)
def test_render_terminal__colour_changes_no_text(situation: str, width: int) -> None:
    report = REPORTS[situation]()
    coloured = ANSI.sub("", render_terminal(report, width=width, color=True))
    plain = render_terminal(report, width=width)
    assert [line.rstrip() for line in coloured.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("situation", REPORTS)
def test_render_terminal__is_ascii_where_the_terminal_is(situation: str) -> None:
    assert render_terminal(REPORTS[situation](), unicode=False).isascii()


@pytest.mark.parametrize("width", [80, 200])
def test_render_terminal__says_recorded_and_injected_at_both_ends(width: int) -> None:
    lines = render_terminal(recorded_and_injected(), width=width).splitlines()
    for badge in ("RECORDED", "INJECTED"):
        assert badge in lines[0]
    assert "RECORDED INJECTED REGRESSED:" in "\n".join(lines[-2:])
    assert "RECORDED" not in render_terminal(regressed(), width=width)


@pytest.mark.parametrize("width", [80, 200])
def test_render_terminal__folds_quiet_cases_unless_verbose(width: int) -> None:
    short = render_terminal(hundred_cases(), width=width)
    assert "and 77 more unchanged, +0.02 % to +0.10 %" in short
    assert short.count("stride=") == QUIET_LISTED
    full = render_terminal(hundred_cases(), width=width, verbose=True)
    assert full.count("stride=") == 97
    assert "more unchanged" not in full


def test_render_terminal__folds_cases_without_changes_too() -> None:
    new = tuple(
        replace(UNCHANGED[0], id=f"a.b{i}", verdict=CaseVerdict.NEW, change=None) for i in range(QUIET_LISTED + 2)
    )
    text = render_terminal(make_report(new, CheckVerdict.NO_BASELINE, "", exit_code=4))
    assert "… and 2 more new\n" in text
    assert "confidence" not in text


def test_render_terminal__never_folds_what_failed() -> None:
    failed = tuple(replace(UNCHANGED[0], id=f"a.b{i}", verdict=CaseVerdict.REGRESSED) for i in range(60))
    text = render_terminal(make_report(failed, CheckVerdict.REGRESSED, "", exit_code=1))
    assert all(f"a.b{i} " in text for i in range(60))


def test_render_terminal__shows_more_columns_in_more_space() -> None:
    headings = {width: render_terminal(regressed(), width=width) for width in (80, 120, 140, 200)}
    assert "verdict" not in headings[80]
    assert "regressed (1)" in headings[80]
    assert "REGRESSED\n" in headings[120]
    assert "of its roof" in headings[140]
    assert "of its roof" not in headings[120]
    assert "baseline" in headings[200].splitlines()[5]
    assert "was 188.5 µs" in headings[140]
    assert "was 188.5 µs" not in headings[200]


def test_render_terminal__puts_causes_under_the_row() -> None:
    lines = render_terminal(regressed()).splitlines()
    row = next(index for index, line in enumerate(lines) if "gemm.bf16" in line)
    assert lines[row + 1].strip() == "was 188.5 µs, 729 TFLOP/s · confirmed by fresh launches"
    assert lines[row + 2].strip().startswith("cause: same source")


@pytest.mark.parametrize("width", [80, 200])
def test_render_terminal__says_once_what_holds_for_a_whole_group(width: int) -> None:
    text = render_terminal(not_comparable(), width=width)
    assert text.count("the baseline is of another board") == 1
    assert "    all 2: the baseline is of another board\n" in text


def test_render_terminal__dims_what_is_not_gated() -> None:
    line = next(one for one in render_terminal(passed(), color=True).splitlines() if "launch.submit" in one)
    assert line.startswith("  \x1b[2mlaunch.submit")


def test_render_terminal__says_accepted_at_both_ends() -> None:
    lines = render_terminal(REPORTS["accepted"](), color=True).splitlines()
    assert lines[0].startswith("\x1b[33m▌ ")
    assert ANSI.sub("", lines[0]) == "▌ REGRESSED on NVIDIA H200, accepted"
    assert ANSI.sub("", lines[-1]) == "REGRESSED, accepted: 1 regressed, 4 unchanged. Exit 0."


def test_render_terminal__says_who_acts_and_what_next() -> None:
    text = render_terminal(regressed())
    assert "Who acts     a maintainer\n" in text
    assert "Next         Look at the change" in text
    assert "Differs      CUDA toolkit 13.1 (baseline 13.0)\n" in text
    assert "Who acts     nobody\n" in render_terminal(passed())


def test_render_terminal__verbose_prints_the_effective_policy() -> None:
    assert "alpha: 0.01" in render_terminal(passed(), verbose=True)
    assert "alpha: 0.01" not in render_terminal(passed())


def test_render_terminal__without_cases_has_no_table() -> None:
    report: Report = make_report((), CheckVerdict.INVALID, "Nothing was judged.", exit_code=8)
    assert "case " not in render_terminal(report)
    assert "INVALID: no cases. Exit 8." in render_terminal(report)


def test_render_terminal__without_a_summary_still_says_the_verdict() -> None:
    assert render_terminal(replace(passed(), summary="")).startswith("▌ PASSED on NVIDIA H200\n▌ NVIDIA H200 · board")
