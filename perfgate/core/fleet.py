"""A fleet: many GPUs measured in one go, each judged by its peers and by its baseline. What things are; no judging."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.case import Unit
from perfgate.core.cause import health_causes
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.report import Cause
from perfgate.core.run import Run
from perfgate.core.summary import relative_spread
from perfgate.core.validity import Unusable, measured
from perfgate.shims import StrEnum

# Standard error of a median over that of a mean, for normal launches.
_MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)


class Concurrency(StrEnum):
    """What works beside a GPU while it is measured."""

    GPU = "gpu"  # nothing: one GPU of a node at a time
    NODE = "node"  # the other GPUs of its node
    ALL = "all"  # every GPU of the fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a GPU sits.

    Attributes:
        node: name of its machine; a host name where nobody gave another.
        gpu: index within the machine.
        labels: what else is known of the place, e.g. ``{"rack": "b7"}``.
    """

    node: str
    gpu: int
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The place in a word."""
        return f"{self.node}/{self.gpu}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCase:
    """What one GPU measured of one case.

    Attributes:
        median: of its launches, in ``unit``; median_s the same as time [s].
        error: relative standard error of that median, from the spread of the launches; 0 for one launch.
        kernel: what has to be equal for two GPUs to be compared, in one text.
    """

    median: float
    median_s: float
    error: float
    unit: Unit
    gated: bool
    kernel: str
    sm_clock_hz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineStanding:
    """What the baseline of its identity says of a GPU.

    Attributes:
        verdict: of the check, e.g. ``"passed"`` or ``"no-baseline"``.
        is_judged: there were sessions to compare with.
        regressed: relative change of the cases that are slower than it, confirmed or not.
        causes: of the check.
    """

    verdict: str
    is_judged: bool
    regressed: Mapping[str, float] = field(default_factory=dict)
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One GPU of the fleet, as far as it is judged.

    Attributes:
        concurrency: what worked beside it; None where nobody said.
        cases: by case id; unusable says why others are not among them.
        wrong_outputs: the cases whose output was wrong.
        causes: what its health says.
    """

    seat: Seat
    gpu: Gpu
    environment: Environment
    perfgate_version: str
    device_kind: str
    method: int
    cases: Mapping[str, MemberCase]
    unusable: Mapping[str, str] = field(default_factory=dict)
    wrong_outputs: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    baseline: BaselineStanding | None = None

    @property
    def concurrency(self) -> str | None:
        """What worked beside it while it was measured."""
        return self.environment.concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacancy:
    """A seat that brought no run, and why."""

    seat: Seat
    reason: str


def member_of(seat: Seat, run: Run, baseline: BaselineStanding | None = None) -> Member:
    """Return what of a run is judged against its peers."""
    cases: dict[str, MemberCase] = {}
    unusable: dict[str, str] = {}
    wrong: list[str] = []
    for case_id, info in run.cases.items():
        side = measured(case_id, run)
        if isinstance(side, Unusable):
            if info.gated:
                unusable[case_id] = side.reason
            if side.is_output_wrong:
                wrong.append(case_id)
            continue
        cases[case_id] = MemberCase(
            median=statistics.median(side.launches),
            median_s=side.median_s,
            error=_relative_error(side.launches),
            unit=info.unit,
            gated=info.gated,
            kernel=f"version {info.version}, {info.timing}, {info.unit}, {info.source_sha256}, {info.work}",
            sm_clock_hz=side.sm_clock_hz,
        )
    return Member(
        seat=seat,
        gpu=run.gpu,
        environment=run.environment,
        perfgate_version=run.perfgate_version,
        device_kind=run.device_kind,
        method=run.method,
        cases=cases,
        unusable=unusable,
        wrong_outputs=tuple(wrong),
        injected=tuple(f"{one.pattern} {one.requested}" for one in run.injected),
        causes=health_causes(run.health_before, run.health_after),
        baseline=baseline,
    )


def _relative_error(launches: tuple[float, ...]) -> float:
    spread = relative_spread(launches)
    return 0.0 if spread is None else _MEDIAN_OVER_MEAN * spread / math.sqrt(len(launches))
