"""What happens to a baseline: two become one, old sessions go, and what a change means in numbers."""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from perfgate.core.baseline import Baseline, BaselineSession, CalibratedMargin, Provenance, SessionCase
from perfgate.core.canonical import content_sha256
from perfgate.core.case import Unit
from perfgate.core.gpu import Difference, identity_differences
from perfgate.errors import BaselineError

K = TypeVar("K")
T = TypeVar("T")

# What makes a case's times incomparable with older ones, and what explains that they moved.
_CASE_FIELDS = ("version", "unit", "timing", "gated", "plan", "work", "source_sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """What a change of a baseline means for one case.

    Attributes:
        id: case.
        unit: what the values are in: cycles where every session judges the case in them.
        before, after: median over the sessions of their medians; None where the side lacks the case.
        differences: fields of the newest session that has the case, where the sides differ.
    """

    id: str
    unit: Unit
    before: float | None
    after: float | None
    differences: tuple[Difference, ...] = ()

    @property
    def relative(self) -> float | None:
        """The relative change after / before - 1; None where a side lacks the case."""
        return None if self.before is None or self.after is None else self.after / self.before - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginChange:
    """A calibrated margin that is new, gone or another; None for the side that has none."""

    id: str
    before: CalibratedMargin | None
    after: CalibratedMargin | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDifference:
    """What turns one baseline into another; falsy when nothing does."""

    identity: tuple[Difference, ...]
    sessions_added: tuple[BaselineSession, ...]
    sessions_removed: tuple[BaselineSession, ...]
    cases: tuple[CaseChange, ...]
    margins: tuple[MarginChange, ...]

    def __bool__(self) -> bool:
        return any((self.identity, self.sessions_added, self.sessions_removed, self.cases, self.margins))


def merged(one: Baseline, other: Baseline, base: Baseline | None = None) -> Baseline:
    """Return the baseline with the sessions of both, each once, in order of time.

    Commutative, and without a ``base`` associative and idempotent, so that two branches that each added
    a session can be joined either way. Of two margins for a case the one learned from more sessions stays.

    Args:
        one: a side.
        other: the other side.
        base: what both came from: a session of it that one side removed stays removed.

    Raises:
        BaselineError: the two are of different GPUs, or one is of a recording, or a side would lose every session.
    """
    if differences := identity_differences(one.gpu, other.gpu):
        fields = ", ".join(difference.field for difference in differences)
        message = f"baselines of different GPUs cannot be merged: they differ in {fields}"
        raise BaselineError(message, hint="keep one file for each")
    left, right = _by_origin(one), _by_origin(other)
    removed = _by_origin(base).keys() - (left.keys() & right.keys()) if base is not None else set()
    sessions = _joined(left, right, _joined_session)
    kept = sorted((session for origin, session in sessions.items() if origin not in removed), key=session_key)
    if not kept:
        raise BaselineError("each side removed every session that the other kept", hint="keep one of the two files")
    refuse_mixture(kept)
    return Baseline(
        gpu=max(one.gpu, other.gpu, key=content_sha256),
        sessions=tuple(kept),
        margins=_joined(one.margins, other.margins, _heavier(_margin_weight)),
        extensions=_joined(one.extensions, other.extensions, _heavier(content_sha256)),
    )


def refuse_mixture(sessions: Iterable[BaselineSession]) -> None:
    """Refuse sessions of which some were measured on a GPU and some come from a recording.

    Raises:
        BaselineError: there are both.
    """
    kinds = {session.provenance.device_kind for session in sessions}
    if len(kinds) > 1:
        raise BaselineError(
            f"a recorded session cannot join one measured on a GPU: {' and '.join(sorted(kinds))} in one baseline",
            hint="name another folder with --baseline",
        )


def pruned(baseline: Baseline, newest_per_chip: int) -> Baseline:
    """Return the baseline with the newest sessions of every chip, and its first: the anchor against slow creep.

    Sessions of unknown chips count as one chip's. Order stays.

    Raises:
        ValueError: ``newest_per_chip`` is less than 1.
    """
    if newest_per_chip < 1:
        message = f"at least one session of every chip must stay, not {newest_per_chip}"
        raise ValueError(message)
    of_chip: dict[str | None, list[int]] = {}
    for position, session in enumerate(baseline.sessions):
        of_chip.setdefault(session.chip, []).append(position)
    kept = {position for own in of_chip.values() for position in (own[0], *own[-newest_per_chip:])}
    return replace(baseline, sessions=tuple(baseline.sessions[position] for position in sorted(kept)))


def baseline_difference(before: Baseline | None, after: Baseline) -> BaselineDifference:
    """Return what a change of a baseline adds, removes and moves; without ``before`` everything is new."""
    before_sessions = before.sessions if before is not None else ()
    before_keys = {session_key(session) for session in before_sessions}
    after_keys = {session_key(session) for session in after.sessions}
    before_margins = before.margins if before is not None else {}
    return BaselineDifference(
        identity=identity_differences(before.gpu, after.gpu) if before is not None else (),
        sessions_added=tuple(one for one in after.sessions if session_key(one) not in before_keys),
        sessions_removed=tuple(one for one in before_sessions if session_key(one) not in after_keys),
        cases=tuple(_case_changes(before_sessions, after.sessions)),
        margins=tuple(
            MarginChange(id=case_id, before=before_margins.get(case_id), after=after.margins.get(case_id))
            for case_id in sorted({*before_margins, *after.margins})
            if before_margins.get(case_id) != after.margins.get(case_id)
        ),
    )


def session_key(session: BaselineSession) -> tuple[str, str, str]:
    """Return what tells sessions apart and orders them: time of recording, chip, content as it is stored."""
    return session.provenance.recorded_utc, session.chip or "", content_sha256(session)


def _margin_weight(margin: CalibratedMargin) -> tuple[int, float, str]:
    return margin.sessions, margin.relative, content_sha256(margin)


def _joined(one: Mapping[K, T], other: Mapping[K, T], join: Callable[[T, T], T]) -> dict[K, T]:
    """Join two maps; ``join``, which must not mind who comes first, decides where both have a key."""
    keys = dict.fromkeys((*one, *other))
    both = {key: join(one[key], other[key]) for key in keys if key in one and key in other}
    return {key: both[key] if key in both else one[key] if key in one else other[key] for key in keys}


def _heavier(weight: Callable[[Any], Any]) -> Callable[[T, T], T]:
    return lambda one, other: max(one, other, key=weight)


def _by_origin(baseline: Baseline) -> dict[tuple[str, str], BaselineSession]:
    """Return the sessions by what they are however often rows were refreshed: time and chip, else content."""
    return {
        (session.provenance.recorded_utc, session.chip or content_sha256(session)): session
        for session in baseline.sessions
    }


def _joined_session(one: BaselineSession, other: BaselineSession) -> BaselineSession:
    """Return one session of two states of it: of every case the row that was measured last."""
    rows = _joined(_rows(one), _rows(other), _heavier(_row_weight))
    heads = (replace(side, cases={}, refreshed={}) for side in (one, other))
    return replace(
        max(heads, key=content_sha256),
        cases={case_id: case for case_id, (case, _) in rows.items()},
        refreshed={case_id: origin for case_id, (_, origin) in rows.items() if origin is not None},
    )


_Row = tuple[SessionCase, Provenance | None]


def _rows(session: BaselineSession) -> dict[str, _Row]:
    return {case_id: (case, session.refreshed.get(case_id)) for case_id, case in session.cases.items()}


def _row_weight(row: _Row) -> tuple[str, str]:
    case, origin = row
    return origin.recorded_utc if origin is not None else "", content_sha256([case, origin])


def _case_changes(before: tuple[BaselineSession, ...], after: tuple[BaselineSession, ...]) -> Iterable[CaseChange]:
    for case_id in sorted({case_id for session in (*before, *after) for case_id in session.cases}):
        old, new = _case_sessions(before, case_id), _case_sessions(after, case_id)
        in_cycles = all(case.unit is Unit.CYCLES and case.launch_cycles is not None for case in (*old, *new))
        unit = Unit.CYCLES if in_cycles else Unit.SECONDS
        change = CaseChange(
            id=case_id,
            unit=unit,
            before=_level(old, unit),
            after=_level(new, unit),
            differences=_field_differences(old[-1], new[-1]) if old and new else (),
        )
        if change.before != change.after or change.differences:
            yield change


def _case_sessions(sessions: tuple[BaselineSession, ...], case_id: str) -> list[SessionCase]:
    return [session.cases[case_id] for session in sessions if case_id in session.cases]


def _level(cases: list[SessionCase], unit: Unit) -> float | None:
    values = [case.launch_cycles if unit is Unit.CYCLES else case.launch_medians_s for case in cases]
    return statistics.median(statistics.median(one) for one in values if one is not None) if values else None


def _field_differences(old: SessionCase, new: SessionCase) -> tuple[Difference, ...]:
    return tuple(
        Difference(field=name, baseline=str(getattr(old, name)), candidate=str(getattr(new, name)))
        for name in _CASE_FIELDS
        if getattr(old, name) != getattr(new, name)
    )
