"""The table of latencies: what is believed, what is published, what a run measured."""

from collections.abc import Sequence

from perfgate.core.latency import Latency, LatencyTable, LatencyUnit, measured_latency_cycles, measured_latency_s
from perfgate.core.run import Run
from perfgate.core.units import clock_text, time_text
from perfgate.report.layout import Column, Line, Page


def render_latencies(
    table: LatencyTable, *, clock_hz: float, run: Run | None, width: int, color: bool, unicode: bool
) -> str:
    """Render every operation with its published band, in cycles and at ``clock_hz``, and the measured value."""
    page = Page(width=width, color=color, unicode=unicode)
    page.line(f"Latencies; cycles at {clock_text(clock_hz)}", "bold")
    columns = (
        Column(heading="operation"),
        Column(heading="published", align="right"),
        Column(heading="time", align="right"),
        Column(heading="measured", align="right"),
    )
    lines: list[Line] = []
    for group in dict.fromkeys(latency.group for latency in table.latencies):
        lines.append(Line(heading=group.value, style="bold"))
        lines += [_line(one, clock_hz, run) for one in table.latencies if one.group is group]
    page.table(columns, lines)
    page.blank()
    for key, source in table.sources.items():
        page.labelled(key, [source], label_width=12)
    return page.text


def _line(latency: Latency, clock_hz: float, run: Run | None) -> Line:
    low, high = _band(latency)
    in_cycles = latency.unit is LatencyUnit.CYCLES
    factor = 1 / clock_hz if in_cycles else 1.0
    published = "" if low is None or not in_cycles else _span(f"{low:g}", f"{high:g}", "cycles")
    seconds = "" if low is None or high is None else _span(time_text(low * factor), time_text(high * factor), "")
    return Line(
        cells=(latency.label, published, seconds, "" if run is None else _measured(latency, run)),
        notes=tuple((note, "dim") for note in _notes(latency)),
    )


def _measured(latency: Latency, run: Run) -> str:
    time_s = measured_latency_s(latency, run)
    cycles = measured_latency_cycles(latency, run) if latency.unit is LatencyUnit.CYCLES else None
    parts = (
        None if cycles is None else f"{cycles:.1f} cycles",
        None if time_s is None else time_text(time_s),
    )
    return ", ".join(part for part in parts if part)


def _band(latency: Latency) -> tuple[float | None, float | None]:
    lows = [one.low for one in latency.published]
    return min(lows, default=None), max((one.high for one in latency.published), default=None)


def _span(low: str, high: str, unit: str) -> str:
    return f"{low} {unit}".strip() if low == high else f"{low}-{high} {unit}".strip()


def _notes(latency: Latency) -> Sequence[str]:
    notes = []
    if latency.common_belief:
        notes.append(f"often quoted: {latency.common_belief}")
    if latency.correction:
        notes.append(f"right: {latency.correction}")
    if latency.published:
        notes.append(
            "; ".join(
                f"{one.gpu} {_span(_value(latency, one.low), _value(latency, one.high), '')} {one.source}"
                for one in latency.published
            )
        )
    return notes


def _value(latency: Latency, value: float) -> str:
    return f"{value:g}" if latency.unit is LatencyUnit.CYCLES else time_text(value)
