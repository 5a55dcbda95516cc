"""The roofline as a picture: SVG for people and pages, PNG for what shows nothing else.

Deterministic: the same chart gives the same bytes, without dates or random ids. matplotlib is used
through its objects alone, never through pyplot's global state.
"""

import html
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfgate.core.roofs import RoofKind
from perfgate.report.escape import printable
from perfgate.report.figure_style import (
    INK,
    MUTED,
    PAPER,
    case_color,
    family_shapes,
    with_dark_dress,
)
from perfgate.report.roofline_chart import RooflineChart
from perfgate.report.roofline_labels import compute_label_width
from perfgate.report.roofline_panel import LINE_STYLES, draw_roofline
from perfgate.report.rows_panel import draw_rows, name_width, result_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PNG_DPI = 200
_DPI = 72  # one dot is one point while the figure is laid out
_WIDTH = 10.6  # inches at least, as all below
_EDGE, _LEFT, _RIGHT = 0.2, 0.85, 2.3
_PANEL, _BARS = 5.3, 3.6  # height of the log-log panel, least width of the rows
_HEAD, _UNDER, _LEGEND_LINE, _FOOT_LINE = 0.5, 0.5, 0.2, 0.18
_ROW, _ROWS_HEAD, _ROWS_FOOT = 0.26, 0.42, 0.55
_MARK = re.compile(r'<g id="((?:point|row)-\d+)">')
_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "perfgate",
    "font.family": ["DejaVu Sans"],
    "axes.unicode_minus": False,
    "text.parse_math": False,  # names come from outside: a dollar sign is a dollar sign
}


def render_roofline_svg(chart: RooflineChart) -> str:
    """Render a chart as SVG: text stays text, colours follow the reader's light or dark setting, marks have titles."""
    return _with_titles(with_dark_dress(_saved(chart, "svg").decode()), chart)


def render_roofline_png(chart: RooflineChart) -> bytes:
    """Render a chart as PNG, twice the pixels of a screen."""
    return _saved(chart, "png")


def _saved(chart: RooflineChart, kind: str) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": "perfgate"} if kind == "svg" else {"Software": None}
    with mpl.rc_context(_RC):
        _figure(_printable(chart)).savefig(
            buffer, format=kind, dpi=_DPI if kind == "svg" else _PNG_DPI, metadata=metadata
        )
    return buffer.getvalue()


def _printable(chart: RooflineChart) -> RooflineChart:
    """Make the texts of documents harmless: XML has no way to write control characters, and fonts no glyph."""
    points, rows = (
        tuple(replace(case, id=printable(case.id), family=printable(case.family)) for case in cases)
        for cases in (chart.points, chart.rows)
    )
    footer = tuple(printable(line) for line in chart.footer)
    return replace(chart, title=printable(chart.title), points=points, rows=rows, footer=footer)


def _with_titles(svg: str, chart: RooflineChart) -> str:
    """Say at each mark which case it is: the panels name marks by their place in the chart."""
    marks = {f"point-{place}": case for place, case in enumerate(chart.points)}
    marks |= {f"row-{place}": case for place, case in enumerate(chart.rows)}
    return _MARK.sub(lambda found: f"{found[0]}<title>{html.escape(printable(marks[found[1]].title))}</title>", svg)


def _figure(chart: RooflineChart) -> "Figure":
    """Return the figure: the log-log panel where there are roofs or points, rows for cases without FLOP, footer."""
    from matplotlib.figure import Figure

    has_panel = bool(chart.points or chart.compute or chart.memory)
    shapes = family_shapes([case.family for case in (*chart.points, *chart.rows)])
    legend = _legend(chart, shapes)
    under = (_UNDER if has_panel else 0.1) + _LEGEND_LINE * len(legend) + 0.15
    names, results = (name_width(chart.rows), result_width(chart.rows)) if chart.rows else (0.0, 0.0)
    left, right = names / _DPI + _EDGE, results / _DPI + _EDGE
    width = max(_WIDTH, left + _BARS + right)
    rows = _ROWS_HEAD + _ROW * len(chart.rows) + _ROWS_FOOT if chart.rows else 0.0
    foot = _FOOT_LINE * (len(chart.footer) + 1) + 0.1
    head = _HEAD if chart.title else 0.0
    height = head + (_PANEL if has_panel else 0.0) + under + rows + foot
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor=PAPER)
    _write(figure, height - 0.35, chart.title, fontsize=12, fontweight="bold", color=INK)
    lines = list(chart.footer)
    if has_panel:
        margin = max(_RIGHT, compute_label_width(chart) / _DPI)
        unlabelled = draw_roofline(_axes(figure, _LEFT, foot + rows + under, margin, _PANEL), chart, shapes)
        if unlabelled:
            lines.insert(0, f"Without a label for want of room: {unlabelled}; the table names every case")
    _draw_legend(figure, legend, foot + rows + under - (_UNDER if has_panel else 0.1))
    if chart.rows:
        heading = "Cases without FLOP  (thick tick: measured roof)"
        _write(figure, foot + rows - 0.25, heading, fontsize=10, fontweight="bold", color=INK)
        draw_rows(_axes(figure, left, foot + _ROWS_FOOT, right, _ROW * len(chart.rows)), chart.rows, shapes)
    for index, line in enumerate(reversed(lines)):
        _write(figure, 0.12 + index * _FOOT_LINE, line, fontsize=7, color=MUTED)
    return figure


def _write(figure: "Figure", bottom: float, text: str, **style: Any) -> None:
    """Write a line at the left edge, so many inches above the bottom."""
    figure.text(_EDGE / figure.get_figwidth(), bottom / figure.get_figheight(), text, va="bottom", **style)


def _axes(figure: "Figure", left: float, bottom: float, right: float, height: float) -> "Axes":
    """Add axes by their margins and height in inches."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, bottom / high, (wide - left - right) / wide, height / high), facecolor=PAPER)


def _legend(chart: RooflineChart, shapes: dict[str, str]) -> list[list["Line2D"]]:
    """Lines of the legend: kinds of roof; families by shape; verdicts by colour."""
    from matplotlib.lines import Line2D

    cases = (*chart.points, *chart.rows)
    roofs = [
        Line2D([], [], label="measured roof", **LINE_STYLES[RoofKind.MEASURED]),
        Line2D([], [], label="roof from device attributes", **LINE_STYLES[RoofKind.THEORETICAL]),
        Line2D([], [], label="roof of the datasheet", **LINE_STYLES[RoofKind.DATASHEET]),
        Line2D([], [], color=MUTED, linewidth=0.7, linestyle=(0, (1, 2)), label="ridge point"),
    ]
    families = [_mark(shape, MUTED, family) for family, shape in shapes.items()]
    verdicts = list(dict.fromkeys(case.verdict for case in cases if case.verdict is not None))
    colors = [_mark("o", case_color(verdict), verdict.value.replace("-", " ")) for verdict in verdicts]
    if any(case.is_moved for case in cases):
        colors.append(_mark("o", MUTED, "baseline (an arrow without it is not to scale)", hollow=True))
    has_roofs = bool(chart.points or chart.compute or chart.memory)
    return [line for line in (roofs if has_roofs else [], families, colors) if line]


def _draw_legend(figure: "Figure", lines: list[list["Line2D"]], top: float) -> None:
    for index, handles in enumerate(lines):
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(_LEFT / figure.get_figwidth(), (top - index * _LEGEND_LINE) / figure.get_figheight()),
            ncols=len(handles),
            frameon=False,
            fontsize=7.5,
            labelcolor=MUTED,
            handlelength=2.0,
            handletextpad=0.5,
            columnspacing=1.4,
            borderaxespad=0,
            borderpad=0,
        )


def _mark(shape: str, color: str, label: str, *, hollow: bool = False) -> "Line2D":
    from matplotlib.lines import Line2D

    face = "none" if hollow else color
    return Line2D(
        [], [], linestyle="none", marker=shape, markersize=6.5, color=color, markerfacecolor=face, label=label
    )
