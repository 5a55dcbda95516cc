"""The judging of a fleet: groups first, then single GPUs, beside what the baseline says; ends in a report."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfgate import __version__
from perfgate.core.cause import Evidence, clock_cause, environment_causes
from perfgate.core.fleet import BaselineStanding, Member, Vacancy
from perfgate.core.fleet_findings import (
    GroupCase,
    board_findings,
    group_findings,
    vacancy_findings,
    version_findings,
)
from perfgate.core.fleet_report import FleetCase, FleetMember, FleetReport, SlowCase, Standing, fleet_exit_code, rank
from perfgate.core.gpu import Environment, Gpu, environment_differences, identity_differences
from perfgate.core.margin import margin_defaults
from perfgate.core.peers import LEAST_PEERS, PeerTest, peer_test, robust_spread, slow_groups
from perfgate.core.policy import Policy
from perfgate.core.report import Cause
from perfgate.core.selection import is_match
from perfgate.core.summary import median_or_none

PEERS, BASELINE = "peers", "baseline"


@dataclass(slots=True, kw_only=True)
class _Conclusions:
    """What is gathered about one measured GPU while the cases are gone through."""

    slow: list[SlowCase] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    changes: dict[str, float] = field(default_factory=dict)
    compared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Population:
    """GPUs that may be compared in one case: one identity, one kernel, one way of measuring."""

    case_id: str
    identity: int
    members: tuple[int, ...]


def judge_fleet(
    members: Sequence[Member], vacancies: Sequence[Vacancy], *, policy: Policy, created_utc: str
) -> FleetReport:
    """Judge GPUs by their peers, beside their baselines.

    Args:
        members: what was measured; each with its baseline's verdict, where it has one.
        vacancies: seats that brought nothing.
        policy: error rate, and margins by case; those between chips apply.
        created_utc: now, ISO 8601.
    """
    identities, of_member = _identities(members)
    populations = _populations(members, of_member)
    gated = [one for one in populations if members[one.members[0]].cases[one.case_id].gated]
    tests = sum(len(one.members) for one in gated)
    conclusions = [_Conclusions() for _ in members]
    groups: dict[tuple[str, str], dict[str, GroupCase]] = defaultdict(dict)
    cases = [_judged(one, members, conclusions, groups, policy=policy, tests=tests) for one in populations]
    concluded = [_concluded(member, of_member[index], conclusions[index]) for index, member in enumerate(members)]
    vacant = [FleetMember(seat=one.seat, standing=Standing.MISSING, reasons=(one.reason,)) for one in vacancies]
    ordered = tuple(sorted((*concluded, *vacant), key=rank))
    concurrencies = {member.concurrency for member in members}
    return FleetReport(
        created_utc=created_utc,
        perfgate_version=__version__,
        alpha=policy.alpha,
        tests=tests,
        identities=identities,
        members=ordered,
        cases=tuple(cases),
        findings=(
            *group_findings(groups),
            *board_findings(identities, of_member),
            *version_findings(members),
            *vacancy_findings(members, vacancies),
        ),
        concurrency=next(iter(concurrencies)) if len(concurrencies) == 1 else None,
        exit_code=int(fleet_exit_code(ordered, wrong_outputs=any(member.wrong_outputs for member in members))),
    )


def fleet_margin(case_id: str, policy: Policy) -> float:
    """Return by how much a GPU has to be slower than its peers: the policy's margin, else that between chips."""
    own = [relative for pattern, relative in policy.margins.items() if is_match(case_id, pattern)]
    return own[-1] if own else margin_defaults(case_id).cross_chip


def _identities(members: Sequence[Member]) -> tuple[tuple[Gpu, ...], list[int]]:
    """Return the boards that were met, the most frequent first, and which of them each member is."""
    found: list[Gpu] = []
    indices: list[int] = []
    for member in members:
        known = (index for index, gpu in enumerate(found) if not identity_differences(gpu, member.gpu))
        index = next(known, len(found))
        if index == len(found):
            found.append(replace(member.gpu, chip=None, power_limit_w=None))
        indices.append(index)
    order = [index for index, _ in Counter(indices).most_common()]
    place = {index: rank for rank, index in enumerate(order)}
    return tuple(found[index] for index in order), [place[index] for index in indices]


def _populations(members: Sequence[Member], of_member: Sequence[int]) -> list[_Population]:
    found: dict[tuple[str, int, str, int, str, str | None], list[int]] = {}
    for index, member in enumerate(members):
        for case_id, case in member.cases.items():
            key = (case_id, of_member[index], case.kernel, member.method, member.device_kind, member.concurrency)
            found.setdefault(key, []).append(index)
    return [
        _Population(case_id=key[0], identity=key[1], members=tuple(indices))
        for key, indices in sorted(found.items(), key=lambda item: (item[0][1], item[0][0], -len(item[1])))
    ]


def _judged(
    population: _Population,
    members: Sequence[Member],
    conclusions: Sequence[_Conclusions],
    groups: dict[tuple[str, str], dict[str, GroupCase]],
    *,
    policy: Policy,
    tests: int,
) -> FleetCase:
    """Judge one case of one population; adds to conclusions and groups."""
    case_id, here = population.case_id, population.members
    seen = [members[index].cases[case_id] for index in here]
    values = np.log([case.median for case in seen])
    margin = fleet_margin(case_id, policy)
    is_gated = seen[0].gated
    reference = np.ones(values.shape, dtype=bool)
    slow = 0
    if is_gated:
        attributes = _attributes([members[index] for index in here])
        for group in slow_groups(values, attributes, margin=margin, alpha=policy.alpha / max(tests, 1)):
            name = (group.attribute, group.value)
            change = math.expm1(group.deviation)
            groups[name][case_id] = GroupCase(
                change=change, members=frozenset(here[place] for place in group.members), also=group.also
            )
            reference[list(group.members)] = False
            for place in group.members:
                slow += 1
                conclusions[here[place]].slow.append(
                    SlowCase(id=case_id, against=" ".join(name), change=change, margin=margin)
                )
    test = peer_test(values, np.array([case.error for case in seen]), reference)
    clock = median_or_none(case.sm_clock_hz for case, is_peer in zip(seen, reference, strict=True) if is_peer)
    usual = _usual_environment([members[index].environment for index in here])
    for place, index in enumerate(here):
        if len(here) > 1:
            conclusions[index].changes[case_id] = math.expm1(float(test.deviations[place]))
        if not is_gated or not reference[place]:
            continue
        conclusions[index].compared += int(reference.sum()) - 1 >= LEAST_PEERS
        if not _is_slow(test, place, margin=margin, alpha=policy.alpha, tests=tests):
            continue
        slow += 1
        change = math.expm1(float(test.deviations[place]))
        p_value = min(1.0, float(test.p_values[place]) * tests)
        conclusions[index].slow.append(
            SlowCase(id=case_id, against=PEERS, change=change, margin=margin, p_value=p_value)
        )
        conclusions[index].causes += _causes(members[index], case_id, change, margin, clock, usual)
    return FleetCase(
        id=case_id,
        identity=population.identity,
        gpus=len(here),
        median_s=statistics.median(case.median_s for case in seen),
        spread=robust_spread(values),
        margin=margin,
        gated=is_gated,
        slow=slow,
    )


def _is_slow(test: PeerTest, place: int, *, margin: float, alpha: float, tests: int) -> bool:
    beyond = float(test.deviations[place]) > math.log1p(margin)
    return beyond and float(test.p_values[place]) * tests <= alpha


def _attributes(here: Sequence[Member]) -> dict[str, list[str]]:
    """Return what GPUs may share, the broadest first: software, then labels of the place, then the node."""
    labels = sorted({name for member in here for name in member.seat.labels})
    software = ("driver_version", "vbios_version", "cuda_toolkit_version", "compiler")
    found = {name: [str(getattr(member.environment, name) or "") for member in here] for name in software}
    found |= {name: [member.seat.labels.get(name, "") for member in here] for name in labels}
    return found | {"node": [member.seat.node for member in here]}


def _usual_environment(environments: Sequence[Environment]) -> Environment:
    """Return the environment that most share."""
    ((common, _),) = Counter(replace(one, commit=None, dirty=None) for one in environments).most_common(1)
    return common


def _causes(
    member: Member, case_id: str, change: float, margin: float, clock_hz: float | None, usual: Environment
) -> list[Cause]:
    """Return what of a slow GPU is unlike its peers."""
    own = member.cases[case_id].sm_clock_hz
    causes: list[Cause] = []
    if own is not None and clock_hz is not None:
        seen = Evidence(change=change, margin=margin, is_same_chip=False, clock_hz=(clock_hz, own))
        clock = clock_cause(seen)
        if clock is not None:
            causes.append(
                replace(clock, message=clock.message.replace(" before", " of its peers").replace(" now", " here"))
            )
    return causes + list(environment_causes(environment_differences(usual, member.environment)))


def _concluded(member: Member, identity: int, found: _Conclusions) -> FleetMember:
    """Put together what the peers, the baseline and the measurement itself say of a GPU."""
    baseline = member.baseline or BaselineStanding(verdict="", is_judged=False)
    slow = list(found.slow)
    slow += [
        SlowCase(id=case_id, against=BASELINE, change=change)
        for case_id, change in baseline.regressed.items()
        if not any(one.id == case_id for one in found.slow)
    ]
    causes = [*found.causes, *member.causes, *(baseline.causes if baseline.regressed else ())]
    reasons = [f"{case_id}: {reason}" for case_id, reason in member.unusable.items()]
    if slow:
        standing = Standing.SLOW
    elif member.unusable:
        standing = Standing.INVALID
    elif not found.compared and not baseline.is_judged:
        standing = Standing.UNJUDGED
        reasons.append("it has fewer than three peers, and no baseline")
    else:
        standing = Standing.HEALTHY
    return FleetMember(
        seat=member.seat,
        standing=standing,
        identity=identity,
        chip=member.gpu.chip,
        slow=tuple(sorted(slow, key=lambda one: -one.change)),
        reasons=tuple(reasons),
        causes=tuple(dict.fromkeys(causes)) if standing is not Standing.HEALTHY else (),
        changes=found.changes,
        values_s={case_id: case.median_s for case_id, case in member.cases.items()},
        baseline_verdict=baseline.verdict or None,
        injected=member.injected,
    )
