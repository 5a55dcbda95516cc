"""How the GPU fared while a run was measured: clock, temperature and power over its launches."""

from collections.abc import Iterable
from dataclasses import dataclass

from perfgate.core.run import Launch, Run
from perfgate.core.summary import median_or_none
from perfgate.core.units import clock_text
from perfgate.report.html_blocks import data, folded, table

_WIDTH, _HEIGHT = 300, 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 292, 14, 90
# A chart of steady values is not stretched until noise looks like news.
_LEAST_CLOCK_HZ, _LEAST_TEMPERATURE_C, _LEAST_POWER_W = 40e6, 4.0, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One value a launch: medians over its cases; None where it could not be read."""

    name: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]
    least_range: float


def render_session(run: Run) -> str:
    """Render a chart for each quantity that was read, and all of them as a table; "" where nothing was."""
    every = _series(run.launches)
    charts = "".join(_chart(one) for one in every if any(value is not None for value in one.values))
    if not charts:
        return ""
    rows = (
        (str(launch.index + 1), launch.started_utc, *(one.texts[place] or "unknown" for one in every), _ending(launch))
        for place, launch in enumerate(run.launches)
    )
    headings = ("launch", "started", *(one.name for one in every), "ended")
    return f'<div class="charts">{charts}</div>\n' + folded("The same as a table", table("Launches", headings, rows))


def _ending(launch: Launch) -> str:
    if launch.failure:
        return launch.failure
    return "; ".join(f"{case_id}: {why}" for case_id, why in launch.failures.items()) or "complete"


def _series(launches: tuple[Launch, ...]) -> tuple[_Series, ...]:
    clocks, temperatures, powers = (
        tuple(median_or_none(values(launch)) for launch in launches) for values in (_clocks, _temperatures, _powers)
    )
    return (
        _Series(
            name="SM clock",
            values=clocks,
            texts=tuple("" if one is None else clock_text(one) for one in clocks),
            least_range=_LEAST_CLOCK_HZ,
        ),
        _Series(
            name="temperature",
            values=temperatures,
            texts=tuple("" if one is None else f"{one:.0f} °C" for one in temperatures),
            least_range=_LEAST_TEMPERATURE_C,
        ),
        _Series(
            name="power",
            values=powers,
            texts=tuple("" if one is None else f"{one:.0f} W" for one in powers),
            least_range=_LEAST_POWER_W,
        ),
    )


def _clocks(launch: Launch) -> Iterable[float | None]:
    return (block.sm_clock_hz for case in launch.cases.values() for block in case.valid_blocks)


def _temperatures(launch: Launch) -> Iterable[float | None]:
    return (case.temperature_c for case in launch.cases.values())


def _powers(launch: Launch) -> Iterable[float | None]:
    return (case.power_w for case in launch.cases.values())


def _chart(series: _Series) -> str:
    known = [(index, value, series.texts[index]) for index, value in enumerate(series.values) if value is not None]
    low_text, high_text = (pick(known, key=lambda one: one[1])[2] for pick in (min, max))
    words = low_text if low_text == high_text else f"{low_text} to {high_text}"
    low, high = (pick(value for _, value, _ in known) for pick in (min, max))
    middle, span = (low + high) / 2, max(high - low, series.least_range)
    step = (_RIGHT - _LEFT) / max(1, len(series.values) - 1)
    start = _LEFT if len(series.values) > 1 else (_LEFT + _RIGHT) / 2

    def place(index: int, value: float) -> str:
        return f"{start + index * step:.1f} {(_TOP + _BOTTOM) / 2 - (value - middle) / span * (_BOTTOM - _TOP - 8):.1f}"

    line = "L".join(place(index, value) for index, value, _ in known)
    dots = "".join(
        f'<path class="launch" d="M{place(index, value)}h0"><title>launch {index + 1}: {data(text)}</title></path>'
        for index, value, text in known
    )
    last = len(series.values)
    return (
        f'<figure class="chart"><figcaption><span>{data(series.name)}</span> <b>{data(words)}</b></figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{data(f"{series.name} by launch: {words}")}">'
        f'<path class="axis" d="M{_LEFT} {_BOTTOM + 4}H{_RIGHT}"/><path class="line" d="M{line}"/>{dots}'
        f'<text x="{_LEFT}" y="{_HEIGHT - 2}">launch 1</text>'
        + (f'<text x="{_RIGHT}" y="{_HEIGHT - 2}" text-anchor="end">{last}</text>' if last > 1 else "")
        + "</svg></figure>"
    )
