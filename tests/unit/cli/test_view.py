import io
import os
import sys
from typing import Any

import pytest

from perfgate.cli.view import current_view, open_streams, show, tell


class Stream(io.TextIOWrapper):
    """A stream of some encoding, that is a terminal or not."""

    def __init__(self, encoding: str = "utf-8", *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("columns", "width"),
    [("", 120), ("80", 80), ("60", 60), ("59", 120), ("-80", 120), ("abc", 120), ("9999", 1000), ("9" * 5000, 120)],
)
def test_current_view__of_a_pipe_is_as_wide_as_columns_says(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setattr(sys, "stdout", Stream())
    monkeypatch.setenv("COLUMNS", columns)
    assert current_view(no_color=False).width == width


@pytest.mark.parametrize(
    ("is_terminal", "environment", "no_color", "color"),
    [
        (True, {}, False, True),
        (True, {}, True, False),
        (True, {"NO_COLOR": "1"}, False, False),
        (True, {"NO_COLOR": ""}, False, True),
        (True, {"TERM": "dumb"}, False, False),
        (False, {"TERM": "xterm-256color"}, False, False),
    ],
)
def test_current_view__colours_a_terminal_that_wants_it(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, environment: dict[str, str], no_color: bool, color: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Stream(is_terminal=is_terminal))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert current_view(no_color=no_color).color is color


@pytest.mark.parametrize(
    ("encoding", "is_unicode"), [("utf-8", True), ("utf-16", True), ("ascii", False), ("latin-1", False)]
)
def test_current_view__draws_in_ascii_where_the_encoding_is_narrow(
    monkeypatch: pytest.MonkeyPatch, encoding: str, is_unicode: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Stream(encoding))
    assert current_view(no_color=False).unicode is is_unicode


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", "µ測😀\n"), ("ascii", "\\u00b5\\u6e2c\\ud83d\\ude00\n"), ("latin-1", "µ\\u6e2c\\ud83d\\ude00\n")],
)
def test_show__escapes_what_an_encoding_lacks(monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str) -> None:
    stream = Stream(encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    show("µ測😀\n\n")
    assert stream.text == shown


class Broken(io.StringIO):
    """A stream whose reader is gone, or whose disk is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def flush(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BrokenPipeError(32, "Broken pipe"), ""),
        (OSError(28, "No space left on device"), "perfgate: the result cannot be printed: No space left on device\n"),
    ],
)
def test_show__never_raises(monkeypatch: pytest.MonkeyPatch, error: OSError, told: str) -> None:
    messages = io.StringIO()
    monkeypatch.setattr(sys, "stdout", Broken(error))
    monkeypatch.setattr(sys, "stderr", messages)
    show("a result")
    assert messages.getvalue() == told


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")])
def test_tell__never_raises(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    monkeypatch.setattr(sys, "stderr", Broken(error))
    tell("a message")


def test_open_streams__opens_what_was_closed_and_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Stream()
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", kept)
    open_streams()
    made: Any = sys.stdout
    try:
        assert made.name == os.devnull
        assert sys.stderr is kept
        show("goes nowhere")
    finally:
        made.close()
