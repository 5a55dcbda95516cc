"""What is found about more than one GPU of a fleet, in sentences: slow groups, other boards, other versions, holes."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.fleet import Member, Vacancy
from perfgate.core.fleet_report import FindingCode, FleetFinding
from perfgate.core.gpu import Gpu, identity_differences
from perfgate.core.peers import LEAST_PEERS
from perfgate.core.units import percent_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCase:
    """One case in which a group is slow as a whole.

    Attributes:
        change: of its median, relative to the rest.
        members: indices of its GPUs.
        also: other attributes that the very same GPUs share, with their values.
    """

    change: float
    members: frozenset[int]
    also: tuple[tuple[str, str], ...]


def group_findings(groups: Mapping[tuple[str, str], Mapping[str, GroupCase]]) -> list[FleetFinding]:
    """Return the groups that are slow as a whole, the slowest first; by attribute and value, then by case."""
    findings = []
    for (attribute, value), cases in groups.items():
        change = statistics.median(one.change for one in cases.values())
        seats = len(frozenset().union(*(one.members for one in cases.values())))
        also = dict.fromkeys(pair for one in cases.values() for pair in one.also)
        aside = "".join(f", which is also {_shared(name)} {other}" for name, other in also)
        named = ", ".join(list(cases)[:3]) + (f" and {len(cases) - 3} more" if len(cases) > 3 else "")
        findings.append(
            FleetFinding(
                code=FindingCode.SLOW_GROUP,
                message=f"{_shared(attribute)} {value}{aside}: {seats} GPUs are {percent_text(change, decimals=1)} "
                f"slower than the rest in {named}",
                attribute=attribute,
                value=value,
                seats=seats,
                cases=tuple(cases),
                change=change,
            )
        )
    return sorted(findings, key=lambda one: -(one.change or 0.0))


def _shared(attribute: str) -> str:
    """Name an attribute in words."""
    return attribute.removesuffix("_version").replace("_", " ")


def board_findings(identities: Sequence[Gpu], of_member: Sequence[int]) -> list[FleetFinding]:
    """Return the boards beside the most frequent one; ``of_member`` says which of the identities a GPU is."""
    counts = Counter(of_member)
    findings = []
    for index, gpu in enumerate(identities[1:], start=1):
        differing = identity_differences(identities[0], gpu)
        shown = ", ".join(f"{one.field} {one.candidate}, not {one.baseline}" for one in differing)
        findings.append(
            FleetFinding(
                code=FindingCode.OTHER_BOARD,
                message=f"{_some(counts[index], len(of_member))} {'are' if counts[index] > 1 else 'is'} another board, "
                f"judged {'apart' if counts[index] > LEAST_PEERS else 'by the baseline alone'}: {shown}",
                attribute="identity",
                value=gpu.board_part_number or gpu.name,
                seats=counts[index],
            )
        )
    return findings


def _some(count: int, whole: int) -> str:
    return f"{count} of {whole} GPUs"


def version_findings(members: Sequence[Member]) -> list[FleetFinding]:
    """Return the GPUs that another version of perfgate measured."""
    counts = Counter(member.perfgate_version for member in members)
    return [
        FleetFinding(
            code=FindingCode.OTHER_VERSION,
            message=f"{_some(count, len(members))} {'were' if count > 1 else 'was'} measured by perfgate {version}: "
            "only equal kernels are compared",
            attribute="perfgate_version",
            value=version,
            seats=count,
        )
        for version, count in counts.most_common()[1:]
    ]


def vacancy_findings(members: Sequence[Member], vacancies: Sequence[Vacancy]) -> list[FleetFinding]:
    """Return the nodes of which nothing came back."""
    present = {member.seat.node for member in members}
    gone = Counter(one.seat.node for one in vacancies)
    return [
        FleetFinding(
            code=FindingCode.NODE_MISSING,
            message=f"node {node} brought no run of its {count} GPUs",
            attribute="node",
            value=node,
            seats=count,
        )
        for node, count in gone.items()
        if node not in present and count > 1
    ]
