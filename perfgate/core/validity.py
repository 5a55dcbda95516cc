"""What a run measured of one case, if it may be used: failures, wrong output and physics come before statistics."""

import statistics
from dataclasses import dataclass

from perfgate.core.case import MemoryLevel, Timing, Unit, Work
from perfgate.core.caveat import Caveat
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import is_legacy_pipe, own_bandwidth_bytes_per_s
from perfgate.core.run import CaseLaunch, Run
from perfgate.core.summary import launch_statistics, median_or_none
from perfgate.core.units import percent_text, rate_text

# Boost above the attribute clock is real on GeForce; beyond this the bytes did not come from the memory.
BEYOND_THEORETICAL = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The candidate's side of one case.

    Attributes:
        launches: statistic of each launch that gave one, in the unit of judgement.
        median_s: median time of the launches.
        sm_clock_hz: median clock; None where it was not measured.
    """

    launches: tuple[float, ...]
    median_s: float
    sm_clock_hz: float | None
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Why what was measured of a case means nothing."""

    reason: str
    is_output_wrong: bool = False


def measured(case_id: str, run: Run) -> Measured | Unusable:
    """Return what a run measured of a case, or why that cannot be used."""
    info = run.cases[case_id]
    found = [launch.cases[case_id] for launch in run.launches if case_id in launch.cases]
    wrong = sum(launch.output_verified is False for launch in found)
    if wrong:
        return Unusable(
            reason=f"its output is wrong in {wrong} of {len(found)} launches: its time means nothing",
            is_output_wrong=True,
        )
    times = launch_statistics(run, case_id, Unit.SECONDS)
    if not times:
        return Unusable(reason=f"no launch gave a valid time: {_failures(case_id, run, found)}")
    values = times if info.unit is Unit.SECONDS else launch_statistics(run, case_id, info.unit)
    if not values:
        return Unusable(reason="it is judged in SM cycles, and the SM clock was not measured")
    planned = len(run.launches)
    if 2 * len(values) < planned:
        return Unusable(
            reason=f"only {len(values)} of {planned} launches gave a valid time: {_failures(case_id, run, found)}"
        )
    median_s = statistics.median(times)
    caveats = []
    if len(values) < planned:
        caveats.append(_lost(len(values), planned, _failures(case_id, run, found)))
    if not is_settled(found):
        caveats.append(_NOT_SETTLED)
    if is_legacy_pipe(info.work.pipe):
        caveats.append(_LEGACY_PIPE)
    fraction = bandwidth_fraction(info.work, info.timing, median_s, run.gpu)
    if fraction is not None and fraction > BEYOND_THEORETICAL:
        return Unusable(reason=beyond_text(info.work, median_s, fraction))
    if fraction is not None and fraction > 1:
        caveats.append(
            Caveat(
                code="beyond-roof",
                message=f"{percent_text(fraction, decimals=1)} of the theoretical bandwidth: "
                "the memory clock is above its attribute, or the bytes are overcounted",
            )
        )
    clock = median_or_none(block.sm_clock_hz for launch in found for block in launch.valid_blocks)
    return Measured(launches=values, median_s=median_s, sm_clock_hz=clock, caveats=tuple(caveats))


def is_settled(launches: list[CaseLaunch]) -> bool:
    """Tell whether most launches had warmed up before they measured."""
    return 2 * sum(launch.settled for launch in launches) >= len(launches)


def bandwidth_fraction(work: Work, timing: Timing, median_s: float, gpu: Gpu) -> float | None:
    """Return a case's bandwidth over memory clock x bus width / 8 x 2; None where that does not apply."""
    if not timing.is_of_work or work.memory_level is not MemoryLevel.DRAM or not work.moved_bytes:
        return None
    roof = own_bandwidth_bytes_per_s(gpu)  # the attributes alone: what a datasheet prints is rounded
    return work.moved_bytes / median_s / roof if roof else None


def beyond_text(work: Work, median_s: float, fraction: float) -> str:
    """Say that a bandwidth is beyond physics."""
    return (
        f"{rate_text(work.moved_bytes / median_s, 'B')} is {percent_text(fraction, decimals=1)} of the theoretical "
        "bandwidth: the data came from a cache, the bytes are overcounted, or the events timed another stream"
    )


_NOT_SETTLED = Caveat(
    code="not-settled",
    message="most launches were measured before the GPU had settled",
    remedy="let it warm up longer, or find out what disturbs it",
)

_LEGACY_PIPE = Caveat(
    code="legacy-pipe",
    message="multiplied by mma.sync, which reaches a fraction of these tensor cores: a measure of that instruction,"
    " not of the GPU",
)


def _lost(valid: int, planned: int, reasons: str) -> Caveat:
    return Caveat(code="launches-lost", message=f"{valid} of {planned} launches gave a valid time: {reasons}")


def _failures(case_id: str, run: Run, found: list[CaseLaunch]) -> str:
    """Name what went wrong, each reason once."""
    reasons = [launch.failures[case_id] for launch in run.launches if case_id in launch.failures]
    silent = [one for one in run.launches if case_id not in one.cases and case_id not in one.failures]
    reasons += [launch.failure for launch in silent if launch.failure]
    reasons += [block.reason for launch in found for block in launch.blocks if not block.valid and block.reason]
    return "; ".join(dict.fromkeys(reasons)) or "no reason was recorded"
