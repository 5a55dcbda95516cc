"""The history of GPUs: accepted sessions and runs, by identity and chip, and the trend of every case.

Only what is comparable is joined: one identity, one chip, one kind of device, one method, and of each
case one version, work, unit and sampling plan. docs/statistics.md, "Over many sessions".
"""

import contextlib
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perfgate.core.acceptance import accepted_session
from perfgate.core.baseline import Baseline, BaselineSession, CalibratedMargin, Provenance, SessionCase
from perfgate.core.case import Unit
from perfgate.core.gpu import Gpu, identity_differences
from perfgate.core.margin import SessionLevels, margin_defaults, margins, noise_family, shrunken_spread
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.selection import is_match
from perfgate.core.trend import Movement, Series, Trend, trend
from perfgate.errors import BaselineError


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySource:
    """Sessions of one GPU identity from one document, and the margins that were calibrated for it."""

    gpu: Gpu
    sessions: tuple[BaselineSession, ...]
    margins: Mapping[str, CalibratedMargin]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySession:
    """What is shown of a session.

    Attributes:
        recorded_utc: when, ISO 8601.
        cases, launches: how many; of the launches the most of any case.
    """

    recorded_utc: str
    reason: str
    driver_version: str | None
    commit: str | None
    cases: int
    launches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipHistory:
    """The sessions of one chip, oldest first, and what each case did over them.

    Attributes:
        gpu: identity; ``chip`` is None where the sessions name none: they may be of several.
        device_kind: where the times come from.
        trends: of the cases that the newest sessions have, by id.
    """

    gpu: Gpu
    device_kind: str
    sessions: tuple[HistorySession, ...]
    trends: tuple[Trend, ...]

    def moved(self, movement: Movement) -> tuple[Trend, ...]:
        """Return the gated cases that moved so."""
        return tuple(one for one in self.trends if one.gated and one.movement is movement)


def source_of_run(run: Run) -> HistorySource:
    """Return a run as a source of one session; raises like ``accepted_session``."""
    provenance = Provenance(
        recorded_utc=run.created_utc,
        reason="",
        device_kind=run.device_kind,
        perfgate_version=run.perfgate_version,
        commit=run.environment.commit,
    )
    return HistorySource(gpu=run.gpu, sessions=(accepted_session(run, provenance),), margins={})


def source_of_baseline(baseline: Baseline) -> HistorySource:
    """Return a baseline's sessions."""
    return HistorySource(gpu=baseline.gpu, sessions=baseline.sessions, margins=baseline.margins)


def history_of_check(baseline: Baseline, run: Run, policy: Policy) -> ChipHistory | None:
    """Return the baseline's sessions of a run's chip with the run as the newest; None where there are not two.

    A rehearsal, or a run without a usable case, says nothing: the baseline's sessions stand alone then.
    """
    own = replace(baseline, sessions=tuple(one for one in baseline.sessions if one.chip == run.gpu.chip))
    sources = [source_of_baseline(own)]
    with contextlib.suppress(BaselineError):
        sources.append(source_of_run(run))
    found = [one for one in histories(sources, policy) if len(one.sessions) > 1 and one.gpu.chip is not None]
    return found[0] if found else None


def histories(sources: Iterable[HistorySource], policy: Policy, cases: Sequence[str] = ()) -> tuple[ChipHistory, ...]:
    """Return the history of every chip, in the order in which they first appear.

    Args:
        sources: a session that two of them hold counts once.
        policy: for its margins and its error rate.
        cases: globs; only these cases. Empty for all.
    """
    groups: dict[_Key, _Group] = {}
    identities: list[Gpu] = []
    for source in sources:
        gpu = next((one for one in identities if not identity_differences(one, source.gpu)), None)
        if gpu is None:
            gpu = source.gpu
            identities.append(gpu)
        for session in source.sessions:
            key = (identities.index(gpu), session.chip, session.provenance.device_kind, session.method)
            group = groups.setdefault(key, _Group(gpu=gpu))
            group.sessions.setdefault(session.provenance.recorded_utc, session)
            group.margins.update(source.margins)
    return tuple(_history(key, group, policy, cases) for key, group in groups.items())


_Key = tuple[int, str | None, str, int]


class _Group:
    """Sessions that may be joined, by time, while they are collected."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.sessions: dict[str, BaselineSession] = {}
        self.margins: dict[str, CalibratedMargin] = {}


def _history(key: _Key, group: _Group, policy: Policy, cases: Sequence[str]) -> ChipHistory:
    sessions = [group.sessions[when] for when in sorted(group.sessions)]
    ids = sorted({case_id for session in sessions for case_id in session.cases})
    wanted = [one for one in ids if not cases or any(is_match(one, glob) for glob in cases)]
    series = [_series(case_id, sessions) for case_id in wanted]
    return ChipHistory(
        gpu=replace(group.gpu, chip=key[1]),
        device_kind=key[2],
        sessions=tuple(_shown(one) for one in sessions),
        trends=_trends(series, policy, group.margins, key[1]),
    )


def _shown(session: BaselineSession) -> HistorySession:
    return HistorySession(
        recorded_utc=session.provenance.recorded_utc,
        reason=session.provenance.reason,
        driver_version=session.environment.driver_version,
        commit=session.provenance.commit,
        cases=len(session.cases),
        launches=max((len(case.launch_medians_s) for case in session.cases.values()), default=0),
    )


def _series(case_id: str, sessions: Sequence[BaselineSession]) -> Series:
    """Return the sessions of a case that are comparable with its newest."""
    having = [(session, session.cases[case_id]) for session in sessions if case_id in session.cases]
    newest = _conditions(*having[-1])
    kept = [pair for pair in having if _conditions(*pair) == newest]
    others = [conditions for pair in having if (conditions := _conditions(*pair)) != newest]
    names = [name for name in newest if others and others[-1][name] != newest[name]]
    return Series(
        id=case_id,
        sessions=tuple(session for session, _ in kept),
        cases=tuple(case for _, case in kept),
        left_out=len(others),
        left_out_reason=", ".join(names),
    )


def _conditions(session: BaselineSession, case: SessionCase) -> dict[str, object]:
    """Return what must be equal for a case's times to be comparable, by what it is called."""
    return {
        "version": case.version,
        "work": case.work,
        "timing": case.timing,
        "unit": (case.unit, case.unit is Unit.CYCLES and case.launch_cycles is None),
        "sampling plan": case.plan,
        "power limit": session.power_limit_w if case.work.pipe is not None else None,
        "CPU": session.environment.cpu_model if case.timing.is_host_timed else None,
    }


def _trends(
    series: Sequence[Series], policy: Policy, calibrated: Mapping[str, CalibratedMargin], chip: str | None
) -> tuple[Trend, ...]:
    # The margin of a check against one session: what was learned from sessions may have drifted with them.
    levels = {one.id: SessionLevels(same_chip=True, medians=(float(one.logarithms[0]),)) for one in series}
    known = margins(levels, policy=policy, calibrated=calibrated, chip=chip)
    spreads = _family_spreads(series)
    error = policy.alpha / max(len(series), 1)
    return tuple(trend(one, known[one.id], spread=_spread(one, spreads), error=error) for one in series)


def _family_spreads(series: Sequence[Series]) -> dict[str, float]:
    """Return the root mean square of the cases' spreads between neighbouring sessions, by noise family."""
    squares: defaultdict[str, list[float]] = defaultdict(list)
    for one in series:
        if one.spread is not None:
            squares[noise_family(one.id)].append(one.spread**2)
    return {family: math.sqrt(statistics.fmean(values)) for family, values in squares.items()}


def _spread(one: Series, families: Mapping[str, float]) -> float:
    default = margin_defaults(one.id).same_chip
    return shrunken_spread(default, len(one.cases), one.spread, families.get(noise_family(one.id)))
