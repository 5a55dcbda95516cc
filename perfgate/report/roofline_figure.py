"""The roofline as a picture: SVG for people and pages, PNG for what shows nothing else.

Deterministic: the same chart gives the same bytes, without dates or random ids. matplotlib is used
through its objects alone, never through pyplot's global state.
"""

import io
from typing import TYPE_CHECKING, Any

from perfgate.core.roofs import RoofKind
from perfgate.report.figure_style import (
    INK,
    MUTED,
    PAPER,
    case_color,
    family_shapes,
    with_dark_dress,
)
from perfgate.report.roofline_chart import RooflineChart
from perfgate.report.roofline_panel import LINE_STYLES, draw_roofline
from perfgate.report.rows_panel import draw_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_PNG_DPI = 200
_DPI = 72  # one dot is one point while the figure is laid out
_WIDTH = 10.6  # inches, as all below
_LEFT, _RIGHT = 0.85, 2.75
_PANEL = 5.3
_HEAD, _UNDER, _LEGEND_LINE, _FOOT_LINE = 0.5, 0.5, 0.2, 0.18
_ROW, _ROWS_HEAD, _ROWS_FOOT, _ROWS_LEFT, _ROWS_RIGHT = 0.26, 0.42, 0.55, 2.75, 3.3
_RC: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "perfgate",
    "font.family": ["DejaVu Sans"],
    "axes.unicode_minus": False,
    "text.parse_math": False,  # names come from outside: a dollar sign is a dollar sign
}


def render_roofline_svg(chart: RooflineChart) -> str:
    """Render a chart as SVG: text stays text, colours follow the reader's light or dark setting."""
    return with_dark_dress(_saved(chart, "svg").decode())


def render_roofline_png(chart: RooflineChart) -> bytes:
    """Render a chart as PNG, twice the pixels of a screen."""
    return _saved(chart, "png")


def _saved(chart: RooflineChart, kind: str) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": "perfgate"} if kind == "svg" else {"Software": None}
    with mpl.rc_context(_RC):
        _figure(chart).savefig(buffer, format=kind, dpi=_DPI if kind == "svg" else _PNG_DPI, metadata=metadata)
    return buffer.getvalue()


def _figure(chart: RooflineChart) -> "Figure":
    """Return the figure: the log-log panel where there are roofs or points, rows for cases without FLOP, footer."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    has_panel = bool(chart.points or chart.compute or chart.memory)
    shapes = family_shapes([case.family for case in (*chart.points, *chart.rows)])
    legend = _legend(chart, shapes)
    under = _UNDER + _LEGEND_LINE * len(legend) + 0.15
    rows = _ROWS_HEAD + _ROW * len(chart.rows) + _ROWS_FOOT if chart.rows else 0.0
    foot = _FOOT_LINE * (len(chart.footer) + 1) + 0.1
    height = _HEAD + (_PANEL if has_panel else 0.0) + under + rows + foot
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, facecolor=PAPER)
    renderer: Any = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.text(0.2 / _WIDTH, 1 - 0.28 / height, chart.title, fontsize=12, fontweight="bold", color=INK, va="center")
    unlabelled = 0
    if has_panel:
        axes = _axes(figure, _LEFT, foot + rows + under, _RIGHT, _PANEL)
        unlabelled = draw_roofline(axes, renderer, chart, shapes)
    _draw_legend(figure, legend, foot + rows + under - _UNDER)
    if chart.rows:
        figure.text(
            0.2 / _WIDTH,
            (foot + rows - 0.22) / height,
            "Cases without FLOP  (thick tick: measured roof)",
            fontsize=10,
            fontweight="bold",
            color=INK,
        )
        draw_rows(_axes(figure, _ROWS_LEFT, foot + _ROWS_FOOT, _ROWS_RIGHT, _ROW * len(chart.rows)), chart.rows, shapes)
    lines = list(chart.footer)
    if unlabelled:
        lines.insert(0, f"Without a label for want of room: {unlabelled}; the table names every case")
    for index, line in enumerate(reversed(lines)):
        figure.text(0.2 / _WIDTH, (0.12 + index * _FOOT_LINE) / height, line, fontsize=7, color=MUTED, va="bottom")
    return figure


def _axes(figure: "Figure", left: float, bottom: float, right: float, height: float) -> "Axes":
    """Add axes by their margins and height in inches."""
    whole = figure.get_figheight()
    return figure.add_axes(
        (left / _WIDTH, bottom / whole, (_WIDTH - left - right) / _WIDTH, height / whole), facecolor=PAPER
    )


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
    return [line for line in (roofs, families, colors) if line]


def _draw_legend(figure: "Figure", lines: list[list["Line2D"]], top: float) -> None:
    for index, handles in enumerate(lines):
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(_LEFT / _WIDTH, (top - index * _LEGEND_LINE) / figure.get_figheight()),
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
