"""What a roofline picture shows, before anyone draws it: roofs, points, rows without FLOP, footer.

``roofline_figure`` draws it, ``roofline_text`` prints it. Made from a report, or from a run alone.
"""

from dataclasses import dataclass, replace

from perfgate.core.case import MemoryLevel, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.report import CaseResult, Report
from perfgate.core.roofline import roofline_position
from perfgate.core.roofs import Roof, Roofs, ridge_flop_per_byte
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics, median_or_none
from perfgate.core.units import clock_text, percent_text, rate_text, time_text
from perfgate.core.verdict import CaseVerdict

# Levels that belong on a chart of FLOP/s; links to host and peers are rows of the second panel.
_CHART_LEVELS = (MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.SHARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartCase:
    """One case on the picture.

    Attributes:
        verdict: None where nothing was judged.
        time_s: of the candidate; low and high are the ends of its interval, where there is one.
        baseline_s: None without a baseline.
        change: relative change of time, positive is slower.
        roof, of_measured, of_theoretical: the roof that bounds it and how close it comes.
    """

    id: str
    family: str
    work: Work
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    baseline_s: float | None = None
    change: float | None = None
    verdict: CaseVerdict | None = None
    roof: str | None = None
    of_measured: float | None = None
    of_theoretical: float | None = None

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Arithmetic intensity of the declared work."""
        return self.work.intensity_flop_per_byte

    @property
    def amount(self) -> int:
        """What its rate counts: FLOP where it has some, else bytes."""
        return self.work.work_flop or self.work.moved_bytes

    @property
    def unit(self) -> str:
        """Unit of the amount."""
        return "FLOP" if self.work.work_flop else "B"

    @property
    def rate_per_s(self) -> float | None:
        """FLOP/s, or bytes/s without FLOP; None for what waits."""
        return self.amount / self.time_s if self.amount else None

    @property
    def baseline_rate_per_s(self) -> float | None:
        """Rate of the baseline; None without one."""
        return self.amount / self.baseline_s if self.amount and self.baseline_s else None

    @property
    def is_moved(self) -> bool:
        """Whether the picture points at it: slower or faster beyond its margin, or suspected of it."""
        return self.verdict in (CaseVerdict.REGRESSED, CaseVerdict.IMPROVED, CaseVerdict.SUSPECTED)

    @property
    def title(self) -> str:
        """The case in a sentence, for who points at it."""
        parts = [self.rate_text] if self.rate_per_s is not None else []
        parts.append(time_text(self.time_s))
        if self.of_measured is not None:
            parts.append(f"{percent_text(self.of_measured, decimals=0)} of measured {self.roof}")
        if self.change is not None:
            parts.append(f"time {percent_text(self.change, signed=True)}")
        if self.verdict is not None:
            parts.append(self.verdict.value.replace("-", " "))
        return f"{self.id}: {', '.join(parts)}"

    @property
    def rate_text(self) -> str:
        """Rate with its unit; the time of what waits."""
        return time_text(self.time_s) if self.rate_per_s is None else rate_text(self.rate_per_s, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class RidgePoint:
    """Where a compute roof meets DRAM, by the values that the picture draws solid."""

    label: str
    flop_per_byte: float
    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineChart:
    """Everything on the picture.

    Attributes:
        points: cases with an intensity; rows: the others, in the order of the suite.
        memory, compute: the roofs that are measured or that a case needs.
        footer: lines about GPU, software, clocks and origin.
    """

    title: str
    points: tuple[ChartCase, ...]
    rows: tuple[ChartCase, ...]
    memory: tuple[Roof, ...]
    compute: tuple[Roof, ...]
    ridges: tuple[RidgePoint, ...]
    footer: tuple[str, ...]


def chart_of_report(report: Report) -> RooflineChart:
    """Return the chart of a report whose positions are filled in."""
    cases = tuple(case for result in report.cases if (case := _case_of_result(result)) is not None)
    footer = _footer(report.gpu, report.environment, report.sm_clock_hz)
    origin = [f"perfgate {report.perfgate_version}", report.created_utc]
    if report.device_kind == "recorded":
        origin.insert(0, "RECORDED, not measured on this machine")
    origin += [f"rehearsed: {one.pattern} {one.requested}" for one in report.injected]
    title = f"Roofline of {report.gpu.name}: {report.verdict.value}"
    return _chart(title, cases, report.roofs or Roofs(gpu_name=report.gpu.name), (*footer, " · ".join(origin)))


def chart_of_run(run: Run, roofs: Roofs) -> RooflineChart:
    """Return the chart of a run alone: no baseline, no verdicts.

    Args:
        run: what was measured.
        roofs: its roofs, ``core.roofs.measured_roofs``.
    """
    cases = []
    for case_id, info in run.cases.items():
        times_s = launch_statistics(run, case_id, Unit.SECONDS)
        time_s = median_or_none(times_s)
        if time_s is None:
            continue
        position = roofline_position(info.work, time_s, roofs, info.timing)
        cases.append(
            ChartCase(
                id=case_id,
                family=info.family,
                work=info.work,
                time_s=time_s,
                low_s=min(times_s),
                high_s=max(times_s),
                roof=position.roof,
                of_measured=position.of_measured,
                of_theoretical=position.of_theoretical,
            )
        )
    clocks_hz = (
        block.sm_clock_hz for launch in run.launches for case in launch.cases.values() for block in case.valid_blocks
    )
    origin = [f"perfgate {run.perfgate_version}", run.created_utc, "bars: fastest and slowest launch"]
    if run.device_kind == "recorded":
        origin.insert(0, "RECORDED, not measured on this machine")
    origin += [f"rehearsed: {one.pattern} {one.requested}" for one in run.injected]
    footer = _footer(run.gpu, run.environment, median_or_none(clocks_hz))
    return _chart(f"Roofline of {run.gpu.name}", tuple(cases), roofs, (*footer, " · ".join(origin)))


def chart_of_roofs(roofs: Roofs, footer: tuple[str, ...] = ()) -> RooflineChart:
    """Return the chart of a GPU's roofs alone, all of them, without cases."""
    chart = _chart(f"Roofs of {roofs.gpu_name}", (), roofs, footer)
    return replace(chart, memory=roofs.memory, compute=roofs.compute, ridges=_ridges(roofs.compute, roofs))


def _case_of_result(result: CaseResult) -> ChartCase | None:
    if result.work is None or not result.candidate_s:
        return None
    estimate, position = result.candidate, result.roofline
    low_s = high_s = None
    if estimate is not None and estimate.value and estimate.low is not None and estimate.high is not None:
        # The interval is in the unit of judgement; its relative width holds for the time too.
        low_s = result.candidate_s * estimate.low / estimate.value
        high_s = result.candidate_s * estimate.high / estimate.value
    return ChartCase(
        id=result.id,
        family=result.family,
        work=result.work,
        time_s=result.candidate_s,
        low_s=low_s,
        high_s=high_s,
        baseline_s=result.baseline_s,
        change=result.change.value if result.change is not None else None,
        verdict=result.verdict,
        roof=position.roof if position else None,
        of_measured=position.of_measured if position else None,
        of_theoretical=position.of_theoretical if position else None,
    )


def _chart(title: str, cases: tuple[ChartCase, ...], roofs: Roofs, footer: tuple[str, ...]) -> RooflineChart:
    points = tuple(case for case in cases if case.intensity_flop_per_byte is not None)
    used = {case.work.pipe for case in points}
    levels = {case.work.memory_level for case in points}
    memory = tuple(
        roof
        for roof in roofs.memory
        if roof.key in _CHART_LEVELS and (roof.measured_per_s is not None or roof.key in levels)
    )
    compute = tuple(roof for roof in roofs.compute if roof.measured_per_s is not None or roof.key in used)
    return RooflineChart(
        title=title,
        points=points,
        rows=tuple(case for case in cases if case.intensity_flop_per_byte is None),
        memory=memory,
        compute=compute,
        ridges=_ridges(compute, roofs),
        footer=footer,
    )


def _ridges(compute: tuple[Roof, ...], roofs: Roofs) -> tuple[RidgePoint, ...]:
    """Ridge points of compute roofs over DRAM, from left to right."""
    dram = roofs.memory_roof(MemoryLevel.DRAM)
    ridges = []
    for roof in compute:
        ridge = ridge_flop_per_byte(roof.best_per_s, dram.best_per_s if dram is not None else None)
        if ridge is not None and roof.best_per_s is not None:
            ridges.append(RidgePoint(label=roof.label, flop_per_byte=ridge, per_s=roof.best_per_s))
    return tuple(sorted(ridges, key=lambda one: one.flop_per_byte))


def _footer(gpu: Gpu, environment: Environment, sm_clock_hz: float | None) -> tuple[str, ...]:
    ecc = {True: "ECC on", False: "ECC off", None: None}[gpu.ecc_enabled]
    hardware = (
        gpu.name,
        f"board {gpu.board_part_number}" if gpu.board_part_number else None,
        f"chip {gpu.chip}" if gpu.chip else None,
        f"MIG {gpu.mig_profile}" if gpu.mig_profile else None,
        f"SM {clock_text(sm_clock_hz)} while measuring" if sm_clock_hz else None,
        f"{clock_text(gpu.sm_clock_max_hz)} at most" if gpu.sm_clock_max_hz else None,
        f"memory {clock_text(gpu.memory_clock_hz)} x {gpu.memory_bus_bits} bit"
        if gpu.memory_clock_hz and gpu.memory_bus_bits
        else None,
        ecc,
    )
    software = (
        f"driver {environment.driver_version}" if environment.driver_version else None,
        f"CUDA {environment.cuda_toolkit_version}" if environment.cuda_toolkit_version else None,
        f"commit {environment.commit[:10]}{' with changes' if environment.dirty else ''}"
        if environment.commit
        else None,
    )
    lines = (" · ".join(part for part in parts if part) for parts in (hardware, software))
    return tuple(line for line in lines if line)
