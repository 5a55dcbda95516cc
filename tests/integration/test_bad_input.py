"""What a person can get wrong: a message that says what and what to do, the right exit code, nothing half done."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.run import Run
from perfgate.storage import files
from perfgate.storage.documents import read_report, read_run, write_run
from tests.factories import make_run

RESULTS = Path("perfgate-results")
QUICK = ("--case", "launch.gap", "--launches", "3")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (["--device", "cuda"], 5, "", "--device recorded"),
        (["--device", "auto"], 5, "", "--device recorded"),
        (["--device", "cuda:99"], 5, "", ""),
        (["--device", "rocm"], 2, "'rocm' is unknown", "auto, cuda, cuda:N"),
        (["--device", "auto:1"], 2, "'auto:1' is unknown", "auto, cuda"),
        (["--device", "recorded:nothing.json.gz"], 3, "nothing.json.gz: does not exist", ""),
        (["--device", "recorded:."], 2, "no recorded session", ""),
        (["--device", "recorded:/"], 2, "no recorded session", ""),
    ],
)
@pytest.mark.parametrize("command", [["check"], ["run", "run.json"], ["baseline", "update", "--reason", "r"]])
def test_device__that_is_not_there_is_named(
    perfgate: Any, workplace: Path, command: list[str], arguments: list[str], code: int, message: str, hint: str
) -> None:
    if arguments[1].startswith(("cuda", "auto")) and Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU here")
    ending = perfgate(*command, *arguments)
    assert ending.code == code, ending.err
    assert message in ending.err
    assert hint in ending.err
    assert "Traceback" not in ending.err
    assert ending.out == ""
    assert contents(workplace) == {}


def test_device__a_recording_without_launches_has_no_case(perfgate: Any, workplace: Path) -> None:
    write_run(workplace / "empty.json", make_run({}))
    ending = perfgate("check", "--device", "recorded:empty.json", "--baseline", ".")
    assert ending.code == 2
    assert "was recorded" in ending.err


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--case", "bandwidh.copy"], "matches no case", "bandwidth.copy"),
        (["--case", ""], "matches no case", ""),
        (["--launches", "0"], "--launches 0", "at least 1"),
        (["--launches", "-3"], "--launches -3", "at least 1"),
        (["--launches", "1"], "could not prove any regression", "measure at least"),
        (["--inject", "bandwidth.copy=3%"], "slower (+) or faster (-)", "bandwidth.copy*=+3%"),
        (["--inject", "nothing=+3%"], "no case matches 'nothing'", ""),
        (["--inject", "*=+1000%"], "outside of what can be rehearsed", "+900%"),
        (["--inject", "*=+3%", "--inject", "launch.gap=-3%"], "is meant by", "one injection a case"),
        (["--inject", "bandwidth.copy"], "no case or no change", "hang"),
        (["--policy", "missing.toml"], "missing.toml", ""),
    ],
)
def test_check__wrong_options_are_named(
    perfgate: Any, device: str, baselines: Path, arguments: list[str], message: str, hint: str
) -> None:
    ending = perfgate("check", "--device", device, "--baseline", baselines, *arguments)
    assert ending.code in (2, 3), ending.err
    assert message in ending.err
    assert hint in ending.err
    assert "Traceback" not in ending.err
    assert not (RESULTS / "report.json").exists()


@pytest.mark.parametrize("launches", ["0", "-1"])
def test_run__of_no_launches_is_refused(perfgate: Any, device: str, workplace: Path, launches: str) -> None:
    ending = perfgate("run", "run.json", "--device", device, "--launches", launches)
    assert ending.code == 2
    assert "at least 1" in ending.err
    assert contents(workplace) == {}


def test_policy__that_is_malformed_measures_nothing(
    perfgate: Any, device: str, baselines: Path, workplace: Path
) -> None:
    (workplace / "perfgate.toml").write_text("launches = 6\nstages = [3\n")
    ending = perfgate("check", "--device", device, "--baseline", baselines)
    assert ending.code in (2, 3)
    assert "perfgate.toml" in ending.err
    assert not RESULTS.exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": "perfgate.baseline/99"}', b"\xff\xfe", b"NaN"])
def test_baseline__that_is_broken_is_named_and_left_alone(
    perfgate: Any, device: str, workplace: Path, content: bytes
) -> None:
    (workplace / "b").mkdir()
    (workplace / "b" / "broken.json").write_bytes(content)
    for arguments in (["check"], ["baseline", "update", "--reason", "r", "--launches", "1"]):
        ending = perfgate(*arguments, "--device", device, "--baseline", "b")
        assert ending.code == 3, ending.err
        assert "broken.json" in ending.err
        assert (workplace / "b" / "broken.json").read_bytes() == content
    assert not (RESULTS / "run.json").exists()


def test_output__that_is_a_file_is_left_alone(perfgate: Any, device: str, baselines: Path, workplace: Path) -> None:
    (workplace / "out").write_text("precious")
    for place in ("out", "out/below"):
        ending = perfgate("check", "--device", device, "--baseline", baselines, "--output", place)
        assert ending.code == 2
        assert f"--output {place} cannot be written" in ending.err
        assert "name a folder that can" in ending.err
    assert (workplace / "out").read_text() == "precious"


def test_output__that_holds_anything_else_is_left_alone(
    perfgate: Any, device: str, baselines: Path, workplace: Path
) -> None:
    (workplace / "out").mkdir()
    for name in ("thesis.tex", "run.json", "report.md"):
        (workplace / "out" / name).write_text("precious")
    ending = perfgate("check", "--device", device, "--baseline", baselines, "--output", "out")
    assert ending.code == 2
    assert "holds files that perfgate did not write: thesis.tex" in ending.err
    assert set(contents(workplace / "out").values()) == {b"precious"}


def test_output__of_an_earlier_check_is_replaced(perfgate: Any, device: str, baselines: Path) -> None:
    perfgate("check", "--device", device, "--baseline", baselines, *QUICK)
    (RESULTS / "confirmation.json").write_text("of an earlier check")
    first = json.loads((RESULTS / "report.json").read_text())
    perfgate("check", "--device", device, "--baseline", baselines, *QUICK, "--seed", "5")
    assert not (RESULTS / "confirmation.json").exists()
    assert json.loads((RESULTS / "report.json").read_text()) != first


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output__without_permission_is_named(perfgate: Any, device: str, baselines: Path, workplace: Path) -> None:
    (workplace / "out").mkdir(mode=0o500)
    ending = perfgate("check", "--device", device, "--baseline", baselines, "--output", "out")
    assert ending.code == 2
    assert "Permission denied" in ending.err


def with_a_full_disk(monkeypatch: pytest.MonkeyPatch, *parts: str) -> None:
    """Let the disk be full for files whose names hold one of these: half of each is written, then there is no space."""
    write_new = files._write_new

    def full(path: Path, data: bytes) -> None:
        if any(part in path.name for part in parts):
            path.write_bytes(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        write_new(path, data)

    monkeypatch.setattr(files, "_write_new", full)


@pytest.mark.parametrize(("injected", "code"), [((), 2), (("--inject", "launch.gap=crash"), 8)])
def test_full_disk__keeps_the_verdict_and_leaves_no_half_file(
    perfgate: Any,
    device: str,
    baselines: Path,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    injected: tuple[str, ...],
    code: int,
) -> None:
    with_a_full_disk(monkeypatch, "report.json")
    arguments = ("--case", "launch.gap", "--case", "bandwidth.read", "--launches", "3")
    ending = perfgate("check", "--device", device, "--baseline", baselines, *arguments, *injected)
    assert ending.code == code
    assert "report.json cannot be written: No space left on device" in ending.err
    assert "free some space" in ending.err
    assert ("PASSED" if not injected else "INVALID") in ending.out
    assert {path.name for path in RESULTS.iterdir()} <= {".gitignore", "run.json"}
    assert len(read_run(RESULTS / "run.json").launches) == 3


def test_full_disk__leaves_the_old_baseline(
    perfgate: Any, device: str, workplace: Path, recorded_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(workplace / "run.json.gz", recorded_run)
    update = ("baseline", "update", "--from", "run.json.gz", "--baseline", "b", "--force", "few launches", "--reason")
    assert perfgate(*update, "first").code == 0
    before = contents(workplace / "b")
    with_a_full_disk(monkeypatch, ".json")
    ending = perfgate(*update, "second")
    assert ending.code == 2, ending.err
    assert "No space left on device" in ending.err
    assert contents(workplace / "b") == before


@pytest.mark.parametrize("target", ["missing/run.json", "folder", "file/run.json"])
def test_run__that_cannot_be_written_is_told_before_anything_is_measured(
    perfgate: Any, device: str, workplace: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "folder").mkdir()
    (workplace / "file").write_text("")
    monkeypatch.setattr("perfgate.workflow.measuring.Session.measure_to", lambda *_: pytest.fail("it was measured"))
    ending = perfgate("run", target, "--device", device)
    assert ending.code == 2
    assert target in ending.err


def test_a_wrong_output__is_told_with_its_own_code(perfgate: Any, device: str, baselines: Path) -> None:
    ending = perfgate("check", "--device", device, "--baseline", baselines, *QUICK, "--inject", "*=wrong-output")
    assert ending.code == 6


def test_everything_failing__is_a_device_failure_that_names_the_reason(
    perfgate: Any, device: str, baselines: Path
) -> None:
    ending = perfgate("check", "--device", device, "--baseline", baselines, *QUICK, "--inject", "*=oom")
    assert ending.code in (5, 8)
    assert "out of memory" in ending.err + ending.out
    if ending.code == 8:
        assert read_report(RESULTS / "report.json").verdict == "invalid"
