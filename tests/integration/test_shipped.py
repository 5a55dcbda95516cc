"""What ships with perfgate, as a person meets it first: the recorded sessions and their baseline."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.resources import resource_folder
from perfgate.storage.baselines import list_baselines
from perfgate.storage.documents import read_report, read_run
from perfgate.workflow.devices import recording, recordings_folder

RECORDINGS = sorted(recordings_folder().glob("*.json.gz"))
BASELINES = list_baselines(resource_folder("baselines"))
needs_recordings = pytest.mark.skipif(not RECORDINGS, reason="no recorded session ships yet")
needs_baselines = pytest.mark.skipif(not BASELINES, reason="no baseline ships yet")


@needs_recordings
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_recordings__are_of_real_gpus_and_whole(path: Path) -> None:
    run = read_run(path)
    assert run.device_kind == "cuda"
    assert run.injected == ()
    # The full suite takes a minute a launch: what ships of it shows its cases, and proves nothing.
    assert len(run.launches) >= (2 if run.suite_name == "full" else 6)
    assert all(launch.failure is None and not launch.failures for launch in run.launches)
    assert run.gpu.chip is not None
    assert all(case.output_verified for launch in run.launches for case in launch.cases.values())


@needs_recordings
def test_recordings__are_small_enough_to_be_read_by_every_launch() -> None:
    assert sum(path.stat().st_size for path in RECORDINGS) < 2e6
    assert recording(recordings_folder()).cases


@needs_baselines
def test_baselines__ship_for_the_gpu_that_is_replayed() -> None:
    gpu = recording(recordings_folder()).runs[0].gpu
    assert gpu.board_part_number in {stored.baseline.gpu.board_part_number for stored in BASELINES}
    assert all(session.provenance.reason for stored in BASELINES for session in stored.baseline.sessions)


@needs_recordings
@needs_baselines
def test_check__on_a_machine_without_a_gpu_passes(perfgate: Any) -> None:
    ending = perfgate("check", "--device", "recorded")
    report = read_report(Path("perfgate-results/report.json"))
    assert ending.code == 0, ending.out
    assert report.verdict is CheckVerdict.PASSED
    assert not [case.id for case in report.cases if case.verdict in (CaseVerdict.NEW, CaseVerdict.MISSING)]
    assert "RECORDED" in ending.out
    assert "RECORDED" in Path("perfgate-results/report.md").read_text(encoding="utf-8")


@needs_recordings
@needs_baselines
@pytest.mark.parametrize("pattern", ["bandwidth.copy", "gemm.fp32"])
def test_check__rehearses_a_regression_of_two_percent(perfgate: Any, pattern: str) -> None:
    ending = perfgate("check", "--device", "recorded", "--inject", f"{pattern}=+2%", "--json")
    report = json.loads(ending.out)
    slower = [case["id"] for case in report["cases"] if case["verdict"] == "regressed"]
    assert ending.code == 1, ending.err
    assert len(slower) == 1
    assert slower[0].startswith(pattern)
    assert report["device_kind"] == "recorded"
    assert [one["requested"] for one in report["injected"]] == ["+2%"]


@needs_recordings
@needs_baselines
def test_check__of_the_defaults_fits_into_its_time(perfgate: Any) -> None:
    perfgate("check", "--device", "recorded", "--quiet")
    measured_s = read_report(Path("perfgate-results/report.json")).measured_s
    assert measured_s is not None
    assert measured_s < 60


@needs_recordings
@pytest.mark.parametrize("launches", [1, 2])
def test_run__of_recordings_says_that_nothing_was_measured(perfgate: Any, launches: int) -> None:
    ending = perfgate("run", "run.json", "--device", "recorded", "--launches", launches)
    run = read_run(Path("run.json"))
    assert ending.code == 0, ending.err
    assert (run.device_kind, len(run.launches)) == ("recorded", launches)
    assert "RECORDED" in ending.out
