"""The margin of a case: the relative change that counts as slower, and why it is this one.

Compare like with like: against sessions of the same chip a small margin does, against other chips of
the board a larger one is needed. The rank test covers the noise of launches; the margin covers the
noise of sessions, which no number of launches in one session can show.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.baseline import CalibratedMargin
from perfgate.core.caveat import Caveat
from perfgate.core.policy import MARGIN_DEFAULTS, MarginDefaults, Policy
from perfgate.core.report import Margin, MarginSource
from perfgate.core.selection import is_match
from perfgate.core.units import percent_text

# A default margin stands for six degrees of freedom of experience: it is the bound that one session
# with a spread of default / 8.4 would ask for: t[6, 1 - 0.01 / 20] * sqrt(2) = 8.43.
PRIOR_FREEDOM = 6
PRIOR_RATIO = 8.4
# The check keeps its error rate while sessions spread by at most a quarter of the margin
# (docs/statistics.md, "What holds and until when").
SPREAD_LIMIT = 0.25
# The widened interval of a report is one of 95 %.
_INTERVAL_QUANTILE = 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLevels:
    """What is known of how a case moves between sessions.

    Attributes:
        same_chip: the levels are of sessions of the chip under judgement; else of other chips, one each.
        medians: logarithms of the medians.
    """

    same_chip: bool
    medians: tuple[float, ...]

    @property
    def spread(self) -> float | None:
        """Standard deviation of the levels; None for one."""
        return statistics.stdev(self.medians) if len(self.medians) > 1 else None


def noise_family(case_id: str) -> str:
    """Return what cases share defaults and spread with this one: ``"launch.gap"``, else the first part of the id.

    A key with a bracket is the beginning of an id: ``"gemm.bf16[m="`` is of other shapes than ``"gemm.bf16[n=4096]"``.
    """
    name = case_id.split("[", 1)[0]
    named = [
        key
        for key in MARGIN_DEFAULTS
        if name == key or name.startswith(f"{key}.") or ("[" in key and case_id.startswith(key))
    ]
    return max(named, key=len, default=name.split(".", 1)[0])


def margin_defaults(case_id: str) -> MarginDefaults:
    """Return the default margins of a case."""
    return MARGIN_DEFAULTS.get(noise_family(case_id), MARGIN_DEFAULTS["default"])


def margins(
    levels: Mapping[str, SessionLevels],
    *,
    policy: Policy,
    calibrated: Mapping[str, CalibratedMargin],
    chip: str | None = None,
) -> dict[str, Margin]:
    """Return the margin of each gated case.

    Args:
        levels: of all gated cases: the family's spread and the number of cases enter each margin.
        policy: its own margins go first, whatever the sessions say.
        calibrated: stored margins, which stand in for the sessions that they were learned from.
        chip: the chip under judgement.
    """
    family_spread = _family_spreads(levels)
    error = policy.alpha / max(len(levels), 1)
    found = {}
    for case_id, level in levels.items():
        learned = _learned(case_id, level, family_spread.get((noise_family(case_id), level.same_chip)), policy, error)
        stored = calibrated.get(case_id)
        if stored is not None and _is_better(stored, learned, level, chip):
            spread = _implied(stored.relative, error)
            learned = _clipped(level, stored.relative, stored.sessions, spread, _Range.of(case_id, level, policy))
        found[case_id] = _of_policy(case_id, learned, policy)
    return found


def is_supported(margin: Margin) -> bool:
    """Tell whether the sessions allow the margin: a bound beyond the cap means that the case cannot be gated."""
    return margin.source is MarginSource.POLICY or margin.bound is None or margin.bound <= margin.relative + 1e-12


def session_noise(margin: Margin) -> Caveat | None:
    """Return the doubt that sessions spread too much for a margin; None where they do not."""
    if margin.session_spread <= SPREAD_LIMIT * margin.relative * (1 + 1e-9):
        return None
    spread, least = percent_text(margin.session_spread), percent_text(margin.session_spread / SPREAD_LIMIT)
    return Caveat(
        code="session-noise",
        message=f"sessions of unchanged code differ by about {spread} (standard deviation): more than a quarter of the "
        f"margin of {percent_text(margin.relative)}, so false alarms are likelier than alpha",
        remedy=f"use a margin of at least {least}, or accept more sessions",
    )


def prediction_bound(spread: float, *, freedom: int, sessions: int, quantile: float) -> float:
    """Return how far a new session may lie from the level of ``sessions`` others: t[freedom, quantile] s sqrt(1 + 1/S).

    Source: prediction interval of one further observation (Hahn and Meeker, Statistical Intervals, 4.7).
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, quantile)) * spread * math.sqrt(1 + 1 / sessions)


def shrunken_spread(default: float, sessions: int, spread: float | None, family_spread: float | None) -> float:
    """Return the spread between sessions: what was seen, weighed against what the default margin stands for.

    A plain estimate from three sessions has two degrees of freedom and would need 36 standard
    deviations of margin: the gate would get worse the more it knows.
    """
    prior, freedom = default / PRIOR_RATIO, seen_freedom(sessions)
    seen = max(spread or 0.0, family_spread or 0.0)
    return math.sqrt((PRIOR_FREEDOM * prior**2 + freedom * seen**2) / (PRIOR_FREEDOM + freedom))


def seen_freedom(sessions: int) -> int:
    """Return the degrees of freedom that sessions are worth: two each beyond the first, since cases share them."""
    return 2 * (sessions - 1)


def _learned(case_id: str, level: SessionLevels, family: float | None, policy: Policy, error: float) -> Margin:
    """Return the default margin for one session, the shrunken prediction bound for more."""
    defaults = margin_defaults(case_id)
    default = defaults.same_chip if level.same_chip else defaults.cross_chip
    count = len(level.medians)
    if count > 1:
        spread = shrunken_spread(default, count, level.spread, family)
        freedom = PRIOR_FREEDOM + seen_freedom(count)
        bound = prediction_bound(spread, freedom=freedom, sessions=count, quantile=1 - error)
        return _clipped(level, bound, count, spread, _Range.of(case_id, level, policy))
    spread = default / PRIOR_RATIO
    return Margin(
        relative=default,
        source=MarginSource.SAME_CHIP_DEFAULT if level.same_chip else MarginSource.CROSS_CHIP_DEFAULT,
        sessions=count,
        session_term=prediction_bound(spread, freedom=PRIOR_FREEDOM, sessions=1, quantile=_INTERVAL_QUANTILE),
        session_spread=spread,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """Where a learned margin may lie."""

    floor: float
    cap: float

    @classmethod
    def of(cls, case_id: str, level: SessionLevels, policy: Policy) -> "_Range":
        defaults = margin_defaults(case_id)
        is_fixed = not (level.same_chip or defaults.is_narrowed)
        return cls(floor=defaults.cross_chip if is_fixed else policy.margin_floor, cap=defaults.cross_chip)


def _clipped(level: SessionLevels, bound: float, sessions: int, spread: float, allowed: _Range) -> Margin:
    freedom = PRIOR_FREEDOM + seen_freedom(sessions)
    return Margin(
        relative=min(max(bound, allowed.floor), allowed.cap),
        source=MarginSource.SAME_CHIP_CALIBRATED if level.same_chip else MarginSource.CROSS_CHIP_CALIBRATED,
        sessions=sessions,
        session_term=prediction_bound(spread, freedom=freedom, sessions=sessions, quantile=_INTERVAL_QUANTILE),
        session_spread=spread,
        bound=bound,
    )


def _of_policy(case_id: str, learned: Margin, policy: Policy) -> Margin:
    """Return the policy's own margin where it has one for the case: the last pattern that fits."""
    own = [relative for pattern, relative in policy.margins.items() if is_match(case_id, pattern)]
    if not own:
        return learned
    return Margin(
        relative=own[-1],
        source=MarginSource.POLICY,
        sessions=learned.sessions,
        session_term=learned.session_term,
        session_spread=learned.session_spread,
        bound=learned.bound,
    )


def _is_better(stored: CalibratedMargin, learned: Margin, level: SessionLevels, chip: str | None) -> bool:
    """Tell whether a stored margin holds here and rests on more sessions than the baseline itself."""
    return (
        stored.same_chip == level.same_chip
        and stored.chip in (None, chip)
        and stored.sessions > max(learned.sessions, 1)
    )


def _implied(bound: float, error: float) -> float:
    """Return the spread between sessions that a stored bound stands for, by the prior's own quantile."""
    return bound / prediction_bound(1.0, freedom=PRIOR_FREEDOM, sessions=1, quantile=1 - error)


def _family_spreads(levels: Mapping[str, SessionLevels]) -> dict[tuple[str, bool], float]:
    """Return the root mean square of the cases' spreads, by noise family and kind of comparison."""
    squares: defaultdict[tuple[str, bool], list[float]] = defaultdict(list)
    for case_id, level in levels.items():
        if level.spread is not None:
            squares[noise_family(case_id), level.same_chip].append(level.spread**2)
    return {family: math.sqrt(statistics.fmean(values)) for family, values in squares.items()}


def pooled(sessions: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return all launches, each session shifted to the median of the session medians, and those medians."""
    medians = tuple(statistics.median(session) for session in sessions)
    level = statistics.median(medians)
    shifted = tuple(
        value - median + level for session, median in zip(sessions, medians, strict=True) for value in session
    )
    return shifted, medians
