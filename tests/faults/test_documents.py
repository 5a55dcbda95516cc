"""Writers are killed and race, disks fill, documents arrive damaged: nothing is lost, nothing half-written."""

import importlib.util
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from perfgate.errors import DocumentError
from perfgate.storage.documents import (
    read_baseline,
    read_run,
    render_baseline_json,
    render_report_json,
    render_run_json,
    write_run,
)
from perfgate.storage.files import LOCK_NAME
from tests.factories import make_baseline, make_run, make_session
from tests.golden.reports import no_baseline, regressed

WRITER = Path(__file__).with_name("document_writer.py")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FUZZER, CRASHER = BENCHMARKS / "fuzz_documents.py", BENCHMARKS / "crash_baselines.py"
RUN = Path(__file__).resolve().parents[1] / "data" / "run-1.json"
KILLS = 30


def loaded(script: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(script.stem, script)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def start(verb: str, path: Path, *rest: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), verb, str(path), *rest], stdout=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str], after_s: float) -> list[str]:
    """Kill a writer some time after its first word; return its words."""
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(after_s)  # the moment of death is what varies, not what is waited for
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    return [first.strip(), *rest.split()]


@pytest.mark.slow
def test_write_run__leaves_a_whole_document_whenever_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    chance = random.Random(1)
    for _ in range(KILLS // 2):
        kill(start("write_for_ever", path), chance.uniform(0, 0.03))
        assert len(read_run(path).launches) in (1, 41, 81)


@pytest.mark.slow
def test_update_baseline__keeps_every_session_that_a_killed_updater_had_stored(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    chance = random.Random(2)
    for _ in range(KILLS // 2):
        path.unlink(missing_ok=True)
        stored = kill(start("update_for_ever", path), chance.uniform(0, 0.05))
        chips = [session.chip for session in read_baseline(path).sessions]
        # The last one may have been stored before it could be named; the updater keeps 41.
        assert chips in (stored[-41:], [*stored, f"{len(stored):08x}"][-41:])
    start("add_sessions", path, "4096", "1").communicate()
    assert read_baseline(path).sessions[-1].chip == "00001000"
    assert {one.name for one in tmp_path.iterdir()} == {"baseline.json", LOCK_NAME}, "a killed writer's rest stayed"


def test_update_baseline__loses_no_session_of_two_processes(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    updaters = [start("add_sessions", path, str(first), "15") for first in (0, 15)]
    for updater in updaters:
        updater.communicate()
        assert updater.returncode == 0
    assert {session.chip for session in read_baseline(path).sessions} == {f"{number:08x}" for number in range(30)}


def test_write_run__says_that_there_is_no_room_and_keeps_the_old_document(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_run(path, make_run({"launch.gap": [1e-6]}))
    words, _ = start("write_without_room", path).communicate()
    assert "run.json cannot be written: File too large" in words
    assert len(read_run(path).launches) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_read_run__sees_one_whole_document_or_the_other_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    writer = start("write_for_ever", path)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        sizes: set[int] = set()
        deadline_s = time.monotonic() + 30
        while len(sizes) < 3 and time.monotonic() < deadline_s:
            sizes.add(len(read_run(path).launches))
    finally:
        writer.kill()
        writer.communicate()
    assert sizes <= {1, 41, 81}
    assert len(sizes) > 1


def test_readers__raise_nothing_but_document_errors_for_damaged_documents(tmp_path: Path) -> None:
    fuzzer = loaded(FUZZER)
    seeds = [
        render_run_json(make_run({"launch.gap": [1e-6], "bandwidth.copy[bytes=4GiB]": [2e-3]})).encode(),
        render_baseline_json(make_baseline(make_session({"launch.gap": 1e-6}), make_session({}))).encode(),
        *(render_report_json(report).encode() for report in (regressed(), no_baseline())),
    ]
    outcomes = fuzzer.fuzz(seeds, count=500, seed=7, folder=tmp_path)
    assert outcomes["refused"] > 300
    assert min(outcomes["read"], outcomes["exit 0"]) > 10, (
        "the damage is so heavy that nothing deeper than JSON is tried"
    )


def test_read_run__names_a_file_that_vanishes(tmp_path: Path) -> None:
    (tmp_path / "run.json").symlink_to(tmp_path / "gone.json")
    with pytest.raises(DocumentError, match="does not exist"):
        read_run(tmp_path / "run.json")


@pytest.mark.slow
def test_updates_of_four_writers__lose_nothing_when_they_are_killed(tmp_path: Path) -> None:
    crasher = loaded(CRASHER)
    counts = crasher.crash(RUN, tmp_path, kills=4, seed=3)
    assert counts["kills"] == 4
    assert counts["stored"] > 0
    assert read_baseline(next(tmp_path.glob("*.json"))).sessions
