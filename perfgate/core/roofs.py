"""Roofs: upper bounds on bytes/s by memory level and on FLOP/s by pipe, measured and from data.

Measured is the best case of its kind in a run; theoretical comes from the device's attributes,
datasheet from the vendor. ``core.roofline`` places cases under them, ``core.estimate`` predicts with them.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfgate.core.case import MemoryLevel, Timing, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import GpuSheet, GpuTable, sheet_of
from perfgate.core.peaks import (
    EXPONENTIAL_PIPE,
    attribute_bandwidth_bytes_per_s,
    attribute_peak_per_s,
    datasheet_bandwidth_bytes_per_s,
    datasheet_peak_per_s,
    exponentials_per_s,
    is_legacy_pipe,
    known_pipes,
    pipe_text,
    pipe_unit,
    shared_bandwidth_bytes_per_s,
)
from perfgate.core.run import CaseInfo, Run
from perfgate.core.summary import launch_statistics
from perfgate.shims import StrEnum

LEVEL_TEXT = {
    MemoryLevel.DRAM: "DRAM",
    MemoryLevel.L2: "L2",
    MemoryLevel.SHARED: "shared memory",
    MemoryLevel.PCIE: "PCIe",
    MemoryLevel.PEER: "peer",
}

# A case is evidence of a memory roof where it streams: below this it cannot be near a compute roof on any GPU.
STREAMING_FLOP_PER_BYTE = 1.0
# Without a known peak, a case of at least this intensity is taken for compute-bound (vector ridges: 5 to 105).
_COMPUTE_FLOP_PER_BYTE = 128.0
# Footprint of a DRAM roof over the L2: a smaller one may be served by the cache (64 MiB no longer beats it).
_FOOTPRINT_OVER_L2 = 4
# Beyond these a rate is no roof but a wrong count or a cache: pins are physics, boards boost above the
# attribute clock (RTX 5090: 111 % of its FP16 peak measured).
_PLAUSIBLE_BANDWIDTH = 1.02
_PLAUSIBLE_PEAK = 1.15


class RoofKind(StrEnum):
    """Where a roof's value comes from, what predictions prefer first."""

    MEASURED = "measured"
    DATASHEET = "datasheet"
    THEORETICAL = "theoretical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """One upper bound and what is known of it; rates are per second, in ``unit``.

    Attributes:
        key: memory level or pipe: ``"dram"``, ``"bf16-tensor"``.
        label: as shown: ``"DRAM"``, ``"BF16 tensor"``.
        unit: ``"B"``, ``"FLOP"`` or ``"OP"`` (integer pipes).
        measured_case: id of the case that won.
        theoretical_per_s: from device attributes.
        datasheet_per_s: the vendor's.
    """

    key: str
    label: str
    unit: str
    measured_per_s: float | None = None
    measured_case: str | None = None
    theoretical_per_s: float | None = None
    datasheet_per_s: float | None = None

    def per_s(self, kind: RoofKind) -> float | None:
        """Return the value of one kind."""
        return {
            RoofKind.MEASURED: self.measured_per_s,
            RoofKind.THEORETICAL: self.theoretical_per_s,
            RoofKind.DATASHEET: self.datasheet_per_s,
        }[kind]

    @property
    def reference_kind(self) -> RoofKind | None:
        """Which paper value measurements are divided by.

        Memory: the attributes' pin rate, since sheets round it. Compute: the datasheet's, since tensor
        peaks are quoted at a lower clock than the attribute (H200: 1830, not 1980 MHz).
        """
        first, second = RoofKind.DATASHEET, RoofKind.THEORETICAL
        if self.unit == "B":
            first, second = second, first
        return next((kind for kind in (first, second) if self.per_s(kind) is not None), None)

    @property
    def reference_per_s(self) -> float | None:
        """The paper value itself; None where neither is known."""
        return None if self.reference_kind is None else self.per_s(self.reference_kind)

    @property
    def best_kind(self) -> RoofKind | None:
        """Measured where there is a measurement, else the datasheet's, else from attributes."""
        return next((kind for kind in RoofKind if self.per_s(kind) is not None), None)

    @property
    def best_per_s(self) -> float | None:
        """The value that predictions and ridge points use; None where nothing is known."""
        return None if self.best_kind is None else self.per_s(self.best_kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """The roofs of one GPU, and what else bounds a time on it.

    Attributes:
        memory: one a level, in the order of ``MemoryLevel``; compute: one a pipe.
        launch_s: time that each kernel of a queue adds, measured; None where it was not.
        exponentials_per_s: rate of the multi-function units, measured or else at the attribute clock.
    """

    gpu_name: str
    memory: tuple[Roof, ...] = ()
    compute: tuple[Roof, ...] = ()
    sm_count: int | None = None
    l2_bytes: int | None = None
    launch_s: float | None = None
    exponentials_per_s: float | None = None

    def memory_roof(self, level: MemoryLevel) -> Roof | None:
        """Return the roof of a level; None where nothing is known of it."""
        return next((roof for roof in self.memory if roof.key == level), None)

    def compute_roof(self, pipe: str | None) -> Roof | None:
        """Return the roof of a pipe; None where nothing is known of it."""
        return next((roof for roof in self.compute if roof.key == pipe), None)


def paper_roofs(gpu: Gpu, table: GpuTable) -> Roofs:
    """Return the roofs of a GPU from its attributes and its datasheet, nothing measured."""
    bandwidth = Roof(
        key=MemoryLevel.DRAM,
        label=LEVEL_TEXT[MemoryLevel.DRAM],
        unit="B",
        theoretical_per_s=attribute_bandwidth_bytes_per_s(gpu, table),
        datasheet_per_s=datasheet_bandwidth_bytes_per_s(gpu, table),
    )
    shared = Roof(
        key=MemoryLevel.SHARED,
        label=LEVEL_TEXT[MemoryLevel.SHARED],
        unit="B",
        theoretical_per_s=shared_bandwidth_bytes_per_s(gpu),
    )
    sheet = sheet_of(table, gpu)
    peer = Roof(
        key=MemoryLevel.PEER,
        label=LEVEL_TEXT[MemoryLevel.PEER],
        unit="B",
        datasheet_per_s=(sheet.nvlink_bytes_per_s or None) if sheet is not None else None,
    )
    compute = (
        Roof(
            key=pipe,
            label=pipe_text(pipe),
            unit=pipe_unit(pipe),
            theoretical_per_s=attribute_peak_per_s(gpu, table, pipe),
            datasheet_per_s=datasheet_peak_per_s(gpu, table, pipe),
        )
        for pipe in known_pipes(gpu, table)
    )
    return Roofs(
        gpu_name=gpu.name,
        memory=tuple(roof for roof in (bandwidth, shared, peer) if roof.best_kind is not None),
        compute=tuple(roof for roof in compute if roof.best_kind is not None),
        sm_count=gpu.sm_count,
        l2_bytes=gpu.l2_bytes,
        exponentials_per_s=exponentials_per_s(gpu),
    )


def sheet_roofs(sheet: GpuSheet, table: GpuTable) -> Roofs:
    """Return the roofs of a row of the table."""
    return paper_roofs(sheet.gpu(), table)


def measured_roofs(run: Run, table: GpuTable) -> Roofs:
    """Return the roofs of a run: the best case of each kind beside what paper says.

    A case counts for a memory roof where it streams from a footprint beyond the cache, for a compute
    roof where it lies right of the ridge point. A rate that physics does not allow counts for neither:
    it is a wrong count or a cache, and the measuring room reports it.
    """
    paper = paper_roofs(run.gpu, table)
    times_s = {
        case_id: statistics.median(values)
        for case_id, info in run.cases.items()
        if info.timing is Timing.EVENTS and (values := launch_statistics(run, case_id, Unit.SECONDS))
    }
    memory = []
    for level in MemoryLevel:
        roof = paper.memory_roof(level) or Roof(key=level, label=LEVEL_TEXT[level], unit="B")
        rates = {
            case_id: info.work.moved_bytes / times_s[case_id]
            for case_id, info in run.cases.items()
            if case_id in times_s and _streams(info, level, run.gpu.l2_bytes)
        }
        memory.append(_with_best(roof, rates, _PLAUSIBLE_BANDWIDTH))
    dram = next(roof for roof in memory if roof.key == MemoryLevel.DRAM)
    pipes = dict.fromkeys([roof.key for roof in paper.compute])
    used = (info.work.pipe for info in run.cases.values() if info.work.pipe)
    pipes |= dict.fromkeys(pipe for pipe in used if pipe != EXPONENTIAL_PIPE and not is_legacy_pipe(pipe))
    compute = []
    for pipe in pipes:
        roof = paper.compute_roof(pipe) or Roof(key=pipe, label=pipe_text(pipe), unit=pipe_unit(pipe))
        rates = {
            case_id: info.work.work_flop / times_s[case_id]
            for case_id, info in run.cases.items()
            if case_id in times_s and info.work.pipe == pipe and _computes(info.work, roof, dram)
        }
        compute.append(_with_best(roof, rates, _PLAUSIBLE_PEAK))
    return replace(
        paper,
        memory=tuple(roof for roof in memory if roof.best_kind is not None),
        compute=tuple(roof for roof in compute if roof.best_kind is not None),
        launch_s=_launch_s(run),
        exponentials_per_s=_measured_exponentials_per_s(run, times_s, paper) or paper.exponentials_per_s,
    )


def sustained_roofs(run: Run, table: GpuTable) -> Roofs:
    """Return the roofs of a run that predictions use: of each pipe the best case that also moves its operands.

    The peaks that nothing is loaded for are the roof, but no product issues without a pause: FP32 products
    reach three quarters of it. Where no other case was measured the peak stands.
    """
    roofs = measured_roofs(run, table)
    moving = {case_id: info for case_id, info in run.cases.items() if info.work.moved_bytes or not info.work.work_flop}
    sustained = measured_roofs(replace(run, cases=moving), table)
    found = (sustained.compute_roof(roof.key) or roof for roof in roofs.compute)
    compute = (one if one.measured_per_s else roof for one, roof in zip(found, roofs.compute, strict=True))
    return replace(roofs, compute=tuple(compute))


def _measured_exponentials_per_s(run: Run, times_s: Mapping[str, float], paper: Roofs) -> float | None:
    rates = [
        info.work.work_flop / times_s[case_id]
        for case_id, info in run.cases.items()
        if case_id in times_s and info.work.pipe == EXPONENTIAL_PIPE
    ]
    limit = math.inf if paper.exponentials_per_s is None else _PLAUSIBLE_PEAK * paper.exponentials_per_s
    return max((rate for rate in rates if rate <= limit), default=None)


def _streams(info: CaseInfo, level: MemoryLevel, l2_bytes: int | None) -> bool:
    work = info.work
    if work.memory_level != level or not work.moved_bytes:
        return False
    if (work.intensity_flop_per_byte or 0.0) > STREAMING_FLOP_PER_BYTE:
        return False
    return level is not MemoryLevel.DRAM or l2_bytes is None or work.footprint_bytes >= _FOOTPRINT_OVER_L2 * l2_bytes


def _computes(work: Work, roof: Roof, dram: Roof) -> bool:
    intensity = work.intensity_flop_per_byte
    if intensity is None:
        return work.work_flop > 0
    ridge = ridge_flop_per_byte(roof.reference_per_s, dram.best_per_s)
    return intensity >= (_COMPUTE_FLOP_PER_BYTE if ridge is None else ridge)


def _with_best(roof: Roof, rates: dict[str, float], plausible: float) -> Roof:
    limit = roof.theoretical_per_s or roof.datasheet_per_s
    possible = {case_id: rate for case_id, rate in rates.items() if limit is None or rate <= plausible * limit}
    if not possible:
        return roof
    best = max(possible, key=lambda case_id: possible[case_id])
    return replace(roof, measured_per_s=possible[best], measured_case=best)


def _launch_s(run: Run) -> float | None:
    gaps = [
        statistics.median(values)
        for case_id, info in run.cases.items()
        if info.timing is Timing.GAP and (values := launch_statistics(run, case_id, Unit.SECONDS))
    ]
    return min(gaps, default=None)


def ridge_flop_per_byte(compute_per_s: float | None, memory_bytes_per_s: float | None) -> float | None:
    """Return where a compute and a memory roof meet [FLOP/byte]; None where one is unknown.

    A ridge point means nothing without the names of its two roofs: an A100 has 9.6 (FP32, 80 GB) and
    153 (BF16 tensor) at the same memory.
    """
    return compute_per_s / memory_bytes_per_s if compute_per_s and memory_bytes_per_s else None
