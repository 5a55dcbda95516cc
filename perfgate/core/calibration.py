"""What a machine can detect: noise by level from sessions of unchanged code, and what follows from it.

Sessions of the same code on the same GPU (A/A) differ by noise alone. From them: the spread of each
case at each level, the margins that the gate may use, how often it would raise a false alarm, and the
smallest change that it finds. Seeded, so that the same sessions give the same answer.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfgate.core.baseline import Baseline, BaselineSession, CalibratedMargin, SessionCase
from perfgate.core.case import Unit
from perfgate.core.caveat import Caveat
from perfgate.core.comparison import Floats, comparison, logarithms, shift_interval
from perfgate.core.decision import decision
from perfgate.core.margin import SPREAD_LIMIT, SessionLevels, is_supported, margins
from perfgate.core.policy import Policy
from perfgate.core.report import Margin
from perfgate.core.selection import is_match
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import ConfigurationError

# Power that "smallest detectable change" stands for.
DETECTION_POWER = 0.99
_DRAWS = 4_000
_CHECKS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseNoise:
    """How one case moves without any change of code; spreads are relative standard deviations, None if unknown.

    Attributes:
        within: samples within a launch.
        launches: launches within a session.
        sessions: session medians on one chip.
        chips: chip medians.
        margin: what the gate may use; see ``margin.is_supported``.
        least_margin: smallest margin that a policy may set here.
        detectable: smallest slowdown found in 99 of 100 checks; None where so few launches prove nothing.
    """

    id: str
    unit: Unit
    is_gated: bool
    within: float | None
    launches: float | None
    sessions: float | None
    chips: float | None
    margin: Margin
    least_margin: float
    detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What sessions of unchanged code say of a machine.

    Attributes:
        chip: whose sessions they are; None for several chips or an unknown one.
        sessions: number of sessions (of one chip), or of chips.
        same_chip: the margins hold against sessions of one chip; else between chips.
        false_alarm_rate: share of simulated checks of unchanged code that accuse a case.
        false_alarm_bound: upper limit of that rate (95 %).
    """

    chip: str | None
    sessions: int
    same_chip: bool
    cases: tuple[CaseNoise, ...]
    false_alarm_rate: float
    false_alarm_bound: float


def calibration(sessions: Sequence[BaselineSession], policy: Policy, *, seed: int = 0) -> Calibration:
    """Learn from sessions of unchanged code: of one chip, or of several to compare chips.

    Raises:
        ConfigurationError: there are not two sessions that measured the same cases alike.
    """
    chips = {session.chip for session in sessions}
    same_chip = len(chips) == 1
    known = {case_id: _alike(case_id, sessions) for case_id in dict.fromkeys(_case_ids(sessions))}
    known = {case_id: found for case_id, found in known.items() if len(_levels(found, same_chip).medians) > 1}
    if not known:
        what = "sessions" if same_chip else "chips"
        message = f"a calibration needs two {what} at least that measured the same cases alike"
        raise ConfigurationError(
            message, hint="Measure more sessions of unchanged code; five are good, ten are better."
        )
    gated = {case_id for case_id, found in known.items() if _is_gated(found[-1][1])}
    proposed: dict[str, Margin] = {}
    for members in (gated, known.keys() - gated):
        levels = {case_id: _levels(found, same_chip) for case_id, found in known.items() if case_id in members}
        proposed |= margins(levels, policy=replace(policy, margins={}), calibrated={})
    family = [case_id for case_id in known if case_id in gated and is_supported(proposed[case_id])]
    generator = np.random.default_rng(seed)
    needed = _needed(policy, max(len(family), 1), generator)
    cases = tuple(
        _case_noise(case_id, found, proposed[case_id], is_gated=case_id in gated, needed=needed, generator=generator)
        for case_id, found in known.items()
    )
    accused = _accused([one for one in cases if one.id in family], policy, generator, same_chip=same_chip)
    return Calibration(
        chip=next(iter(chips)) if same_chip else None,
        sessions=len(sessions) if same_chip else len(chips),
        same_chip=same_chip,
        cases=cases,
        false_alarm_rate=accused / _CHECKS,
        false_alarm_bound=_upper_bound(accused, _CHECKS),
    )


def calibrated(baseline: Baseline, found: Calibration) -> Baseline:
    """Return the baseline with the calibrated margins of all cases.

    A bound beyond what a gate may use is stored as it is: the case is then not gated, and says so.
    """
    learned = {
        case.id: CalibratedMargin(
            relative=max(case.margin.relative, case.margin.bound or 0.0),
            sessions=case.margin.sessions,
            same_chip=found.same_chip,
            chip=found.chip,
        )
        for case in found.cases
    }
    return replace(baseline, margins={**baseline.margins, **learned})


def refusals(found: Calibration, policy: Policy) -> tuple[Caveat, ...]:
    """Return the policy's own margins that the machine does not support, each with the least that it does."""
    refused = []
    for case in found.cases:
        own = [relative for pattern, relative in policy.margins.items() if is_match(case.id, pattern)]
        if own and own[-1] < case.least_margin * (1 - 1e-9):
            refused.append(
                Caveat(
                    code="margin-unsupported",
                    message=f"the policy's margin of {percent_text(own[-1])} for {case.id} is below what this machine "
                    f"supports: its sessions differ by {percent_text(case.margin.session_spread)}",
                    remedy=f"use at least {percent_text(case.least_margin)}",
                )
            )
    return tuple(refused)


_Seen = list[tuple[BaselineSession, SessionCase]]


def _case_ids(sessions: Sequence[BaselineSession]) -> list[str]:
    return [case_id for session in sessions for case_id in session.cases]


def _alike(case_id: str, sessions: Sequence[BaselineSession]) -> _Seen:
    """Return the sessions that measured a case as the newest one did."""
    seen = [(session, session.cases[case_id]) for session in sessions if case_id in session.cases]

    def method(pair: tuple[BaselineSession, SessionCase]) -> tuple[object, ...]:
        session, case = pair
        return (session.method, case.version, case.work, case.plan, case.unit, case.timing, case.source_sha256)

    return [pair for pair in seen if method(pair) == method(seen[-1])]


def _levels(found: _Seen, same_chip: bool) -> SessionLevels:
    """Return the level of each session, or of each chip."""
    by_chip: dict[str | None, list[float]] = {}
    for session, case in found:
        by_chip.setdefault(session.chip, []).append(statistics.median(logarithms(case.statistics()).tolist()))
    if same_chip:
        return SessionLevels(same_chip=True, medians=tuple(level for levels in by_chip.values() for level in levels))
    return SessionLevels(same_chip=False, medians=tuple(statistics.median(levels) for levels in by_chip.values()))


def _is_gated(case: SessionCase) -> bool:
    return case.gated and not case.timing.is_host_timed


def _case_noise(
    case_id: str, found: _Seen, margin: Margin, *, is_gated: bool, needed: Floats, generator: np.random.Generator
) -> CaseNoise:
    launches = _pooled_spread([logarithms(case.statistics()).tolist() for _, case in found])
    on_chip: dict[str | None, list[float]] = {}
    for session, case in found:
        on_chip.setdefault(session.chip, []).append(statistics.median(logarithms(case.statistics()).tolist()))
    within = [case.within_spread for _, case in found if case.within_spread is not None]
    chips = [statistics.median(levels) for levels in on_chip.values()]
    return CaseNoise(
        id=case_id,
        unit=found[-1][1].unit,
        is_gated=is_gated,
        within=statistics.median(within) if within else None,
        launches=launches,
        sessions=_pooled_spread(list(on_chip.values())),
        chips=statistics.stdev(chips) if len(chips) > 1 else None,
        margin=margin,
        least_margin=margin.session_spread / SPREAD_LIMIT,
        detectable=_detectable(margin, launches or 0.0, needed, generator),
    )


def _pooled_spread(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation within groups, their variances weighted by their degrees of freedom."""
    several = [group for group in groups if len(group) > 1]
    if not several:
        return None
    freedom = sum(len(group) - 1 for group in several)
    return math.sqrt(sum((len(group) - 1) * statistics.variance(group) for group in several) / freedom)


def _needed(policy: Policy, family: int, generator: np.random.Generator) -> Floats:
    """Draw how far beyond the margin a shift must be to be proven, in spreads between launches.

    The test proves a shift beyond an edge when the lower end of its interval is: of launches of no
    shift, the negative of that end is what was lacking. Infinite where nothing can be proven.
    """
    candidate = generator.standard_normal((_DRAWS, policy.launches))
    baseline = generator.standard_normal((_DRAWS, policy.baseline_launches))
    low, _ = shift_interval(candidate, baseline, policy.alpha / family)
    return -low


def _detectable(margin: Margin, launches: float, needed: Floats, generator: np.random.Generator) -> float | None:
    """Return the slowdown that is proven with DETECTION_POWER, sessions differing as the margin assumes."""
    if not np.all(np.isfinite(needed)):
        return None
    between = margin.session_spread * math.sqrt(1 + 1 / max(margin.sessions, 1))
    lacking = launches * needed + between * generator.standard_normal(needed.size)
    beyond = max(float(np.quantile(lacking, DETECTION_POWER)), 0.0)
    return math.expm1(math.log1p(margin.relative) + beyond)


def _accused(cases: Sequence[CaseNoise], policy: Policy, generator: np.random.Generator, *, same_chip: bool) -> int:
    """Simulate checks of unchanged code at the proposed margins; count those that accuse a case."""
    if not cases:
        return 0
    launches = np.array([case.launches or 0.0 for case in cases])[:, None]
    between = np.array([(case.sessions if same_chip else case.chips) or 0.0 for case in cases])

    def session(count: int) -> NDArray[np.float64]:
        shape = (_CHECKS, len(cases))
        level = between[:, None] * generator.standard_normal((*shape, 1))
        return np.asarray(level + launches * generator.standard_normal((*shape, count)))

    margin = np.array([case.margin.relative for case in cases])
    found = comparison(session(policy.launches), session(policy.baseline_launches), margin)
    decided = decision(found, level=policy.alpha, equivalence_level=policy.equivalence_alpha)
    return int(decided.is_verdict(CaseVerdict.REGRESSED).any(axis=-1).sum())


def _upper_bound(count: int, of: int) -> float:
    """Return the upper limit (95 %) of a rate (Clopper and Pearson, Biometrika 26 (1934) 404); 3 / n for none."""
    from scipy.special import betaincinv

    return float(betaincinv(count + 1, of - count, 0.95)) if count < of else 1.0
