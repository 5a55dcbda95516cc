"""The cases on an HTML page: a card for each that asks for attention, and a table of all to sort and filter."""

from collections import Counter
from collections.abc import Sequence

from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict
from perfgate.report.html_blocks import bullets, case_name, data
from perfgate.report.html_strip import render_strip
from perfgate.report.rows import QUIET_VERDICTS, VERDICT_ORDER, Row, verdict_text
from perfgate.report.sentences import counted

# Pictures of more rows make a page slow, and nobody compares that many by eye.
MOST_STRIPS = 200
# More cards bury the table; it shows the others.
MOST_CARDS = 24

_HEADINGS = (
    ("case", "text"),
    ("verdict", "number"),
    ("baseline", "number"),
    ("now", "number"),
    ("change", "number"),
    ("margin", "number"),
    ("in margins", "number"),
    ("of its roof", "number"),
)


def render_cards(rows: Sequence[Row], run: Run | None) -> str:
    """Render what moved or could not be judged, most urgent first; "" where nothing did."""
    loud = [one for one in rows if _is_loud(one)]
    cards = "\n".join(_card(row, run) for row in loud[:MOST_CARDS])
    if not cards:
        return ""
    more = len(loud) - MOST_CARDS
    rest = f'<p class="muted">{counted(more, "more case", "more cases")}: see the table.</p>' if more > 0 else ""
    return f'<ul class="cards">\n{cards}\n</ul>{rest}'


def _is_loud(row: Row) -> bool:
    verdict = row.result.verdict
    return verdict not in QUIET_VERDICTS and verdict is not CaseVerdict.NOT_COMPARABLE


def _card(row: Row, run: Run | None) -> str:
    moved = f'<span class="big">{data(row.change)}</span>' if row.change else ""
    interval = f'<span class="muted">{data(f"({row.interval}), margin {row.margin_with_source}")}</span>'
    now = data(", ".join(filter(None, (row.time, row.rate))))
    times = " · ".join(filter(None, (f"now {now}" if now else "", data(row.was))))
    return (
        f'<li class="card" data-verdict="{row.result.verdict.value}"><h3>{case_name(row.id)}</h3>'
        f"{_pill(row)}"
        + (f'<p class="figures">{moved} {interval if row.change and row.interval else ""}</p>' if moved else "")
        + render_strip(row.result, run, labelled=True)
        + (f"<p>{times}</p>" if times else "")
        + bullets(filter(None, (row.confirmation, *row.notes)))
        + "</li>"
    )


def render_case_table(rows: Sequence[Row], run: Run | None) -> str:
    """Render the controls and the table of all cases; without scripts the table alone, in the order of attention."""
    if not rows:
        return '<p class="muted">There are no cases.</p>'
    # Roles are spelled out: where a narrow screen shows rows as cards, the style would take them away.
    heads = "".join(f'<th scope="col" role="columnheader" data-kind="{kind}">{name}</th>' for name, kind in _HEADINGS)
    lines = "\n".join(_line(row, run, has_strip=place < MOST_STRIPS) for place, row in enumerate(rows))
    what = "shape: samples; dots: launches, the first on top; " if run is not None else ""
    unpictured = f" Only the first {MOST_STRIPS} cases have a picture." if len(rows) > MOST_STRIPS else ""
    return (
        f"{_controls(rows)}\n"
        '<table class="cases" role="table">\n'
        "<caption>A positive change is slower. In margins: the band is what counts as unchanged, "
        f"right of it is slower; {what}bar: interval; tick: estimate.{unpictured}</caption>\n"
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{lines}\n</tbody></table>'
    )


def _controls(rows: Sequence[Row]) -> str:
    count = Counter(row.result.verdict for row in rows)
    choices = "".join(
        f'<label data-verdict="{one.value}"><input type="checkbox" value="{one.value}" checked>'
        f"<span>{verdict_text(one)} <b>{count[one]}</b></span></label>"
        for one in VERDICT_ORDER
        if count[one]
    )
    return (
        '<form class="controls" hidden>'
        '<label class="search"><span>Filter by name</span>'
        '<input type="search" id="filter" autocomplete="off" spellcheck="false"></label>'
        f'<fieldset><legend>Show</legend>{choices}</fieldset><p role="status" class="muted"></p></form>'
    )


def _line(row: Row, run: Run | None, *, has_strip: bool) -> str:
    result, position = row.result, row.result.roofline
    change, margin = result.change, result.margin
    in_margins = change.value / margin.relative if change and margin and margin.relative else None
    notes = bullets(filter(None, (row.confirmation, *row.notes)))
    more = f"<details><summary>why</summary>{notes}</details>" if notes else ""
    cells = (
        _cell("verdict", VERDICT_ORDER.index(result.verdict), _pill(row)),
        _cell("baseline", result.baseline_s, _stacked(row.baseline_time, row.baseline_rate)),
        _cell("now", result.candidate_s, _stacked(row.time, row.rate)),
        _cell("change", change.value if change else None, _stacked(row.change, row.interval), "change"),
        _cell("margin", margin.relative if margin else None, _stacked(row.margin, row.margin_source)),
        _cell("in margins", in_margins, render_strip(result, run) if has_strip else "", "drawn"),
        _cell("of its roof", position.of_measured if position else None, _stacked(row.of_roof, _place(row))),
    )
    return (
        f'<tr role="row" data-verdict="{result.verdict.value}">'
        f'<th scope="row" role="rowheader"><span class="id">{case_name(row.id)}</span>{more}</th>{"".join(cells)}</tr>'
    )


def _place(row: Row) -> str:
    bound = f"{row.bound}-bound" if row.bound else ""
    return ", ".join(filter(None, (bound, f"{row.intensity} FLOP/B" if row.intensity else "")))


def _cell(label: str, value: float | None, inside: str, kind: str = "") -> str:
    key = "" if value is None else f' data-value="{value:.9g}"'
    css = " ".join(filter(None, (kind, "" if inside else "empty")))
    return f'<td role="cell" data-label="{label}"{key}{f" class={chr(34)}{css}{chr(34)}" if css else ""}>{inside}</td>'


def _stacked(first: str, second: str) -> str:
    below = f"<small>{data(second)}</small>" if second else ""
    return f"{data(first)}{below}"


def _pill(row: Row) -> str:
    return f'<span class="pill">{data(row.verdict)}</span>'
