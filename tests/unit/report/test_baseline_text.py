"""Baselines at the terminal and in the pull request that proposes them."""

from dataclasses import replace

import pytest

from perfgate.core.baseline import Baseline, CalibratedMargin
from perfgate.core.baseline_change import baseline_difference
from perfgate.core.case import Timing, Unit
from perfgate.report.baseline_markdown import render_baseline_change_markdown
from perfgate.report.baseline_text import render_baseline, render_baseline_change, render_baseline_list
from tests.factories import H200, make_baseline, make_session, make_session_case
from tests.golden.reports import HOSTILE

COPY, READ = "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]"
MARGIN = CalibratedMargin(relative=0.004, sessions=4, same_chip=True)
FIRST = make_session({COPY: 2.03e-3})
SECOND = make_session({COPY: 2.05e-3, READ: 1.9e-3}, recorded_utc="2026-11-30T12:00:00Z")


def two_sessions() -> Baseline:
    return make_baseline(FIRST, SECOND, margins={COPY: MARGIN})


def test_render_baseline__shows_sessions_and_cases() -> None:
    lines = render_baseline(two_sessions()).splitlines()
    assert lines[0] == "▌ BASELINE of NVIDIA H200"
    assert lines[1] == "▌ 2 sessions"
    assert any("692-2G520-0282-000" in line for line in lines[2:6])
    assert "  2026-11-29T12:00:00Z  3f9c21aa        12  580.159.04  13.0" in lines
    assert "    first session" in lines
    assert f"  {COPY}  2.040 ms  4.21 TB/s   0.69 %   0.4 %" in lines
    assert f"  {READ}  1.900 ms  4.52 TB/s" in lines
    assert f"  {COPY}  2.040 ms  4.21 TB/s         2   0.69 %   0.4 %" in render_baseline(two_sessions(), width=100)


def test_render_baseline__shows_spread_within_launches_and_no_rate_of_the_host() -> None:
    host = make_session_case(7e-6, within_spread=0.021, timing=Timing.SUBMIT, gated=False)
    text = render_baseline(make_baseline(make_session({}, cases={"launch.submit": host})), color=True)
    line = next(one for one in text.splitlines() if "launch.submit" in one)
    assert "2.10 %" in line
    assert "B/s" not in line
    assert "\x1b[2m" in line


def test_render_baseline__says_recorded_forced_and_by_whom() -> None:
    made = replace(
        FIRST.provenance,
        device_kind="recorded",
        forced="the GPU was busy",
        actor="someone",
        runner="gpu-1",
        commit="abc",
    )
    text = render_baseline(make_baseline(replace(FIRST, provenance=made, chip=None)))
    assert text.splitlines()[0].endswith("  RECORDED")
    assert "RECORDED: not measured on a GPU" in text
    assert "forced: the GPU was busy" in text
    assert "by someone on gpu-1" in text
    assert "unknown" in text


def test_render_baseline_list__is_one_line_a_file() -> None:
    text = render_baseline_list([("h200.json", two_sessions()), ("new.json", Baseline(gpu=H200, sessions=()))])
    assert "  h200.json     NVIDIA H200  692-2G520-0282-000         2      1  2026-11-30\n" in text
    assert "  new.json      NVIDIA H200  692-2G520-0282-000         0      0\n" in text


def test_render_baseline_list__says_so_where_there_is_none() -> None:
    assert render_baseline_list([]) == "no baselines\n"


def test_render_baseline_change__tells_sessions_cases_and_margins() -> None:
    text = render_baseline_change(baseline_difference(make_baseline(FIRST), two_sessions()))
    assert text.startswith("1 session added\n")
    assert f"  {COPY}  2.030 ms  2.040 ms  +0.49 %\n" in text
    assert f"  {READ}      none  1.900 ms\n" in text
    assert f"Margins      {COPY}: none to 0.4 %, this chip\n" in text


def test_render_baseline_change__tells_removals_identity_and_fields() -> None:
    other = replace(H200, board_part_number="692-2G520-0282-001")
    later = make_session({}, cases={COPY: make_session_case(2.03e-3, version=2)}, recorded_utc="2026-12-01T00:00:00Z")
    after = make_baseline(later, gpu=other, margins={COPY: replace(MARGIN, same_chip=False)})
    text = render_baseline_change(baseline_difference(replace(two_sessions(), sessions=(FIRST,)), after))
    assert "1 session removed" in text
    assert "Identity     board 692-2G520-0282-001 (baseline 692-2G520-0282-000)" in text
    assert "version 2 (baseline 1)" in text
    assert "0.4 %, this chip to 0.4 %, other chips" in text


def test_render_baseline_change__of_sessions_alone_has_no_table_of_cases() -> None:
    again = replace(FIRST, provenance=replace(FIRST.provenance, recorded_utc="2026-12-01T00:00:00Z"))
    text = render_baseline_change(baseline_difference(make_baseline(FIRST), make_baseline(FIRST, again)))
    assert "before" not in text


def test_render_baseline_change__says_where_nothing_changes() -> None:
    same = baseline_difference(two_sessions(), two_sessions())
    assert render_baseline_change(same) == "no difference\n"
    assert "Nothing changes." in render_baseline_change_markdown(same, H200)


def test_render_baseline_change__of_cycles_is_in_cycles() -> None:
    def session(cycles: float, when: str) -> object:
        case = make_session_case(2e-3, unit=Unit.CYCLES, launch_cycles=(cycles,) * 12)
        return make_session({}, cases={COPY: case}, recorded_utc=when)

    before = make_baseline(session(4e6, "2026-11-29T00:00:00Z"))  # type: ignore[arg-type]
    after = make_baseline(session(4.1e6, "2026-11-30T00:00:00Z"))  # type: ignore[arg-type]
    assert "4e+06 cycles  4.1e+06 cycles  +2.50 %" in render_baseline_change(baseline_difference(before, after))


def test_render_baseline_change_markdown__is_the_before_and_after_with_reasons() -> None:
    difference = baseline_difference(make_baseline(FIRST), two_sessions())
    text = render_baseline_change_markdown(difference, H200, run_url="https://ci.example/run/7")
    assert text.startswith("### perfgate: baseline of NVIDIA H200 · board 692-2G520-0282-000")
    assert "| session added | chip |" in text
    assert "| first session |" in text
    assert f"| `{COPY}` | 2.030\u00a0ms | 2.040\u00a0ms | +0.49\u00a0% |" in text
    assert f"| `{READ}` | none | 1.900\u00a0ms |  |" in text
    assert "0.4 %, this chip" in text
    assert text.endswith('<sub><a href="https://ci.example/run/7">run</a></sub>\n')


def test_render_baseline_change_markdown__names_what_differs_and_escapes_it() -> None:
    other = replace(H200, name=HOSTILE)
    later = make_session({}, cases={COPY: make_session_case(2e-3, version=2)}, recorded_utc="2026-12-01T00:00:00Z")
    later = replace(later, provenance=replace(later.provenance, reason=HOSTILE), chip=None)
    text = render_baseline_change_markdown(
        baseline_difference(make_baseline(FIRST), make_baseline(later, gpu=other)), other
    )
    assert "version 2 (baseline 1)" in text
    assert "session removed" in text
    assert "<img" not in text
    assert "@octocat" not in text


@pytest.mark.parametrize("limit_bytes", [600, 2000, 20_000])
def test_render_baseline_change_markdown__fits_and_keeps_what_moved_most(limit_bytes: int) -> None:
    many = {f"a.b[x={index}]": 1e-3 for index in range(500)}
    moved = many | {"a.b[x=77]": 2e-3}
    before = make_baseline(make_session(many))
    after = make_baseline(make_session({name: value * 1.0001 for name, value in moved.items()}))
    text = render_baseline_change_markdown(baseline_difference(before, after), H200, limit_bytes=limit_bytes)
    assert len(text.encode()) <= limit_bytes or "a.b" not in text
    assert "more cases changed._" in text
    if "a.b" in text:
        assert "a.b[x=77]" in text
