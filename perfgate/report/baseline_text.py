"""Baselines for a person at a terminal: one in full, a folder of them, and what a change of one means."""

from collections.abc import Iterator, Sequence

from perfgate.core.baseline import Baseline, BaselineSession, CalibratedMargin
from perfgate.core.baseline_change import BaselineDifference, CaseChange
from perfgate.core.case import Unit
from perfgate.core.device import DeviceKind
from perfgate.core.summary import median_or_none, relative_spread
from perfgate.core.units import percent_text
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import margin_text as relative_margin_text
from perfgate.report.rows import measured_rate, time_of

_SESSION_COLUMNS = (
    Column(heading="session"),
    Column(heading="chip"),
    Column(heading="launches", align="right"),
    Column(heading="driver"),
    Column(heading="CUDA"),
    Column(heading="commit"),
)
_CASE_COLUMNS = (
    Column(heading="case"),
    Column(heading="time", align="right"),
    Column(heading="rate", align="right"),
    Column(heading="sessions", align="right"),
    Column(heading="between", align="right"),
    Column(heading="within", align="right"),
    Column(heading="margin", align="right"),
)
_WIDE = 100  # from here on the number of sessions that have a case is shown too

_LIST_COLUMNS = (
    Column(heading="file"),
    Column(heading="GPU"),
    Column(heading="board"),
    Column(heading="sessions", align="right"),
    Column(heading="chips", align="right"),
    Column(heading="newest"),
)
_CHANGE_COLUMNS = (
    Column(heading="case"),
    Column(heading="before", align="right"),
    Column(heading="after", align="right"),
    Column(heading="change", align="right"),
)


def render_baseline(baseline: Baseline, *, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """Render a baseline: its GPU, its sessions, and per case the level, both spreads and the calibrated margin."""
    page = Page(width=width, color=color, unicode=unicode)
    kinds = {session.provenance.device_kind for session in baseline.sessions}
    identity = ", ".join(f"{name} {value}" for name, value in sentences.known_fields(baseline.gpu) if name != "name")
    add_banner(
        page,
        (("BASELINE", "bold cyan"), (f" of {baseline.gpu.name}", "bold")),
        style="cyan",
        badges=[one for kind in sorted(kinds - {DeviceKind.CUDA}) for one in sentences.rehearsal(kind, ())],
        lines=(sentences.counted(len(baseline.sessions), "session", "sessions"),),
        details=(identity,),
    )
    page.blank()
    page.table(_SESSION_COLUMNS, [_session_line(session) for session in baseline.sessions])
    page.blank()
    page.table(
        _CASE_COLUMNS,
        [_case_line(case_id, baseline, wide=page.width >= _WIDE) for case_id in case_ids(baseline.sessions)],
    )
    page.blank()
    page.line("between: spread of the sessions; within: spread of the samples in a launch (median)", "dim")
    return page.text


def render_baseline_list(
    entries: Sequence[tuple[str, Baseline]], *, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """Render which baselines a folder holds; ``entries`` are file names with what they hold."""
    page = Page(width=width, color=color, unicode=unicode)
    if not entries:
        page.line("no baselines")
        return page.text
    page.table(_LIST_COLUMNS, [_list_line(name, baseline) for name, baseline in entries])
    return page.text


def render_baseline_change(
    difference: BaselineDifference, *, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """Render what a change of a baseline adds, removes and moves."""
    page = Page(width=width, color=color, unicode=unicode)
    if not difference:
        page.line("no difference")
        return page.text
    for title, sessions in (("added", difference.sessions_added), ("removed", difference.sessions_removed)):
        if sessions:
            page.line(f"{sentences.counted(len(sessions), 'session', 'sessions')} {title}", "bold")
            page.table(_SESSION_COLUMNS, [_session_line(session) for session in sessions])
            page.blank()
    page.labelled("Identity", [sentences.difference_text(one) for one in difference.identity], label_width=11)
    if difference.cases:
        page.table(_CHANGE_COLUMNS, [_change_line(change) for change in difference.cases])
        page.blank()
    margins = [
        f"{one.id}: {margin_text(one.before) or 'none'} to {margin_text(one.after) or 'none'}"
        for one in difference.margins
    ]
    page.labelled("Margins", margins, label_width=11)
    return page.text


def case_ids(sessions: Sequence[BaselineSession]) -> tuple[str, ...]:
    """Return the cases of sessions, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(case_id for session in sessions for case_id in session.cases))


def level_text(value: float | None, unit: Unit) -> str:
    """Render a level in its unit: ``"2.034 ms"`` or ``"371200 cycles"``."""
    if value is None:
        return ""
    return time_of(value) if unit is Unit.SECONDS else f"{value:.6g} cycles"


def margin_text(margin: CalibratedMargin | None) -> str:
    """Render a calibrated margin: ``"0.4 %, this chip"``."""
    if margin is None:
        return ""
    where = "this chip" if margin.same_chip else "other chips"
    return f"{relative_margin_text(margin.relative)}, {where}"


def provenance_notes(session: BaselineSession) -> Iterator[str]:
    """Yield why a session was accepted, by whom and where, and what was overridden."""
    made = session.provenance
    yield made.reason
    if made.device_kind != DeviceKind.CUDA:
        yield f"{made.device_kind.upper()}: not measured on a GPU"
    if made.forced:
        yield f"forced: {made.forced}"
    for why, ids in _refreshed(session).items():
        yield f"refreshed {', '.join(ids)}: {why}"
    if known := [f"{name} {value}" for name, value in (("by", made.actor), ("on", made.runner)) if value]:
        yield " ".join(known)


def _refreshed(session: BaselineSession) -> dict[str, list[str]]:
    """Return when and why rows were measured again, with their cases."""
    found: dict[str, list[str]] = {}
    for case_id, origin in session.refreshed.items():
        forced = f"; forced: {origin.forced}" if origin.forced else ""
        found.setdefault(f"{origin.reason} ({origin.recorded_utc}{forced})", []).append(case_id)
    return found


def _session_line(session: BaselineSession) -> Line:
    launches = max((len(case.launch_medians_s) for case in session.cases.values()), default=0)
    environment, made = session.environment, session.provenance
    return Line(
        cells=(
            made.recorded_utc,
            session.chip or "unknown",
            str(launches),
            environment.driver_version or "",
            environment.cuda_toolkit_version or "",
            (made.commit or "")[:12],
        ),
        notes=tuple((note, "dim") for note in provenance_notes(session)),
    )


def _case_line(case_id: str, baseline: Baseline, *, wide: bool) -> Line:
    cases = [session.cases[case_id] for session in baseline.sessions if case_id in session.cases]
    newest = cases[-1]
    medians_s = tuple(m for case in cases if (m := median_or_none(case.launch_medians_s)) is not None)
    median_s = median_or_none(medians_s)
    between, within = relative_spread(medians_s), median_or_none(case.within_spread for case in cases)
    margin = baseline.margins.get(case_id)
    return Line(
        cells=(
            case_id,
            time_of(median_s),
            measured_rate(case_id, newest.work, newest.timing, median_s),
            str(len(cases)) if wide else "",
            percent_text(between) if between is not None else "",
            percent_text(within) if within is not None else "",
            relative_margin_text(margin.relative) if margin else "",
        ),
        style="" if newest.gated else "dim",
    )


def _list_line(name: str, baseline: Baseline) -> Line:
    sessions = baseline.sessions
    return Line(
        cells=(
            name,
            baseline.gpu.name,
            baseline.gpu.board_part_number or "",
            str(len(sessions)),
            str(len({session.chip for session in sessions})),
            max((session.provenance.recorded_utc[:10] for session in sessions), default=""),
        )
    )


def _change_line(change: CaseChange) -> Line:
    relative = change.relative
    return Line(
        cells=(
            change.id,
            level_text(change.before, change.unit) or "none",
            level_text(change.after, change.unit) or "none",
            percent_text(relative, signed=True) if relative is not None else "",
        ),
        notes=tuple((sentences.difference_text(one), "dim") for one in change.differences),
    )
