"""Laying text out for a terminal: a page of styled lines, tables with notes under their rows, labelled lists.

rich styles and wraps; columns are laid out here, since a rich table cannot put a note across all
columns under a row, nor break a case id where a reader would.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfgate.report.escape import ascii_text, printable

if TYPE_CHECKING:
    from rich.text import Text

MINIMUM_WIDTH = 60
_GAP = "  "
# Stands for the space before a percent sign while lines are broken; ``printable`` lets no other one in.
_GLUE = "\ue000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its heading and where its texts stand. The first column takes what width is left."""

    heading: str
    align: Literal["left", "right"] = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a table: one text a column, a style for the row, others for its ends, styled notes below it.

    A line without cells is a heading within the table.
    """

    cells: tuple[str, ...] = ()
    heading: str = ""
    style: str = ""
    first_style: str = ""
    last_style: str = ""
    notes: tuple[tuple[str, str], ...] = ()


class Page:
    """Collects lines of text of one width; ``text`` is what a terminal is to be sent.

    Args:
        width: columns of the terminal; below MINIMUM_WIDTH lines are laid out for that and run over.
        color: whether styles become ANSI escapes.
        unicode: whether the terminal shows more than ASCII.
    """

    def __init__(self, *, width: int, color: bool, unicode: bool) -> None:
        from rich.console import Console

        self.width = max(width, MINIMUM_WIDTH)
        self.unicode = unicode
        self._buffer = io.StringIO()
        # An empty environment: a page depends on its arguments alone.
        self._console = Console(
            file=self._buffer,
            width=self.width,
            color_system="standard" if color else None,
            force_terminal=color,
            legacy_windows=False,
            _environ={},
        )

    @property
    def text(self) -> str:
        """Everything added so far, without spaces at the ends of lines."""
        return re.sub(r"[ ]+(?=\n)", "", self._buffer.getvalue())

    def safe(self, text: str) -> str:
        """Return data as this page can show it."""
        shown = printable(text)
        return shown if self.unicode else ascii_text(shown)

    def blank(self) -> None:
        """Add an empty line."""
        self._buffer.write("\n")

    def line(self, text: str, style: str = "") -> None:
        """Add text, wrapped to the width."""
        self.spans(((text, style),))

    def spans(self, spans: Sequence[tuple[str, str]], *, prefix: tuple[str, str] = ("", "")) -> None:
        """Add text made of styled parts, wrapped, each line behind the prefix."""
        self._print(self._wrapped(spans, first=prefix, rest=prefix))

    def labelled(self, name: str, texts: Sequence[str], *, label_width: int, style: str = "") -> None:
        """Add texts beside a name, each on its own line, wrapped within their column; nothing without texts."""
        label = (f"{self.safe(name):<{label_width}}{_GAP}", "dim")
        blank = (" " * (label_width + len(_GAP)), "")
        for index, text in enumerate(texts):
            self._print(self._wrapped(((text, style),), first=label if index == 0 else blank, rest=blank))

    def table(self, columns: Sequence[Column], lines: Sequence[Line]) -> None:
        """Add a table; columns that are empty in every row are left out."""
        rows = [line for line in lines if line.cells]
        shown = [i for i in range(len(columns)) if i == 0 or any(line.cells[i] for line in rows)]
        widths = self._widths([columns[i] for i in shown], [[line.cells[i] for i in shown] for line in rows])
        self._row([columns[i].heading for i in shown], [columns[i] for i in shown], widths, ("dim",) * len(shown))
        for line in lines:
            if not line.cells:
                self.line(line.heading, line.style)
                continue
            cells = [line.cells[i] for i in shown]
            styles = [line.style] * len(cells)
            styles[-1] = line.last_style or line.style
            styles[0] = line.first_style or line.style
            self._row(cells, [columns[i] for i in shown], widths, styles)
            for note in line.notes:
                self._print(self._wrapped((note,), first=("    ", ""), rest=("      ", "")))

    def _widths(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
        from rich.cells import cell_len

        widths = [
            max([len(column.heading), *(cell_len(self.safe(cells[i])) for cells in rows)])
            for i, column in enumerate(columns)
        ]
        left = self.width - sum(widths[1:]) - len(_GAP) * len(columns)
        widths[0] = max(min(widths[0], left), len(columns[0].heading), 12)
        return widths

    def _row(
        self, cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], styles: Sequence[str]
    ) -> None:
        from rich.text import Text

        first, *rest = (self.safe(cell) for cell in cells)
        name, *continued = broken(first, widths[0])
        line = Text("  ")
        for text, column, width, one in zip((name, *rest), columns, widths, styles, strict=True):
            cell = Text(text, style=one)
            cell.align("right" if column.align == "right" else "left", max(width, cell.cell_len))
            line.append_text(cell)
            line.append(_GAP)
        self._print([line, *(Text("    " + part, style=styles[0]) for part in continued)])

    def _wrapped(
        self, spans: Sequence[tuple[str, str]], *, first: tuple[str, str], rest: tuple[str, str]
    ) -> list["Text"]:
        from rich.text import Text

        body = Text()
        for text, style in spans:
            body.append(self.safe(text).replace(" %", f"{_GLUE}%"), style=style)
        prefixes = [Text.assemble(first), Text.assemble(rest)]
        room = self.width - max(len(prefix) for prefix in prefixes)
        lines = body.wrap(self._console, room, overflow="fold")
        for line in lines:
            line.plain = line.plain.replace(_GLUE, " ")
        return [prefixes[min(index, 1)].copy().append_text(line) for index, line in enumerate(lines)]

    def _print(self, lines: Sequence["Text"]) -> None:
        for line in lines:
            self._console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)


def broken(text: str, width: int) -> list[str]:
    """Break a case id that is wider than ``width`` before its bracket and after commas, else anywhere.

    Continuation lines stand two cells further in, so they hold two cells less.
    """
    from rich.cells import cell_len, chop_cells

    lines: list[str] = []
    current = ""
    for part in re.findall(r"[^\[,]+,?|\[[^,]*,?|,", text) or [text]:
        if current and cell_len(current + part) > (width if not lines else width - 2):
            lines.append(current)
            current = ""
        current += part
    lines.append(current)
    return [
        piece for line in lines for piece in (chop_cells(line, max(width - 2, 1)) if cell_len(line) > width else [line])
    ]
