"""Declared work beside what the GPU's own counters saw of one execution: a wrong count, or a kernel that re-reads.

Pure arithmetic; ``devices.cuda.ncu`` reads the counters, ``report.counters_text`` shows both.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.core.case import MemoryLevel, Work
from perfgate.core.report import Bound
from perfgate.core.roofline import roofline_position
from perfgate.core.roofs import STREAMING_FLOP_PER_BYTE, Roofs
from perfgate.core.run import CaseInfo
from perfgate.core.units import percent_text

# A declaration further off than this is a mistake in the suite.
TOLERANCE = 0.05
# What an execution leaves dirty in the L2 never reaches DRAM: 60 MiB of 1 GiB are 5.9 %, of 4 GiB 1.5 %.
LEAST_STREAM_BYTES = 4 * 2**30
# Nsight Compute's own rule (section "GPU Speed Of Light"): with both below 60 % of their peak, latency decides.
_BUSY = 0.6
# Cases of these names declare what they use, while memory moves what it must: more, or less from a cache.
_PATTERNS = frozenset({"cache", "gather", "l1", "l2", "offset", "random", "scatter", "stride", "strided", "transpose"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the counters saw of one execution, or of one kernel in it.

    Attributes:
        read_bytes, write_bytes: between L2 and DRAM.
        duration_s: of the kernels, the L2 empty at their start.
        work_flop: by executed instructions; None where the pipe has no counters.
        sm_share, dram_share: busiest part of the SMs, and DRAM, over their peak while it ran; None if not counted.
    """

    read_bytes: int
    write_bytes: int
    duration_s: float
    work_flop: int | None = None
    sm_share: float | None = None
    dram_share: float | None = None

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedCase:
    """A case's declared work beside its counters.

    Attributes:
        bytes_ratio, flop_ratio: counted over declared; None where nothing is declared or counted.
        reread_factor: DRAM reads over declared reads: how often operands come again; below 1 a cache served them.
        is_stream: its bytes are held to the tolerance.
        counted_bound: what the counters suggest; None where they were not read.
        bound: what perfgate says of it, by its declared work and its roofs.
        faults: declarations that are off, as sentences.
    """

    id: str
    work: Work
    counters: Counters
    bytes_ratio: float | None
    flop_ratio: float | None
    reread_factor: float | None
    is_stream: bool
    counted_bound: Bound | None
    bound: Bound | None
    faults: tuple[str, ...] = ()


def summed(kernels: Sequence[Counters]) -> Counters:
    """Return the counters of several kernels as one: amounts add up, shares are weighted by time.

    Raises:
        ValueError: there is no kernel.
    """
    if not kernels:
        message = "no kernel was counted"
        raise ValueError(message)
    flop = [one.work_flop for one in kernels]
    duration_s = sum(one.duration_s for one in kernels)

    def weighted(shares: Sequence[float | None]) -> float | None:
        known = [(share, one.duration_s) for share, one in zip(shares, kernels, strict=True) if share is not None]
        total_s = sum(weight for _, weight in known)
        return sum(share * weight for share, weight in known) / total_s if total_s else None

    return Counters(
        read_bytes=sum(one.read_bytes for one in kernels),
        write_bytes=sum(one.write_bytes for one in kernels),
        duration_s=duration_s,
        work_flop=None if None in flop else sum(one or 0 for one in flop),
        sm_share=weighted([one.sm_share for one in kernels]),
        dram_share=weighted([one.dram_share for one in kernels]),
    )


def suggested_bound(counters: Counters) -> Bound | None:
    """Return what the counters suggest: the busier of memory and SMs, latency where neither is busy."""
    if counters.sm_share is None or counters.dram_share is None:
        return None
    if max(counters.sm_share, counters.dram_share) < _BUSY:
        return Bound.LATENCY
    return Bound.MEMORY if counters.dram_share >= counters.sm_share else Bound.COMPUTE


def counted_case(case_id: str, info: CaseInfo, counters: Counters, roofs: Roofs) -> CountedCase:
    """Compare a case's declared work with its counters.

    FLOP must agree wherever they can be counted; bytes where the case streams at least 4 GiB from DRAM.
    Matrix products, gathers, strides and caches move other bytes than they declare, by their nature.
    """
    work = info.work
    flop_ratio = counters.work_flop / work.work_flop if counters.work_flop is not None and work.work_flop else None
    bytes_ratio = counters.moved_bytes / work.moved_bytes if work.moved_bytes else None
    is_stream = _streams(case_id, work)
    faults = []
    if flop_ratio is not None and abs(flop_ratio - 1) > TOLERANCE:
        faults.append(_fault(case_id, "FLOP", flop_ratio))
    if is_stream and bytes_ratio is not None and abs(bytes_ratio - 1) > TOLERANCE:
        faults.append(_fault(case_id, "bytes", bytes_ratio))
    return CountedCase(
        id=case_id,
        work=work,
        counters=counters,
        bytes_ratio=bytes_ratio,
        flop_ratio=flop_ratio,
        reread_factor=counters.read_bytes / work.read_bytes if work.read_bytes else None,
        is_stream=is_stream,
        counted_bound=suggested_bound(counters),
        bound=roofline_position(work, counters.duration_s, roofs, info.timing).bound,
        faults=tuple(faults),
    )


def _streams(case_id: str, work: Work) -> bool:
    names = re.split(r"[._]", case_id.partition("[")[0])
    return (
        work.memory_level is MemoryLevel.DRAM
        and work.moved_bytes >= LEAST_STREAM_BYTES
        and (work.intensity_flop_per_byte or 0.0) <= STREAMING_FLOP_PER_BYTE
        and _PATTERNS.isdisjoint(names)
    )


def _fault(case_id: str, what: str, ratio: float) -> str:
    return f"{case_id}: the counters saw {percent_text(ratio, decimals=1)} of the declared {what}"
