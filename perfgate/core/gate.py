"""The gate: a candidate run against a baseline, under a policy, ends in a report.

Pure: measuring, waiting and confirming are the workflow's; this module says what a run proves, whether
more launches are needed and whether a regression wants confirmation. docs/statistics.md explains the rule.
"""

from dataclasses import replace

from perfgate.core.baseline import Baseline
from perfgate.core.caveat import Caveat
from perfgate.core.conclusion import concluded
from perfgate.core.gpu import Difference, environment_differences, identity_differences, unknown_identity_fields
from perfgate.core.judgement import judgement, unjudged
from perfgate.core.policy import Policy
from perfgate.core.report import BaselineUsed, CaseResult, Report
from perfgate.core.run import Run
from perfgate.core.summary import median_or_none
from perfgate.core.verdict import CaseVerdict, CheckVerdict


def judge(
    *,
    baseline: Baseline | None,
    candidate: Run,
    policy: Policy,
    created_utc: str,
    baseline_source: str = "",
    look: int | None = None,
    confirmation: Run | None = None,
    first: Report | None = None,
) -> Report:
    """Judge a candidate.

    Args:
        baseline: accepted sessions, without the cases that were not asked for: what the candidate lacks is
            missing. None or empty gives the verdict no-baseline.
        candidate: the run under judgement, with the launches measured so far.
        policy: error rates, stages, margins, accepted slowdowns.
        created_utc: now, ISO 8601.
        baseline_source: a name for where the baseline came from, for the report.
        look: index into the policy's stages; None for a single look at the whole error rate.
        confirmation: fresh launches of the whole suite, measured because ``first`` found a regression.
        first: the report on ``candidate``; judged here when None.

    Raises:
        ConfigurationError: with so few launches no regression could be proven; or the policy is wrong.
    """
    if confirmation is None:
        return _judged(baseline, candidate, policy, created_utc=created_utc, source=baseline_source, look=look)
    if first is None:
        first = judge(
            baseline=baseline,
            candidate=candidate,
            policy=policy,
            created_utc=created_utc,
            baseline_source=baseline_source,
            look=look,
        )
    if baseline is None or not needs_confirmation(first):
        return first
    return _confirmed(first, baseline, confirmation, policy, created_utc)


def needs_confirmation(report: Report) -> bool:
    """Tell whether a regression was found that fresh launches have not been asked about."""
    return any(case.verdict is CaseVerdict.REGRESSED and case.confirmed is None for case in report.cases)


def is_decided(report: Report) -> bool:
    """Tell whether further launches of this session would be of no use.

    They are when a regression was found (then fresh launches confirm it), when nothing is open, and
    when the last look has been taken.
    """
    if report.looks >= len(report.policy.stages) or needs_confirmation(report):
        return True
    return not any(
        case.gated and case.verdict in (CaseVerdict.SUSPECTED, CaseVerdict.INCONCLUSIVE) for case in report.cases
    )


def _judged(
    baseline: Baseline | None,
    candidate: Run,
    policy: Policy,
    *,
    created_utc: str,
    source: str,
    look: int | None,
) -> Report:
    differences: tuple[Difference, ...] = ()
    if baseline is None or not baseline.sessions:
        found = unjudged(candidate, policy, CaseVerdict.NEW, "there is no baseline for this GPU")
        used = None
    else:
        differences = identity_differences(baseline.gpu, candidate.gpu)
        used = _baseline_used(baseline, candidate, source)
        if differences:
            fields = ", ".join(one.field for one in differences)
            found = unjudged(candidate, policy, CaseVerdict.NOT_COMPARABLE, f"another GPU: {fields} differs")
        else:
            found = judgement(candidate, baseline, policy, look=look)
    environment = used.environment if used is not None else None
    report = Report(
        created_utc=created_utc,
        perfgate_version=candidate.perfgate_version,
        verdict=CheckVerdict.INVALID,
        exit_code=0,
        summary="",
        gpu=candidate.gpu,
        environment=candidate.environment,
        device_kind=candidate.device_kind,
        policy=policy,
        cases=found.cases,
        baseline=used,
        identity_differences=differences,
        environment_differences=()
        if environment is None
        else environment_differences(environment, candidate.environment),
        causes=found.causes,
        caveats=_caveats(candidate),
        injected=candidate.injected,
        launches=len(candidate.launches),
        looks=1 if look is None else look + 1,
        sm_clock_hz=_median_clock(candidate),
        temperature_c=median_or_none(
            case.temperature_c for launch in candidate.launches for case in launch.cases.values()
        ),
    )
    return concluded(report, wrong_output=found.wrong_output)


def _confirmed(first: Report, baseline: Baseline, run: Run, policy: Policy, created_utc: str) -> Report:
    """Join the first report with what fresh launches say of the cases that it accuses."""
    accused = frozenset(case.id for case in first.cases if case.verdict is CaseVerdict.REGRESSED)
    differences = identity_differences(baseline.gpu, run.gpu)
    if differences:
        fresh = unjudged(run, policy, CaseVerdict.INVALID, "the confirmation was measured on another GPU")
    else:
        fresh = judgement(run, baseline, policy, confirming=accused)
    by_id = {case.id: case for case in fresh.cases}
    cases = tuple(_joined(case, by_id.get(case.id)) if case.id in accused else case for case in first.cases)
    report = replace(
        first,
        created_utc=created_utc,
        cases=cases,
        causes=tuple(dict.fromkeys((*first.causes, *fresh.causes))),
        launches=first.launches + len(run.launches),
    )
    return concluded(report, wrong_output=fresh.wrong_output)


def _joined(before: CaseResult, fresh: CaseResult | None) -> CaseResult:
    """Return the result of an accused case: the effect is the confirmation's, the first one stays beside it."""
    if fresh is None or fresh.change is None or fresh.verdict is CaseVerdict.INVALID:
        reason = fresh.reason if fresh is not None and fresh.reason else "the confirmation did not measure it"
        return replace(
            before,
            verdict=CaseVerdict.INVALID,
            confirmed=False,
            first_change=before.change,
            reason=f"slower, but the confirmation is no use: {reason}",
        )
    if fresh.verdict is CaseVerdict.REGRESSED:
        return replace(fresh, confirmed=True, first_change=before.change)
    doubt = Caveat(
        code="not-confirmed",
        message="the first launches proved it slower, fresh launches after a pause did not",
        remedy="the machine is noisier than the margin allows: calibrate it",
    )
    return replace(
        fresh,
        confirmed=False,
        first_change=before.change,
        reason="slower at first, not confirmed by fresh launches",
        caveats=(*fresh.caveats, doubt),
    )


def _baseline_used(baseline: Baseline, candidate: Run, source: str) -> BaselineUsed:
    chip = candidate.gpu.chip
    own = [session for session in baseline.sessions if chip is not None and session.chip == chip]
    newest = max(own or baseline.sessions, key=lambda session: session.provenance.recorded_utc)
    return BaselineUsed(
        source=source,
        sessions=len(baseline.sessions),
        sessions_of_chip=len(own),
        newest_utc=newest.provenance.recorded_utc,
        environment=newest.environment,
    )


def _caveats(candidate: Run) -> tuple[Caveat, ...]:
    doubts = []
    unknown = unknown_identity_fields(candidate.gpu)
    if unknown:
        doubts.append(
            Caveat(
                code="identity-incomplete",
                message=f"could not be read of this GPU: {', '.join(unknown)}; the margin between chips is used",
                remedy="perfgate doctor says what is missing",
            )
        )
    if candidate.injected:
        patterns = ", ".join(f"{one.pattern} {one.requested}" for one in candidate.injected)
        doubts.append(Caveat(code="injected", message=f"a rehearsal: {patterns} was injected"))
    return tuple(doubts)


def _median_clock(candidate: Run) -> float | None:
    return median_or_none(
        block.sm_clock_hz
        for launch in candidate.launches
        for case in launch.cases.values()
        for block in case.valid_blocks
    )
