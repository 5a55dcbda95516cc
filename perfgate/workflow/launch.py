"""One launch, in its own process: opens the device, measures every case of its order, writes the journal."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from perfgate.core.case import Case, Suite, Timing, Unit
from perfgate.core.device import DeviceKind, LaunchSession
from perfgate.core.gpu import Gpu
from perfgate.errors import CompileError, DeviceError, DeviceMemoryError, PerfgateError, WrongOutputError
from perfgate.measure.injection import injected_change
from perfgate.measure.journal import (
    CaseFailed,
    CaseMeasured,
    FailureKind,
    Journal,
    LaunchFailed,
    LaunchFinished,
    Phase,
    PhaseEntered,
    Started,
    open_journal,
)
from perfgate.measure.loop import CaseLoop, Settings
from perfgate.measure.order import LaunchOrder
from perfgate.measure.orphan import end_with_parent
from perfgate.resources import cache_folder
from perfgate.workflow.suites import enter_folder, installed_modules, refuse_foreign_modules

# How a case is timed, and what it is judged in.
_Way = tuple[Timing, Unit]


def run_launch(order: LaunchOrder, journal_path: Path) -> bool:
    """Carry out an order.

    Returns:
        Whether the launch came to its end; cases may have failed all the same.
    """
    end_with_parent(os.environ)
    with open_journal(journal_path) as journal:
        journal.write(Started(pid=os.getpid()))
        try:
            enter_folder(order.options.get("folder", ""))
            with _opened_session(order, journal) as (session, ways):
                loop = _loop(session, order, journal, session.self_test())
                for case_id in order.case_ids:
                    outcome = _measured(loop, session, order, case_id, ways[case_id])
                    # A framework may be imported in a set-up: only now it is known where from.
                    refuse_foreign_modules(order.options.get("forbidden", ""))
                    journal.write(outcome)
                    if isinstance(outcome, CaseFailed) and outcome.kind is FailureKind.DEVICE:
                        # A fault of a kernel can leave the whole context unusable: then this launch is over,
                        # and the supervisor repeats it with that case last.
                        session.self_test()
        except PerfgateError as error:
            journal.write(LaunchFailed(kind=failure_kind(error), message=_text(error)))
            return False
        journal.write(LaunchFinished(modules=installed_modules()))
    return True


def _loop(session: LaunchSession, order: LaunchOrder, journal: Journal, light_clock_hz: float | None) -> CaseLoop:
    """Return the measuring loop; a recording needs no rest, and what it replays depends on no clock of this machine."""
    if order.device.startswith(DeviceKind.RECORDED):
        return CaseLoop(session, loop_settings(order), _progress(journal), _no_pause, _no_clock)
    return CaseLoop(session, loop_settings(order), _progress(journal), light_clock_hz=light_clock_hz)


def _no_pause(duration_s: float) -> None:
    del duration_s


def _no_clock() -> float:
    return 0.0


def _progress(journal: Journal) -> Callable[[str, str], None]:
    return lambda case_id, phase: journal.write(PhaseEntered(case_id=case_id, phase=Phase(phase)))


def _measured(
    loop: CaseLoop, session: LaunchSession, order: LaunchOrder, case_id: str, way: _Way
) -> CaseMeasured | CaseFailed:
    """Measure a case; its failure is told and leaves the others alone."""
    change = injected_change(case_id, order.injections)
    try:
        timing, unit = way
        measured = loop.measure(case_id, timing, order.plans.get(case_id), change, unit=unit)
    except PerfgateError as error:
        return CaseFailed(case_id=case_id, kind=failure_kind(error), message=_text(error))
    return CaseMeasured(
        case_id=case_id,
        result=measured.launch,
        plan=measured.plan,
        effective_change=measured.effective_change,
        code_sha256=session.code_sha256(case_id),
    )


@contextlib.contextmanager
def _opened_session(order: LaunchOrder, journal: Journal) -> Iterator[tuple[LaunchSession, dict[str, _Way]]]:
    kind, _, rest = order.device.partition(":")
    if kind == DeviceKind.RECORDED:
        from perfgate.devices.recorded import RecordedLaunch
        from perfgate.workflow.devices import recording

        replayed = recording(Path(rest))
        ways = {case_id: (info.timing, info.unit) for case_id, info in replayed.cases.items()}
        own = own_cases(order, replayed.runs[0].gpu)
        session = RecordedLaunch(replayed, seed=order.seed, index=order.index, injections=order.injections)
        yield _with_programs(session, own, journal), ways | {case.id: (case.timing, case.unit) for case in own}
        return
    from perfgate.devices.cuda.session import opened_session
    from perfgate.devices.cuda.verified import VerifiedOutputs
    from perfgate.workflow.suites import joined_suite

    cases: list[Case] = []

    def suite(gpu: Gpu) -> Suite:
        found = joined_suite(order.suite, order.own_suites, gpu)
        cases.extend(found.cases)
        return found

    kept = order.options.get("verified")
    verified = VerifiedOutputs(Path(kept)) if kept else None
    with opened_session(rest, suite, cache_folder(), verified) as opened:
        yield _with_programs(opened, cases, journal), opened.ways


def own_cases(order: LaunchOrder, gpu: Gpu) -> list[Case]:
    """Return the cases of the order's own suites."""
    if not order.own_suites:
        return []
    from perfgate.workflow.suites import joined_suite

    return list(joined_suite("", order.own_suites, gpu).cases)


def _with_programs(session: LaunchSession, cases: Iterable[Case], journal: Journal) -> LaunchSession:
    programs = {case.id: case.program for case in cases if case.program is not None}
    if not programs:
        return session
    from perfgate.measure.program import ProgramSession

    return ProgramSession(
        session, programs, lambda case_id: journal.write(PhaseEntered(case_id=case_id, phase=Phase.BLOCK))
    )


def loop_settings(order: LaunchOrder) -> Settings:
    """Return the loop's settings with those of the order."""
    whole = {"samples_per_block", "blocks", "settled_windows", "retries"}
    values: dict[str, Any] = {name: int(value) if name in whole else value for name, value in order.settings.items()}
    return Settings(**values)


def failure_kind(error: PerfgateError) -> FailureKind:
    """Return how the journal names an error."""
    kinds: tuple[tuple[type[PerfgateError], FailureKind], ...] = (
        (CompileError, FailureKind.COMPILE),
        (DeviceMemoryError, FailureKind.OUT_OF_MEMORY),
        (DeviceError, FailureKind.DEVICE),
        (WrongOutputError, FailureKind.WRONG_OUTPUT),
    )
    return next((kind for type_, kind in kinds if isinstance(error, type_)), FailureKind.ERROR)


def _text(error: PerfgateError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
