"""How the level of one case moved over the sessions of one chip: steps, and slow drift.

A check compares with the sessions that it has; what creeps by less than a margin each time shows only
over many of them. A trend says so: a *step* is a change beyond the margin that two neighbouring sessions
show; *drift* is a newest session beyond the margin of the first one (since the last step) without a step.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfgate.core.baseline import BaselineSession, SessionCase
from perfgate.core.case import Unit
from perfgate.core.cause import differs, relevant_differences
from perfgate.core.comparison import TIE, Floats, logarithms
from perfgate.core.gpu import Difference
from perfgate.core.margin import PRIOR_FREEDOM, seen_freedom
from perfgate.core.partition import change_points
from perfgate.core.report import Estimate, Margin
from perfgate.shims import StrEnum

# Variance of a median over that of a mean, of normal launches.
_MEDIAN_VARIANCE = math.pi / 2
# Standard deviation of normal values over the median of their absolute deviations.
_NORMAL_DEVIATION = 1.4826


class Movement(StrEnum):
    """What a trend comes to, as far as its newest session is concerned."""

    DRIFTED = "drifted"  # away from the first session, beyond the margin, no step being beyond it
    STEPPED = "stepped"  # at least once, beyond the margin
    STEADY = "steady"
    SINGLE = "single"  # one session: no trend yet


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """One session of a case.

    Attributes:
        recorded_utc: when, ISO 8601.
        level: median of the launches, in the unit of judgement.
        time_s: median time.
        launches: how many.
        relative: level / that of the first session - 1.
        commit: that was measured; None where unknown.
    """

    recorded_utc: str
    level: float
    time_s: float
    launches: int
    relative: float
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """A place where the level changed by more than sessions of unchanged code differ.

    Attributes:
        at: index of the first point of the new level.
        change: the new level / the one before - 1.
        is_step: it and the two sessions beside it are beyond the margin.
        differences: what differs between these two sessions and can move times.
    """

    at: int
    change: Estimate
    is_step: bool
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A newest session beyond the margin of an earlier one, without a step in between.

    Attributes:
        since: index of the point that it is seen against: the first, or the first after the last step.
        change: newest level / that one - 1.
        largest_step: largest absolute relative change from one session to the next.
        differences: what differs between the two sessions and can move times.
    """

    since: int
    change: Estimate
    largest_step: float
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One case over the sessions of one chip, oldest first.

    Attributes:
        id: case.
        unit: what levels are in.
        gated: the newest session judges it.
        margin: what counts as slower; that of a check against one session.
        points: of the sessions that are comparable with the newest.
        left_out: older sessions that are not, with the reason for the newest of them.
        changes: of the level.
    """

    id: str
    unit: Unit
    gated: bool
    margin: Margin
    points: tuple[TrendPoint, ...]
    changes: tuple[LevelChange, ...] = ()
    drift: Drift | None = None
    left_out: int = 0
    left_out_reason: str = ""

    @property
    def movement(self) -> Movement:
        """What it comes to."""
        if len(self.points) < 2:
            return Movement.SINGLE
        if self.drift is not None:
            return Movement.DRIFTED
        return Movement.STEPPED if self.steps else Movement.STEADY

    @property
    def steps(self) -> tuple[LevelChange, ...]:
        """The changes beyond the margin."""
        return tuple(one for one in self.changes if one.is_step)

    @property
    def since_first(self) -> float:
        """The newest level / the first - 1."""
        return self.points[-1].relative


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The comparable sessions of one case on one chip: what a trend is found in."""

    id: str
    sessions: tuple[BaselineSession, ...]
    cases: tuple[SessionCase, ...]
    left_out: int = 0
    left_out_reason: str = ""

    @property
    def logarithms(self) -> Floats:
        """Logarithms of the sessions' medians, in the unit of judgement."""
        return np.array([statistics.median(logarithms(case.statistics()).tolist()) for case in self.cases])

    @property
    def spread(self) -> float | None:
        """Standard deviation of sessions, from neighbours alone; None without three sessions.

        Of first differences, which a step enters once, and of second ones, which drift does not enter, whichever
        is less; of each the lower median, since of two values one may be a step.
        """
        levels = self.logarithms
        found = [
            _NORMAL_DEVIATION * statistics.median_low(np.abs(np.diff(levels, order)).tolist()) / math.sqrt(scale)
            for order, scale in ((1, 2), (2, 6))  # the variance of such a difference over that of a level
            if len(levels) > order + 1
        ]
        return min(found, default=None)


def trend(series: Series, margin: Margin, *, spread: float, error: float) -> Trend:
    """Return what a case's sessions come to.

    Args:
        series: one session at least.
        margin: of the case.
        spread: standard deviation between sessions of unchanged code, relative.
        error: probability that something is found in sessions of unchanged code by chance.
    """
    levels = series.logarithms
    found = Trend(
        id=series.id,
        unit=series.cases[-1].unit,
        gated=series.cases[-1].gated and not series.cases[-1].timing.is_host_timed,
        margin=margin,
        points=_points(series, levels),
        left_out=series.left_out,
        left_out_reason=series.left_out_reason,
    )
    if len(levels) < 2:
        return found
    noise = _Noise(series, spread)
    changes = _changes(series, levels, noise, margin, error)
    return replace(found, changes=changes, drift=_drift(series, levels, noise, margin, changes, error))


class _Noise:
    """How far sessions of unchanged code differ by chance: the spread of sessions, and that of the launches."""

    def __init__(self, series: Series, spread: float) -> None:
        launches = [logarithms(case.statistics()) for case in series.cases]
        self.variances = np.array(
            [spread**2 + (_MEDIAN_VARIANCE * one.var(ddof=1) / len(one) if len(one) > 1 else 0.0) for one in launches]
        )
        self.freedom = PRIOR_FREEDOM + seen_freedom(len(launches))

    def quantile(self, error: float) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 1 - error / 2))


def _points(series: Series, levels: Floats) -> tuple[TrendPoint, ...]:
    return tuple(
        TrendPoint(
            recorded_utc=session.provenance.recorded_utc,
            level=math.exp(level),
            time_s=statistics.median(case.launch_medians_s),
            launches=len(case.launch_medians_s),
            relative=math.expm1(level - levels[0]),
            commit=session.provenance.commit,
        )
        for session, case, level in zip(series.sessions, series.cases, levels.tolist(), strict=True)
    )


def _changes(series: Series, levels: Floats, noise: _Noise, margin: Margin, error: float) -> tuple[LevelChange, ...]:
    quantile = noise.quantile(error / (len(levels) - 1))
    places = change_points(levels, noise.variances, quantile**2)
    stretches = np.split(np.arange(len(levels)), places)
    edge = math.log1p(margin.relative) - TIE
    found = []
    for place, (before, after) in zip(places, itertools.pairwise(stretches), strict=True):
        (one, own), (other, its) = (_level(levels[part], noise.variances[part]) for part in (before, after))
        shift, reach = other - one, quantile * math.sqrt(own + its)
        beside = float(levels[place] - levels[place - 1])
        found.append(
            LevelChange(
                at=place,
                change=_estimate(shift, reach, 1 - error),
                is_step=min(abs(shift), abs(beside)) > edge and shift * beside > 0,
                differences=_differences(series, place - 1, place),
            )
        )
    return tuple(found)


def _drift(
    series: Series, levels: Floats, noise: _Noise, margin: Margin, changes: Sequence[LevelChange], error: float
) -> Drift | None:
    since = max((one.at for one in changes if one.is_step), default=0)
    last = len(levels) - 1
    if since == last:
        return None
    shift = float(levels[last] - levels[since])
    reach = noise.quantile(error) * math.sqrt(noise.variances[since] + noise.variances[last])
    if abs(shift) <= max(math.log1p(margin.relative) + TIE, reach):
        return None
    return Drift(
        since=since,
        change=_estimate(shift, reach, 1 - error),
        largest_step=math.expm1(float(np.abs(np.diff(levels[since:])).max())),
        differences=_differences(series, since, last),
    )


def _level(levels: Floats, variances: Floats) -> tuple[float, float]:
    """Return the weighted mean of a stretch and its variance."""
    weights = 1 / variances
    return float((weights * levels).sum() / weights.sum()), float(1 / weights.sum())


def _estimate(shift: float, reach: float, confidence: float) -> Estimate:
    return Estimate(
        value=math.expm1(shift),
        low=math.expm1(shift - reach),
        high=math.expm1(shift + reach),
        confidence=confidence,
    )


def _differences(series: Series, one: int, other: int) -> tuple[Difference, ...]:
    """Return what differs between two sessions and can move a case's times: code first, then the machine."""
    before, after = series.cases[one], series.cases[other]
    code = [
        Difference(field=name, baseline=str(getattr(before, name))[:12], candidate=str(getattr(after, name))[:12])
        for name in ("source_sha256", "code_sha256")
        if differs(getattr(before, name), getattr(after, name))
    ]
    return (*code, *relevant_differences(series.sessions[one].environment, series.sessions[other].environment))
