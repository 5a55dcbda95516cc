"""Launches one after the other as child processes: watched, retried once, their results kept whatever they die of.

A launch is the unit of inference, so a launch that dies is repeated as a whole; what the dead one
had finished is used only if the repetition dies as well. The case at which a launch died comes last
in the repetition, and is left out of later launches when it kills that too: one broken kernel costs
its own result, not those of the others.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import Popen
from typing import Any

from perfgate.core.plan import CasePlan
from perfgate.core.run import Launch
from perfgate.errors import ExitCode, OutputError, PerfgateError
from perfgate.measure.attempt import Attempt, Limits, Surroundings, Watch
from perfgate.measure.interruption import Interruption, listening
from perfgate.measure.journal import CaseFailed, Phase
from perfgate.measure.order import LaunchOrder
from perfgate.measure.transcript import Transcript

Start = Callable[[LaunchOrder, Path], "Popen[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProgress:
    """Where a session is.

    Attributes:
        launch: index of the launch at work.
        launches: launches of this session.
        attempt: 1, or 2 when it is repeated.
        case_id, phase: what it is doing; None before its first case.
        cases_done: cases of this launch that have a result or a failure.
        case_count: cases of this launch.
    """

    launch: int
    launches: int
    attempt: int
    case_id: str | None
    phase: Phase | None
    cases_done: int
    case_count: int


@dataclass(slots=True, kw_only=True)
class Lessons:
    """What launches taught about later ones; hand the same to every call that continues a session.

    Attributes:
        left_out: cases that later launches leave out, and why.
        given_up: why no later launch is started; None while there is hope.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    given_up: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    """What became of a launch.

    Attributes:
        launch: for the run document; ``failures`` names every case without a result.
        plans: by which plan each case was sampled.
        code_sha256: hash of the machine code of each case.
        effective_changes: what was rehearsed, by case; see ``core.run.Injection``.
        case_failures: the failures that the launch itself reported, with their kind.
        modules: the installed packages that it imported.
        notes: what else a person should know: attempts that died and their last output, damaged messages.
    """

    launch: Launch
    plans: Mapping[str, CasePlan]
    code_sha256: Mapping[str, str | None]
    effective_changes: Mapping[str, float]
    case_failures: tuple[CaseFailed, ...] = ()
    modules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SessionInterruptedError(PerfgateError):
    """The session was asked to end (Ctrl-C, SIGTERM); no process of it is left.

    Attributes:
        outcomes: what was measured until then; the last may be part of a launch.
    """

    exit_code = ExitCode.INTERRUPTED

    def __init__(self, signal_name: str, outcomes: tuple[LaunchOutcome, ...]) -> None:
        super().__init__(f"interrupted by {signal_name} after {len(outcomes)} launches")
        self.outcomes = outcomes


def supervise(
    orders: Sequence[LaunchOrder],
    start: Start,
    *,
    on_progress: Callable[[SessionProgress], None] = lambda _: None,
    lessons: Lessons | None = None,
    limits: Limits | None = None,
    surroundings: Surroundings | None = None,
) -> tuple[LaunchOutcome, ...]:
    """Run launches one after the other.

    Args:
        orders: what each launch is told.
        start: starts a process that writes its journal to the path given; see ``child.start_child``.
        on_progress: told whenever a launch says something.
        lessons: of earlier launches of the session; grows.
        limits: how long to wait for what.
        surroundings: clocks; for tests.

    Returns:
        One outcome an order, in their order; a launch that failed says so in ``launch.failure``.

    Raises:
        SessionInterruptedError: SIGINT, SIGTERM or SIGHUP came; holds what was measured.
        OutputError: there is no temporary folder for the journals.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True)
    except OSError as error:
        raise OutputError(f"no temporary folder for journals: {error}", hint="free space, or set TMPDIR") from error
    with folder as path, listening() as interruption:
        session = _Session(
            start=start,
            folder=Path(path),
            launches=len(orders),
            on_progress=on_progress,
            lessons=lessons if lessons is not None else Lessons(),
            limits=limits or Limits(),
            surroundings=surroundings or Surroundings(),
            interruption=interruption,
        )
        outcomes: list[LaunchOutcome] = []
        for order in orders:
            if interruption.signal is None:
                outcomes.append(session.launch(order))
            if interruption.signal is not None:
                raise SessionInterruptedError(interruption.signal, tuple(outcomes))
    return tuple(outcomes)


class _Session:
    """The launches of one call of ``supervise``."""

    def __init__(
        self,
        *,
        start: Start,
        folder: Path,
        launches: int,
        on_progress: Callable[[SessionProgress], None],
        lessons: Lessons,
        limits: Limits,
        surroundings: Surroundings,
        interruption: Interruption,
    ) -> None:
        self._start = start
        self._folder = folder
        self._launches = launches
        self._on_progress = on_progress
        self._limits = limits
        self._surroundings = surroundings
        self._interruption = interruption
        self._end_s = surroundings.clock() + limits.session_s
        self._lessons = lessons

    def launch(self, order: LaunchOrder) -> LaunchOutcome:
        """Run one launch, twice if need be."""
        order = replace(order, case_ids=tuple(one for one in order.case_ids if one not in self._lessons.left_out))
        if self._lessons.given_up is None and self._is_late:
            self._lessons.given_up = f"the session has used up its {self._limits.session_s:g} s"
        if self._lessons.given_up is not None or not order.case_ids:
            return self._outcome(order.index, self._unstarted(order, self._lessons.given_up or "no case is left"))
        first = self._attempt(order, 1)
        if first.failure is None or first.is_interrupted or first.is_stuck or self._is_late:
            self._learn(order.index, first)
            return self._outcome(order.index, first)
        second = self._attempt(replace(order, case_ids=_with_last(order.case_ids, first.culprit)), 2)
        self._learn(order.index, second, before=first)
        is_better = second.failure is None or len(second.transcript.cases) >= len(first.transcript.cases)
        best, other = (second, first) if is_better else (first, second)
        return self._outcome(order.index, best, other)

    @property
    def _is_late(self) -> bool:
        return self._surroundings.clock() >= self._end_s

    def _attempt(self, order: LaunchOrder, number: int) -> Attempt:
        journal = self._folder / f"launch-{order.index}-{number}.jsonl"
        try:
            process = self._start(order, journal)
        except OSError as error:
            return self._unstarted(order, f"its process cannot be started: {error}")
        watch = Watch(
            order,
            process,
            journal,
            limits=self._limits,
            end_s=self._end_s,
            interruption=self._interruption,
            on_message=lambda transcript: self._report(order.index, number, transcript),
            surroundings=self._surroundings,
        )
        return watch.run()

    def _unstarted(self, order: LaunchOrder, failure: str) -> Attempt:
        transcript = Transcript.begun(order.case_ids, self._surroundings.now())
        return Attempt(transcript=transcript, failure=failure)

    def _report(self, launch: int, attempt: int, transcript: Transcript) -> None:
        case_count = len(transcript.case_ids)
        self._on_progress(
            SessionProgress(
                launch=launch,
                launches=self._launches,
                attempt=attempt,
                case_id=transcript.open_case,
                phase=transcript.phase if transcript.open_case else None,
                cases_done=case_count - len(transcript.unfinished),
                case_count=case_count,
            )
        )

    def _learn(self, index: int, last: Attempt, before: Attempt | None = None) -> None:
        """Draw the conclusions for later launches."""
        if last.is_stuck:
            self._lessons.given_up = f"launch {index} cannot be stopped and holds the GPU"
        elif before is None or last.failure is None or last.is_interrupted:
            return
        elif last.culprit is not None and last.culprit == before.culprit:
            self._lessons.left_out[last.culprit] = f"left out: launch {index} failed at it twice: {last.failure}"
        elif not last.transcript.cases and not before.transcript.cases:
            self._lessons.given_up = f"launch {index} failed twice before it had measured anything: {last.failure}"

    def _outcome(self, index: int, attempt: Attempt, other: Attempt | None = None) -> LaunchOutcome:
        transcript = attempt.transcript
        failures = {case_id: failed.message for case_id, failed in transcript.case_failures.items()}
        for case_id in transcript.unfinished:
            failures[case_id] = f"not measured: {attempt.failure or 'the launch passed it over'}"
        failures |= {key: reason for key, reason in self._lessons.left_out.items() if key not in transcript.case_ids}
        launch = Launch(
            index=index,
            started_utc=transcript.started_utc,
            cases=transcript.cases,
            failures=failures,
            failure=attempt.failure,
            event_floor_s=transcript.finished.event_floor_s if transcript.finished else None,
        )
        notes = list(transcript.notes)
        if other is not None:
            notes = [f"it was run twice; the other attempt: {other.failure}", *other.transcript.notes, *notes]
        return LaunchOutcome(
            launch=launch,
            plans=transcript.plans,
            code_sha256=transcript.code_sha256,
            effective_changes=transcript.effective_changes,
            case_failures=tuple(transcript.case_failures.values()),
            modules=transcript.finished.modules if transcript.finished else (),
            notes=tuple(f"launch {index}: {note}" for note in notes),
        )


def _with_last(case_ids: tuple[str, ...], last: str | None) -> tuple[str, ...]:
    """Move the case at which a launch died to the end, so that the others are measured before it."""
    others = tuple(one for one in case_ids if one != last)
    return (*others, last) if last in case_ids and last is not None else others
