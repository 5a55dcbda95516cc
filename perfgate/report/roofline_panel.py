"""The log-log panel of the roofline picture: roofs, ridge points, cases. Its words: ``roofline_labels``."""

from typing import TYPE_CHECKING, Any

from perfgate.core.roofs import RoofKind
from perfgate.report.figure_style import GRID, INK, MUTED, PAPER, ROOF, case_color
from perfgate.report.placement import Box, Segment, box_around
from perfgate.report.roofline_chart import ChartCase, RooflineChart
from perfgate.report.roofline_labels import (
    MARK,
    Canvas,
    draw_case_labels,
    draw_compute_labels,
    draw_memory_labels,
    draw_ridges,
)
from perfgate.report.roofline_lines import axis_ranges, roof_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_STYLES: dict[RoofKind, dict[str, Any]] = {
    RoofKind.MEASURED: {"linewidth": 1.7, "linestyle": "-", "color": ROOF},
    RoofKind.THEORETICAL: {"linewidth": 0.9, "linestyle": (0, (5, 3)), "color": MUTED},
    RoofKind.DATASHEET: {"linewidth": 0.6, "linestyle": "-", "color": MUTED},
}
# Shorter than this [points] an arrow from baseline to candidate would not be seen; an arrow of fixed length then
# says the direction, and the label how much.
_VISIBLE_ARROW, _FIXED_ARROW = 11.0, 24.0
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def draw_roofline(axes: "Axes", chart: RooflineChart, shapes: dict[str, str]) -> int:
    """Draw the panel; return how many cases found no place for their label."""
    canvas = Canvas(axes=axes)
    _set_axes(axes, chart)
    segments = _draw_roofs(canvas, chart)
    boxes = [box_around(canvas.case_place(case), MARK, MARK) for case in chart.points]
    for place, case in enumerate(chart.points):
        boxes += _draw_case(canvas, case, shapes[case.family], f"point-{place}")
        segments += _draw_headroom(canvas, case)
    boxes += draw_ridges(canvas, chart)
    boxes += draw_memory_labels(canvas, chart, boxes)
    draw_compute_labels(canvas, chart)
    return draw_case_labels(canvas, chart.points, boxes, segments)


def _set_axes(axes: "Axes", chart: RooflineChart) -> None:
    intensity, rate = axis_ranges(chart)
    axes.set(xscale="log", yscale="log", xlim=intensity, ylim=rate)
    axes.set_xlabel("arithmetic intensity of the declared work  [FLOP/byte]", color=INK, fontsize=9)
    axes.set_ylabel("rate  [FLOP/s]", color=INK, fontsize=9)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: _power_text(value))
    axes.grid(visible=True, which="major", color=GRID, linewidth=0.7)
    axes.grid(visible=True, which="minor", color=GRID, linewidth=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=MUTED, labelsize=8, length=3)
    for spine in axes.spines.values():
        spine.set_color(MUTED)


def _power_text(value: float) -> str:
    factor, prefix = next(((factor, prefix) for factor, prefix in _PREFIXES if value >= factor * 0.999), (1.0, ""))
    return f"{value / factor:g} {prefix}".strip()


def _draw_roofs(canvas: Canvas, chart: RooflineChart) -> list[Segment]:
    """Draw all roofs; return their lines, which labels keep clear of."""
    lines = roof_lines(chart, canvas.axes.get_xlim())
    for line in lines:
        canvas.axes.plot(*zip(line.start, line.end, strict=True), zorder=2, **LINE_STYLES[line.kind])
    return [(canvas.place(*line.start), canvas.place(*line.end)) for line in lines]


def _draw_headroom(canvas: Canvas, case: ChartCase) -> list[Segment]:
    """Draw a thin line from a case up to the roof that bounds it: its length is what could be won."""
    if not (case.of_measured and case.rate_per_s and case.intensity_flop_per_byte):
        return []
    top = case.rate_per_s / case.of_measured
    start, end = canvas.case_place(case), canvas.place(case.intensity_flop_per_byte, top)
    if end[1] - start[1] < 2 * MARK:
        return []
    color = case_color(case.verdict)
    canvas.axes.plot(
        (case.intensity_flop_per_byte,) * 2, (case.rate_per_s, top), color=color, linewidth=0.7, alpha=0.7, zorder=3
    )
    return [(start, end)]


def _draw_case(canvas: Canvas, case: ChartCase, shape: str, mark_id: str) -> list[Box]:
    """Draw a case, its interval and its move from the baseline; return the room that the move takes."""
    axes, color = canvas.axes, case_color(case.verdict)
    x, y = case.intensity_flop_per_byte or 0.0, case.rate_per_s or 0.0
    if case.low_s and case.high_s:
        # A small interval hides behind the marker; a large one must be seen.
        axes.plot((x, x), (case.amount / case.high_s, case.amount / case.low_s), color=color, linewidth=1.4, zorder=5)
    axes.plot(
        [x], [y], marker=shape, markersize=8, color=color, markeredgecolor=PAPER, markeredgewidth=0.8,
        zorder=7 if case.is_moved else 6, linestyle="none", gid=mark_id,
    )  # fmt: skip
    before = case.baseline_rate_per_s
    if before is None or not case.is_moved:
        return []
    (left, here), (_, there) = canvas.place(x, y), canvas.place(x, before)
    to_scale = abs(here - there) >= _VISIBLE_ARROW
    if to_scale:
        axes.plot([x], [before], marker=shape, markersize=8, color=color, markerfacecolor="none", zorder=5)
    else:
        there = here + (_FIXED_ARROW if before > y else -_FIXED_ARROW)
    axes.annotate(
        "", (left, here), xytext=(left, there), xycoords="figure points", textcoords="figure points", zorder=7,
        arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.5, "shrinkA": 4 * to_scale, "shrinkB": 4},
    )  # fmt: skip
    low, high = sorted((here, there))
    return [Box(left=left - MARK, bottom=low - MARK, right=left + MARK, top=high + MARK)]
