"""The judgement of all cases of one run against a baseline.

Order matters: what may not be used and what cannot be compared is set aside first; the family that
is left is fixed before any time is looked at, and decided as a whole.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfgate.core.baseline import Baseline
from perfgate.core.case_result import case_result, median_estimate, with_shared_causes
from perfgate.core.decision import VERDICTS, decision, is_confirmed
from perfgate.core.family import Subject, changes, compared, taken
from perfgate.core.margin import margins
from perfgate.core.multiplicity import impossible, stage_levels
from perfgate.core.policy import Policy
from perfgate.core.reference import NoReference, Reference, reference
from perfgate.core.report import CaseResult, Cause, Margin
from perfgate.core.run import CaseInfo, Run
from perfgate.core.selection import is_match
from perfgate.core.validity import Measured, Unusable, measured
from perfgate.core.verdict import CaseVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The results of all cases.

    Attributes:
        cases: in the run's order, then those that are missing from it.
        causes: seen for the session as a whole.
        wrong_output: ids of cases whose output is wrong.
    """

    cases: tuple[CaseResult, ...]
    causes: tuple[Cause, ...] = ()
    wrong_output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The error rates of one look: of "slower" for the family, of "unchanged" for each case."""

    family: float
    equivalence: float


def judgement(
    run: Run,
    baseline: Baseline,
    policy: Policy,
    *,
    look: int | None = None,
    confirming: frozenset[str] = frozenset(),
) -> Judgement:
    """Judge every case of a run and every gated case that it lacks.

    Args:
        run: the candidate, of the baseline's identity.
        baseline: with at least one session.
        policy: error rates, stages, margins.
        look: index into the policy's stages; None for a single look at the whole error rate.
        confirming: cases that were accused before and are now tested alone, uncorrected.

    Raises:
        ConfigurationError: with so few launches no regression could be proven.
    """
    results: dict[str, CaseResult] = {}
    wrong_output = []
    comparable: list[tuple[str, Measured, Reference]] = []
    for case_id, info in run.cases.items():
        side, gated = measured(case_id, run), is_gated(case_id, info, baseline, policy)
        if isinstance(side, Unusable):
            results[case_id] = _set_aside(case_id, info, gated=gated, verdict=CaseVerdict.INVALID, reason=side.reason)
            wrong_output += [case_id] if side.is_output_wrong else []
            continue
        other = reference(case_id, run, baseline)
        if isinstance(other, NoReference):
            verdict = CaseVerdict.NEW if other.is_new else CaseVerdict.NOT_COMPARABLE
            aside = _set_aside(case_id, info, gated=gated, verdict=verdict, reason=other.reason)
            results[case_id] = _with_candidate(aside, side)
        else:
            comparable.append((case_id, side, other))
    results |= _judged(_subjects(comparable, run, baseline, policy), run, policy, look=look, confirming=confirming)
    results |= _missing(run, baseline, policy)
    order = [*run.cases, *(case_id for case_id in results if case_id not in run.cases)]
    cases, causes = with_shared_causes([results[case_id] for case_id in order], run)
    return Judgement(cases=cases, causes=causes, wrong_output=tuple(wrong_output))


def is_gated(case_id: str, info: CaseInfo, baseline: Baseline | None, policy: Policy) -> bool:
    """Tell whether a policy judges a case; a host-timed one only on demand and with a margin of its own.

    One that the baseline's newest session judged stays judged: a change cannot take its case out of the gate.
    """
    if _was_gated(case_id, baseline):
        return True
    if not info.timing.is_host_timed:
        return info.gated
    has_margin = any(is_match(case_id, pattern) for pattern in policy.margins)
    return policy.gate_host_timed and (has_margin or (baseline is not None and case_id in baseline.margins))


def _was_gated(case_id: str, baseline: Baseline | None) -> bool:
    cases = [one.cases[case_id] for one in (baseline.sessions if baseline else ()) if case_id in one.cases]
    return bool(cases) and cases[-1].gated and not cases[-1].timing.is_host_timed


def _set_aside(case_id: str, info: CaseInfo, *, gated: bool, verdict: CaseVerdict, reason: str) -> CaseResult:
    """Return the result of a case that takes no part in the statistics."""
    return CaseResult(
        id=case_id,
        family=info.family,
        verdict=verdict if gated else CaseVerdict.NOT_GATED,
        unit=info.unit,
        timing=info.timing,
        gated=gated,
        work=info.work,
        reason=reason,
    )


def _with_candidate(result: CaseResult, side: Measured) -> CaseResult:
    """Return the result with the candidate's own numbers."""
    return replace(
        result,
        candidate=median_estimate(side.launches),
        candidate_s=side.median_s,
        candidate_launches=len(side.launches),
        caveats=side.caveats,
    )


def unjudged(run: Run, policy: Policy, verdict: CaseVerdict, reason: str) -> Judgement:
    """Return the results of a run that has nothing to be compared with: its own numbers alone."""
    cases, wrong_output = [], []
    for case_id, info in run.cases.items():
        side, gated = measured(case_id, run), is_gated(case_id, info, None, policy)
        if isinstance(side, Unusable):
            cases.append(_set_aside(case_id, info, gated=gated, verdict=CaseVerdict.INVALID, reason=side.reason))
            wrong_output += [case_id] if side.is_output_wrong else []
        else:
            cases.append(_with_candidate(_set_aside(case_id, info, gated=gated, verdict=verdict, reason=reason), side))
    return Judgement(cases=tuple(cases), wrong_output=tuple(wrong_output))


def _missing(run: Run, baseline: Baseline, policy: Policy) -> dict[str, CaseResult]:
    """Return the gated cases of the baseline that the run lacks."""
    results = {}
    for session in baseline.sessions:
        for case_id, case in session.cases.items():
            if case_id in run.cases or not case.gated or (case.timing.is_host_timed and not policy.gate_host_timed):
                continue
            results[case_id] = CaseResult(
                id=case_id,
                family=case_id.split(".", 1)[0],
                verdict=CaseVerdict.MISSING,
                unit=case.unit,
                timing=case.timing,
                work=case.work,
                baseline=median_estimate(case.statistics()),
                baseline_s=statistics.median(case.launch_medians_s),
                baseline_launches=len(case.launch_medians_s),
                reason=run.absent.get(case_id, "the baseline has it, this run does not"),
            )
    return results


def _subjects(
    comparable: Sequence[tuple[str, Measured, Reference]], run: Run, baseline: Baseline, policy: Policy
) -> list[Subject]:
    """Give every comparable case its margin; those that are not gated have no part in the correction for many."""
    levels = {case_id: other.levels for case_id, _, other in comparable}
    gated = {case_id for case_id in levels if is_gated(case_id, run.cases[case_id], baseline, policy)}
    known: dict[str, Margin] = {}
    for members in (gated, levels.keys() - gated):
        part = {case_id: level for case_id, level in levels.items() if case_id in members}
        known |= margins(part, policy=policy, calibrated=baseline.margins, chip=run.gpu.chip)
    return [
        Subject(
            case_id=case_id,
            info=run.cases[case_id],
            measured=side,
            reference=other,
            margin=known[case_id],
            is_gated=case_id in gated,
        )
        for case_id, side, other in comparable
    ]


def _judged(
    subjects: Sequence[Subject], run: Run, policy: Policy, *, look: int | None, confirming: frozenset[str]
) -> dict[str, CaseResult]:
    """Compare all subjects, decide those of the family, test the accused again."""
    if not subjects:
        return {}
    found = compared(subjects)
    family = np.array([index for index, subject in enumerate(subjects) if subject.is_judged], dtype=np.intp)
    levels = _levels([subjects[index] for index in family], policy, planned=len(run.launches), look=look)
    verdicts = [CaseVerdict.NOT_GATED] * len(subjects)
    adjusted: list[float | None] = [None] * len(subjects)
    # Each interval is dual to the test that its verdict rests on: Holm's level, or that of "unchanged".
    level = np.full(len(subjects), levels.equivalence)
    if family.size:
        decided = decision(taken(found, family), level=levels.family, equivalence_level=levels.equivalence)
        for place, index in enumerate(family):
            verdicts[index] = VERDICTS[decided.verdict[place]]
            adjusted[index] = float(decided.p_adjusted[place])
            if verdicts[index] is not CaseVerdict.UNCHANGED:
                level[index] = decided.level[place]
    confirmed = is_confirmed(found, policy.alpha)
    for index, subject in enumerate(subjects):
        if subject.case_id in confirming:
            verdicts[index] = _confirmation(verdicts[index], is_confirmed=bool(confirmed[index]))
            adjusted[index], level[index] = float(found.p_slower[index]), policy.alpha
    estimates = changes(subjects, found, level, fallback=levels.equivalence)
    return {
        subject.case_id: case_result(
            subject,
            run,
            policy,
            verdict=verdicts[index],
            found=taken(found, index),
            p_adjusted=adjusted[index],
            change=estimates[index],
        )
        for index, subject in enumerate(subjects)
    }


def _confirmation(verdict: CaseVerdict, *, is_confirmed: bool) -> CaseVerdict:
    """Return the verdict of a case that was accused before: confirmed, or as open as the fresh launches leave it."""
    if is_confirmed:
        return CaseVerdict.REGRESSED
    return verdict if verdict is CaseVerdict.SUSPECTED else CaseVerdict.INCONCLUSIVE


def _levels(family: Sequence[Subject], policy: Policy, *, planned: int, look: int | None) -> Levels:
    """Return the error rates of this look.

    Raises:
        ConfigurationError: no case of the family could be proven slower at any look.
    """
    stages = (planned,) if look is None else policy.stages
    place = 0 if look is None else look
    if not family:
        return Levels(family=policy.alpha, equivalence=policy.equivalence_alpha)
    most = max(len(subject.reference.launches) for subject in family)
    shares = stage_levels(policy.alpha, stages, family=len(family), baseline_launches=most)
    if not any(shares):
        raise impossible(policy.alpha, family=len(family), candidate_launches=stages[-1], baseline_launches=most)
    equivalence = stage_levels(policy.equivalence_alpha, stages, family=1, baseline_launches=most)
    return Levels(family=shares[place], equivalence=equivalence[place])
