"""Where the axes of a roofline end and where its roofs run: numbers that the picture and the page draw alike."""

from dataclasses import dataclass

from perfgate.core.case import MemoryLevel
from perfgate.core.roofs import Roof, RoofKind
from perfgate.report.roofline_chart import RooflineChart

Range = tuple[float, float]
Place = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLine:
    """A straight line on logarithmic axes, from left to right: intensity [FLOP/byte], rate [FLOP/s]."""

    roof: Roof
    kind: RoofKind
    value_per_s: float
    start: Place
    end: Place


def axis_ranges(chart: RooflineChart) -> tuple[Range, Range]:
    """Return the ranges of intensity and rate: they reach beyond everything that is drawn, nothing is clipped."""
    places = [case.intensity_flop_per_byte for case in chart.points] + [ridge.flop_per_byte for ridge in chart.ridges]
    intensities = [place for place in places if place]
    rates = [rate for case in chart.points for rate in (case.rate_per_s, case.baseline_rate_per_s) if rate]
    rates += [value for roof in chart.compute for _, value in drawn_values(roof)]
    return (
        (min(intensities, default=0.1) / 3, max(intensities, default=1e3) * 6),
        (min(rates, default=1e9) / 6, max(rates, default=1e12) * 4),
    )


def drawn_values(roof: Roof) -> list[tuple[RoofKind, float]]:
    """Return the values worth a line of their own: paper values within 1 % of each other are drawn once."""
    theoretical, datasheet = roof.theoretical_per_s, roof.datasheet_per_s
    kinds = [(RoofKind.MEASURED, roof.measured_per_s), (RoofKind.THEORETICAL, theoretical)]
    if theoretical is None or datasheet is None or abs(datasheet / theoretical - 1) > 0.01:
        kinds.append((RoofKind.DATASHEET, datasheet))
    return [(kind, value) for kind, value in kinds if value is not None]


def roof_lines(chart: RooflineChart, intensity: Range) -> tuple[RoofLine, ...]:
    """Return the lines of all roofs over a range of intensity: memory roofs end where they meet compute."""
    low, high = intensity
    lines = []
    for roof in chart.memory:
        for kind, rate in drawn_values(roof):
            tops = [value for one in chart.compute for key, value in drawn_values(one) if key is kind]
            tops = tops or [one.best_per_s for one in chart.compute if one.best_per_s] or [rate * high]
            end = (max(tops) / rate, max(tops))
            lines.append(RoofLine(roof=roof, kind=kind, value_per_s=rate, start=(low, rate * low), end=end))
    dram = next((roof for roof in chart.memory if roof.key == MemoryLevel.DRAM), None)
    for roof in chart.compute:
        for kind, rate in drawn_values(roof):
            memory = None if dram is None else dram.per_s(kind) or dram.best_per_s
            start = (rate / memory if memory else low, rate)
            lines.append(RoofLine(roof=roof, kind=kind, value_per_s=rate, start=start, end=(high, rate)))
    return tuple(lines)
