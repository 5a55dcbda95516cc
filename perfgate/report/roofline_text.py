"""The roofline in plain text: a chart of characters, the roofs, and every case against its roof."""

import math
import textwrap

from perfgate.core.roofs import Roof, RoofKind
from perfgate.core.units import percent_text, rate_text
from perfgate.report.roofline_chart import ChartCase, RooflineChart

_AXIS = 8  # columns left of the plot
_HEIGHT = 18
_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def render_roofline_text(chart: RooflineChart, width: int = 80) -> str:
    """Render a chart as plain text of at most ``width`` columns (at least 60), ending in a newline."""
    width = max(width, 60)
    parts = [chart.title]
    if chart.points:
        parts += ["", *_plot(chart, width), "", *_points(chart, width)]
    if chart.memory or chart.compute:
        parts += ["", *_roofs(chart, width)]
    if chart.rows:
        parts += ["", *_rows(chart, width)]
    parts += ["", *(wrapped for line in chart.footer for wrapped in textwrap.wrap(line, width))]
    return "\n".join(line.rstrip() for part in parts for line in part.split("\n")) + "\n"


class _Plot:
    """A grid of characters over logarithmic axes."""

    def __init__(self, chart: RooflineChart, width: int) -> None:
        xs = [case.intensity_flop_per_byte or 1 for case in chart.points]
        xs += [ridge.flop_per_byte for ridge in chart.ridges]
        ys = [case.rate_per_s or 1 for case in chart.points] + [ridge.per_s for ridge in chart.ridges]
        self.low_x, self.high_x = math.log10(min(xs)) - 0.4, math.log10(max(xs)) + 0.4
        self.low_y, self.high_y = math.log10(min(ys)) - 0.3, math.log10(max(ys)) + 0.3
        self.columns, self.rows = width - _AXIS - 1, _HEIGHT
        self.marked: set[tuple[int, int]] = set()
        self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def column(self, value: float) -> int:
        return round((math.log10(value) - self.low_x) / (self.high_x - self.low_x) * (self.columns - 1))

    def row(self, value: float) -> int:
        return round((self.high_y - math.log10(value)) / (self.high_y - self.low_y) * (self.rows - 1))

    def value(self, column: int) -> float:
        return float(10 ** (self.low_x + column / (self.columns - 1) * (self.high_x - self.low_x)))

    def put(self, row: int, column: int, text: str) -> None:
        for offset, character in enumerate(text):
            if 0 <= row < self.rows and 0 <= column + offset < self.columns:
                self.cells[row][column + offset] = character

    def mark(self, row: int, column: int, name: str) -> None:
        """Put a case's letter where it belongs, or right of the letters that stand there already."""
        while (row, column) in self.marked:
            column += 1
        self.marked.add((row, column))
        self.put(row, column, name)


def _name_roofs(plot: _Plot, chart: RooflineChart) -> None:
    """Name compute roofs left of where they begin, above the memory roofs; those of one row together."""
    for row in {plot.row(ridge.per_s): None for ridge in chart.ridges}:
        here = [ridge for ridge in chart.ridges if plot.row(ridge.per_s) == row]
        text = ", ".join(f"{ridge.label} {rate_text(ridge.per_s, 'FLOP')}" for ridge in here)
        room = plot.column(min(ridge.flop_per_byte for ridge in here)) - 4
        if len(text) > room:
            text = ", ".join(ridge.label for ridge in here)
        plot.put(row, max(0, room - len(text)), text[:room])


def _plot(chart: RooflineChart, width: int) -> list[str]:
    plot = _Plot(chart, width)
    top = max((ridge.per_s for ridge in chart.ridges), default=math.inf)
    for roof in chart.memory:
        for column in range(plot.columns):
            rate = (roof.best_per_s or 0.0) * plot.value(column)
            if 0 < rate <= top:
                plot.put(plot.row(rate), column, "/")
    for ridge in chart.ridges:
        row, start = plot.row(ridge.per_s), plot.column(ridge.flop_per_byte)
        plot.put(row, start, "-" * (plot.columns - start))
    _name_roofs(plot, chart)
    for name, case in zip(_NAMES, chart.points, strict=False):
        plot.mark(plot.row(case.rate_per_s or 1), plot.column(case.intensity_flop_per_byte or 1), name)
    powers_y = range(math.ceil(plot.low_y), math.floor(plot.high_y) + 1)
    labels = {plot.row(10.0**power): rate_text(10.0**power, "").removesuffix("/s") for power in powers_y}
    lines = [f"{labels.get(row, ''):>{_AXIS - 1}} |{''.join(cells)}" for row, cells in enumerate(plot.cells)]
    ruler = [" "] * plot.columns
    for power in range(math.ceil(plot.low_x), math.floor(plot.high_x) + 1):
        for offset, character in enumerate(f"{10.0**power:g}"):
            if plot.column(10.0**power) + offset < plot.columns:
                ruler[plot.column(10.0**power) + offset] = character
    return [
        f"{'FLOP/s':>{_AXIS - 1}}",
        *lines,
        f"{'':>{_AXIS}}+{'-' * plot.columns}",
        f"{'':>{_AXIS + 1}}{''.join(ruler)}",
        f"{'FLOP/byte of the declared work':>{width}}",
    ]


def _points(chart: RooflineChart, width: int) -> list[str]:
    names = dict(zip(range(len(chart.points)), _NAMES, strict=False))
    heading = _columns(width, "  case", "rate", "FLOP/byte", "of its roof")
    lines = []
    for index, case in enumerate(chart.points):
        intensity = case.intensity_flop_per_byte or 0.0
        shown = f"{intensity:.0f}" if intensity >= 100 else f"{intensity:.3g}"
        name = f"{names.get(index, ' ')} {case.id}"
        lines.append(_columns(width, name, case.rate_text, shown, _of_roof(case)))
    return [heading, *lines]


def _columns(width: int, name: str, rate: str, intensity: str, of_roof: str) -> str:
    rest = f"{rate:>14}  {intensity:>9}  {of_roof:<18}"
    return (
        f"{name:<{width - len(rest)}}{rest}"
        if len(name) <= width - len(rest)
        else f"{name}\n{'':<{width - len(rest)}}{rest}"
    )


def _of_roof(case: ChartCase) -> str:
    return "" if case.of_measured is None else f"{percent_text(case.of_measured, decimals=0)} {case.roof}"


def _roofs(chart: RooflineChart, width: int) -> list[str]:
    ridges = {ridge.label: ridge.flop_per_byte for ridge in chart.ridges}
    roofs = (*chart.memory, *chart.compute)
    names = max(len(roof.label) for roof in roofs)
    lines = [f"{'roof':<{names}}{'measured':>14}{'attributes':>14}{'datasheet':>14}{'ridge':>7}  measured by"[:width]]
    for roof in roofs:
        measured, attributes, datasheet = (
            _value(roof, kind) for kind in (RoofKind.MEASURED, RoofKind.THEORETICAL, RoofKind.DATASHEET)
        )
        ridge = f"{ridges[roof.label]:.3g}" if roof.label in ridges else ""
        case = (roof.measured_case or "").partition("[")[0]
        lines.append(f"{roof.label:<{names}}{measured:>14}{attributes:>14}{datasheet:>14}{ridge:>7}  {case}"[:width])
    return lines


def _value(roof: Roof, kind: RoofKind) -> str:
    value = roof.per_s(kind)
    return "-" if value is None else rate_text(value, roof.unit)


def _rows(chart: RooflineChart, width: int) -> list[str]:
    results = [f"{case.rate_text:>10} {_of_roof(case)}" for case in chart.rows]
    left = width - max(map(len, results)) - 6  # for names and bars
    longest = max((len(case.id) for case in chart.rows if len(case.id) <= left - 10), default=10)
    bar_width = min(24, left - longest)
    lines = ["cases without FLOP, share of the theoretical roof"]
    for case, result in zip(chart.rows, results, strict=True):
        share = case.of_theoretical if case.of_theoretical is not None else case.of_measured
        bar = "" if share is None else f"|{'#' * max(1, round(min(share, 1.0) * bar_width)):<{bar_width}}|"
        name = f"{case.id:<{longest}}" if len(case.id) <= longest else f"{case.id}\n  {'':<{longest}}"
        lines.append(f"  {name} {bar:<{bar_width + 2}} {result}")
    return lines
