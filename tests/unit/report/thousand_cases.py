"""A report of a thousand cases: half of them with FLOP, some of every verdict."""

from dataclasses import replace

from perfgate.core.case import MemoryLevel, Work
from perfgate.core.report import Bound, CaseResult, Estimate, Report, RooflinePosition
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from tests.golden.reports import ROOFS, bandwidth_case, make_report

_VERDICTS = (CaseVerdict.REGRESSED, CaseVerdict.IMPROVED, CaseVerdict.SUSPECTED, CaseVerdict.INCONCLUSIVE)


def thousand_cases() -> Report:
    """The report; its cases are ``bandwidth.copy[...]`` and ``gemm.bf16[n=...]``."""
    copies = tuple(bandwidth_case(f"bandwidth.copy[bytes={index}MiB]", 2e-3, 1e-6 * index) for index in range(1, 501))
    gemms = tuple(_gemm(index) for index in range(1, 501))
    cases = tuple(
        replace(case, verdict=_VERDICTS[place // 50 % 4]) if place % 50 == 0 else case
        for place, case in enumerate((*copies, *gemms))
    )
    report = make_report(cases, CheckVerdict.REGRESSED, "5 of 1000 cases are slower.", exit_code=1)
    return replace(report, roofs=ROOFS)


def _gemm(n: int) -> CaseResult:
    size = 64 * n
    work = Work(
        work_flop=2 * size**3,
        read_bytes=4 * size**2,
        write_bytes=2 * size**2,
        footprint_bytes=6 * size**2,
        dtype="bf16",
        pipe="bf16-tensor",
        memory_level=MemoryLevel.DRAM,
    )
    time_s = work.work_flop / 700e12 + 5e-6
    rate = work.work_flop / time_s
    case = bandwidth_case(f"gemm.bf16[n={n}]", time_s, 1e-3)
    return replace(
        case,
        family="gemm",
        work=work,
        candidate=Estimate(value=time_s),
        candidate_s=time_s,
        roofline=RooflinePosition(
            rate_flop_per_s=rate,
            bandwidth_bytes_per_s=work.moved_bytes / time_s,
            intensity_flop_per_byte=work.intensity_flop_per_byte,
            bound=Bound.COMPUTE,
            roof="BF16 tensor",
            of_measured=rate / 735e12,
        ),
    )
