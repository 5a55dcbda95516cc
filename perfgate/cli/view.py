"""The way to the reader: results on stdout, as wide and as colourful as the reader's terminal is."""

import os
import shutil
import sys
from dataclasses import dataclass

# Without a terminal (a pipe, a CI log) there is no width to ask for; logs wrap badly below this.
_LOG_WIDTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How text is shown."""

    width: int
    color: bool
    unicode: bool


def current_view(*, no_color: bool) -> View:
    """Return how stdout shows text: its width, whether it takes colour (NO_COLOR, TERM=dumb), its encoding."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((_LOG_WIDTH, 24)).columns if is_terminal else _log_width()
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return View(width=width, color=is_terminal and not plain, unicode=encoding.startswith("utf"))


def _log_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) >= 60 else _LOG_WIDTH


def show(text: str) -> None:
    """Print a result; a reader who went away changes no verdict."""
    try:
        print(text.rstrip("\n"))
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at exit and would complain: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
