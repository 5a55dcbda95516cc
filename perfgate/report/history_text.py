"""The history of GPUs for a person at a terminal or reading a log: a table with a line of each case's levels."""

from collections.abc import Sequence

from perfgate.core.case import Unit
from perfgate.core.device import DeviceKind
from perfgate.core.history import ChipHistory
from perfgate.core.trend import Movement, Trend
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.history_words import chip_text, is_loud, moved_text, notes, ordered_trends, span_text, tally
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import margin_text, time_of

_COLUMNS = (
    Column(heading="case"),
    Column(heading="first", align="right"),
    Column(heading="newest", align="right"),
    Column(heading="change", align="right"),
    Column(heading="margin", align="right"),
    Column(heading="sessions", align="right"),
    Column(heading="trend"),
)
_STYLES = {Movement.DRIFTED: "bold red", Movement.STEPPED: "bold yellow", Movement.STEADY: "green"}
_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 24
# Of what moves nobody, so many lines unless verbose.
_QUIET_LISTED = 20


def render_history(
    chips: Sequence[ChipHistory],
    *,
    width: int = 80,
    color: bool = False,
    unicode: bool = True,
    verbose: bool = False,
) -> str:
    """Render the history of every chip: what drifted, what stepped, the rest."""
    page = Page(width=width, color=color, unicode=unicode)
    for place, history in enumerate(chips):
        if place:
            page.blank()
        _add_chip(page, history, verbose=verbose)
    return page.text


def _add_chip(page: Page, history: ChipHistory, *, verbose: bool) -> None:
    drifted, stepped = history.moved(Movement.DRIFTED), history.moved(Movement.STEPPED)
    style = "red" if drifted else "yellow" if stepped else "green"
    add_banner(
        page,
        (("HISTORY", f"bold {style}"), (f" of {sentences.gpu_text(history.gpu)}", "bold")),
        style=style,
        badges=sentences.rehearsal(history.device_kind, ()) if history.device_kind != DeviceKind.CUDA else (),
        lines=(f"{span_text(history)}: {tally(history)}",),
        details=("" if history.gpu.chip else chip_text(history),),
    )
    if len(history.sessions) < 2:
        page.line("A trend needs two sessions at least.", "dim")
    page.blank()
    page.table(_COLUMNS, _lines(page, history, verbose=verbose))
    if len(history.sessions) > 1:
        page.line(
            "Medians of the first and the newest session that are comparable; a positive change is slower."
            + (" trend: every session, lowest to highest, at least two margins high." if page.unicode else ""),
            "dim",
        )


def _lines(page: Page, history: ChipHistory, *, verbose: bool) -> list[Line]:
    lines: list[Line] = []
    group = ""
    quiet = 0
    for one in ordered_trends(history):
        name = one.movement.value if one.gated else "not gated"
        if name != group:
            lines.append(Line(heading=name, style=_STYLES.get(one.movement, "") if one.gated else "dim"))
            group, quiet = name, 0
        quiet += 1
        if not (one.gated and is_loud(one)) and quiet > _QUIET_LISTED and not verbose:
            continue
        lines.append(_line(page, one))
    hidden = sum(bool(one.heading) for one in lines)
    left_out = len(history.trends) - (len(lines) - hidden)
    if left_out:
        lines.append(Line(heading=f"{left_out} more steady or not gated: --verbose lists them", style="dim"))
    return lines


def _line(page: Page, one: Trend) -> Line:
    first, newest = one.points[0], one.points[-1]
    in_cycles = "judged in SM cycles" if one.unit is Unit.CYCLES and is_loud(one) else ""
    return Line(
        cells=(
            one.id,
            time_of(first.time_s),
            time_of(newest.time_s),
            moved_text(one),
            margin_text(one.margin.relative),
            str(len(one.points)),
            _bars(one) if page.unicode else "",
        ),
        style="" if one.gated else "dim",
        notes=tuple((text, "" if one.gated else "dim") for text in (*notes(one), in_cycles) if text),
    )


def _bars(one: Trend) -> str:
    """Draw the levels as bars; the scale spans two margins at least, so that noise does not look like news."""
    values = [point.relative for point in one.points]
    if len(values) < 2:
        return ""
    if len(values) > _MOST_BARS:
        last = len(values) - 1
        values = [values[round(place * last / (_MOST_BARS - 1))] for place in range(_MOST_BARS)]
    middle = (min(values) + max(values)) / 2
    span = max(max(values) - min(values), 2 * one.margin.relative)
    return "".join(_BARS[round(((value - middle) / span + 0.5) * (len(_BARS) - 1))] for value in values)
