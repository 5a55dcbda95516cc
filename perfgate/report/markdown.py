"""A report as GitHub Markdown: the pull-request comment and report.md. Verdict first, never above a size.

Sections stand in reading order. Where the text is too long they are left out in the order of
``SHED_ORDER``, and a line says so; the verdict and the cases that fail the check go last.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report import sentences
from perfgate.report.escape import code, escaped, printable
from perfgate.report.quadrant import render_quadrant
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
    "notices",
    "next step",
    "footer",
)

# Columns of numbers stand on the right.
_NUMBERS = frozenset({"baseline", "now", "change", "margin", "FLOP/B", "of its roof", "launches"})
_NO_BREAK = "\N{NO-BREAK SPACE}"
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
    yield _Section(name="notices", text="\n\n".join(f"**{_data(one)}**" for one in notices))
    yield _Section(name="next step", text=_next_step(report))
    yield _Section(name="failing cases", text=_moved([one for one in rows if one.result.verdict in _FAILING]))
    yield _Section(name="other cases", text=_moved([one for one in rows if _is_other(one)]))
    yield _Section(name="caveats", text=_list([sentences.caveat_text(one) for one in report.caveats]))
    yield _Section(name="differences", text=_differences(report))
    yield _Section(name="roofline", text=_roofline(report, rows))
    yield _Section(name="chart", text=_chart(report))
    yield _Section(name="all cases", text=_all_cases(rows))
    yield _Section(name="environment", text=_environment(report))
    yield _Section(name="policy", text=_folded("Policy", _pairs("setting", sentences.policy_lines(report.policy))))
    yield _Section(name="how to reproduce", text=_reproduce(report, rows))
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
            [_verdict(report), _moved(failing[:count])], [f"{len(failing) - count} failing cases", *SHED_ORDER]
        )
        if _size_bytes(text) <= limit_bytes:
            return text
    headline = f"### perfgate: {_data(sentences.headline(report), most=60)}\n"
    return headline if _size_bytes(headline) <= limit_bytes else f"### perfgate: {report.verdict}\n"


def _data(text: str, *, most: int = 600) -> str:
    """Return data as plain text of at most ``most`` signs."""
    return escaped(text if len(text) <= most else f"{text[: most - 1]}…")


def _name(text: str) -> str:
    """Return a case id or field name, set as code where that is safe."""
    return code(text) if len(text) <= 120 else _data(text, most=120)


def _verdict(report: Report) -> str:
    badges = sentences.rehearsal(report.device_kind, report.injected)
    board = f" (board {_data(report.gpu.board_part_number, most=60)})" if report.gpu.board_part_number else ""
    marks = "".join(f" · {_data(badge)}" for badge, _ in badges)
    parts = [f"### perfgate: {_data(sentences.headline(report))}{board}{marks}"]
    if badges:
        warning = "\n>\n".join(f"> **{_data(badge)}**: {_data(sentence)}" for badge, sentence in badges)
        parts.append(f"> [!WARNING]\n{warning}")
    if report.summary:
        parts.append(f"**{_data(report.summary)}**")
    return "\n\n".join(parts)


def _next_step(report: Report) -> str:
    parts = []
    if who := sentences.actors(report):
        parts.append(f"**Who acts:** {', '.join(map(_data, who))}.")
    parts += [f"Cause: {_data(cause.message)}" for cause in report.causes]
    if report.next_step:
        parts.append(f"**Next:** {_data(report.next_step)}")
    return "\n\n".join(parts)


def _moved(rows: Sequence[Row]) -> str:
    return _table(
        ("case", "baseline", "now", "change", "margin", "cause"),
        (
            (
                f"{_name(row.id)}<br>{_verdict_of(row)}",
                *_measured(row),
                "<br>".join(_data(note) for note in (*row.notes, row.confirmation) if note),
            )
            for row in rows
        ),
    )


def _verdict_of(row: Row) -> str:
    return f"**{row.verdict}**" if row.result.verdict in _FAILING else row.verdict


def _measured(row: Row) -> tuple[str, str, str, str]:
    """Cells of baseline, candidate, change and margin, each value above what qualifies it."""
    change = f"**{row.change}**" if row.change and row.result.verdict not in QUIET_VERDICTS else row.change
    return (
        _stacked(row.baseline_time, row.baseline_rate),
        _stacked(row.time, row.rate),
        _stacked(change, row.interval),
        _stacked(row.margin, *row.margin_source.split(", ")),
    )


def _stacked(*texts: str) -> str:
    return "<br>".join(_unbroken(text) for text in texts if text)


def _unbroken(text: str) -> str:
    return text.replace(" ", _NO_BREAK)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; "" without rows."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    if not lines:
        return ""
    rule = "".join("---:|" if heading in _NUMBERS else "---|" for heading in headings)
    return "\n".join((f"| {' | '.join(headings)} |", f"|{rule}", *lines))


def _pairs(heading: str, pairs: Iterable[tuple[str, str]]) -> str:
    return _table((heading, "value"), ((_data(name), _data(value)) for name, value in pairs))


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {_data(text)}" for text in texts)


def _folded(summary: str, body: str) -> str:
    """Return a body that opens on a click; the summary is HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""


def _differences(report: Report) -> str:
    differences = (*report.identity_differences, *report.environment_differences)
    return _table(
        ("differs", "in the baseline", "in this run"),
        ((_data(sentences.field_name(one.field)), _data(one.baseline), _data(one.candidate)) for one in differences),
    )


def _roofline(report: Report, rows: Sequence[Row]) -> str:
    placed = [row for row in rows if row.bound]
    table = _table(
        ("case", "now", "FLOP/B", "of its roof", "change", "verdict"),
        (
            (
                _name(row.id),
                _stacked(row.time, row.rate),
                row.intensity,
                _stacked(_data(row.of_roof), f"{row.bound}-bound"),
                _unbroken(f"{row.change} {row.half_width}".strip()),
                _verdict_of(row),
            )
            for row in placed
        ),
    )
    roofs = sentences.roofs_text(report.roofs)
    known = f"Measured roofs: {_data(roofs)}\n\n" if roofs else ""
    if table and (report.verdict in _CALM or len(placed) > OPEN_ROWS):
        return _folded("Where each case sits", known + table)
    return f"**Where each case sits.** {known.strip()}\n\n{table}" if table else ""


def _chart(report: Report) -> str:
    chart = render_quadrant(report.cases)
    return _folded("Roofline chart", f"```mermaid\n{chart}\n```" if chart else "")


def _all_cases(rows: Sequence[Row]) -> str:
    table = _table(
        ("case", "verdict", "baseline", "now", "change", "margin", "launches"),
        (
            (
                _name(row.id),
                row.verdict,
                *_measured(row),
                f"{row.result.candidate_launches} against {row.result.baseline_launches}",
            )
            for row in rows
        ),
    )
    return _folded(f"All {sentences.counted(len(rows), 'case', 'cases')}: {_tally(rows)}", table)


def _tally(rows: Sequence[Row]) -> str:
    return sentences.tally(tuple(row.result for row in rows))


def _environment(report: Report) -> str:
    gpu, environment = (
        _pairs(name, sentences.known_fields(one))
        for name, one in (("GPU", report.gpu), ("environment", report.environment))
    )
    return _folded("Environment", f"{gpu}\n\n{environment}" if environment else gpu)


def _reproduce(report: Report, rows: Sequence[Row]) -> str:
    """Commands for the cases that failed, else for the whole check."""
    words = ["perfgate", "check"]
    if report.device_kind != "cuda":
        words += ["--device", report.device_kind]
    for row in [one for one in rows if one.result.verdict in _FAILING][:OPEN_ROWS]:
        words += ["--case", row.id]
    for injection in report.injected:
        words += ["--inject", f"{injection.pattern}={injection.requested}"]
    command = " ".join(shlex.quote(printable(word)) for word in words)
    commit = f"At commit {_data(report.environment.commit)}:\n\n" if report.environment.commit else ""
    return _folded("How to reproduce", f"{commit}```sh\n{command}\n```")


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
    shown = [_data(part) for part in parts if part]
    if run_url is not None and _RUN_URL.fullmatch(run_url):
        shown.append(f'<a href="{run_url}">run</a>')
    return f"<sub>{' · '.join(shown)}</sub>"
