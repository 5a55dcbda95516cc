"""A run as one HTML page: what was measured, its roofline, and how the GPU fared. Nothing was judged."""

from collections.abc import Iterator

from perfgate.core.case import Unit
from perfgate.core.roofs import Roofs
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics, median_or_none, relative_spread
from perfgate.core.units import percent_text
from perfgate.report import sentences
from perfgate.report.html_blocks import bullets, data, facts, folded, frame, section, table
from perfgate.report.html_roofline import render_roofline
from perfgate.report.html_session import render_session
from perfgate.report.roofline_chart import chart_of_run
from perfgate.report.rows import measured_rate, time_of


def render_run_html(run: Run, roofs: Roofs) -> str:
    """Render a run as a page; ``roofs`` are those that it measured."""
    badges = sentences.rehearsal(run.device_kind, run.injected)
    title = f"Measured on {run.gpu.name}"
    marks = "".join(f' <span class="badge">{data(badge)}</span>' for badge, _ in badges)
    warnings = "".join(f'<p class="rehearsal"><b>{data(badge)}</b> {data(text)}</p>' for badge, text in badges)
    completed = sum(launch.failure is None for launch in run.launches)
    summary = (
        f"{sentences.counted(len(run.cases), 'case', 'cases')} of suite {run.suite_name} in {completed} of "
        f"{sentences.counted(len(run.launches), 'launch', 'launches')}. Nothing was judged."
    )
    head = (
        f'<header class="verdict" data-mood="none">\n<p class="name">perfgate</p>\n<h1>{data(title)}{marks}</h1>\n'
        f'<p class="summary">{data(summary)}</p>\n{warnings}'
        + facts(
            (
                ("GPU", sentences.gpu_text(run.gpu)),
                ("Software", sentences.software_text(run.environment)),
                ("Commit", (run.environment.commit or "")[:12]),
            )
        )
        + "\n</header>"
    )
    failed = [f"launch {launch.index + 1}: {launch.failure}" for launch in run.launches if launch.failure]
    failed += [
        f"launch {launch.index + 1}, {case_id}: {why}"
        for launch in run.launches
        for case_id, why in launch.failures.items()
    ]
    headings = ("case", "time", "rate", "fastest and slowest launch", "spread")
    parts = (
        head,
        "<main>",
        section("failures", "What failed", bullets(failed)),
        section(
            "cases",
            "Cases",
            table("Medians over launches; spread: standard deviation over mean", headings, _lines(run)),
        ),
        section("roofline", "Where each case sits", render_roofline(chart_of_run(run, roofs))),
        section("session", "How the GPU fared", render_session(run)),
        section("details", "Details", _details(run)),
        "</main>",
        f"<footer>{data(f'perfgate {run.perfgate_version} · {run.created_utc}')}</footer>",
    )
    return frame(f"perfgate: {title}", "\n".join(part for part in parts if part))


def _lines(run: Run) -> Iterator[tuple[str, ...]]:
    for case_id, case in run.cases.items():
        times_s = launch_statistics(run, case_id, Unit.SECONDS)
        median_s, spread = median_or_none(times_s), relative_spread(times_s)
        yield (
            case_id,
            time_of(median_s),
            measured_rate(case_id, case.work, case.timing, median_s),
            f"{time_of(min(times_s))} to {time_of(max(times_s))}" if times_s else "",
            percent_text(spread) if spread is not None else "",
        )


def _details(run: Run) -> str:
    parts = (
        folded("GPU", table("GPU", ("field", "value"), sentences.known_fields(run.gpu))),
        folded("Environment", table("Environment", ("field", "value"), sentences.known_fields(run.environment))),
        folded("Cases that this GPU cannot run", table("Absent", ("case", "why"), run.absent.items())),
    )
    return "\n".join(part for part in parts if part)
