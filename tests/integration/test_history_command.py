"""``perfgate history`` over real folders: recorded sessions, mixed GPUs, damaged files, nothing at all."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.cli.main import run as command
from perfgate.core.run import Block, CaseLaunch, Injection, Run
from perfgate.errors import ExitCode
from perfgate.storage.documents import read_run, write_baseline, write_run
from tests.factories import H200, make_baseline, make_run, make_trend_sessions

COPY = "bandwidth.copy[bytes=4GiB]"
RECORDINGS = Path(__file__).parents[2] / "perfgate" / "data" / "recordings"
RECORDED = RECORDINGS / "nvidia-h200-000-d.json.gz"


def slowed(run: Run, case_id: str, factor: float) -> Run:
    """A run of which one case took longer."""

    def block(one: Block) -> Block:
        return replace(one, times_s=tuple(time_s * factor for time_s in one.times_s))

    def case(one: CaseLaunch) -> CaseLaunch:
        return replace(one, blocks=tuple(map(block, one.blocks)))

    launches = tuple(
        replace(launch, cases={key: case(one) if key == case_id else one for key, one in launch.cases.items()})
        for launch in run.launches
    )
    return replace(run, launches=launches)


def recorded_sessions(count: int) -> Iterator[Run]:
    """Sessions of one launch fewer than the recording each: what was measured on a real H200, split by launches."""
    run = read_run(RECORDED)
    size = len(run.launches) // count
    for index in range(count):
        launches = run.launches[index * size : (index + 1) * size]
        yield replace(run, launches=launches, created_utc=f"2026-11-{index + 1:02d}T00:00:00Z")


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return {one["id"]: one for chip in json.loads(capsys.readouterr().out)["chips"] for one in chip["trends"]}


def test_history__of_recorded_sessions_of_unchanged_code_is_steady(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for index, run in enumerate(recorded_sessions(4)):
        write_run(tmp_path / f"run-{index}.json.gz", run)
    assert command(["history", str(tmp_path), "--json"]) == 0
    trends = found(capsys)
    assert len(trends) == 11
    gated = [one for one in trends.values() if one["gated"]]
    assert len(gated) == 7
    assert not [one["id"] for one in gated if one["drift"] or any(change["is_step"] for change in one["changes"])]
    assert {len(one["points"]) for one in gated} == {4}


def test_history__of_recorded_sessions_finds_a_planted_step_and_a_planted_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real noise: a step of 1 % of the copy in the third session, the matrix product 0.4 % slower in each."""
    for index, run in enumerate(recorded_sessions(4)):
        changed = slowed(run, COPY, 1.01 if index >= 2 else 1.0)
        write_run(tmp_path / f"run-{index}.json", slowed(changed, "gemm.fp32[n=4096]", 1.004**index))
    assert command(["history", str(tmp_path), "--json"]) == 0
    trends = found(capsys)
    (step,) = [one for one in trends[COPY]["changes"] if one["is_step"]]
    assert step["at"] == 2
    assert step["change"]["value"] == pytest.approx(0.01, abs=1e-3)
    drift = trends["gemm.fp32[n=4096]"]["drift"]
    assert drift["change"]["value"] == pytest.approx(0.012, abs=1e-3)
    assert drift["largest_step"] < 0.01
    assert command(["history", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "1 drifted, 1 stepped, 5 steady" in text
    assert "slow drift: +1.1" in text or "slow drift: +1.2" in text


def test_history__of_the_folder_of_a_check_counts_its_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["check", "--device", "recorded", "--quiet", "--case", "bandwidth.*"]) == 0
    capsys.readouterr()
    assert command(["history", "perfgate-results", "--json"]) == 0
    (chip,) = json.loads(capsys.readouterr().out)["chips"]
    assert len(chip["sessions"]) == 1
    assert chip["device_kind"] == "recorded"


def test_check__shows_the_history_of_its_chip_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--device", "recorded", "--quiet", "--case", "bandwidth.*"]
    assert command(["baseline", "update", *options, "--reason", "first", "--baseline", "own"]) == 0
    assert command(["check", *options, "--baseline", "own"]) == 0
    page = Path("perfgate-results/report.html").read_text(encoding="utf-8")
    assert "How the cases moved" in page
    assert "2 sessions" in page


def test_history__keeps_gpus_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "one.json", make_run({COPY: [2e-3] * 6}))
    other = replace(H200, board_part_number="692-2G520-0282-001", chip="another")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    write_run(tmp_path / "deep" / "er" / "two.json.gz", make_run({COPY: [3e-3] * 6}, gpu=other))
    assert command(["history", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.count("HISTORY of NVIDIA H200") == 2
    assert text.count("A trend needs two sessions at least.") == 2


def test_history__names_a_damaged_file_shows_the_others_and_exits_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_baseline(tmp_path / "good.json", make_baseline(*make_trend_sessions({COPY: [0.0, 0.02]})))
    (tmp_path / "cut.json").write_text('{"format": "perfgate.run/1", "cases', encoding="utf-8")
    (tmp_path / "foreign.json").write_text('{"name": "left-pad"}', encoding="utf-8")
    assert command(["history", str(tmp_path)]) == ExitCode.DOCUMENT
    seen = capsys.readouterr()
    assert "1 stepped" in seen.out
    assert "cut.json" in seen.err
    assert "foreign.json" in seen.err
    assert seen.err.count("left out") == 2


def test_history__of_damaged_files_alone_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.json").write_text("{", encoding="utf-8")
    assert command(["history", str(tmp_path)]) == ExitCode.DOCUMENT
    assert "cut.json" in capsys.readouterr().err


def test_history__of_an_empty_folder_exits_2_and_says_what_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["history", str(tmp_path)]) == ExitCode.USAGE
    assert "no run and no baseline in" in capsys.readouterr().err


def test_history__of_what_does_not_exist_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["history", str(tmp_path / "nowhere")]) == ExitCode.DOCUMENT
    assert "does not exist" in capsys.readouterr().err


def test_history__leaves_a_rehearsal_out_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run({COPY: [2e-3] * 6})
    write_run(tmp_path / "run.json", run)
    injected = (Injection(pattern="*", requested="+3%"),)
    write_run(tmp_path / "rehearsal.json", replace(run, injected=injected, created_utc="2026-12-01T00:00:00Z"))
    assert command(["history", str(tmp_path), "--json"]) == 0
    seen = capsys.readouterr()
    assert "rehearsal.json: a rehearsal is no baseline" in seen.err
    assert len(json.loads(seen.out)["chips"][0]["sessions"]) == 1
    assert command(["history", str(tmp_path / "rehearsal.json")]) == ExitCode.USAGE


def test_history__of_an_unknown_case_exits_2_and_names_near_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "run.json", make_run({COPY: [2e-3] * 6}))
    assert command(["history", str(tmp_path), "--case", "bandwidth.cpy"]) == ExitCode.USAGE
    assert COPY in capsys.readouterr().err


def test_history__follows_no_link_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    write_run(outside / "run.json", make_run({COPY: [2e-3] * 6}))
    (inside / "link.json").symlink_to(outside / "run.json")
    (inside / "folder").symlink_to(outside)
    assert command(["history", str(inside)]) == ExitCode.USAGE


def test_history__writes_picture_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_baseline(tmp_path / "good.json", make_baseline(*make_trend_sessions({COPY: [0.0, 0.02]})))
    svg, html = tmp_path / "trend.svg", tmp_path / "trend.html"
    assert command(["history", str(tmp_path / "good.json"), "--svg", str(svg), "--html", str(html), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert svg.read_text(encoding="utf-8").startswith("<svg")
    assert "<!doctype html>" in html.read_text(encoding="utf-8")
    nowhere = str(tmp_path / "none" / "trend.svg")
    assert command(["history", str(tmp_path / "good.json"), "--svg", nowhere]) == ExitCode.USAGE


def test_report__with_a_history_of_another_chip_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from perfgate.storage.documents import write_report
    from tests.golden.reports import regressed

    report = regressed()
    write_report(tmp_path / "report.json", report)
    write_run(tmp_path / "other.json", make_run({COPY: [2e-3] * 6}, gpu=replace(report.gpu, chip="another")))
    write_run(tmp_path / "own.json", make_run({COPY: [2e-3] * 6}, gpu=report.gpu))
    arguments = ["report", str(tmp_path / "report.json"), "--format", "html", "--history"]
    assert command([*arguments, str(tmp_path / "other.json")]) == ExitCode.USAGE
    assert "no session of this report's chip" in capsys.readouterr().err
    assert command([*arguments, str(tmp_path / "own.json")]) == 0
    assert "How the cases moved" in capsys.readouterr().out
