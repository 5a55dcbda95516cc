import io
import sys
from typing import Any

import pytest

from perfgate.cli.progress import TerminalProgress
from perfgate.workflow.listener import Listener


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr; not a fixture, since the capture of tests takes stderr back after the set-up."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def measured(progress: Listener) -> None:
    """What a session of two launches tells."""
    progress.begins(2, 3)
    progress.progresses(0, 1, "gemm.fp32[n=4096]", "block")
    progress.notices("launch 0: it was run twice [/dim]")
    progress.progresses(1, 2, "gemm.fp32[n=4096]", "verify")
    progress.ends()


def test_progress__on_a_terminal_says_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    measured(TerminalProgress(quiet=False))
    text = stream.getvalue()
    assert "launches" in text
    assert "2/2" in text
    assert "gemm.fp32[n=4096] verify" in text  # brackets of ids are no markup
    assert "perfgate: launch 0: it was run twice [/dim]" in text


def test_progress__goes_on_over_the_stages_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    progress = TerminalProgress(quiet=False)
    measured(progress)
    measured(progress)
    progress.ends()
    assert stream.getvalue().count("2/2") >= 2


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress__quiet_says_nothing(monkeypatch: pytest.MonkeyPatch, stream: Any) -> None:
    made = stream()
    monkeypatch.setattr(sys, "stderr", made)
    measured(TerminalProgress(quiet=True))
    assert made.getvalue() == ""


def test_progress__in_a_log_is_notices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    measured(TerminalProgress(quiet=False))
    assert log.getvalue() == "perfgate: launch 0: it was run twice [/dim]\n"
