"""Where a case sits under the roofs: rate, intensity, bound, fraction of its roof.

Model: Williams, Waterman, Patterson, "Roofline" (CACM 52(4), 2009): attainable = min(compute roof,
intensity x memory roof). The third bound, latency, is what neither roof explains.
"""

import math
from dataclasses import replace

from perfgate.core.case import Timing, Work
from perfgate.core.gpu_table import GpuTable
from perfgate.core.report import Bound, CaseResult, Report, RooflinePosition
from perfgate.core.roofs import Roof, Roofs, measured_roofs
from perfgate.core.run import Run

# No access pattern of 4-byte elements uses less than a sixteenth of what DRAM fetches for it (64 bytes).
# A case that its roofs explain less than this waits for something else: serial steps, synchronisation.
_EXPLAINED = 1 / 16


def attainable_per_s(intensity_flop_per_byte: float, compute_per_s: float, memory_bytes_per_s: float) -> float:
    """Return min(compute roof, intensity x memory roof) [FLOP/s]."""
    return min(compute_per_s, intensity_flop_per_byte * memory_bytes_per_s)


def roofline_position(work: Work, time_s: float, roofs: Roofs, timing: Timing = Timing.EVENTS) -> RooflinePosition:
    """Return where a case sits that did its declared work in ``time_s``.

    The bound is the larger of bytes / memory roof and FLOP / compute roof, the roofs measured where
    they are, or latency: where the launch takes longer than both, or both together explain less than a
    sixteenth of the time, or nothing but host time was measured. Bound and roof are None where a roof
    that would be needed is unknown.

    Raises:
        ValueError: the time is not finite and positive.
    """
    if not (math.isfinite(time_s) and time_s > 0):
        message = f"a time must be finite and positive, found {time_s!r} s"
        raise ValueError(message)
    bytes_moved, flop = work.moved_bytes, work.work_flop
    position = RooflinePosition(
        bandwidth_bytes_per_s=bytes_moved / time_s if bytes_moved else None,
        rate_flop_per_s=flop / time_s if flop else None,
        intensity_flop_per_byte=work.intensity_flop_per_byte,
    )
    if not timing.is_of_work or not (bytes_moved or flop):
        return replace(position, bound=Bound.LATENCY)
    memory, compute = roofs.memory_roof(work.memory_level), roofs.compute_roof(work.pipe)
    memory_s, compute_s = _term_s(bytes_moved, memory), _term_s(flop, compute)
    if memory_s is None or compute_s is None:
        return position
    if max(memory_s, compute_s) < max(roofs.launch_s or 0.0, _EXPLAINED * time_s):
        return replace(position, bound=Bound.LATENCY)
    if memory_s >= compute_s:
        return _under(position, Bound.MEMORY, memory, bytes_moved / time_s)
    return _under(position, Bound.COMPUTE, compute, flop / time_s)


def _under(position: RooflinePosition, bound: Bound, roof: Roof | None, rate_per_s: float) -> RooflinePosition:
    measured, reference = (roof.measured_per_s, roof.reference_per_s) if roof is not None else (None, None)
    return replace(
        position,
        bound=bound,
        roof=None if roof is None else roof.label,
        of_measured=rate_per_s / measured if measured else None,
        of_theoretical=rate_per_s / reference if reference else None,
    )


def _term_s(amount: int, roof: Roof | None) -> float | None:
    """Time that the roof needs for the amount: 0 for nothing, None where the roof is unknown."""
    if not amount:
        return 0.0
    return amount / roof.best_per_s if roof is not None and roof.best_per_s else None


def positioned(report: Report, run: Run, table: GpuTable) -> Report:
    """Return the report with the roofs of the candidate's run and the position of every case that it measured."""
    roofs = measured_roofs(run, table)
    return replace(report, roofs=roofs, cases=tuple(_positioned_case(case, roofs) for case in report.cases))


def _positioned_case(case: CaseResult, roofs: Roofs) -> CaseResult:
    if case.work is None or case.candidate_s is None or not (math.isfinite(case.candidate_s) and case.candidate_s > 0):
        return case
    return replace(case, roofline=roofline_position(case.work, case.candidate_s, roofs, case.timing))
