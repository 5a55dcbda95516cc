"""A report for a person at a terminal or reading a log: verdict, cases, who acts, what surrounds them."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from perfgate.core.caveat import STORED_BASELINE
from perfgate.core.report import Report
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ExitCode
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import QUIET_VERDICTS, VERDICT_ORDER, Row, ordered_rows, verdict_text

# Cases of one quiet verdict (unchanged, new, not gated) that are listed unless verbose.
QUIET_LISTED = 20

_LABEL_WIDTH = 11

_CHECK_STYLES = {
    CheckVerdict.PASSED: "green",
    CheckVerdict.REGRESSED: "red",
    CheckVerdict.SUSPECTED: "yellow",
    CheckVerdict.INCONCLUSIVE: "yellow",
    CheckVerdict.NO_BASELINE: "magenta",
    CheckVerdict.NOT_COMPARABLE: "magenta",
    CheckVerdict.INVALID: "magenta",
}

_CASE_STYLES = {
    CaseVerdict.REGRESSED: "bold red",
    CaseVerdict.SUSPECTED: "bold yellow",
    CaseVerdict.INVALID: "bold magenta",
    CaseVerdict.MISSING: "bold magenta",
    CaseVerdict.NOT_COMPARABLE: "magenta",
    CaseVerdict.INCONCLUSIVE: "yellow",
    CaseVerdict.IMPROVED: "bold green",
    CaseVerdict.NEW: "cyan",
    CaseVerdict.UNCHANGED: "green",
    CaseVerdict.NOT_GATED: "dim",
}

# What is shown but judged by nobody, or means nothing.
_DIMMED = (CaseVerdict.NOT_GATED, CaseVerdict.INVALID)

_GROUPED_BELOW = 110  # columns of the terminal: narrower, rows stand under their verdict instead of beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of the table, the text that it shows of a row, and the terminal widths at which it is shown."""

    heading: str
    text: Callable[[Row], str]
    align: Literal["left", "right"] = "right"
    from_width: int = 0
    below_width: int = sys.maxsize


_COLUMNS = (
    _Column(heading="case", text=lambda row: row.id, align="left"),
    _Column(heading="baseline", text=lambda row: row.baseline_time, from_width=150),
    _Column(heading="time", text=lambda row: row.time),
    _Column(heading="rate", text=lambda row: row.rate, from_width=72),
    _Column(heading="of its roof", text=lambda row: row.of_roof, from_width=130),
    _Column(heading="change", text=lambda row: row.change),
    _Column(heading="", text=lambda row: row.half_width, below_width=_GROUPED_BELOW),
    _Column(heading="interval, %", text=lambda row: row.interval, from_width=_GROUPED_BELOW),
    _Column(heading="margin", text=lambda row: row.margin),
    _Column(heading="from", text=lambda row: row.margin_source, align="left", from_width=150),
    _Column(
        heading="verdict",
        text=lambda row: row.verdict.upper() if row.result.verdict is CaseVerdict.REGRESSED else row.verdict,
        align="left",
        from_width=_GROUPED_BELOW,
    ),
)


def render_terminal(
    report: Report, *, width: int = 80, color: bool = False, unicode: bool = True, verbose: bool = False
) -> str:
    """Render a report for a terminal of ``width`` columns.

    Args:
        report: what to show.
        width: columns; good from 80, laid out for at least 60.
        color: whether to use ANSI styles.
        unicode: False where the terminal's encoding holds no more than ASCII.
        verbose: list every case and the effective policy.
    """
    page = Page(width=width, color=color, unicode=unicode)
    _add_banner(page, report)
    if report.cases:
        page.blank()
        _add_cases(page, report, verbose=verbose)
    page.blank()
    for name, texts in _facts(report, verbose=verbose):
        page.labelled(name, texts, label_width=_LABEL_WIDTH)
    page.blank()
    _add_verdict(page, report)
    return page.text


def _is_accepted(report: Report) -> bool:
    return report.verdict is CheckVerdict.REGRESSED and report.exit_code == ExitCode.PASSED


def _style(report: Report) -> str:
    return "yellow" if _is_accepted(report) else _CHECK_STYLES[report.verdict]


def _add_banner(page: Page, report: Report) -> None:
    style = _style(report)
    first = sentences.headline(report)
    word, rest = first[: len(report.verdict)], first[len(report.verdict) :]
    if word != report.verdict.value:  # "no baseline for ...": a sentence of its own
        word, rest = f"{first[0].upper()}{first[1:]}", ""
    surroundings = (sentences.software_text(report.environment), sentences.conditions_text(report))
    add_banner(
        page,
        ((word.upper() if rest else word, f"bold {style}"), (rest, "bold")),
        style=style,
        badges=sentences.rehearsal(report.device_kind, report.injected),
        lines=(report.summary,),
        details=(sentences.gpu_text(report.gpu), " · ".join(filter(None, surroundings))),
    )


def _add_cases(page: Page, report: Report, *, verbose: bool) -> None:
    columns = [one for one in _COLUMNS if one.from_width <= page.width < one.below_width]
    grouped = page.width < _GROUPED_BELOW
    rows = ordered_rows(report.cases)
    lines: list[Line] = []
    for verdict in VERDICT_ORDER:
        group = [row for row in rows if row.result.verdict is verdict]
        if group and grouped:
            lines.append(Line(heading=f"{verdict_text(verdict)} ({len(group)})", style=_CASE_STYLES[verdict]))
        listed = group if verbose or verdict not in QUIET_VERDICTS else group[:QUIET_LISTED]
        shared = _shared_notes(group)
        lines += [_line(row, columns, () if shared else row.notes, grouped=grouped) for row in listed]
        lines += [Line(heading=f"    all {len(group)}: {note}") for note in shared]
        if folded := group[len(listed) :]:
            lines.append(
                Line(heading=f"  … and {len(folded)} more {verdict_text(verdict)}{_range(folded)}", style="dim")
            )
    page.table([Column(heading=one.heading, align=one.align) for one in columns], lines)
    confidence = next((one.change.confidence for one in report.cases if one.change and one.change.confidence), None)
    if confidence is not None:
        at = percent_text(confidence, decimals=0 if confidence <= 0.99 else 1)
        page.line(f"  A positive change is slower; intervals at {at} confidence.", "dim")


def _shared_notes(group: list[Row]) -> tuple[str, ...]:
    """The notes that all rows of a group have, to be said once; empty where they differ."""
    return group[0].notes if len({row.notes for row in group}) == 1 < len(group) else ()


def _line(row: Row, columns: list[_Column], notes: tuple[str, ...], *, grouped: bool) -> Line:
    verdict = row.result.verdict
    style = "" if row.result.gated and verdict not in _DIMMED else "dim"
    shows_baseline = any(one.heading == "baseline" for one in columns)
    history = " · ".join(filter(None, ("" if shows_baseline else row.was, row.confirmation)))
    return Line(
        cells=tuple(one.text(row) for one in columns),
        style=style,
        first_style=style if verdict in QUIET_VERDICTS else _CASE_STYLES[verdict],
        last_style=style if grouped else _CASE_STYLES[verdict],
        notes=tuple((note, one) for note, one in ((history, "dim"), *((note, "") for note in notes)) if note),
    )


def _range(rows: list[Row]) -> str:
    changes = [row for row in rows if row.result.change is not None]
    if not changes:
        return ""
    low, high = (
        pick(changes, key=lambda row: row.result.change.value if row.result.change else 0.0) for pick in (min, max)
    )
    return f", {low.change} to {high.change}"


def _facts(report: Report, *, verbose: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Who acts", (", ".join(sentences.actors(report)) or "nobody",)
    if report.next_step:
        yield "Next", (report.next_step,)
    yield "Causes", tuple(cause.message for cause in report.causes)
    yield "Beside it", tuple(one.sentence for one in report.caveats if one.code == STORED_BASELINE)
    yield "Caveats", tuple(one.sentence for one in report.caveats if one.code != STORED_BASELINE)
    yield "Identity", tuple(map(sentences.difference_text, report.identity_differences))
    yield "Differs", tuple(map(sentences.difference_text, report.environment_differences))
    yield "Baseline", (sentences.baseline_text(report.baseline),)
    if verbose:
        yield "Policy", tuple(f"{name}: {value}" for name, value in sentences.policy_lines(report.policy))


def _add_verdict(page: Page, report: Report) -> None:
    badges = "".join(f"{badge} " for badge, _ in sentences.rehearsal(report.device_kind, report.injected))
    verdict = report.verdict.value.upper().replace("-", " ")
    text = f"{', accepted' if _is_accepted(report) else ''}: {sentences.tally(report.cases)}. Exit {report.exit_code}."
    page.spans(((badges, "bold yellow"), (verdict, f"bold {_style(report)}"), (text, "")))
