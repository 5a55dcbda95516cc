"""The trends of a history as one SVG of small pictures, those first that ask for attention."""

from collections.abc import Sequence
from itertools import chain

from perfgate.core.history import ChipHistory
from perfgate.core.trend import Movement, Trend
from perfgate.report import sentences
from perfgate.report.history_chart import HEIGHT, WIDTH, trend_marks, trend_words
from perfgate.report.history_words import moved_text, ordered_trends, span_text, tally
from perfgate.report.html_blocks import asset, data

# More pictures are looked at by nobody.
MOST_PICTURED = 48
_COLUMNS = 3
_GAP, _EDGE, _HEAD, _TITLE = 24, 20, 44, 34
_STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --muted: #59636e; --line: #d1d9e0; --tone: #2563a8; --suspected: #9a4d00;
  --regressed: #c21c2b; --improved: #1a7f37; font: 12px system-ui, sans-serif }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --muted: #9aa4af; --line: #30363d;
  --tone: #6cb0ff; --suspected: #f0883e; --regressed: #ff7b72; --improved: #3fb950 } }
.paper { fill: var(--paper) }
.title { fill: var(--ink) }
.trend .name { fill: var(--ink); font-size: 11px; font-weight: 600 }
.title { font-size: 15px; font-weight: 600 }
.said { fill: var(--muted) }
"""


def render_history_svg(chips: Sequence[ChipHistory]) -> str:
    """Render the trends of every chip; cases with one session have no picture. Follows light and dark settings."""
    parts: list[str] = []
    top = float(_EDGE)
    width = 2 * _EDGE + _COLUMNS * WIDTH + (_COLUMNS - 1) * _GAP
    for history in chips:
        drawn = [one for one in ordered_trends(history) if one.movement is not Movement.SINGLE]
        parts.append(_heading(history, top, len(drawn)))
        top += _HEAD
        for place, one in enumerate(drawn[:MOST_PICTURED]):
            row, column = divmod(place, _COLUMNS)
            left = _EDGE + column * (WIDTH + _GAP)
            parts.append(_panel(one, left, top + row * (HEIGHT + _TITLE)))
        top += -(-min(len(drawn), MOST_PICTURED) // _COLUMNS) * (HEIGHT + _TITLE)
    label = data("; ".join(chain.from_iterable((sentences.gpu_text(one.gpu), tally(one)) for one in chips)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + _EDGE:g}" width="{width}" '
        f'height="{top + _EDGE:g}" role="img" aria-label="{label}"><style>{asset("trend.css")}{_STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _heading(history: ChipHistory, top: float, drawn: int) -> str:
    badges = "".join(f"  {badge}" for badge, _ in sentences.rehearsal(history.device_kind, ()))
    rest = f"; {drawn - MOST_PICTURED} more not drawn" if drawn > MOST_PICTURED else ""
    name, said = sentences.gpu_text(history.gpu) + badges, f"{span_text(history)}: {tally(history)}{rest}"
    return (
        f'<text class="title" x="{_EDGE}" y="{top + 12:g}">{data(name)}</text>'
        f'<text class="said" x="{_EDGE}" y="{top + 29:g}">{data(said)}</text>'
    )


def _panel(one: Trend, left: float, top: float) -> str:
    name = one.id if len(one.id) <= 42 else f"{one.id[:41]}\N{HORIZONTAL ELLIPSIS}"
    said = moved_text(one) if one.gated else f"{moved_text(one)}, not gated"
    return (
        f'<g class="trend" transform="translate({left:g} {top:g})"><title>{data(trend_words(one))}</title>'
        f'<text class="name" x="0" y="18">{data(name)}</text>'
        f'<text x="{WIDTH - 8}" y="18" text-anchor="end">{data(said)}</text>'
        f'<g transform="translate(0 24)">{trend_marks(one)}</g></g>'
    )
