"""The two sides of a comparison in one session, from their run documents: what was paired, what was only listed.

Launches 0 and 1 are the pilots, one a side: each measures what may differ once, compiles it, and shows what fails.
From launch 2 on the sides were measured in turn, in quads; two neighbours, from the first on, are a pair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfgate.core.run import CaseInfo, Launch, Run
from perfgate.core.validity import Unusable, measured

# What is measured in turn comes after the pilots.
FIRST_INDEX = 2
Pairs = tuple[tuple[Launch, Launch], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What was measured of both sides.

    Attributes:
        base, head: their runs; of the same GPU, in one session; with the compared cases alone.
        pairs: neighbouring launches, that of the base first.
        same: described cases that are the same on both sides, and so were not measured in turn.
        only_head, only_base: cases that the other side lacks, described.
        failed: cases that could not be measured on one of the sides, and why.
        is_redefined: the suites' own files differ: geometry, arguments, or the code that they call.
        wrong_output: cases of the head whose output is wrong.
        base_name: what the base is, for people.
    """

    base: Run
    head: Run
    pairs: Pairs
    same: Mapping[str, CaseInfo] = field(default_factory=dict)
    only_head: Mapping[str, CaseInfo] = field(default_factory=dict)
    only_base: Mapping[str, CaseInfo] = field(default_factory=dict)
    failed: Mapping[str, tuple[CaseInfo, str]] = field(default_factory=dict)
    is_redefined: bool = False
    wrong_output: tuple[str, ...] = ()
    base_name: str = "base"


def sides_of(base: Run, head: Run) -> Sides:
    """Tell what two run documents of one session hold: all their cases, the pilots, and the launches in turn.

    Raises:
        ValueError: their launches are not those of one session.
    """
    pairs = paired(_in_turn(base), _in_turn(head))
    compared = {case_id for pair in pairs for launch in pair for case_id in (*launch.cases, *launch.failures)}
    common = [case_id for case_id in head.cases if case_id in base.cases]
    failed = _failed([case_id for case_id in common if case_id not in compared], base, head)
    rest = {case_id: head.cases[case_id] for case_id in common if case_id not in compared and case_id not in failed}
    return Sides(
        base=_narrowed(base, compared),
        head=_narrowed(head, compared),
        pairs=pairs,
        same=rest,
        only_head={case_id: info for case_id, info in head.cases.items() if case_id not in base.cases},
        only_base={case_id: info for case_id, info in base.cases.items() if case_id not in head.cases},
        failed=failed,
        is_redefined=base.suite_sha256 != head.suite_sha256,
    )


def is_same_session(base: Run, head: Run) -> bool:
    """Whether two documents can be of one session: the same GPU, measured the same way."""
    fields = ("gpu", "device_kind", "method", "settings")
    return all(getattr(base, name) == getattr(head, name) for name in fields)


def failures(case_ids: Iterable[str], base: Run, head: Run) -> dict[str, str]:
    """Return the cases that a pilot has no time of, and why."""
    found: dict[str, str] = {}
    for run, prefix in ((base, "the base: "), (head, "")):
        pilots = replace(run, launches=tuple(one for one in run.launches if one.index < FIRST_INDEX))
        if pilots.launches:
            sides = {case_id: measured(case_id, pilots) for case_id in case_ids if _is_tried(case_id, pilots)}
            found |= {
                case_id: f"{prefix}{side.reason}" for case_id, side in sides.items() if isinstance(side, Unusable)
            }
    return found


def paired(base: Sequence[Launch], head: Sequence[Launch]) -> Pairs:
    """Return the pairs of launches that were measured in turn, by their indices.

    Raises:
        ValueError: they were not measured in turn.
    """
    ordered = sorted([*((False, one) for one in base), *((True, one) for one in head)], key=lambda one: one[1].index)
    if [launch.index for _, launch in ordered] != list(range(FIRST_INDEX, FIRST_INDEX + len(ordered))):
        message = "the launches of the two sides are not those of one session"
        raise ValueError(message)
    pairs = []
    for (one_is_head, one), (other_is_head, other) in zip(ordered[::2], ordered[1::2], strict=False):
        if one_is_head is other_is_head:
            message = "the launches of the two sides do not alternate"
            raise ValueError(message)
        pairs.append((other, one) if one_is_head else (one, other))
    return tuple(pairs)


def _in_turn(run: Run) -> tuple[Launch, ...]:
    return tuple(launch for launch in run.launches if launch.index >= FIRST_INDEX)


def _narrowed(run: Run, case_ids: set[str]) -> Run:
    cases = {case_id: info for case_id, info in run.cases.items() if case_id in case_ids}
    return replace(run, cases=cases, launches=_in_turn(run))


def _failed(case_ids: Sequence[str], base: Run, head: Run) -> dict[str, tuple[CaseInfo, str]]:
    return {case_id: (head.cases[case_id], reason) for case_id, reason in failures(case_ids, base, head).items()}


def _is_tried(case_id: str, pilots: Run) -> bool:
    """Whether a pilot was to measure a case: one that died told nothing of what it had not begun."""
    return any(case_id in launch.cases or case_id in launch.failures or launch.failure for launch in pilots.launches)
