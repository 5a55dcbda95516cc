"""The judgement of a change against its base, measured in turn with it in one session.

Launches are judged in pairs (``core.paired``), once, at a margin that need not cover the noise between
sessions. What only one side has is listed; what is the same on both is not measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from perfgate.core.case_result import median_estimate
from perfgate.core.cause import AUTHOR, FOREIGN_PROCESS, differs, health_causes
from perfgate.core.caveat import Caveat
from perfgate.core.comparison import TIE, Comparison, Floats
from perfgate.core.conclusion import concluded
from perfgate.core.decision import VERDICTS, decision
from perfgate.core.judgement import is_gated
from perfgate.core.paired import detectable_shift, noise_bound, paired_comparison, paired_interval, refuse_too_few
from perfgate.core.policy import Policy
from perfgate.core.report import BaselineUsed, CaseResult, Cause, Estimate, Margin, MarginSource, Report
from perfgate.core.run import CaseInfo, Launch
from perfgate.core.selection import is_match
from perfgate.core.sides import Sides
from perfgate.core.summary import launch_statistic
from perfgate.core.units import percent_text
from perfgate.core.validity import Measured, Unusable, measured
from perfgate.core.verdict import CaseVerdict, CheckVerdict

SAME_CODE = "the same code on both sides: not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A case that both sides measured: the logarithms of its pairs' ratios, and each side's launches."""

    case_id: str
    info: CaseInfo
    side: Measured
    other: Measured
    differences: Floats
    margin: Margin
    is_gated: bool


def judged_against(sides: Sides, policy: Policy, created_utc: str) -> Report:
    """Judge the head against the base.

    Raises:
        ConfigurationError: with so few launches no regression could be proven.
    """
    results: dict[str, CaseResult] = {}
    subjects: list[_Subject] = []
    for case_id in dict.fromkeys([*sides.head.cases, *sides.base.cases]):
        found = _subject(case_id, sides, policy)
        if isinstance(found, _Subject):
            subjects.append(found)
        else:
            results[case_id] = found
    results |= _judged(subjects, sides, policy)
    results |= _listed(sides, policy)
    report = Report(
        created_utc=created_utc,
        perfgate_version=sides.head.perfgate_version,
        verdict=CheckVerdict.INVALID,
        exit_code=0,
        summary="",
        gpu=sides.head.gpu,
        environment=sides.head.environment,
        device_kind=sides.head.device_kind,
        policy=policy,
        cases=tuple(results[case_id] for case_id in sorted(results)),
        baseline=BaselineUsed(
            source=sides.base_name,
            sessions=1,
            sessions_of_chip=1,
            newest_utc=sides.base.created_utc,
            environment=sides.base.environment,
            base_commit=sides.base.environment.commit,
        ),
        causes=health_causes(sides.head.health_before, sides.head.health_after),
        caveats=_caveats(sides),
        injected=sides.head.injected,
        launches=len(sides.base.launches) + len(sides.head.launches),
    )
    return concluded(report, wrong_output=sides.wrong_output)


def session_margin(case_id: str, policy: Policy) -> Margin:
    """Return the margin of a case that is compared within one session: the policy's own, else its floor."""
    own = [relative for pattern, relative in policy.margins.items() if is_match(case_id, pattern)]
    if own:
        return Margin(relative=own[-1], source=MarginSource.POLICY)
    return Margin(relative=policy.margin_floor, source=MarginSource.SAME_SESSION)


def _subject(case_id: str, sides: Sides, policy: Policy) -> _Subject | CaseResult:
    """Return what can be judged of a case, or its result where nothing can."""
    base, head = sides.base.cases[case_id], sides.head.cases[case_id]
    gated = is_gated(case_id, head, None, policy)
    changed = [name for name in ("version", "timing", "unit", "work") if getattr(base, name) != getattr(head, name)]
    if changed:
        reason = f"its {' and '.join(changed)} differs from the base's: another case under the same id"
        return _aside(case_id, head, CaseVerdict.NOT_COMPARABLE, reason, gated=gated)
    side, other = measured(case_id, sides.head), measured(case_id, sides.base)
    if isinstance(side, Unusable):
        return _aside(case_id, head, CaseVerdict.INVALID, side.reason, gated=gated)
    if isinstance(other, Unusable):
        return _aside(case_id, head, CaseVerdict.INVALID, f"the base: {other.reason}", gated=gated)
    differences = _differences(case_id, head, sides.pairs)
    if not differences.size:
        return _aside(case_id, head, CaseVerdict.INVALID, "no pair of launches gave two valid times", gated=gated)
    return _Subject(
        case_id=case_id,
        info=head,
        side=side,
        other=other,
        differences=differences,
        margin=session_margin(case_id, policy),
        is_gated=gated,
    )


def _differences(case_id: str, info: CaseInfo, pairs: Sequence[tuple[Launch, Launch]]) -> Floats:
    """Return log(head / base) of every pair in which both launches gave a statistic."""
    found = []
    for base, head in pairs:
        if case_id in base.cases and case_id in head.cases:
            one = launch_statistic(base.cases[case_id], info.unit)
            other = launch_statistic(head.cases[case_id], info.unit)
            if one is not None and other is not None:
                found.append(math.log(other / one))
    return np.array(found)


def _judged(subjects: Sequence[_Subject], sides: Sides, policy: Policy) -> dict[str, CaseResult]:
    if not subjects:
        return {}
    family = [index for index, subject in enumerate(subjects) if subject.is_gated]
    refuse_too_few(len(sides.pairs), family=len(family), alpha=policy.alpha)
    compared = [paired_comparison(subject.differences, subject.margin.relative) for subject in subjects]
    verdicts = [CaseVerdict.NOT_GATED] * len(subjects)
    adjusted: list[float | None] = [None] * len(subjects)
    level = np.full(len(subjects), policy.equivalence_alpha)
    if family:
        decided = decision(
            _stacked([compared[index] for index in family]),
            level=policy.alpha,
            equivalence_level=policy.equivalence_alpha,
        )
        for place, index in enumerate(family):
            verdicts[index] = VERDICTS[decided.verdict[place]]
            adjusted[index] = float(decided.p_adjusted[place])
            if verdicts[index] is not CaseVerdict.UNCHANGED:
                level[index] = decided.level[place]
            # Far beyond the margin by chance alone, where the launches are that noisy, arouses no suspicion.
            bound = float(noise_bound(subjects[index].differences, policy.alpha / len(family)))
            if verdicts[index] is CaseVerdict.SUSPECTED and float(compared[index].shift) <= bound:
                verdicts[index] = CaseVerdict.INCONCLUSIVE
    return {
        subject.case_id: _result(
            subject,
            sides,
            verdicts[index],
            compared[index],
            adjusted[index],
            _change(subject, level[index], policy),
            float(level[index]),
        )
        for index, subject in enumerate(subjects)
    }


def _stacked(comparisons: Sequence[Comparison]) -> Comparison:
    columns: dict[str, NDArray[np.generic]] = {
        one.name: np.stack([np.asarray(getattr(comparison, one.name)) for comparison in comparisons])
        for one in fields(Comparison)
    }
    return Comparison(**columns)  # type: ignore[arg-type]


def _change(subject: _Subject, level: float, policy: Policy) -> Estimate:
    """Return the relative change with the interval of the test at its level, at that of "unchanged" if it has none."""
    shift = float(paired_comparison(subject.differences, subject.margin.relative).shift)
    for used in (level, policy.equivalence_alpha):
        low, high = (float(one) for one in paired_interval(subject.differences, used))
        if math.isfinite(low) and math.isfinite(high):
            return Estimate(
                value=math.expm1(shift), low=math.expm1(low), high=math.expm1(high), confidence=1 - 2 * used
            )
    return Estimate(value=math.expm1(shift))


def _result(
    subject: _Subject,
    sides: Sides,
    verdict: CaseVerdict,
    found: Comparison,
    p_adjusted: float | None,
    change: Estimate,
    level: float,
) -> CaseResult:
    is_proven = verdict in (CaseVerdict.REGRESSED, CaseVerdict.IMPROVED)
    reason = None
    if verdict is CaseVerdict.INCONCLUSIVE:
        reason = _undecided(subject, level)
    elif verdict is CaseVerdict.IMPROVED and _is_unsettled(subject):
        verdict, reason = CaseVerdict.INCONCLUSIVE, "faster, but one side had not settled"
    machine = health_causes(sides.head.health_before, sides.head.health_after)
    foreign = next((cause for cause in machine if cause.code == FOREIGN_PROCESS), None)
    if verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED) and foreign is not None:
        verdict, reason = CaseVerdict.INVALID, f"slower, but {foreign.message}"
    explained = verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED, CaseVerdict.IMPROVED)
    return CaseResult(
        id=subject.case_id,
        family=subject.info.family,
        verdict=verdict,
        unit=subject.info.unit,
        timing=subject.info.timing,
        gated=subject.is_gated,
        work=subject.info.work,
        baseline=median_estimate(subject.other.launches),
        candidate=median_estimate(subject.side.launches),
        baseline_s=subject.other.median_s,
        candidate_s=subject.side.median_s,
        change=change,
        margin=subject.margin,
        p_slower=float(found.p_slower),
        p_adjusted=p_adjusted,
        p_equivalent=float(found.p_equivalent),
        significant=is_proven,
        relevant=bool(abs(found.shift) > found.edge + TIE),
        baseline_launches=len(subject.other.launches),
        candidate_launches=len(subject.side.launches),
        reason=reason,
        causes=(_cause(subject.case_id, sides),) if explained else (),
        caveats=_side_caveats(subject),
    )


def _undecided(subject: _Subject, level: float) -> str:
    """Say that nothing is proven, and what would be."""
    shift = detectable_shift(subject.differences, subject.margin.relative, level)
    if not math.isfinite(shift):
        return "neither slower nor unchanged is proven: too few launches for any proof"
    spread = percent_text(float(subject.differences.std(ddof=1)) / math.sqrt(2))
    pairs, least = subject.differences.size, percent_text(math.expm1(shift), signed=True)
    noise = f"launches spread by {spread}, so that {pairs} a side find {least} and more"
    return f"neither slower nor unchanged is proven: {noise}"


def _cause(case_id: str, sides: Sides) -> Cause:
    """Return what the change did to the case: machine, driver and clocks are the same on both sides."""
    base, head = sides.base.cases[case_id], sides.head.cases[case_id]
    source = differs(base.source_sha256, head.source_sha256)
    code = differs(base.code_sha256, head.code_sha256)
    if source:
        same = ", to the same machine code" if code is False else ""
        return Cause(code="source-changed", message=f"the change edits the sources of this case{same}", who=AUTHOR)
    if code:
        message = "the change alters the machine code of this case: another option, define or header"
        return Cause(code="code-changed", message=message, who=AUTHOR)
    if sides.is_redefined:
        message = "the change edits the suite or what it imports: geometry, arguments or the code that is called"
        return Cause(code="suite-changed", message=message, who=AUTHOR)
    message = "nothing that perfgate hashes differs: what the case calls, its build or its data does"
    return Cause(code="unhashed", message=message, who=AUTHOR)


def _is_unsettled(subject: _Subject) -> bool:
    return any(one.code == "not-settled" for one in (*subject.side.caveats, *subject.other.caveats))


def _side_caveats(subject: _Subject) -> tuple[Caveat, ...]:
    return tuple({one.code: one for one in (*subject.other.caveats, *subject.side.caveats)}.values())


def _listed(sides: Sides, policy: Policy) -> dict[str, CaseResult]:
    """Return the results of the cases that were not compared: the same on both sides, or on one only."""
    parts = (
        (sides.same, CaseVerdict.UNCHANGED, SAME_CODE),
        (sides.only_head, CaseVerdict.NEW, "the base has no such case"),
        (sides.only_base, CaseVerdict.MISSING, "the base has it, the change does not"),
    )
    listed = [(case_id, info, verdict, reason) for cases, verdict, reason in parts for case_id, info in cases.items()]
    listed += [(case_id, info, CaseVerdict.INVALID, reason) for case_id, (info, reason) in sides.failed.items()]
    return {
        case_id: _aside(case_id, info, verdict, reason, gated=is_gated(case_id, info, None, policy))
        for case_id, info, verdict, reason in listed
    }


def _aside(case_id: str, info: CaseInfo, verdict: CaseVerdict, reason: str, *, gated: bool) -> CaseResult:
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


def _caveats(sides: Sides) -> tuple[Caveat, ...]:
    doubts = []
    if sides.head.injected:
        patterns = ", ".join(f"{one.pattern} {one.requested}" for one in sides.head.injected)
        doubts.append(
            Caveat(code="injected", message=f"a rehearsal: {patterns} was injected into the change, not into the base")
        )
    if sides.head.environment.dirty:
        doubts.append(
            Caveat(code="dirty", message="the working tree has uncommitted changes: they are part of what was measured")
        )
    return tuple(doubts)
