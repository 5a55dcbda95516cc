"""The main job: measure, look at stages, confirm a regression, judge. And judging alone."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perfgate import __version__
from perfgate.core.baseline import Baseline
from perfgate.core.conclusion import concluded
from perfgate.core.device import Device, DeviceKind
from perfgate.core.gate import is_decided, judge, needs_confirmation
from perfgate.core.gpu import Gpu
from perfgate.core.history import ChipHistory, history_of_check
from perfgate.core.multiplicity import impossible, stage_levels
from perfgate.core.plan import METHOD, CasePlan
from perfgate.core.policy import Policy, halved_stages
from perfgate.core.report import Report
from perfgate.core.roofline import positioned
from perfgate.core.run import Run
from perfgate.core.selection import is_match
from perfgate.core.summary import median_or_none
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import ConfigurationError
from perfgate.measure.interruption import Interruption, listening
from perfgate.storage.baselines import BaselineSearch, find_baseline
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.workflow.accepting import now_utc, refuse_implausible
from perfgate.workflow.cases import Selection, with_own_margins
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import InterruptedRunError, Session, held

_REST_STEP_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check came to.

    Attributes:
        report: the judgement.
        run: what was measured; None when there was nothing to compare with, so nothing was.
        confirmation: the fresh launches that a regression was measured again with.
        base: what was measured of the base, in turn with the run.
        history: the baseline's sessions of this chip and the run; None where there are not two.
    """

    report: Report
    run: Run | None
    confirmation: Run | None = None
    base: Run | None = None
    history: ChipHistory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of a device: what is measured, and how it is judged.

    Attributes:
        device: opened device.
        selection: what is measured.
        policy: effective policy.
        listener: told while it goes on.
        wait: wait for another perfgate on this GPU to end.
        pause: sleeps before a confirmation.
        trusts_suites: the margins that own suites ask for count. A change under judgement could widen its own.
    """

    device: Device
    selection: Selection
    policy: Policy
    listener: Listener
    wait: bool = False
    pause: Callable[[float], None] = time.sleep
    trusts_suites: bool = True

    def against(self, place: Path) -> CheckResult:
        """Measure the device and judge it against the baseline of its identity, in a file or folder.

        Raises:
            PerfgateError: no verdict could be reached; see ``errors``.
        """
        search = find_baseline(place, self.device.gpu)
        if search.found is None:
            return CheckResult(report=_not_compared(self.device, self.policy, search), run=None)
        refuse_implausible(search.found.baseline, str(search.found.path), self.device.gpu)
        baseline = selected_baseline(search.found.baseline, self.selection)
        policy = self.policy
        if self.trusts_suites:
            policy = with_own_margins(policy, self.selection, self.device.gpu)
        _refuse_hopeless(baseline, policy)
        began_s = time.monotonic()
        with held(self.device, self.selection, wait=self.wait) as clock_hz, listening() as interruption:
            check = replace(self, policy=policy)
            result = check._measured(baseline, search.found.path.name, clock_hz, interruption)
        history = history_of_check(baseline, result.run, policy) if result.run is not None else None
        report = replace(result.report, measured_s=time.monotonic() - began_s)
        return replace(result, report=report, history=history)

    def _measured(
        self, baseline: Baseline, source: str, clock_hz: float | None, interruption: Interruption
    ) -> CheckResult:
        """Measure stage by stage until nothing more needs to be measured; confirm a regression."""
        plans = baseline_plans(baseline, self.device.gpu)
        judged = partial(judge, baseline=baseline, policy=self.policy, baseline_source=source)
        opened = partial(
            Session,
            self.device,
            self.selection,
            plans,
            self.listener,
            locked_clock_hz=clock_hz,
            judges_wrong_outputs=True,
        )
        session = opened()
        report, run = self._staged(session, judged, interruption)
        if not needs_confirmation(report):
            return CheckResult(report=shown(_with_wrong_outputs(report, session), run), run=run)
        _heed(interruption, run)
        confirming = opened(first_index=len(run.launches))
        again = self._confirmation(confirming, report, run)
        report = judged(candidate=run, created_utc=now_utc(), confirmation=again, first=report)
        report = _with_wrong_outputs(report, session, confirming)
        return CheckResult(report=shown(report, again), run=run, confirmation=again)

    def _staged(
        self, session: Session, judged: Callable[..., Report], interruption: Interruption
    ) -> tuple[Report, Run]:
        *early, last = enumerate(self.policy.stages)
        for look, launches in early:
            session.measure_to(launches)
            report = judged(candidate=session.run(), created_utc=now_utc(), look=look)
            if is_decided(report):
                return report, session.run()
            _heed(interruption, session.run())
        look, launches = last
        session.measure_to(launches)
        return judged(candidate=session.run(), created_utc=now_utc(), look=look), session.run()

    def _confirmation(self, session: Session, report: Report, run: Run) -> Run:
        """Measure a regression again after a rest: in the same session it would only repeat what made it.

        Raises:
            InterruptedRunError: asked to end; holds the run that showed the regression.
        """
        try:
            # A recording does not tire.
            if self.device.kind is DeviceKind.CUDA:
                slower = ", ".join(case.id for case in report.cases if case.verdict is CaseVerdict.REGRESSED)
                self.listener.notices(
                    f"slower: {slower}; resting {self.policy.confirmation_pause_s:.0f} s, then confirming with"
                    f" {self.policy.launches} fresh launches"
                )
                rest(self.policy.confirmation_pause_s, self.pause)
            session.measure_to(self.policy.launches)
        except InterruptedRunError as error:
            raise InterruptedRunError(run) from error
        return session.run()


def _with_wrong_outputs(report: Report, *sessions: Session) -> Report:
    """Let a wrong output beat every verdict; the other cases keep theirs."""
    wrong = tuple(dict.fromkeys(case_id for session in sessions for case_id in session.wrong_outputs))
    return concluded(report, wrong_output=wrong) if wrong else report


def compared(
    baseline: Baseline, source: str, candidate: Run, policy: Policy, confirmation: Run | None = None
) -> Report:
    """Judge a run against a baseline, for a person to read; measures nothing. See ``judged``."""
    report = judged(baseline, source, candidate, policy, confirmation)
    return shown(report, confirmation or candidate)


def judged(baseline: Baseline, source: str, candidate: Run, policy: Policy, confirmation: Run | None = None) -> Report:
    """Judge a run against a baseline, and no more.

    A run that ended at an early stage of the policy is judged as that stage judged it: with so few
    launches it can be shown to be unchanged, not to be slower. Any other run gets one look.
    """
    early = {launches: look for look, launches in enumerate(policy.stages[:-1])}
    return judge(
        baseline=baseline,
        candidate=candidate,
        policy=policy,
        created_utc=now_utc(),
        baseline_source=source,
        look=early.get(len(candidate.launches)),
        confirmation=confirmation,
    )


def shown(report: Report, run: Run) -> Report:
    """Add what is shown beside a judgement: roofline positions, and the conditions of the run."""
    cases = [case for launch in run.launches for case in launch.cases.values()]
    clocks = [block.sm_clock_hz for case in cases for block in case.valid_blocks]
    return replace(
        positioned(report, run, read_gpu_table()),
        sm_clock_hz=median_or_none(clocks),
        temperature_c=max((case.temperature_c for case in cases if case.temperature_c is not None), default=None),
    )


def _refuse_hopeless(baseline: Baseline, policy: Policy) -> None:
    """Find out before anything is measured when not even one case alone could be proven slower.

    Raises:
        ConfigurationError: so many launches prove nothing; says how many would.
    """
    found: Counter[str] = Counter()
    for session in baseline.sessions:
        found.update({case_id: len(case.launch_medians_s) for case_id, case in session.cases.items()})
    most = max(found.values(), default=0)
    if most and not any(stage_levels(policy.alpha, policy.stages, family=1, baseline_launches=most)):
        raise impossible(policy.alpha, family=1, candidate_launches=policy.stages[-1], baseline_launches=most)


def _heed(interruption: Interruption, run: Run) -> None:
    """End where somebody has asked to while it was judged; what was measured is kept."""
    if interruption.signal is not None:
        raise InterruptedRunError(run)


def rest(duration_s: float, pause: Callable[[float], None]) -> None:
    """Wait in short steps, so that a request to end is heard."""
    with listening() as interruption:
        for _ in range(round(duration_s / _REST_STEP_S)):
            pause(_REST_STEP_S)
            if interruption.signal is not None:
                raise InterruptedRunError(None)


def _not_compared(device: Device, policy: Policy, search: BaselineSearch) -> Report:
    """The report of a check that has no baseline: what differs, and what makes one. Nothing is measured."""
    nearest = search.nearest
    candidate = Run(
        created_utc=now_utc(),
        perfgate_version=__version__,
        device_kind=str(device.kind),
        method=METHOD,
        suite_name="",
        suite_sha256=None,
        gpu=device.gpu,
        environment=device.environment,
        cases={},
        launches=(),
    )
    return judge(
        baseline=nearest.baseline if nearest else None,
        candidate=candidate,
        policy=policy,
        created_utc=candidate.created_utc,
        baseline_source=nearest.path.name if nearest else search.place.name,
    )


def with_launches(policy: Policy, launches: int | None) -> Policy:
    """Return the policy with another number of launches, looked at half way and at the end.

    Raises:
        ConfigurationError: fewer than one.
    """
    if launches is None:
        return policy
    if launches < 1:
        raise ConfigurationError(f"--launches {launches}: at least 1", hint="a check needs 6 to prove a regression")
    return replace(policy, launches=launches, stages=halved_stages(launches))


def selected_baseline(baseline: Baseline, selection: Selection) -> Baseline:
    """Leave out of a baseline the cases that were not asked for: they are not missing."""
    from perfgate.suite import built_in_suite

    if not selection.cases and selection.suite:
        return baseline
    unasked = set() if selection.suite else {case.id for case in built_in_suite("full", baseline.gpu).cases}
    globs = selection.cases or ("*",)
    sessions = tuple(
        replace(
            session,
            cases={
                case_id: case
                for case_id, case in session.cases.items()
                if case_id not in unasked and any(is_match(case_id, glob) for glob in globs)
            },
        )
        for session in baseline.sessions
    )
    return replace(baseline, sessions=sessions)


def baseline_plans(baseline: Baseline, gpu: Gpu) -> dict[str, CasePlan]:
    """Return the sampling plan of each case: of the newest session, of this chip where there is one."""
    ordered = sorted(
        baseline.sessions,
        key=lambda session: (session.chip is not None and session.chip == gpu.chip, session.provenance.recorded_utc),
    )
    return {case_id: case.plan for session in ordered for case_id, case in session.cases.items()}


def known_plans(place: Path, gpu: Gpu) -> dict[str, CasePlan]:
    """Return the plans of a GPU's baseline, none without one: sessions of one baseline are sampled alike."""
    found = find_baseline(place, gpu).found
    return {} if found is None else baseline_plans(found.baseline, gpu)
