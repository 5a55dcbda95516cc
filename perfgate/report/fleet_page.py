"""A judged fleet as one HTML page that needs no other file: what was found, a map of all GPUs by case, tables."""

import json
from collections import Counter

from perfgate.core.fleet_report import FleetMember, FleetReport, Standing
from perfgate.core.units import percent_text
from perfgate.errors import ExitCode
from perfgate.report.fleet_text import boards_text, conditions_text, headline, rule_text, slow_text, tally
from perfgate.report.html_blocks import bullets, data, facts, frame, section, table
from perfgate.report.rows import time_of

# A table of more rows is not read; the CSV file has them all.
MOST_ROWS = 400
# Changes travel as whole numbers of this.
_STEP = 1e-5


def render_fleet_html(report: FleetReport) -> str:
    """Render a judged fleet as a page; all of its texts are data."""
    body = "\n".join(
        part
        for part in (
            _verdict(report),
            "<main>",
            section("findings", "Findings", bullets(one.message for one in report.findings)),
            section("map", "Every GPU", _map(report)),
            section("attention", "GPUs that ask for attention", _attention(report)),
            section("cases", "Cases", _cases(report)),
            "</main>",
            _footer(report),
        )
        if part
    )
    return frame(f"perfgate fleet: {headline(report)}", body)


def _footer(report: FleetReport) -> str:
    source = f"perfgate {data(report.perfgate_version)}, {data(report.created_utc)}"
    return f"<footer>{source}. Slow: {data(rule_text(report))}.</footer>"


def _verdict(report: FleetReport) -> str:
    mood = {ExitCode.PASSED: "calm", ExitCode.REGRESSED: "bad"}.get(ExitCode(report.exit_code), "doubtful")
    text = headline(report)
    return (
        f'<header class="verdict" data-mood="{mood}">\n<p class="name">perfgate fleet</p>\n'
        f"<h1>{data(text[:1].upper() + text[1:])}</h1>\n"
        f'<p class="summary">{data(tally(report))}</p>\n'
        + facts((("Boards", boards_text(report)), ("Measured", conditions_text(report))))
        + "\n</header>"
    )


def _map(report: FleetReport) -> str:
    """The picture, drawn by the script of the page; without it the tables say what matters."""
    nodes = sorted({member.seat.node for member in report.members})
    place = {node: index for index, node in enumerate(nodes)}
    ids = list(dict.fromkeys(case.id for case in report.cases))
    margins = {case.id: case.margin for case in report.cases}
    standings = list(Standing)
    content = {
        "step": _STEP,
        "nodes": nodes,
        "standings": [str(one) for one in standings],
        "cases": [{"id": case_id, "margin": margins[case_id]} for case_id in ids],
        "gpus": [
            [
                place[member.seat.node],
                member.seat.gpu,
                standings.index(member.standing),
                [_step(member.changes.get(case_id)) for case_id in ids],
                [ids.index(one.id) for one in member.slow if one.id in ids],
            ]
            for member in report.members
        ],
    }
    options = "".join(f'<option value="{index}">{data(case_id)}</option>' for index, case_id in enumerate(ids))
    return (
        '<div class="controls" hidden><label class="search"><span>Show</span>'
        f'<select id="shown"><option value="-1">standing</option>{options}</select></label>'
        '<p id="reading" role="status" aria-live="polite"></p></div>\n'
        '<div class="scroll"><canvas id="fleet" tabindex="0" role="img" aria-label="A row a node, a square a GPU; '
        'arrow keys move, the tables below say the same in words"></canvas></div>\n'
        '<ul class="legend" id="legend"></ul>\n'
        '<noscript><p class="muted">The map needs the script of this page; the tables do not.</p></noscript>\n'
        f'<script type="application/json" id="gpus">{_embedded(content)}</script>'
    )


def _step(change: float | None) -> int | None:
    return None if change is None else round(change / _STEP)


def _embedded(content: object) -> str:
    """Return JSON that cannot end the element that it stands in."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c").replace("&", "\\u0026")


def _attention(report: FleetReport) -> str:
    asked = [one for one in report.members if one.standing is not Standing.HEALTHY]
    note = f'<p class="muted">{len(asked) - MOST_ROWS} more are in the CSV file.</p>' if len(asked) > MOST_ROWS else ""
    headings = ("GPU", "standing", "slower", "where", "against", "why")
    return table("Worst first", headings, (_row(one) for one in asked[:MOST_ROWS])) + note


def _row(member: FleetMember) -> tuple[str, ...]:
    labels = ", ".join(f"{name} {value}" for name, value in member.seat.labels.items())
    return (
        f"{member.seat.name}{f' ({labels})' if labels else ''}",
        str(member.standing),
        percent_text(member.worst, signed=True, decimals=1) if member.slow else "",
        slow_text(member),
        ", ".join(Counter(one.against for one in member.slow)),
        "; ".join((*member.reasons, *(one.message for one in member.causes))),
    )


def _cases(report: FleetReport) -> str:
    headings = ("case", "board", "GPUs", "median", "spread between GPUs", "margin", "slow")
    return table(
        "Median and robust spread over the GPUs of a board",
        headings,
        (
            (
                case.id,
                report.identities[case.identity].board_part_number or report.identities[case.identity].name,
                str(case.gpus),
                time_of(case.median_s),
                percent_text(case.spread),
                percent_text(case.margin, decimals=1) if case.gated else "not judged",
                str(case.slow or ""),
            )
            for case in report.cases
        ),
    )
