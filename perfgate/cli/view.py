"""The way to the reader: results on stdout, as wide and as colourful as the reader's terminal is."""

import codecs
import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TextIO

# Without a terminal (a pipe, a CI log) there is no width to ask for but COLUMNS; logs wrap badly below the least.
_LOG_WIDTH = 120
_LEAST_LOG_WIDTH = 60
_MOST_WIDTH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How text is shown."""

    width: int
    color: bool
    unicode: bool


def current_view(*, no_color: bool) -> View:
    """Return how stdout shows text: its width, whether it takes colour (NO_COLOR, TERM=dumb), its encoding."""
    import shutil

    is_terminal = sys.stdout.isatty()
    asked = shutil.get_terminal_size((_LOG_WIDTH, 24)).columns if is_terminal else _asked_width()
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return View(width=min(asked, _MOST_WIDTH), color=is_terminal and not plain, unicode=encoding.startswith("utf"))


def _asked_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isdecimal() and len(columns) < 5 and int(columns) >= _LEAST_LOG_WIDTH
    return int(columns) if is_width else _LOG_WIDTH


def show(text: str) -> None:
    """Print a result on stdout. What happens to a reader (gone, disk full) changes no verdict, so nothing is raised."""
    try:
        print(_encodable(text.rstrip("\n"), sys.stdout), flush=True)
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        tell(f"perfgate: the result cannot be printed: {error.strerror}")


def tell(text: str) -> None:
    """Print a message on stderr; lost where nobody can read it."""
    try:
        print(text.rstrip("\n"), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def open_streams() -> None:
    """Give the process somewhere to write where it was started with stdout or stderr closed (``>&-``)."""
    from pathlib import Path

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end


def _encodable(text: str, stream: TextIO) -> str:
    """Replace what the encoding of a stream lacks by escapes that JSON reads as the same text."""
    encoding = stream.encoding or "ascii"
    return text.encode(encoding, "perfgate-escape").decode(encoding)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import json

    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("perfgate-escape", _escaped)


def silence(stream: TextIO) -> None:
    """Let a broken stream go nowhere: Python flushes it again at exit, and would fail then."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
