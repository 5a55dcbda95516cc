"""Latencies: what is published, what a run measured, and times that are nothing but serial steps.

T = launch + sum of steps x latency, for work that is too small or too serial to fill any roof.
"""

import difflib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.case import Unit
from perfgate.core.caveat import Caveat
from perfgate.core.estimate import LAUNCH_S, checked_sizes
from perfgate.core.prediction import Prediction, Term
from perfgate.core.report import Bound
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics
from perfgate.core.units import time_text
from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum


class LatencyUnit(StrEnum):
    """What a latency is published in."""

    CYCLES = "cycles"
    SECONDS = "s"


class LatencyGroup(StrEnum):
    """Where the operation happens."""

    ON_CHIP = "on-chip"
    OFF_CHIP = "off-chip"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLatency:
    """One published value or band, of one GPU."""

    gpu: str
    low: float
    high: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One operation.

    Attributes:
        id: short name, used in ``--step``.
        typical: what an estimate uses, in ``unit``.
        common_belief: a value in circulation that people arrive with; ``correction`` says what is right.
        case: id of the built-in case that measures it, without axes or with those that it must have; None where
            none does.
    """

    id: str
    label: str
    group: LatencyGroup
    unit: LatencyUnit
    typical: float | None
    published: tuple[PublishedLatency, ...]
    common_belief: str
    correction: str = ""
    case: str | None = None

    def typical_s(self, clock_hz: float) -> float | None:
        """The typical value in seconds at an SM clock."""
        if self.typical is None:
            return None
        return self.typical / clock_hz if self.unit is LatencyUnit.CYCLES else self.typical


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyTable:
    """All operations, and what their source keys stand for."""

    about: str
    compiled: str
    sources: Mapping[str, str]
    latencies: tuple[Latency, ...]


def measured_latency_s(latency: Latency, run: Run) -> float | None:
    """Return what a run measured of an operation, in seconds per operation; None where it did not.

    A case whose id has an axis ``steps`` repeats the operation that often in one execution. Of several
    cases the fastest counts: a barrier of one warp, the smallest copy.
    """
    return _measured_latency(latency, run, Unit.SECONDS)


def measured_latency_cycles(latency: Latency, run: Run) -> float | None:
    """Return the same in SM cycles, by the clock that was measured with it."""
    return _measured_latency(latency, run, Unit.CYCLES)


def _measured_latency(latency: Latency, run: Run, unit: Unit) -> float | None:
    values = [
        statistics.median(found) / steps_of(case_id)
        for case_id in run.cases
        if latency.case is not None
        and _is_of(case_id, latency.case)
        and (found := launch_statistics(run, case_id, unit))
    ]
    return min(values, default=None)


def _is_of(case_id: str, wanted: str) -> bool:
    return case_id.split("[", 1)[0] == wanted.split("[", 1)[0] and _axes(wanted).items() <= _axes(case_id).items()


def steps_of(case_id: str) -> int:
    """Return the axis ``steps`` of a case id, 1 without one."""
    steps = _axes(case_id).get("steps", "")
    return int(steps) if steps.isdecimal() else 1


def _axes(case_id: str) -> dict[str, str]:
    axes = case_id.partition("[")[2].removesuffix("]").split(",")
    return dict(axis.split("=", 1) for axis in axes if "=" in axis)


def latency_named(table: LatencyTable, name: str) -> Latency:
    """Return an operation by id.

    Raises:
        ConfigurationError: there is none; the hint lists near ids, or all.
    """
    by_id = {latency.id: latency for latency in table.latencies}
    if name in by_id:
        return by_id[name]
    near = difflib.get_close_matches(name, by_id, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(by_id)}"
    raise ConfigurationError(f"no latency named {name!r}", hint=hint)


def serial(
    steps: Sequence[tuple[Latency, int]],
    *,
    clock_hz: float,
    machine: str,
    launch_s: float | None = None,
    run: Run | None = None,
) -> Prediction:
    """Predict work that is a chain of steps: the launch, and each step's latency as often as it occurs.

    Args:
        steps: operations and how often each occurs, one after the other.
        clock_hz: SM clock; published cycles are converted with it.
        machine: name of the GPU.
        launch_s: measured gap between queued kernels; by default the published one.
        run: whose measured latencies go before the published ones.

    Raises:
        ConfigurationError: a count is not positive, or an operation has no value.
    """
    terms = [
        Term(
            name="launch",
            time_s=LAUNCH_S if launch_s is None else launch_s,
            formula="one more kernel in a stream",
            bound=Bound.LATENCY,
            overlaps=False,
        )
    ]
    for latency, count in steps:
        checked_sizes(**{f"count of {latency.id}": count})
        measured_s = None if run is None else measured_latency_s(latency, run)
        one_s = latency.typical_s(clock_hz) if measured_s is None else measured_s
        if one_s is None:
            message = f"no latency of {latency.label} is published"
            raise ConfigurationError(message, hint="measure it: the suite `full` has cases for latencies")
        origin = "measured" if measured_s is not None else _typical_text(latency)
        terms.append(
            Term(
                name=latency.id,
                time_s=count * one_s,
                formula=f"{count} x {time_text(one_s)} ({origin})",
                bound=Bound.LATENCY,
                overlaps=False,
            )
        )
    message = "published latencies differ by method by up to 1.4 times"
    return Prediction(
        kind="serial",
        subject=", ".join(f"{count} {latency.label}" for latency, count in steps) or "nothing but the launch",
        machine=machine,
        terms=tuple(terms),
        caveats=(Caveat(code="published-latencies", message=message, remedy="measure them: suite `full`"),),
    )


def _typical_text(latency: Latency) -> str:
    return f"{latency.typical:g} cycles" if latency.unit is LatencyUnit.CYCLES else "published"
