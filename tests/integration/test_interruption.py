"""Ctrl-C and requests to end in the middle of a real check: what was measured is kept, no process is left."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.storage.documents import read_run
from tests.integration.conftest import started_command

# A busy machine starts a process in seconds.
PATIENCE_S = 60.0


def awaited(process: "subprocess.Popen[str]", condition: Callable[[], object]) -> None:
    """Wait until a running process has come somewhere; say what it said if it ends before."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > end_s:
            process.kill()
            pytest.fail(f"the process never came so far:\n{process.communicate()[1]}")
        time.sleep(0.02)


def process_ids(journals: Path) -> list[int]:
    """The processes of all launches so far, by their own account."""
    found = []
    for journal in journals.glob("perfgate-*/launch-*.jsonl"):
        first = journal.read_text().partition("\n")[0]
        if first:
            found.append(json.loads(first)["pid"])
    return found


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.fixture
def environment(workplace: Path) -> dict[str, str]:
    """Of a process whose journals can be watched."""
    (workplace / "temporary").mkdir()
    return os.environ | {"TMPDIR": str(workplace / "temporary")}


@pytest.mark.parametrize(
    ("command", "number"),
    [("check", signal.SIGINT), ("check", signal.SIGTERM), ("check", signal.SIGHUP), ("run", signal.SIGINT)],
)
def test_interruption__keeps_what_was_measured_and_leaves_no_process(
    device: str, baselines: Path, workplace: Path, environment: dict[str, str], command: str, number: signal.Signals
) -> None:
    (workplace / "perfgate.toml").write_text("launches = 500\nstages = [500]\n")
    arguments = {
        "check": ["check", "--device", device, "--baseline", baselines],
        "run": ["run", "run.json", "--device", device, "--launches", "500"],
    }
    process = started_command(*arguments[command], cwd=workplace, environment=environment)
    journals = workplace / "temporary"
    awaited(process, lambda: any('"case"' in one.read_text() for one in journals.glob("perfgate-*/*.jsonl")))
    children = process_ids(journals)
    process.send_signal(number)
    _, messages = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, messages
    assert children
    assert not any(map(is_alive, children))
    assert "Traceback" not in messages
    file = workplace / ("perfgate-results/run.json" if command == "check" else "run.json")
    kept = read_run(file)
    assert any(launch.cases for launch in kept.launches)
    assert f"kept in {file.relative_to(workplace)}" in messages
    assert list(journals.iterdir()) == []
    assert not list(workplace.rglob("*.part"))


def test_interruption__before_the_first_result_keeps_nothing(
    device: str, workplace: Path, environment: dict[str, str]
) -> None:
    process = started_command("run", "run.json", "--device", device, cwd=workplace, environment=environment)
    awaited(process, lambda: list((workplace / "temporary").glob("perfgate-*")))
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, messages
    assert not (workplace / "run.json").exists() or any(one.cases for one in read_run(workplace / "run.json").launches)
