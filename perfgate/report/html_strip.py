"""A case on one line: where its launches and its interval lie against the baseline and the margin.

All strips share one scale, in margins: the band of what counts as unchanged is equally wide in each
row, so that rows compare at a glance. Left is faster, right is slower.
"""

import math
from collections import Counter
from collections.abc import Sequence

from perfgate.core.case import Unit
from perfgate.core.report import CaseResult
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics
from perfgate.core.units import percent_text
from perfgate.report.html_blocks import data
from perfgate.report.rows import change_text, interval_text, margin_text

_WIDTH, _HEIGHT = 132, 22
_MIDDLE = _WIDTH / 2
_SCALE = 9  # height of the words below
_MARGIN = 20.0  # width of one margin
_BIN = 2.0  # width of a step of the distribution of samples
_MOST = 3.1  # margins; what lies beyond sits at the edge, and an arrow says so


def launch_changes(result: CaseResult, run: Run | None) -> tuple[float, ...]:
    """Return each launch's change relative to the baseline's median, in order; empty where one is unknown."""
    if run is None or result.baseline is None or not result.baseline.value or result.id not in run.cases:
        return ()
    return tuple(one / result.baseline.value - 1 for one in launch_statistics(run, result.id, result.unit))


def sample_changes(result: CaseResult, run: Run | None) -> tuple[float, ...]:
    """Return each sample's change relative to the baseline's median; empty where one is unknown."""
    if run is None or result.baseline is None or not result.baseline.value or result.id not in run.cases:
        return ()
    blocks = [
        block
        for launch in run.launches
        if result.id in launch.cases
        for block in launch.cases[result.id].valid_blocks
        if result.unit is Unit.SECONDS or block.sm_clock_hz is not None
    ]
    return tuple(
        time_s * ((block.sm_clock_hz or 1.0) if result.unit is Unit.CYCLES else 1.0) / result.baseline.value - 1
        for block in blocks
        for time_s in block.times_s
    )


def render_strip(result: CaseResult, run: Run | None = None, *, labelled: bool = False) -> str:
    """Render the strip of a case as inline SVG, with or without its scale; "" without a change or a margin."""
    change, margin = result.change, result.margin
    if change is None or margin is None or not margin.relative:
        return ""
    launches = launch_changes(result, run)
    parts = [
        f'<rect class="band" x="{_MIDDLE - _MARGIN:g}" width="{2 * _MARGIN:g}" height="{_HEIGHT}"/>',
        f'<path class="zero" d="M{_MIDDLE:g} 0V{_HEIGHT}"/>',
    ]
    samples = sample_changes(result, run)
    if samples:
        parts.append(f'<path class="samples" d="{_silhouette(samples, margin.relative)}"/>')
    if change.low is not None and change.high is not None:
        ends = (_place(end, margin.relative) for end in (change.low, change.high))
        parts.append('<path class="interval" d="M{:.1f} 11H{:.1f}"/>'.format(*ends))
    if launches:
        parts.append(f'<path class="launches" d="{_dots(launches, margin.relative)}"/>')
    here = _place(change.value, margin.relative)
    parts.append(f'<path class="here" d="M{here:.1f} 3V19"/>')
    if abs(change.value) > _MOST * margin.relative:
        tip, back = (_WIDTH - 0.5, _WIDTH - 6) if change.value > 0 else (0.5, 6)
        parts.append(f'<path class="beyond" d="M{tip:g} 11L{back:g} 6V16Z"/>')
    if labelled:
        parts += _scale(margin.relative)
    height = _HEIGHT + _SCALE if labelled else _HEIGHT
    kind = "strip labelled" if labelled else "strip"
    title = f"<title>{data(_words(result, launches, samples))}</title>"
    return f'<svg class="{kind}" viewBox="0 0 {_WIDTH} {height}" role="img">{title}{"".join(parts)}</svg>'


def _scale(margin: float) -> list[str]:
    """Name the ends of the band and its middle; the outer words begin at the ends, lest they run into the inner one."""
    words = (("end", -1, f"-{margin_text(margin)}"), ("middle", 0, "baseline"), ("start", 1, f"+{margin_text(margin)}"))
    return [
        f'<text x="{_MIDDLE + side * (_MARGIN - 3):g}" y="{_HEIGHT + _SCALE - 2}" text-anchor="{anchor}">'
        f"{data(word)}</text>"
        for anchor, side, word in words
    ]


def _place(change: float, margin: float) -> float:
    return _MIDDLE + max(-_MOST, min(_MOST, change / margin)) * _MARGIN


def _dots(changes: Sequence[float], margin: float) -> str:
    """Strokes of no length with round ends, the first launch at the top: a drift shows as a slope."""
    step = (_HEIGHT - 8) / max(1, len(changes) - 1)
    return "".join(f"M{_place(one, margin):.1f} {4 + index * step:.1f}h0" for index, one in enumerate(changes))


def _silhouette(changes: Sequence[float], margin: float) -> str:
    """Draw how the samples are distributed, as the outline of a histogram that stands on the lower edge."""
    count = Counter(math.floor(_place(one, margin) / _BIN) for one in changes)
    highest = max(count.values())
    steps = "".join(
        f"M{place * _BIN:g} {_HEIGHT}v{-max(1.0, times / highest * (_HEIGHT - 2)):.1f}h{_BIN:g}V{_HEIGHT}"
        for place, times in sorted(count.items())
    )
    return f"{steps}Z"


def _words(result: CaseResult, launches: Sequence[float], samples: Sequence[float]) -> str:
    interval = interval_text(result.change)
    words = f"change {change_text(result.change)}{f' ({interval})' if interval else ''}"
    words += f", margin {margin_text(result.margin.relative)}" if result.margin else ""
    if launches:
        low, high = (percent_text(end, signed=True) for end in (min(launches), max(launches)))
        words += f"; {len(launches)} launches from {low} to {high}"
    if samples:
        ordered = sorted(samples)
        ends = (ordered[round(part * (len(ordered) - 1))] for part in (0.05, 0.95))
        low, high = (percent_text(end, signed=True) for end in ends)
        words += f"; {len(ordered)} samples, nine tenths of them from {low} to {high}"
    return words
