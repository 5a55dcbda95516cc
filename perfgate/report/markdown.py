"""A report as GitHub Markdown: the pull-request comment and report.md. Verdict first, never above a size.

Sections stand in reading order. Where the text is too long they are left out in the order of
``SHED_ORDER``, and a line says so; the verdict and the cases that fail the check go last.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfgate.core.caveat import STORED_BASELINE
from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report import blocks, sentences
from perfgate.report.quadrant import render_quadrant
from perfgate.report.reproduction import reproduction_command
from perfgate.report.rows import QUIET_VERDICTS, Row, ordered_rows

# GitHub refuses comments of more than 65,536 characters; the rest is for what the caller adds.
COMMENT_LIMIT_BYTES = 60_000
# A table of more rows is folded.
OPEN_ROWS = 20

SHED_ORDER = (
    "chart",
    "policy",
    "all cases",
    "environment",
    "how to reproduce",
    "roofline",
    "differences",
    "caveats",
    "other cases",
    "next step",
    "footer",
    "stored baseline",
    "notices",
)

_RUN_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#@%=+-]+")  # nothing that HTML or Markdown would take for its own
_FAILING = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED, CaseVerdict.INVALID, CaseVerdict.MISSING)
_CALM = (CheckVerdict.PASSED, CheckVerdict.NO_BASELINE, CheckVerdict.NOT_COMPARABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    name: str
    text: str


def render_markdown(
    report: Report,
    *,
    limit_bytes: int = COMMENT_LIMIT_BYTES,
    notices: Sequence[str] = (),
    run_url: str | None = None,
) -> str:
    """Render a report as Markdown of at most ``limit_bytes`` bytes of UTF-8.

    Args:
        report: what to show; all its texts are data and render as plain text.
        limit_bytes: upper bound of the size, at least 200.
        notices: sentences to show right below the verdict, plain text, e.g. that the change edits the baseline.
        run_url: address of the workflow run, for the footer; only http and https become a link.
    """
    rows = ordered_rows(report.cases)
    sections = [one for one in _sections(report, rows, notices, run_url) if one.text]
    dropped: list[str] = []
    for name in ("", *SHED_ORDER):
        if any(one.name == name for one in sections):
            sections = [one for one in sections if one.name != name]
            dropped.append(name)
        text = _joined([one.text for one in sections], dropped)
        if _size_bytes(text) <= limit_bytes:
            return text
    return _shortened(report, rows, limit_bytes)


def _sections(report: Report, rows: Sequence[Row], notices: Sequence[str], run_url: str | None) -> Iterable[_Section]:
    yield _Section(name="verdict", text=_verdict(report))
    yield _Section(name="stored baseline", text=_stored(report))
    yield _Section(name="notices", text="\n\n".join(f"**{blocks.data(one)}**" for one in notices))
    yield _Section(name="next step", text=_next_step(report))
    yield _Section(name="failing cases", text=_moved(report, [one for one in rows if one.result.verdict in _FAILING]))
    yield _Section(name="other cases", text=_moved(report, [one for one in rows if _is_other(one)]))
    doubts = [one.sentence for one in report.caveats if one.code != STORED_BASELINE]
    yield _Section(name="caveats", text=blocks.bullets(doubts))
    yield _Section(name="differences", text=_differences(report))
    yield _Section(name="roofline", text=_roofline(report, rows))
    yield _Section(name="chart", text=_chart(report))
    yield _Section(name="all cases", text=_all_cases(report, rows))
    yield _Section(name="environment", text=_environment(report))
    yield _Section(
        name="policy", text=blocks.folded("Policy", blocks.pairs("setting", sentences.policy_lines(report.policy)))
    )
    yield _Section(name="how to reproduce", text=_reproduce(report))
    yield _Section(name="footer", text=_footer(report, run_url))


def _is_other(row: Row) -> bool:
    verdict = row.result.verdict
    return verdict not in _FAILING and verdict not in QUIET_VERDICTS and verdict is not CaseVerdict.NOT_COMPARABLE


def _joined(texts: Sequence[str], dropped: Sequence[str]) -> str:
    note = [f"_Left out to keep this short: {', '.join(dropped)}._"] if dropped else []
    return "\n\n".join((*texts, *note)) + "\n"


def _size_bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def _shortened(report: Report, rows: Sequence[Row], limit_bytes: int) -> str:
    """The verdict and as many failing cases as fit; where not even one does, the headline."""
    failing = [one for one in rows if one.result.verdict in _FAILING]
    count = len(failing)
    while count := count // 2:
        text = _joined(
            [_verdict(report), _moved(report, failing[:count])], [f"{len(failing) - count} failing cases", *SHED_ORDER]
        )
        if _size_bytes(text) <= limit_bytes:
            return text
    headline = f"### perfgate: {blocks.data(sentences.headline(report), most=60)}{_badges(report)}\n"
    return headline if _size_bytes(headline) <= limit_bytes else f"### perfgate: {report.verdict}{_badges(report)}\n"


def _badges(report: Report) -> str:
    badges = sentences.rehearsal(report.device_kind, report.injected)
    return "".join(f" · {blocks.data(badge, most=20)}" for badge, _ in badges)


def _verdict(report: Report) -> str:
    board = report.gpu.board_part_number
    known = f" (board {blocks.data(board, most=60)})" if board else ""
    parts = [f"### perfgate: {blocks.data(sentences.headline(report))}{known}{_badges(report)}"]
    if badges := sentences.rehearsal(report.device_kind, report.injected):
        warning = "\n>\n".join(f"> **{blocks.data(badge)}**: {blocks.data(sentence)}" for badge, sentence in badges)
        parts.append(f"> [!WARNING]\n{warning}")
    if report.summary:
        parts.append(f"**{blocks.data(report.summary)}**")
    return "\n\n".join(parts)


def _stored(report: Report) -> str:
    """The verdict of the stored baseline, where the base decides: another finding, and beside the first."""
    return "\n\n".join(
        f"**Beside it:** {blocks.data(one.sentence)}." for one in report.caveats if one.code == STORED_BASELINE
    )


def _next_step(report: Report) -> str:
    parts = []
    if who := sentences.actors(report):
        parts.append(f"**Who acts:** {', '.join(map(blocks.data, who))}.")
    parts += [f"Cause: {blocks.data(cause.message)}" for cause in report.causes]
    if report.next_step:
        parts.append(f"**Next:** {blocks.data(report.next_step)}")
    return "\n\n".join(parts)


def _other_side(report: Report) -> str:
    return "base" if report.baseline is not None and report.baseline.base_commit is not None else "baseline"


def _moved(report: Report, rows: Sequence[Row]) -> str:
    table = blocks.table(
        ("case", _other_side(report), "now", "change", "margin", "cause"),
        (
            (
                f"{blocks.name(row.id)}<br>{_verdict_of(row)}",
                *_measured(row),
                "<br>".join(blocks.data(one) for one in (*row.causes, *row.reasons, row.confirmation) if one),
            )
            for row in rows
        ),
    )
    doubts = "\n".join(f"- {blocks.name(row.id)}: {blocks.data(doubt)}" for row in rows for doubt in row.doubts)
    return "\n\n".join(filter(None, (table, doubts)))


def _verdict_of(row: Row) -> str:
    return f"**{row.verdict}**" if row.result.verdict in _FAILING else row.verdict


def _measured(row: Row) -> tuple[str, str, str, str]:
    """Cells of baseline, candidate, change and margin, each value above what qualifies it."""
    change = f"**{row.change}**" if row.change and row.result.verdict not in QUIET_VERDICTS else row.change
    return (
        blocks.stacked(row.baseline_time, row.baseline_rate),
        blocks.stacked(row.time, row.rate),
        blocks.stacked(change, row.interval),
        blocks.stacked(row.margin, *row.margin_source.split(", ")),
    )


def _differences(report: Report) -> str:
    differences = (*report.identity_differences, *report.environment_differences)
    return blocks.table(
        ("differs", "in the baseline", "in this run"),
        (
            (blocks.data(sentences.field_name(one.field)), blocks.data(one.baseline), blocks.data(one.candidate))
            for one in differences
        ),
    )


def _roofline(report: Report, rows: Sequence[Row]) -> str:
    placed = [row for row in rows if row.bound]
    table = blocks.table(
        ("case", "now", "FLOP/B", "of its roof", "change", "verdict"),
        (
            (
                blocks.name(row.id),
                blocks.stacked(row.time, row.rate),
                row.intensity,
                blocks.stacked(blocks.data(row.of_roof), f"{row.bound}-bound"),
                blocks.unbroken(f"{row.change} {row.half_width}".strip()),
                _verdict_of(row),
            )
            for row in placed
        ),
    )
    roofs = sentences.roofs_text(report.roofs)
    known = f"Measured roofs: {blocks.data(roofs)}" if roofs else ""
    if report.verdict in _CALM or len(placed) > OPEN_ROWS:
        return blocks.folded("Where each case sits", "\n\n".join(filter(None, (known, table)))) if table else ""
    return f"{' '.join(filter(None, ('**Where each case sits.**', known)))}\n\n{table}" if table else ""


def _chart(report: Report) -> str:
    chart = render_quadrant(report.cases)
    return blocks.folded("Roofline chart", f"```mermaid\n{chart}\n```" if chart else "")


def _all_cases(report: Report, rows: Sequence[Row]) -> str:
    table = blocks.table(
        ("case", "verdict", _other_side(report), "now", "change", "margin", "launches"),
        (
            (
                blocks.name(row.id),
                row.verdict,
                *_measured(row),
                f"{row.result.candidate_launches} against {row.result.baseline_launches}",
            )
            for row in rows
        ),
    )
    return blocks.folded(f"All {sentences.counted(len(rows), 'case', 'cases')}: {_tally(rows)}", table)


def _tally(rows: Sequence[Row]) -> str:
    return sentences.tally(tuple(row.result for row in rows))


def _environment(report: Report) -> str:
    gpu, environment = (
        blocks.pairs(name, sentences.known_fields(one))
        for name, one in (("GPU", report.gpu), ("environment", report.environment))
    )
    return blocks.folded("Environment", f"{gpu}\n\n{environment}" if environment else gpu)


def _reproduce(report: Report) -> str:
    commit = f"At commit {blocks.data(report.environment.commit)}:\n\n" if report.environment.commit else ""
    return blocks.folded("How to reproduce", f"{commit}```sh\n{reproduction_command(report)}\n```")


def _footer(report: Report, run_url: str | None) -> str:
    head = report.environment.commit
    against = f"judged against {sentences.baseline_text(report.baseline)}"
    parts = [
        f"head {head[:12]}{' (uncommitted changes)' if report.environment.dirty else ''} {against}"
        if head
        else against,
        sentences.gpu_text(report.gpu),
        sentences.software_text(report.environment),
        sentences.conditions_text(report),
        f"perfgate {report.perfgate_version}",
    ]
    shown = [blocks.data(part) for part in parts if part]
    if link := run_link(run_url):
        shown.append(link)
    return f"<sub>{' · '.join(shown)}</sub>"


def run_link(run_url: str | None) -> str:
    """Return a link to a workflow run; "" where there is none, or where the address is not plainly one."""
    return f'<a href="{run_url}">run</a>' if run_url is not None and _RUN_URL.fullmatch(run_url) else ""
