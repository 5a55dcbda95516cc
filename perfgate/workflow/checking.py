"""The main job: measure, look at stages, confirm a regression, judge. And judging alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from perfgate import __version__
from perfgate.core.baseline import Baseline
from perfgate.core.device import Device, DeviceKind
from perfgate.core.gate import is_decided, judge, needs_confirmation
from perfgate.core.gpu import Gpu
from perfgate.core.plan import METHOD, CasePlan
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.roofline import positioned
from perfgate.core.run import Run
from perfgate.core.selection import is_match
from perfgate.core.summary import median_or_none
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import ConfigurationError
from perfgate.storage.baselines import BaselineSearch, find_baseline
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import Selection, Session, utc_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check came to.

    Attributes:
        report: the judgement.
        run: what was measured; None when there was nothing to compare with, so nothing was.
        confirmation: the fresh launches that a regression was measured again with.
    """

    report: Report
    run: Run | None
    confirmation: Run | None = None


def checked(
    device: Device,
    selection: Selection,
    policy: Policy,
    baseline_place: Path,
    listener: Listener,
    *,
    wait: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> CheckResult:
    """Measure a device and judge it against the baseline of its identity.

    Args:
        device: opened device.
        selection: what is measured.
        policy: effective policy.
        baseline_place: file or folder of baselines.
        listener: told while it goes on.
        wait: wait for another perfgate on this GPU to end.
        pause: sleeps before a confirmation.

    Raises:
        PerfgateError: no verdict could be reached; see ``errors``.
    """
    search = find_baseline(baseline_place, device.gpu)
    if search.found is None:
        return CheckResult(report=_not_compared(device, policy, search), run=None)
    baseline = selected_baseline(search.found.baseline, selection)
    source = search.found.path.name
    plans = baseline_plans(baseline, device.gpu)
    began_s = time.monotonic()
    with device.lock(wait=wait):
        session = Session(device, selection, plans, listener)
        report = _staged(session, baseline, policy, source)
        run = session.run()
        confirmation = None
        if needs_confirmation(report):
            _rest(device, policy, report, listener, pause)
            again = Session(device, selection, plans, listener, first_index=len(run.launches))
            again.measure_to(policy.launches)
            confirmation = again.run()
            report = judge(
                baseline=baseline,
                candidate=run,
                policy=policy,
                created_utc=_now_utc(),
                baseline_source=source,
                look=len(policy.stages) - 1,
                confirmation=confirmation,
                first=report,
            )
    report = replace(report, measured_s=time.monotonic() - began_s)
    return CheckResult(report=shown(report, run), run=run, confirmation=confirmation)


def compared(baseline: Baseline, source: str, candidate: Run, policy: Policy) -> Report:
    """Judge a run against a baseline, in one look; measures nothing."""
    report = judge(
        baseline=baseline, candidate=candidate, policy=policy, created_utc=_now_utc(), baseline_source=source
    )
    return shown(report, candidate)


def shown(report: Report, run: Run) -> Report:
    """Add what is shown beside a judgement: roofline positions, and the conditions of the run."""
    cases = [case for launch in run.launches for case in launch.cases.values()]
    clocks = [block.sm_clock_hz for case in cases for block in case.valid_blocks]
    return replace(
        positioned(report, run, read_gpu_table()),
        sm_clock_hz=median_or_none(clocks),
        temperature_c=max((case.temperature_c for case in cases if case.temperature_c is not None), default=None),
    )


def _staged(session: Session, baseline: Baseline, policy: Policy, source: str) -> Report:
    """Measure stage by stage until nothing more needs to be measured."""
    for look, launches in enumerate(policy.stages):
        session.measure_to(launches)
        report = judge(
            baseline=baseline,
            candidate=session.run(),
            policy=policy,
            created_utc=_now_utc(),
            baseline_source=source,
            look=look,
        )
        if is_decided(report) or look == len(policy.stages) - 1:
            return report
    message = "a policy has at least one stage"
    raise ValueError(message)


def _rest(device: Device, policy: Policy, report: Report, listener: Listener, pause: Callable[[float], None]) -> None:
    """Let the machine rest before a regression is measured again; a recording does not tire."""
    if device.kind is DeviceKind.RECORDED:
        return
    suspects = ", ".join(case.id for case in report.cases if case.verdict is CaseVerdict.REGRESSED)
    listener.notices(
        f"slower: {suspects}; resting {policy.confirmation_pause_s:.0f} s, then confirming with"
        f" {policy.launches} fresh launches"
    )
    pause(policy.confirmation_pause_s)


def _not_compared(device: Device, policy: Policy, search: BaselineSearch) -> Report:
    """The report of a check that has no baseline: what differs, and what makes one. Nothing is measured."""
    nearest = search.nearest
    candidate = Run(
        created_utc=_now_utc(),
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
    """Return the policy with another number of launches, and of its stages those before it.

    Raises:
        ConfigurationError: fewer than one.
    """
    if launches is None:
        return policy
    if launches < 1:
        raise ConfigurationError(f"--launches {launches}: at least 1", hint="a check needs 6 to prove a regression")
    stages = (*(stage for stage in policy.stages if stage < launches), launches)
    return replace(policy, launches=launches, stages=stages)


def selected_baseline(baseline: Baseline, selection: Selection) -> Baseline:
    """Leave out of a baseline the cases that were not asked for: they are not missing."""
    if not selection.cases:
        return baseline
    sessions = tuple(
        replace(
            session,
            cases={
                case_id: case
                for case_id, case in session.cases.items()
                if any(is_match(case_id, glob) for glob in selection.cases)
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


def _now_utc() -> str:
    return utc_text(datetime.now(timezone.utc))
