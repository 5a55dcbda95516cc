"""A run for a person at a terminal: what was measured, how steadily, and what is doubtful. No verdicts."""

from collections import Counter
from collections.abc import Iterator

from perfgate.core.case import Unit
from perfgate.core.run import CaseInfo, CaseLaunch, Run
from perfgate.core.summary import launch_statistics, median_or_none, relative_spread
from perfgate.core.units import clock_text, percent_text
from perfgate.core.xid import xid_text
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import measured_rate, time_of

_COLUMNS = (
    Column(heading="case"),
    Column(heading="time", align="right"),
    Column(heading="rate", align="right"),
    Column(heading="spread", align="right"),
    Column(heading="SM clock", align="right"),
    Column(heading="temp.", align="right"),
)
_LABEL_WIDTH = 11


def render_run(run: Run, *, width: int = 80, color: bool = False, unicode: bool = True, verbose: bool = False) -> str:
    """Render a run: per case the median over launches, its rate, the spread between launches, clock and temperature.

    Args:
        run: what to show.
        width: columns of the terminal.
        color: whether to use ANSI styles.
        unicode: False where the terminal's encoding holds no more than ASCII.
        verbose: also list the environment.
    """
    page = Page(width=width, color=color, unicode=unicode)
    cases = f"{sentences.counted(len(run.cases), 'case', 'cases')} of suite {run.suite_name}"
    completed = sum(launch.failure is None for launch in run.launches)
    add_banner(
        page,
        (("MEASURED", "bold cyan"), (f" on {run.gpu.name}", "bold")),
        style="cyan",
        badges=sentences.rehearsal(run.device_kind, run.injected),
        lines=(f"{cases} in {completed} of {sentences.counted(len(run.launches), 'launch', 'launches')}",),
        details=(sentences.gpu_text(run.gpu), sentences.software_text(run.environment)),
    )
    if run.cases:
        page.blank()
        page.table(_COLUMNS, [_line(case_id, info, run) for case_id, info in run.cases.items()])
    facts = [(name, texts) for name, texts in _facts(run, verbose=verbose) if texts]
    if facts:
        page.blank()
    for name, texts in facts:
        page.labelled(name, texts, label_width=_LABEL_WIDTH)
    return page.text


def _line(case_id: str, info: CaseInfo, run: Run) -> Line:
    found = [launch.cases[case_id] for launch in run.launches if case_id in launch.cases]
    times_s = launch_statistics(run, case_id, Unit.SECONDS)
    median_s = median_or_none(times_s)
    spread = relative_spread(times_s)
    clock_hz = median_or_none(block.sm_clock_hz for launch in found for block in launch.valid_blocks)
    temperature_c = median_or_none(launch.temperature_c for launch in found)
    return Line(
        cells=(
            case_id,
            time_of(median_s),
            measured_rate(case_id, info.work, info.timing, median_s),
            percent_text(spread) if spread is not None else "",
            clock_text(clock_hz) if clock_hz is not None else "",
            f"{temperature_c:.0f} °C" if temperature_c is not None else "",
        ),
        style="" if info.gated else "dim",
        notes=tuple((note, "yellow") for note in _doubts(case_id, found, run)),
    )


def _doubts(case_id: str, found: list[CaseLaunch], run: Run) -> Iterator[str]:
    """What makes a reader trust the numbers of a case less."""
    launches = len(found)
    if wrong := sum(launch.output_verified is False for launch in found):
        yield f"its output is wrong in {wrong} of {sentences.counted(launches, 'launch', 'launches')}"
    failures = Counter(launch.failures[case_id] for launch in run.launches if case_id in launch.failures)
    yield from (f"failed in {sentences.counted(count, 'launch', 'launches')}: {why}" for why, count in failures.items())
    blocks = [block for launch in found for block in launch.blocks]
    reasons = Counter(block.reason or "no reason given" for block in blocks if not block.valid)
    yield from (f"{count} of {len(blocks)} blocks unused: {why}" for why, count in reasons.items())
    if unsettled := sum(not launch.settled for launch in found):
        yield f"not settled in {unsettled} of {sentences.counted(launches, 'launch', 'launches')}"


def _facts(run: Run, *, verbose: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Spread", ("standard deviation of the launches over their mean",) if len(run.launches) > 1 else ()
    yield "Failed", tuple(f"launch {one.index}: {one.failure}" for one in run.launches if one.failure)
    yield "Absent", tuple(f"{case_id}: {why}" for case_id, why in run.absent.items())
    states = [state for state in (run.health_before, run.health_after) if state is not None]
    foreign = sorted({process for state in states for process in state.foreign_processes})
    xids = states[-1].xids if states else None
    yield "Reported", (f"by the driver: {xid_text(xids)}",) if xids else ()
    yield "Also there", tuple(f"another process used this GPU: {process}" for process in foreign)
    if verbose:
        yield "Environment", tuple(f"{name}: {value}" for name, value in sentences.known_fields(run.environment))
