"""A report as one HTML page that needs no other file and no network: verdict first, who acts, then all the rest."""

from perfgate.core.history import ChipHistory
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.errors import ExitCode
from perfgate.report import sentences
from perfgate.report.html_blocks import bullets, data, facts, folded, frame, section, table
from perfgate.report.html_cases import render_cards, render_case_table
from perfgate.report.html_history import render_chip_history
from perfgate.report.html_roofline import render_roofline
from perfgate.report.html_session import render_session
from perfgate.report.reproduction import reproduction_command
from perfgate.report.roofline_chart import chart_of_report
from perfgate.report.rows import ordered_rows


def render_html(report: Report, *, run: Run | None = None, history: ChipHistory | None = None) -> str:
    """Render a report as a page; with the run that it judged also its launches, with a history also the trends.

    All texts of both documents are data: they are shown as they are and change nothing on the page.
    """
    rows = ordered_rows(report.cases)
    body = "\n".join(
        part
        for part in (
            _verdict(report),
            "<main>",
            section("attention", "What asks for attention", render_cards(rows, run)),
            section("cases", f"All cases: {sentences.tally(report.cases)}", render_case_table(rows, run)),
            section("roofline", "Where each case sits", _roofline(report)),
            section("session", "How the GPU fared", render_session(run) if run is not None else ""),
            section("history", "How the cases moved", render_chip_history(history) if history is not None else ""),
            section("differences", "What differs from the baseline", _differences(report)),
            section("details", "Details", _details(report, run)),
            section("reproduce", "How to reproduce", _reproduce(report)),
            "</main>",
            _footer(report),
        )
        if part
    )
    return frame(f"perfgate: {sentences.headline(report)}", body)


def _mood(exit_code: int) -> str:
    """Return how serious an exit code is; the page takes its colour from it."""
    if exit_code == ExitCode.PASSED:
        return "calm"
    return "bad" if exit_code in (ExitCode.REGRESSED, ExitCode.WRONG_OUTPUT) else "doubtful"


def _verdict(report: Report) -> str:
    badges = sentences.rehearsal(report.device_kind, report.injected)
    marks = "".join(f' <span class="badge">{data(badge)}</span>' for badge, _ in badges)
    warnings = "".join(f'<p class="rehearsal"><b>{data(badge)}</b> {data(text)}</p>' for badge, text in badges)
    headline = sentences.headline(report)
    who = " and ".join(sentences.actors(report)) or "nobody"
    return (
        f'<header class="verdict" data-mood="{_mood(report.exit_code)}">\n<p class="name">perfgate</p>\n'
        f"<h1>{data(headline[:1].upper() + headline[1:])}{marks}</h1>\n"
        f'<p class="summary">{data(report.summary)}</p>\n{warnings}'
        f'<dl class="act"><div><dt>Who acts</dt><dd>{data(who)}</dd></div>'
        + (f"<div><dt>Next</dt><dd>{data(report.next_step)}</dd></div>" if report.next_step else "")
        + "</dl>\n"
        + facts(
            (
                ("GPU", sentences.gpu_text(report.gpu)),
                ("Software", sentences.software_text(report.environment)),
                ("Measured", sentences.conditions_text(report)),
                ("Baseline", sentences.baseline_text(report.baseline)),
                ("Commit", _commit(report)),
            )
        )
        + _doubts(report)
        + "\n</header>"
    )


def _commit(report: Report) -> str:
    commit = report.environment.commit
    return f"{commit[:12]}{' with uncommitted changes' if report.environment.dirty else ''}" if commit else ""


def _doubts(report: Report) -> str:
    lines = (*(f"cause: {one.message}" for one in report.causes), *(one.sentence for one in report.caveats))
    return f'<div class="doubts">{bullets(lines)}</div>' if lines else ""


def _roofline(report: Report) -> str:
    chart = render_roofline(chart_of_report(report))
    roofs = sentences.roofs_text(report.roofs) if chart else ""
    return "\n".join(filter(None, (f'<p class="muted">Measured roofs: {data(roofs)}</p>' if roofs else "", chart)))


def _differences(report: Report) -> str:
    return table(
        "Identity and environment",
        ("field", "in the baseline", "in this run"),
        (
            (sentences.field_name(one.field), one.baseline, one.candidate)
            for one in (*report.identity_differences, *report.environment_differences)
        ),
    )


def _details(report: Report, run: Run | None) -> str:
    absent = run.absent.items() if run is not None else ()
    parts = (
        folded("GPU", table("GPU", ("field", "value"), sentences.known_fields(report.gpu))),
        folded("Environment", table("Environment", ("field", "value"), sentences.known_fields(report.environment))),
        folded("Policy", table("Policy in effect", ("setting", "value"), sentences.policy_lines(report.policy))),
        folded("Cases that this GPU cannot run", table("Absent", ("case", "why"), absent)),
    )
    return "\n".join(part for part in parts if part)


def _reproduce(report: Report) -> str:
    commit = report.environment.commit
    at = f'<p class="muted">At commit <code>{data(commit)}</code>:</p>' if commit else ""
    return f'{at}<pre tabindex="0"><code>{data(reproduction_command(report))}</code></pre>'


def _footer(report: Report) -> str:
    origin = f"perfgate {report.perfgate_version} · {report.created_utc} · exit {report.exit_code}"
    return f"<footer>{data(origin)}</footer>"
