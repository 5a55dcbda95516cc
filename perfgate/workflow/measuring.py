"""A session: launches on one device, turned into a run document; grows, so that a check can stop early."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from perfgate import __version__
from perfgate.core.case import Timing
from perfgate.core.codec import encode
from perfgate.core.device import Device
from perfgate.core.gpu import Environment
from perfgate.core.plan import METHOD, CasePlan
from perfgate.core.run import CaseInfo, Health, Injection, Run
from perfgate.core.selection import matching
from perfgate.core.summary import median_or_none
from perfgate.core.units import clock_text
from perfgate.core.xid import xid_text
from perfgate.errors import ConfigurationError, ExitCode, LaunchError, PerfgateError, WrongOutputError
from perfgate.measure.injection import parse_injections
from perfgate.measure.journal import FailureKind
from perfgate.measure.loop import Settings
from perfgate.measure.order import LaunchOrder, shuffled
from perfgate.measure.supervisor import LaunchOutcome, Lessons, SessionInterruptedError, SessionProgress, supervise
from perfgate.workflow.cases import Selection, described_cases
from perfgate.workflow.listener import Listener
from perfgate.workflow.repository import commit_of
from perfgate.workflow.standing_by import standing_by
from perfgate.workflow.starting import limits

# A locked clock is held when the device's own counters read it within this (1495 for 1500 MHz is held).
LOCK_TOLERANCE = 0.01
# Foreign processes are looked for at most this often: the list costs the driver a millisecond.
_LOOK_FOR_PROCESSES_S = 1.0


class InterruptedRunError(PerfgateError):
    """The session was asked to end; ``run`` holds what was measured, None when nothing was."""

    exit_code = ExitCode.INTERRUPTED

    def __init__(self, run: Run | None) -> None:
        super().__init__("interrupted", hint="what was measured until then is kept" if run else "")
        self.run = run


class Session:
    """The launches of one call on one device.

    Args:
        device: opened device; its lock is the caller's.
        selection: what is measured.
        plans: sampling plans of the baseline.
        listener: told while it goes on.
        first_index: index of the first launch; a confirmation goes on where its check ended.
        judges_wrong_outputs: a wrong output is a result of its case, for a report that has the others too, and
            not the end of the session.

    Raises:
        ConfigurationError: unknown case or suite, malformed rehearsal, an empty suite.
    """

    def __init__(
        self,
        device: Device,
        selection: Selection,
        plans: Mapping[str, CasePlan],
        listener: Listener,
        *,
        first_index: int = 0,
        locked_clock_hz: float | None = None,
        judges_wrong_outputs: bool = False,
    ) -> None:
        self._locked_clock_hz = locked_clock_hz
        self._judges_wrong_outputs = judges_wrong_outputs
        self._device = device
        self._selection = selection
        self._listener = listener
        self._infos, self._absent, self._suite_sha256 = described_cases(device, selection)
        self._plans = {case_id: plan for case_id, plan in plans.items() if case_id in self._infos}
        self._injections = parse_injections(selection.inject, tuple(self._infos), device.kind)
        self._outcomes: list[LaunchOutcome] = []
        self._lessons = Lessons()
        self._first_index = first_index
        self._created = datetime.now(timezone.utc)
        self._before: Health | None = None
        self._after: Health | None = None
        self._foreign: set[str] = set()
        self._looked_s = -_LOOK_FOR_PROCESSES_S
        # A launch, and beside it the program that is one of its cases.
        self._own_processes = 2 if any(info.timing is Timing.PROGRAM for info in self._infos.values()) else 1

    def measure_to(self, launches: int) -> None:
        """Launch until the session has that many launches.

        Raises:
            WrongOutputError, DeviceError: no launch has a result of any case, and why.
            InterruptedRunError: holds what was measured.
        """
        if launches < 1:
            raise ConfigurationError(f"{launches} launches measure nothing", hint="at least 1; a check needs 6")
        with self.attended(launches):
            try:
                if not self._outcomes and set(self._plans) < set(self._infos):
                    self._launch(1)  # alone: the later ones reuse the plans that it chooses
                self._launch(launches - len(self._outcomes))
            except SessionInterruptedError as error:
                self.take(error.outcomes)
                raise InterruptedRunError(self.run() if self.has_results else None) from error
        self._raise_if_nothing_was_measured()

    @contextlib.contextmanager
    def attended(self, launches: int) -> Iterator[None]:
        """Tell the listener that so many launches go on, and read the GPU's health before and after."""
        self._before = self._before or self._device.health()
        self._listener.begins(launches, len(self._infos))
        try:
            yield
        finally:
            self._listener.ends()
        self._after = self._device.health()

    @property
    def launched(self) -> int:
        """How many launches there have been, whatever became of them."""
        return len(self._outcomes)

    @property
    def infos(self) -> Mapping[str, CaseInfo]:
        """The cases, as the suites describe them."""
        return self._infos

    @property
    def plans(self) -> Mapping[str, CasePlan]:
        """The sampling plans that are known so far."""
        return self._plans

    @property
    def modules(self) -> frozenset[str]:
        """The installed packages that its launches imported."""
        return frozenset(name for outcome in self._outcomes for name in outcome.modules)

    @property
    def has_results(self) -> bool:
        """Whether any launch has a result of any case."""
        return any(outcome.launch.cases for outcome in self._outcomes)

    @property
    def wrong_outputs(self) -> tuple[str, ...]:
        """The cases that a launch refused for their output."""
        failures = [failed for outcome in self._outcomes for failed in outcome.case_failures]
        return tuple(dict.fromkeys(one.case_id for one in failures if one.kind is FailureKind.WRONG_OUTPUT))

    def run(self) -> Run:
        """Return the document of what was measured so far."""
        commit, dirty = commit_of(Path.cwd())
        foreign = tuple(sorted(self._foreign))
        return Run(
            created_utc=utc_text(self._created),
            perfgate_version=__version__,
            device_kind=str(self._device.kind),
            method=METHOD,
            suite_name=self._selection.suite_name,
            suite_sha256=self._suite_sha256,
            gpu=self._device.gpu,
            environment=self._clocked(replace(self._device.environment, commit=commit, dirty=dirty)),
            cases={case_id: self._described(case_id) for case_id in self._infos},
            launches=tuple(outcome.launch for outcome in self._outcomes),
            injected=tuple(self._effective(injection) for injection in self._injections),
            seed=self._selection.seed,
            health_before=self._before,
            health_after=replace(self._after, foreign_processes=foreign) if self._after else None,
            settings={**encode(Settings()), **self._selection.settings},
            absent=self._absent,
        )

    def _clocked(self, environment: Environment) -> Environment:
        """Say at which clock it was locked, once the device's own counters have confirmed it."""
        if self._locked_clock_hz is None:
            return environment
        locked = clock_text(self._locked_clock_hz)
        measured_hz = median_or_none(
            block.sm_clock_hz
            for outcome in self._outcomes
            for case in outcome.launch.cases.values()
            for block in case.valid_blocks
        )
        if measured_hz is None:
            return replace(environment, clock_policy=f"locked at {locked}, not confirmed")
        if abs(measured_hz / self._locked_clock_hz - 1) > LOCK_TOLERANCE:
            return replace(environment, clock_policy=f"locked at {locked}, ran at {clock_text(measured_hz)}")
        return replace(environment, clock_policy=f"locked at {locked}", nvml_tier=2)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of launches that were repeated or damaged."""
        return tuple(note for outcome in self._outcomes for note in outcome.notes)

    def _launch(self, count: int) -> None:
        if count < 1:
            return
        begin = self._first_index + len(self._outcomes)
        orders = [self.order(index) for index in range(begin, begin + count)]
        with standing_by(self._device.kind, orders, self.modules) as start:
            outcomes = supervise(
                orders,
                start,
                on_progress=self.progressed,
                lessons=self._lessons,
                limits=limits(self._device.kind),
            )
        self.take(outcomes)

    def take(self, outcomes: Sequence[LaunchOutcome]) -> None:
        """Add launches to the session."""
        known = self.wrong_outputs
        for outcome in outcomes:
            self._outcomes.append(outcome)
            for case_id, plan in outcome.plans.items():
                if not any(injected.fault is None for injected in self._injections):
                    self._plans.setdefault(case_id, plan)
            for note in outcome.notes:
                self._listener.notices(note)
            for failed in outcome.case_failures:
                if failed.kind is FailureKind.WRONG_OUTPUT and failed.case_id not in known:
                    self._listener.notices(failed.message)
            if outcome.launch.failure:
                self._listener.notices(f"launch {outcome.launch.index} failed: {outcome.launch.failure}")

    def order(self, index: int) -> LaunchOrder:
        """Return what a launch is told."""
        return LaunchOrder(
            index=index,
            device=self._device.address,
            suite=self._selection.suite,
            own_suites=self._selection.own_suites,
            options=self._selection.side.options,
            case_ids=shuffled(self._infos, self._selection.seed, index),
            seed=self._selection.seed,
            plans=dict(self._plans),
            injections=self._injections,
            settings=self._selection.settings,
        )

    def progressed(self, progress: SessionProgress) -> None:
        """Take note of a launch's progress."""
        place = progress.launch - self._first_index
        self._listener.progresses(place, progress.cases_done, progress.case_id or "", str(progress.phase or "starting"))
        now_s = time.monotonic()
        if progress.case_id is not None and now_s - self._looked_s >= _LOOK_FOR_PROCESSES_S:
            self._looked_s = now_s
            self._foreign.update(self._device.foreign_processes(self._own_processes))

    def _described(self, case_id: str) -> CaseInfo:
        """The case with the plan and the machine code of its first launch that has them."""
        plans = (outcome.plans[case_id] for outcome in self._outcomes if case_id in outcome.plans)
        codes = (outcome.code_sha256.get(case_id) for outcome in self._outcomes)
        return replace(
            self._infos[case_id],
            plan=next(plans, None),
            code_sha256=next((code for code in codes if code), self._infos[case_id].code_sha256),
        )

    def _effective(self, injection: Injection) -> Injection:
        changes = {
            case_id: change
            for outcome in self._outcomes
            for case_id, change in outcome.effective_changes.items()
            if matching((case_id,), injection.pattern)
        }
        return replace(injection, effective=changes)

    def _raise_if_nothing_was_measured(self) -> None:
        """A wrong output beats any time; else a case without any result must have said why."""
        failures = [failed for outcome in self._outcomes for failed in outcome.case_failures]
        wrong = [failed for failed in failures if failed.kind is FailureKind.WRONG_OUTPUT]
        if wrong and not (self._judges_wrong_outputs and self.has_results):
            raise WrongOutputError(wrong[0].message)
        if self.has_results:
            return
        reasons = [outcome.launch.failure for outcome in self._outcomes if outcome.launch.failure]
        reasons += [failed.message for failed in failures]
        xids = self._after.xids if self._after else None
        raise LaunchError(
            f"no launch measured anything: {reasons[0] if reasons else 'no case was left'}",
            hint=f"the driver reported {xid_text(xids)}" if xids else "",
        )


@contextlib.contextmanager
def held(device: Device, selection: Selection, *, wait: bool) -> Iterator[float | None]:
    """Hold a device's lock, and its clock where that is asked for; give the locked clock [Hz].

    Raises:
        DeviceBusyError: another perfgate holds it and ``wait`` is false.
        ConfigurationError, DeviceError: the clock cannot be locked.
    """
    with device.lock(wait=wait):
        if not selection.lock_clocks:
            yield None
            return
        with device.locked_clocks(selection.clock_mhz) as clock_hz:
            yield clock_hz


def measured(
    device: Device,
    selection: Selection,
    launches: int,
    listener: Listener,
    *,
    wait: bool = False,
    plans: Mapping[str, CasePlan] | None = None,
) -> Run:
    """Measure a device under its lock, by the plans of its baseline where there are any; raises like ``Session``."""
    with held(device, selection, wait=wait) as clock_hz:
        session = Session(device, selection, plans or {}, listener, locked_clock_hz=clock_hz)
        session.measure_to(launches)
    return session.run()


def utc_text(moment: datetime) -> str:
    """Render a moment as documents write it: ``"2026-11-30T12:00:00Z"``."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
