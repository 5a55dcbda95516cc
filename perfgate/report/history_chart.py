"""The trend of a case as a small picture in SVG: its sessions, the margin around the first, steps and drift.

Colours come from classes (``assets/trend.css``), so that a page and a file of its own dress it alike.
"""

from perfgate.core.trend import Trend
from perfgate.core.units import percent_text
from perfgate.report.history_words import moved_text, notes
from perfgate.report.html_blocks import data
from perfgate.report.rows import margin_text

WIDTH, HEIGHT = 320, 112
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 312, 8, 90


def render_trend(one: Trend) -> str:
    """Render a trend as inline SVG; "" for one session."""
    if len(one.points) < 2:
        return ""
    return (
        f'<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{data(trend_words(one))}</title>'
        f"{trend_marks(one)}</svg>"
    )


def trend_words(one: Trend) -> str:
    """Say what the picture shows."""
    said = "; ".join(notes(one)) or "steady"
    return f"{one.id}: {len(one.points)} sessions, {moved_text(one)} from the first to the newest; {said}"


def trend_marks(one: Trend) -> str:
    """Return the marks of the picture, within WIDTH and HEIGHT."""
    margin = one.margin.relative
    values = [point.relative for point in one.points]
    low, high = min(*values, -1.5 * margin), max(*values, 1.5 * margin)

    def across(index: int) -> float:
        return _LEFT + 6 + index * (_RIGHT - _LEFT - 12) / (len(values) - 1)

    def up(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    top, bottom = up(margin), up(-margin)
    line = "L".join(f"{across(index):.1f} {up(value):.1f}" for index, value in enumerate(values))
    dots = "".join(
        f'<path class="session" d="M{across(index):.1f} {up(point.relative):.1f}h0"><title>'
        f"{data(point.recorded_utc)}: {percent_text(point.relative, signed=True)}</title></path>"
        for index, point in enumerate(one.points)
    )
    steps = "".join(
        f'<path class="step" d="M{(across(change.at) + across(change.at - 1)) / 2:.1f} {_TOP}V{_BOTTOM}"/>'
        for change in one.steps
    )
    drift = ""
    if one.drift is not None:
        since, last = one.drift.since, len(values) - 1
        ends = "L".join(f"{across(place):.1f} {up(values[place]):.1f}" for place in (since, last))
        direction = "slower" if one.drift.change.value > 0 else "faster"
        drift = f'<path class="drift {direction}" d="M{ends}"/>'
    words = (
        (_LEFT - 5, top + 3.5, "end", f"+{margin_text(margin)}"),
        (_LEFT - 5, up(0) + 3.5, "end", "first"),
        (_LEFT + 2, HEIGHT - 6, "start", one.points[0].recorded_utc[:10]),
        (_RIGHT, HEIGHT - 6, "end", one.points[-1].recorded_utc[:10]),
    )
    # Where the scale is so wide that the two words would meet, the margin's is left out.
    shown = words if up(0) - top > 11 else words[1:]
    texts = "".join(
        f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}">{data(word)}</text>' for x, y, anchor, word in shown
    )
    return (
        f'<rect class="band" x="{_LEFT}" y="{top:.1f}" width="{_RIGHT - _LEFT}" height="{bottom - top:.1f}"/>'
        f'<path class="zero" d="M{_LEFT} {up(0):.1f}H{_RIGHT}"/>{steps}<path class="line" d="M{line}"/>'
        f"{drift}{dots}{texts}"
    )
