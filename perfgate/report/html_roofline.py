"""The roofline on an HTML page: a chart to point at, drawn by the page's script, and the same as a still picture.

The still picture is what a reader without scripts and a printer get. A case without FLOP has no place
among FLOP/s: such cases stand in a picture of their own.
"""

import json
import re
from dataclasses import replace

from perfgate.core.units import bytes_text, percent_text, rate_text
from perfgate.report.escape import printable
from perfgate.report.html_blocks import data
from perfgate.report.roofline_chart import ChartCase, RooflineChart
from perfgate.report.roofline_figure import render_roofline_svg
from perfgate.report.roofline_lines import RoofLine, axis_ranges, roof_lines
from perfgate.report.rows import VERDICT_ORDER, intensity_text

# A still picture of more cases is a blot, and takes seconds to draw; the chart takes any number.
MOST_PICTURED = 60

# The names within a picture, where they are given and where they are used: two pictures share a page.
_NAMES = re.compile(r'( id="|href="#|url\(#)')
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


def render_roofline(chart: RooflineChart) -> str:
    """Render a chart as HTML; "" where it has nothing to show."""
    if not (chart.points or chart.rows):
        return ""
    parts = []
    if chart.points:
        parts.append(_interactive(chart))
        parts.append(f'<div class="still">{_picture(_part(chart, points=True))}</div>')
    if chart.rows:
        parts.append(_NAMES.sub(r"\1rows-", _picture(_part(chart, points=False))))
    left_out = max(len(chart.points) - MOST_PICTURED, 0), max(len(chart.rows) - MOST_PICTURED, 0)
    if sum(left_out):
        parts.append(f'<p class="muted">Not in the still pictures: {sum(left_out)} cases; the table has them.</p>')
    return "\n".join(parts)


def _part(chart: RooflineChart, *, points: bool) -> RooflineChart:
    """Return the part of a chart that one still picture shows: of its most urgent cases as many as it can."""
    if points:
        return replace(chart, points=_most_urgent(chart.points), rows=(), footer=() if chart.rows else chart.footer)
    title = "" if chart.points else chart.title
    return replace(chart, title=title, points=(), rows=_most_urgent(chart.rows), memory=(), compute=(), ridges=())


def _most_urgent(cases: tuple[ChartCase, ...]) -> tuple[ChartCase, ...]:
    if len(cases) <= MOST_PICTURED:
        return cases
    urgency = {verdict: place for place, verdict in enumerate(VERDICT_ORDER)}
    ranked = sorted(cases, key=lambda case: urgency[case.verdict] if case.verdict is not None else len(urgency))
    kept = {id(case) for case in ranked[:MOST_PICTURED]}
    return tuple(case for case in cases if id(case) in kept)


def _picture(chart: RooflineChart) -> str:
    svg = render_roofline_svg(chart)
    inside = _METADATA.sub("", svg[svg.index("<svg") :], count=1)
    name = chart.title or "Cases without FLOP"
    label = data(f"{name}; the table of cases says the same in words")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{data(name)}"><figure class="roofline">'
        f"{inside.replace('<svg', f'<svg role={chr(34)}img{chr(34)} aria-label={chr(34)}{label}{chr(34)}', 1)}"
        "</figure></div>"
    )


def _interactive(chart: RooflineChart) -> str:
    """Return the place of the chart and its numbers; the script of the page draws it, else it stays hidden."""
    # What would end the script element, or begin a comment in it, is written as an escape.
    numbers = json.dumps(_numbers(chart), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<div class="live" hidden><p class="muted">Point at a case, or walk through the cases with the arrow keys; '
        "Enter leads to its row. Drag to zoom, Escape or a double click shows all again.</p>"
        f'<div class="plot" tabindex="0" role="group" aria-label="{data(chart.title)}: interactive; the table of cases '
        'says the same in words"></div><p class="told" role="status"></p></div>'
        f'<script type="application/json" id="roofline-numbers">{numbers}</script>'
    )


def _numbers(chart: RooflineChart) -> dict[str, object]:
    intensity, rate = axis_ranges(chart)
    return {
        "x": _rounded(intensity),
        "y": _rounded(rate),
        "roofs": [_roof(line) for line in roof_lines(chart, intensity)],
        "cases": [_case(case) for case in chart.points],
    }


def _roof(line: RoofLine) -> dict[str, object]:
    unit = line.roof.unit
    return {
        "name": printable(f"{line.roof.label} {rate_text(line.value_per_s, unit)}"),
        "kind": line.kind.value,
        "named": line.value_per_s == line.roof.best_per_s,
        "memory": unit == "B",
        "line": [_rounded(line.start), _rounded(line.end)],
    }


def _case(case: ChartCase) -> dict[str, object]:
    intensity = case.intensity_flop_per_byte or 0.0
    told = [f"{intensity_text(intensity)} FLOP/byte", f"{bytes_text(case.work.moved_bytes)} moved"]
    if case.baseline_rate_per_s is not None:
        told.append(f"baseline {rate_text(case.baseline_rate_per_s, case.unit)}")
    if case.of_theoretical is not None:
        told.append(f"{percent_text(case.of_theoretical, decimals=0)} of theoretical {case.roof}")
    shown: dict[str, object] = {
        "id": printable(case.id),
        "verdict": case.verdict.value if case.verdict is not None else "",
        "moved": case.is_moved,
        "told": printable("; ".join((case.title, *told))),
        "at": _rounded((intensity, case.rate_per_s or 0.0)),
    }
    if case.is_moved and case.baseline_rate_per_s is not None:
        shown["was"] = _rounded((case.baseline_rate_per_s,))[0]
    return shown


def _rounded(values: tuple[float, ...]) -> list[float]:
    """Six digits: more than a pixel shows."""
    return [float(f"{value:.6g}") for value in values]
