"""The building blocks of Markdown: data as plain text, tables that fit a comment, bodies that open on a click."""

from collections.abc import Iterable, Sequence

from perfgate.report.escape import code, escaped

# Columns of numbers stand on the right.
_NUMBERS = frozenset(
    {"base", "baseline", "now", "before", "after", "change", "margin", "FLOP/B", "of its roof", "launches"}
)
LONGEST_NAME = 120
_LONGEST_TEXT = 600
_NO_BREAK = "\N{NO-BREAK SPACE}"


def data(text: str, *, most: int = _LONGEST_TEXT) -> str:
    """Return data as plain text of at most ``most`` signs."""
    return escaped(text if len(text) <= most else f"{text[: most - 1]}…").replace(" %", f"{_NO_BREAK}%")


def name(text: str) -> str:
    """Return a case id or field name, set as code where that is safe."""
    return code(text) if len(text) <= LONGEST_NAME else data(text, most=LONGEST_NAME)


def stacked(*texts: str) -> str:
    """Return texts below each other in one cell, none of them broken; empty ones are left out."""
    return "<br>".join(unbroken(text) for text in texts if text)


def unbroken(text: str) -> str:
    """Return text that is never broken at its spaces."""
    return text.replace(" ", _NO_BREAK)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already, without columns that are empty; "" without rows."""
    filled = list(rows)
    shown = [i for i in range(len(headings)) if i == 0 or any(cells[i] for cells in filled)]
    rule = "".join("---:|" if headings[i] in _NUMBERS else "---|" for i in shown)
    lines = [f"| {' | '.join(cells[i] for i in shown)} |" for cells in (headings, *filled)]
    return "\n".join((lines[0], f"|{rule}", *lines[1:])) if filled else ""


def pairs(heading: str, named: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values, both data."""
    return table((heading, "value"), ((data(key), data(value)) for key, value in named))


def bullets(texts: Sequence[str]) -> str:
    """Return a list of texts that are data; "" without any."""
    return "\n".join(f"- {data(text)}" for text in texts)


def folded(summary: str, body: str) -> str:
    """Return a body that opens on a click; the summary is HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""
