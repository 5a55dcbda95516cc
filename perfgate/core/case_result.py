"""The result of one compared case: numbers with their intervals, the final verdict, doubts and causes."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.case import Unit
from perfgate.core.cause import (
    FOREIGN_PROCESS,
    THROTTLED,
    Evidence,
    canary_cause,
    case_causes,
    clock_cause,
    differs,
    family_cause,
    family_shift,
    health_causes,
    relevant_differences,
    throttle_cause,
)
from perfgate.core.caveat import Caveat
from perfgate.core.comparison import TIE, Comparison, median_interval
from perfgate.core.family import Subject
from perfgate.core.margin import session_noise
from perfgate.core.multiplicity import can_reject
from perfgate.core.policy import Policy
from perfgate.core.report import CaseResult, Cause, Estimate
from perfgate.core.run import Run
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict

_MEDIAN_CONFIDENCE = 0.95


def case_result(
    subject: Subject,
    run: Run,
    policy: Policy,
    *,
    verdict: CaseVerdict,
    found: Comparison,
    p_adjusted: float | None,
    change: Estimate,
) -> CaseResult:
    """Return the result of a compared case: its verdict stands unless the measurement forbids it.

    Args:
        subject: the case.
        run: the candidate.
        policy: for what the launches could prove.
        verdict: of the statistics.
        found: the comparison.
        p_adjusted: after correction; None for a case that is not judged.
        change: with the interval at the level that was used.
    """
    side, other = subject.measured, subject.reference
    doubts = (*side.caveats, *other.caveats, *_doubts(subject, found, policy))
    evidence = _evidence(subject, run, change.value)
    machine = _machine_causes(subject.case_id, run)
    final, reason = _final(subject, verdict, doubts, machine)
    clock = clock_cause(evidence)
    causes: tuple[Cause, ...] = ()
    if final in _EXPLAINED:
        causes = (*case_causes(evidence, machine), *(cause for cause in machine if cause.code == THROTTLED))
    elif clock is not None:
        doubts = (*doubts, Caveat(code=clock.code, message=clock.message))
    return CaseResult(
        id=subject.case_id,
        family=subject.info.family,
        verdict=final,
        unit=subject.info.unit,
        timing=subject.info.timing,
        gated=subject.is_judged,
        work=subject.info.work,
        baseline=median_estimate([math.exp(value) for value in other.launches]),
        candidate=median_estimate(side.launches),
        baseline_s=other.median_s,
        candidate_s=side.median_s,
        change=change,
        change_widened=_widened(change, subject.margin.session_term),
        margin=subject.margin,
        p_slower=float(found.p_slower),
        p_adjusted=p_adjusted,
        p_equivalent=float(found.p_equivalent),
        significant=verdict in (CaseVerdict.REGRESSED, CaseVerdict.IMPROVED),
        relevant=bool(abs(found.shift) > found.edge + TIE),
        baseline_launches=len(other.launches),
        candidate_launches=len(side.launches),
        reason=reason,
        causes=causes,
        caveats=doubts,
    )


_EXPLAINED = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED, CaseVerdict.IMPROVED, CaseVerdict.INVALID)


def _final(
    subject: Subject, verdict: CaseVerdict, doubts: Sequence[Caveat], machine: Sequence[Cause]
) -> tuple[CaseVerdict, str | None]:
    """Return the verdict that may be given, and why there is none where there is none."""
    foreign = next((cause for cause in machine if cause.code == FOREIGN_PROCESS), None)
    if verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED) and foreign is not None:
        return CaseVerdict.INVALID, f"slower, but {foreign.message}"
    if verdict is CaseVerdict.IMPROVED and any(doubt.code == "not-settled" for doubt in doubts):
        return CaseVerdict.INCONCLUSIVE, "faster, but one side had not settled"
    if verdict is CaseVerdict.INCONCLUSIVE:
        return verdict, "neither slower nor unchanged is proven at this number of launches"
    if subject.is_gated and not subject.is_judged:
        asked = percent_text(subject.margin.bound or 0.0)
        most = percent_text(subject.margin.relative)
        return verdict, f"sessions of unchanged code ask for a margin of {asked}, beyond the {most} that a gate may use"
    return verdict, None


def median_estimate(values: Sequence[float]) -> Estimate:
    """Return the median of launches with a distribution-free interval of 95 %, where there are six at least."""
    bounds = median_interval(values, _MEDIAN_CONFIDENCE)
    low, high = bounds or (None, None)
    return Estimate(
        value=statistics.median(values), low=low, high=high, confidence=_MEDIAN_CONFIDENCE if bounds else None
    )


def _widened(change: Estimate, session_term: float) -> Estimate | None:
    """Widen an interval by what sessions of unchanged code may differ: what may be said of the code itself."""
    if change.low is None or change.high is None:
        return None
    return replace(
        change, low=(1 + change.low) / (1 + session_term) - 1, high=(1 + change.high) * (1 + session_term) - 1
    )


def _doubts(subject: Subject, found: Comparison, policy: Policy) -> list[Caveat]:
    doubts = []
    if found.spread_changed:
        doubts.append(
            Caveat(
                code="spread-changed",
                message="launches spread more than three times as much on one side as on the other: "
                "Welch's test had to agree",
                remedy="find out what disturbs the noisier side",
            )
        )
    launches = (len(subject.measured.launches), len(subject.reference.launches))
    if subject.is_judged and not can_reject(
        policy.alpha, family=1, candidate_launches=launches[0], baseline_launches=launches[1]
    ):
        doubts.append(_too_few(*launches))
    noise = session_noise(subject.margin)
    if noise is not None:
        doubts.append(noise)
    anchor = subject.reference.anchor
    if anchor is not None and len(subject.reference.sessions) > 1:
        drift = statistics.median(subject.candidate.tolist()) - anchor
        if drift > found.edge + TIE:
            doubts.append(
                Caveat(
                    code="slow-creep",
                    message=f"{percent_text(math.expm1(drift), signed=True)} since the first accepted session of this "
                    f"chip, beyond the margin of {percent_text(subject.margin.relative)}, in steps that each passed",
                    remedy="compare with that session's commit",
                )
            )
    return doubts


def _too_few(candidate: int, baseline: int) -> Caveat:
    return Caveat(
        code="too-few-launches",
        message=f"{candidate} launches against {baseline} cannot prove this case slower, whatever they show",
        remedy="measure more launches, or accept a baseline session with more",
    )


def _evidence(subject: Subject, run: Run, change: float) -> Evidence:
    newest, session = subject.reference.cases[-1], subject.reference.sessions[-1]
    clocks = (subject.reference.sm_clock_hz, subject.measured.sm_clock_hz)
    return Evidence(
        change=change,
        margin=subject.margin.relative,
        is_same_chip=subject.reference.levels.same_chip,
        source=differs(newest.source_sha256, subject.info.source_sha256),
        code=differs(newest.code_sha256, subject.info.code_sha256),
        is_in_cycles=subject.info.unit is Unit.CYCLES,
        clock_hz=None if clocks[0] is None or clocks[1] is None else (clocks[0], clocks[1]),
        environment=relevant_differences(session.environment, run.environment),
    )


def _machine_causes(case_id: str, run: Run) -> tuple[Cause, ...]:
    """Return what the GPU itself reports, for the session and for this case; lowered clocks explain no cycles."""
    events: Counter[str] = Counter()
    for launch in run.launches:
        if case_id in launch.cases:
            events.update(launch.cases[case_id].clock_events_s)
    throttled = throttle_cause(events) if run.cases[case_id].unit is Unit.SECONDS else None
    health = health_causes(run.health_before, run.health_after)
    return health if throttled is None else (*health, throttled)


def with_shared_causes(cases: Sequence[CaseResult], run: Run) -> tuple[tuple[CaseResult, ...], tuple[Cause, ...]]:
    """Add the causes that only several cases together show, and return those of the session."""
    compared = [case for case in cases if case.change is not None and case.margin is not None and case.gated]
    shifts = {case.id: math.log1p(case.change.value) for case in compared if case.change is not None}
    limits = {case.id: case.margin.relative for case in compared if case.margin is not None}
    moved = family_shift(shifts, limits, {case.id: case.family for case in compared})
    shared = {
        family: family_cause(
            family, statistics.median(math.expm1(shifts[case.id]) for case in compared if case.family == family)
        )
        for family in sorted(moved)
    }
    canaries = [
        case.id
        for case in compared
        if case.verdict is CaseVerdict.REGRESSED and not any(cause.code == "source-changed" for cause in case.causes)
    ]
    results = []
    for case in cases:
        extra: list[Cause] = []
        if case.verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED) and case.gated:
            extra += [shared[case.family]] if case.family in shared else []
            if canaries and case.id not in canaries:
                extra.append(canary_cause(canaries))
        results.append(replace(case, causes=(*case.causes, *extra)) if extra else case)
    return tuple(results), (*shared.values(), *health_causes(run.health_before, run.health_after))
