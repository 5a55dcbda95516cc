"""The history of GPUs on an HTML page: a card for each trend that asks for attention, and a table of all."""

from collections.abc import Iterator, Sequence

from perfgate.core.history import ChipHistory
from perfgate.core.trend import Movement, Trend
from perfgate.report import sentences
from perfgate.report.history_chart import render_trend
from perfgate.report.history_words import chip_text, is_loud, moved_text, notes, ordered_trends, span_text, tally
from perfgate.report.html_blocks import bullets, case_name, data, folded, frame, section, table
from perfgate.report.rows import margin_text, time_of

# More cards bury the table, which has every case; more pictures make a page slow.
_MOST_CARDS = 24
_MOST_PICTURED = 200
_TONES = {Movement.DRIFTED: "regressed", Movement.STEPPED: "suspected"}
_HEADINGS = ("case", "trend", "first", "newest", "change", "margin", "sessions", "what happened")


def render_history_html(chips: Sequence[ChipHistory]) -> str:
    """Render the history of every chip as a page of its own."""
    drifted = sum(len(one.moved(Movement.DRIFTED)) for one in chips)
    stepped = sum(len(one.moved(Movement.STEPPED)) for one in chips)
    sessions = sum(len(one.sessions) for one in chips)
    found = [f"{drifted} drifted"] * bool(drifted) + [f"{stepped} stepped"] * bool(stepped)
    title = f"History: {', '.join(found) or 'nothing moved'}"
    badges = dict(badge for one in chips for badge in sentences.rehearsal(one.device_kind, ()))
    marks = "".join(f' <span class="badge">{data(badge)}</span>' for badge in badges)
    warnings = "".join(f'<p class="rehearsal"><b>{data(badge)}</b> {data(text)}</p>' for badge, text in badges.items())
    mood = "bad" if drifted else "doubtful" if stepped else "calm"
    head = (
        f'<header class="verdict" data-mood="{mood}">\n<p class="name">perfgate</p>\n<h1>{data(title)}{marks}</h1>\n'
        f'<p class="summary">{data(sentences.counted(sessions, "session", "sessions"))} of '
        f"{data(sentences.counted(len(chips), 'chip', 'chips'))}. Drift is seen against the first session, steps "
        f"between neighbours; nothing is judged here.</p>{warnings}\n</header>"
    )
    parts = (
        section(f"chip-{place}", sentences.gpu_text(history.gpu), render_chip_history(history))
        for place, history in enumerate(chips)
    )
    return frame(f"perfgate: {title}", "\n".join((head, "<main>", *parts, "</main>")))


def render_chip_history(history: ChipHistory) -> str:
    """Render the history of one chip: cards, the table of all cases, and its sessions."""
    known = "" if history.gpu.chip else f" {chip_text(history).capitalize()}."
    said = f'<p class="muted">{data(f"{span_text(history)}: {tally(history)}.{known}")}</p>'
    trends = ordered_trends(history)
    loud = [one for one in trends if one.gated and is_loud(one)]
    cards = "\n".join(_card(one) for one in loud[:_MOST_CARDS])
    rows = "\n".join(_row(one, render_trend(one) if place < _MOST_PICTURED else "") for place, one in enumerate(trends))
    head = "".join(f'<th scope="col">{heading}</th>' for heading in _HEADINGS)
    every = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{data(f"Trends of {history.gpu.name}")}">'
        f'<table class="plain trends"><caption>A positive change is slower. The band is the margin around the first '
        f"session.</caption><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )
    headings = ("session", "launches", "cases", "driver", "commit", "why")
    return "\n".join(
        filter(
            None,
            (
                said,
                f'<ul class="cards">\n{cards}\n</ul>' if cards else "",
                folded("Every case", every) if len(history.sessions) > 1 else every,
                folded("Sessions", table("Sessions", headings, _sessions(history))),
            ),
        )
    )


def _card(one: Trend) -> str:
    return (
        f'<li class="card" data-verdict="{_tone(one)}"><h3>{case_name(one.id)}</h3>'
        f'<span class="pill">{one.movement}</span>'
        f'<p class="figures"><span class="big">{data(moved_text(one))}</span> <span class="muted">since the first of '
        f"{len(one.points)} sessions, margin {data(margin_text(one.margin.relative))}</span></p>"
        f"{render_trend(one)}{bullets(notes(one))}</li>"
    )


def _tone(one: Trend) -> str:
    """Return the verdict whose colour a trend has."""
    if not one.gated:
        return "not-gated"
    return "improved" if is_loud(one) and one.since_first < 0 else _TONES.get(one.movement, "unchanged")


def _row(one: Trend, picture: str) -> str:
    texts = (
        time_of(one.points[0].time_s),
        time_of(one.points[-1].time_s),
        moved_text(one),
        margin_text(one.margin.relative),
        str(len(one.points)),
    )
    what = one.movement.value if one.gated else f"{one.movement}, not gated"
    cells = "".join(f"<td>{data(text)}</td>" for text in texts)
    return (
        f'<tr data-verdict="{_tone(one)}">'
        f'<th scope="row"><span class="id">{case_name(one.id)}</span></th>'
        f"<td>{picture}</td>{cells}"
        f"<td>{data('; '.join((what, *notes(one))))}</td></tr>"
    )


def _sessions(history: ChipHistory) -> Iterator[tuple[str, ...]]:
    for one in history.sessions:
        commit = (one.commit or "")[:12]
        yield one.recorded_utc, str(one.launches), str(one.cases), one.driver_version or "", commit, one.reason
