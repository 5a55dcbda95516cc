"""What a worker does: a command of its own, its document, or why there is none."""

import signal
import sys
from pathlib import Path

import pytest

from perfgate.cluster import task
from perfgate.cluster.task import Order, measured_here

PYTHON = sys.executable


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the interpreter: a script that gets what the interpreter would get."""
    script = tmp_path / "interpreter"
    monkeypatch.setattr(task.sys, "executable", str(script))
    return script


def write(script: Path, body: str) -> None:
    script.write_text(f"#!{PYTHON}\nimport os, signal, sys, time\npath = sys.argv[4]\n{body}\n")
    script.chmod(0o755)


def test_measured_here__sends_the_document_that_the_command_wrote(program: Path) -> None:
    write(program, "open(path, 'wb').write(' '.join(sys.argv[1:4] + sys.argv[5:]).encode())")
    sent = measured_here(Order(arguments=("--device", "recorded"), timeout_s=30))
    assert sent.document == b"-m perfgate run --device recorded --quiet --no-color"
    assert (sent.failure, sent.exit_code) == (None, 0)


def test_measured_here__hands_over_baselines_and_variables(program: Path) -> None:
    write(program, "place = sys.argv[6]\nopen(path, 'w').write(open(place + '/b.json').read() + os.environ['MARK'])")
    order = Order(arguments=(), timeout_s=30, variables={"MARK": "!"}, baselines={"b.json": b"{}"})
    assert measured_here(order).document == b"{}!"


def test_measured_here__a_baseline_s_name_leads_nowhere_else(program: Path) -> None:
    write(program, "open(path, 'w').write(','.join(os.listdir(sys.argv[6])))")
    assert (
        measured_here(Order(arguments=(), timeout_s=30, baselines={"../../evil.json": b"{}"})).document == b"evil.json"
    )


def test_measured_here__tells_the_error_that_the_command_told(program: Path) -> None:
    write(program, "print('perfgate: error: no CUDA device', file=sys.stderr); sys.exit(5)")
    sent = measured_here(Order(arguments=(), timeout_s=30))
    assert (sent.document, sent.failure, sent.exit_code) == (None, "no CUDA device (exit 5)", 5)


def test_measured_here__a_command_that_succeeds_without_a_document_failed(program: Path) -> None:
    write(program, "print('odd', file=sys.stderr)")
    assert measured_here(Order(arguments=(), timeout_s=30)).failure == "odd (exit 0)"


def test_measured_here__one_that_hangs_is_asked_to_end_and_keeps_what_it_has(program: Path) -> None:
    write(
        program,
        "signal.signal(signal.SIGTERM, lambda *_: (open(path, 'w').write('part'), sys.exit(130)))\ntime.sleep(60)",
    )
    sent = measured_here(Order(arguments=(), timeout_s=1.0))
    assert sent.failure == "it did not end within 1 s"
    assert sent.document in (b"part", None)


def test_measured_here__one_that_will_not_end_is_ended(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_GRACE_S", 0.2)
    write(program, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)")
    sent = measured_here(Order(arguments=(), timeout_s=0.5))
    assert (sent.document, sent.exit_code) == (None, -signal.SIGKILL)


def test_measured_here__an_interpreter_that_is_not_there_is_named(program: Path) -> None:
    assert "cannot be started" in (measured_here(Order(arguments=(), timeout_s=5)).failure or "")
