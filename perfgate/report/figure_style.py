"""Colours, shapes and sizes of text in the pictures, and the dark dress of an SVG."""

import functools
import re
from typing import Any

from perfgate.core.verdict import CaseVerdict

INK = "#1f2328"
MUTED = "#59636e"
GRID = "#d8dee4"
PAPER = "#ffffff"
ROOF = "#24292f"
UNJUDGED = "#2f6fba"

# Readable on white and on near-black; red and green differ in lightness too.
VERDICT_COLORS = {
    CaseVerdict.REGRESSED: "#d1242f",
    CaseVerdict.IMPROVED: "#2da44e",
    CaseVerdict.UNCHANGED: "#2f6fba",
    CaseVerdict.SUSPECTED: "#d4670a",
    CaseVerdict.INCONCLUSIVE: "#b08800",
    CaseVerdict.NEW: "#8250df",
    CaseVerdict.MISSING: "#6e7781",
    CaseVerdict.NOT_COMPARABLE: "#6e7782",
    CaseVerdict.INVALID: "#bf3989",
    CaseVerdict.NOT_GATED: "#768390",
}

# What each colour becomes where the reader's system is dark.
DARK = {INK: "#e6edf3", MUTED: "#9198a1", GRID: "#30363d", PAPER: "#0d1117", ROOF: "#e6edf4"}

_SHAPES = ("o", "s", "^", "D", "P", "X", "v", "h", "*", "p")
_KNOWN_SHAPES = {"bandwidth": "o", "gemm": "s", "operators": "^", "attention": "D", "pattern": "P", "launch": "X"}


def family_shapes(families: list[str]) -> dict[str, str]:
    """Return a marker for each family: built-in families keep theirs, the others take what is left in order."""
    shapes = {family: _KNOWN_SHAPES[family] for family in families if family in _KNOWN_SHAPES}
    left = [shape for shape in _SHAPES if shape not in shapes.values()]
    for index, family in enumerate(family for family in dict.fromkeys(families) if family not in shapes):
        shapes[family] = left[index % len(left)]
    return shapes


def case_color(verdict: CaseVerdict | None) -> str:
    """Return the colour of a case."""
    return UNJUDGED if verdict is None else VERDICT_COLORS[verdict]


def with_dark_dress(svg: str) -> str:
    """Return an SVG that follows the reader's light or dark setting: its colours are replaced by a style sheet."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    sheet = f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"
    head, opening, rest = svg.partition("<defs>")
    return f"{head}{opening}{sheet}{rest}"


def text_size(text: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Return width and height [points] of text of one or more lines."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    widths = [float(_renderer().get_text_width_height_descent(line, font, False)[0]) for line in text.split("\n")]
    return max(widths), 1.25 * size * len(widths)


@functools.cache
def _renderer() -> Any:
    """A renderer at 72 dots per inch, where one dot is one point; text is measured on it."""
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(8, 8, 72)  # type: ignore[no-untyped-call, unused-ignore]


def broken_id(case_id: str, width: int = 34) -> str:
    """Break a case id that is longer than ``width`` before its bracket and after commas, where a reader would."""
    lines = [""]
    for part in re.findall(r"\[?[^\[,]*,?", case_id):
        if part and lines[-1] and len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}\N{HORIZONTAL ELLIPSIS}" for line in lines)
