"""Words on the log-log panel: names of roofs along and beside their lines, ridge points, cases.

One point is the unit of length throughout: the figure is laid out at 72 dots per inch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfgate.core.roofs import Roof
from perfgate.core.units import percent_text, rate_text
from perfgate.report.figure_style import INK, MUTED, PAPER, broken_id, case_color, text_size
from perfgate.report.placement import Box, Point, Segment, box_around, free_place, spread
from perfgate.report.roofline_chart import ChartCase, RooflineChart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELS = 20
MARK = 4.5  # half of a marker, as all below in points
_NORMAL, _SMALL = 7.5, 7.0
_ROOF_GAP, _RIDGE_GAP = 21.0, 10.0
_FAR = 600.0  # a case that moved is named, however crowded the picture is
_LEADER = 12.0  # a label further away is tied to its case by a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The axes, and the way from values to places on the figure."""

    axes: "Axes"

    def place(self, x: float, y: float) -> Point:
        """Return where a value lies [points]."""
        left, bottom = self.axes.transData.transform((x, y))
        return float(left), float(bottom)

    def case_place(self, case: ChartCase) -> Point:
        """Return where a case lies [points]."""
        return self.place(case.intensity_flop_per_byte or math.nan, case.rate_per_s or math.nan)

    @property
    def frame(self) -> Box:
        """The inside of the axes, less a rim."""
        box = self.axes.get_window_extent()
        return Box(left=box.x0 + 3, bottom=box.y0 + 3, right=box.x1 - 3, top=box.y1 - 3)


def draw_ridges(canvas: Canvas, chart: RooflineChart) -> list[Box]:
    """Drop a line from each ridge point and name it at the bottom; ridge points that touch share a name."""
    bottom = canvas.axes.get_ylim()[0]
    groups: list[list[tuple[float, str]]] = []
    for ridge in chart.ridges:
        ends = (ridge.flop_per_byte, ridge.flop_per_byte), (bottom, ridge.per_s)
        canvas.axes.plot(*ends, color=MUTED, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        left = canvas.place(ridge.flop_per_byte, ridge.per_s)[0]
        text = f"{ridge.label} {_intensity_text(ridge.flop_per_byte)}"
        if groups and left - groups[-1][-1][0] < _RIDGE_GAP:
            groups[-1].append((left, text))
        else:
            groups.append([(left, text)])
    boxes = []
    for group in groups:
        text = "ridge " + ", ".join(text for _, text in group)
        width, height = text_size(text, _SMALL)
        center = (group[-1][0] + 2 + height / 2, canvas.frame.bottom + 3 + width / 2)
        canvas.axes.annotate(
            text, center, xycoords="figure points", rotation=90, fontsize=_SMALL, color=MUTED, ha="center",
            va="center", zorder=4,
        )  # fmt: skip
        boxes.append(box_around(center, height / 2 + 1, width / 2 + 3))
    return boxes


def draw_memory_labels(canvas: Canvas, chart: RooflineChart, taken: Sequence[Box]) -> list[Box]:
    """Write each memory roof's name along its line, where it covers least."""
    (x0, y0), (x1, y1) = canvas.place(1, 1), canvas.place(10, 10)
    angle = math.atan2(y1 - y0, x1 - x0)
    low_x = canvas.axes.get_xlim()[0]
    boxes: list[Box] = []
    for roof in chart.memory:
        rate, top = roof.best_per_s or 1.0, max((roof.best_per_s or 0.0 for roof in chart.compute), default=0.0)
        text = _roof_text(roof)
        width, height = text_size(text, _NORMAL, "bold")
        start = _entry(canvas.place(low_x, rate * low_x), canvas.frame, angle)
        end = canvas.place(top / rate, top) if top else (canvas.frame.right, canvas.frame.top)
        room = math.hypot(end[0] - start[0], end[1] - start[1]) - width
        runs = [_run(start, angle, 6 + (room - 18) * step / 12, (width, height)) for step in range(13)]
        best = min(runs, key=lambda run: _hits(run, (*taken, *boxes), canvas.frame))
        first, second = best[0], best[-1]
        center = ((first.left + second.right) / 2, (first.bottom + second.top) / 2)
        canvas.axes.annotate(
            text, center, xycoords="figure points", rotation=math.degrees(angle), rotation_mode="anchor",
            fontsize=_NORMAL, fontweight="bold", color=INK, ha="center", va="center", zorder=4,
        )  # fmt: skip
        boxes += best
    return boxes


def _entry(start: Point, frame: Box, angle: float) -> Point:
    """Where a rising line enters the frame."""
    if start[1] >= frame.bottom:
        return start
    return start[0] + (frame.bottom - start[1]) / math.tan(angle), frame.bottom


def _run(start: Point, angle: float, along: float, size: Point) -> list[Box]:
    """Small boxes that cover text written beside a rising line, from ``along`` its length on."""
    width, height = size
    above, part = height / 2 + 3, width / 14
    centers = (
        (
            start[0] + (along + width * (index + 0.5) / 14) * math.cos(angle) - above * math.sin(angle),
            start[1] + (along + width * (index + 0.5) / 14) * math.sin(angle) + above * math.cos(angle),
        )
        for index in range(14)
    )
    return [box_around(center, max(part, height) / 2, max(part, height) / 2) for center in centers]


def _hits(run: Sequence[Box], taken: Sequence[Box], frame: Box) -> int:
    return sum(one.overlaps(other) for one in run for other in taken) + sum(not frame.contains(one) for one in run)


def draw_compute_labels(canvas: Canvas, chart: RooflineChart) -> None:
    """Name each compute roof right of the line that it ends, moved apart where lines are close."""
    frame = canvas.axes.get_window_extent()
    roofs = [roof for roof in chart.compute if roof.best_per_s is not None]
    ends = [canvas.place(1, roof.best_per_s or 1)[1] for roof in roofs]
    for roof, end, middle in zip(roofs, ends, spread(ends, _ROOF_GAP, frame.y0 + 10, frame.y1 - 8), strict=True):
        name, _, detail = _roof_text(roof).partition("\n")
        _draw_leader(canvas, (frame.x1, end), (frame.x1 + 12, middle), MUTED)
        for text, up, color, weight in ((name, 4.6, INK, "bold"), (detail, -4.6, MUTED, "normal")):
            canvas.axes.annotate(
                text, (frame.x1 + 14, middle + up), xycoords="figure points", fontsize=_NORMAL, color=color,
                fontweight=weight, ha="left", va="center",
            )  # fmt: skip


def _draw_leader(canvas: Canvas, start: Point, end: Point, color: str) -> None:
    canvas.axes.annotate(
        "", end, xytext=start, xycoords="figure points", textcoords="figure points", zorder=4,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip


def compute_label_width(chart: RooflineChart) -> float:
    """Return the room that names of compute roofs need right of the panel [points]."""
    widths = [text_size(line, _NORMAL, "bold")[0] for roof in chart.compute for line in _roof_text(roof).split("\n")]
    return max(widths, default=0.0) + 20


def _roof_text(roof: Roof) -> str:
    """``"BF16 tensor 735 TFLOP/s"`` and, below, how that compares with paper."""
    value = rate_text(roof.best_per_s or 0.0, roof.unit)
    reference, kind = roof.reference_per_s, roof.reference_kind
    separator = "\n" if roof.unit != "B" else ", "
    if roof.measured_per_s is None:
        return f"{roof.label} {value}{separator}{roof.best_kind}, not measured"
    if reference is None or kind is None:
        return f"{roof.label} {value} measured"
    share = percent_text(roof.measured_per_s / reference, decimals=0)
    compared = f"{share} of {rate_text(reference, roof.unit)} {kind}"
    return f"{roof.label} {value} measured{separator}{compared}"


def draw_case_labels(
    canvas: Canvas, cases: Sequence[ChartCase], taken: Sequence[Box], segments: Sequence[Segment]
) -> int:
    """Label cases, moved ones first, each where it covers nothing; return how many found no place."""
    boxes, placed = list(taken), 0
    for case in sorted(cases, key=lambda case: not case.is_moved)[:MOST_LABELS]:
        text, weight = _case_text(case), "bold" if case.is_moved else "normal"
        anchor = canvas.case_place(case)
        width, height = text_size(text, _NORMAL, weight)
        size, others = (width + 4, height + 1), [box for box in boxes if not _is_at(box, anchor)]
        place = free_place(anchor, size, others, segments, canvas.frame)
        if place is None and case.is_moved:
            place = free_place(anchor, size, others, (), canvas.frame, reach=_FAR)
        if place is None and case.is_moved:
            place = free_place(anchor, size, others, (), canvas.frame, reach=_FAR, tied=False)
        if place is None:
            continue
        boxes.append(place)
        placed += 1
        nearest = place.nearest(anchor)
        away = math.hypot(nearest[0] - anchor[0], nearest[1] - anchor[1])
        if away > _LEADER:
            reach = MARK / away
            edge = tuple(one + (other - one) * reach for one, other in zip(anchor, nearest, strict=True))
            _draw_leader(canvas, nearest, (edge[0], edge[1]), case_color(case.verdict))
        canvas.axes.annotate(
            text, ((place.left + place.right) / 2, (place.bottom + place.top) / 2), xycoords="figure points",
            fontsize=_NORMAL, fontweight=weight, color=case_color(case.verdict), ha="center", va="center", zorder=8,
            linespacing=1.15, bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )  # fmt: skip
    return len(cases) - placed


def _is_at(box: Box, place: Point) -> bool:
    """Whether a box is of the case at that place: its marker, or its move."""
    return box.left < place[0] < box.right and box.bottom < place[1] < box.top


def _case_text(case: ChartCase) -> str:
    of_roof = f", {percent_text(case.of_measured, decimals=0)} of roof" if case.of_measured is not None else ""
    change = ""
    if case.change is not None and case.is_moved:
        change = f"\ntime {percent_text(case.change, signed=True, decimals=1)}"
    return f"{broken_id(case.id)}\n{case.rate_text}{of_roof}{change}"


def _intensity_text(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
