"""Reports for the pictures: an H200 with the rates that were really measured."""

from collections.abc import Mapping
from dataclasses import replace

from perfgate.core.case import Timing, Work
from perfgate.core.policy import Policy
from perfgate.core.report import CaseResult, Estimate, Report
from perfgate.core.roofline import positioned
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.storage.gpu_table import read_gpu_table
from tests.factories import ENVIRONMENT, H200, make_case_info, make_run

TABLE = read_gpu_table()
GIB = 2**30


def stream(reads: int, writes: int, flop: int = 0) -> Work:
    return Work(
        work_flop=flop * GIB,
        read_bytes=4 * GIB * reads,
        write_bytes=4 * GIB * writes,
        footprint_bytes=4 * GIB * (reads + writes),
        dtype="fp32",
        pipe="fp32" if flop else None,
    )


def square(n: int, size_bytes: int, dtype: str, pipe: str) -> Work:
    return Work(
        work_flop=2 * n**3,
        read_bytes=2 * size_bytes * n * n,
        write_bytes=size_bytes * n * n,
        footprint_bytes=6 * size_bytes * n * n,
        dtype=dtype,
        pipe=pipe,
    )


def attention(bytes_moved: int, flop: int) -> Work:
    return Work(work_flop=flop, read_bytes=bytes_moved, dtype="bf16", pipe="bf16-tensor")


# Work and time of one execution.
SMALL: Mapping[str, tuple[Work, float]] = {
    "bandwidth.copy[bytes=4GiB]": (stream(1, 1), 8 * GIB / 4.22e12),
    "bandwidth.read[bytes=4GiB]": (stream(1, 0), 4 * GIB / 4.53e12),
    "bandwidth.write[bytes=4GiB]": (stream(0, 1), 4 * GIB / 4.57e12),
    "bandwidth.triad[bytes=4GiB]": (stream(2, 1, 2), 12 * GIB / 4.38e12),
    "pattern.gather[bytes=4GiB]": (stream(1, 1), 8 * GIB / 0.71e12),
    "gemm.fp32[n=4096]": (square(4096, 4, "fp32", "fp32"), 2 * 4096**3 / 48e12),
    "gemm.bf16[n=4096]": (square(4096, 2, "bf16", "bf16-tensor"), 2 * 4096**3 / 735e12),
}
CROWDED = SMALL | {
    "gemm.tf32[n=4096]": (square(4096, 4, "tf32", "tf32-tensor"), 2 * 4096**3 / 373e12),
    "gemm.fp16[n=4096]": (square(4096, 2, "fp16", "fp16-tensor"), 2 * 4096**3 / 711e12),
    "gemm.fp64[n=4096]": (square(4096, 8, "fp64", "fp64-tensor"), 2 * 4096**3 / 59.6e12),
    "gemm.fp8[n=8192]": (square(8192, 1, "fp8", "fp8-tensor"), 2 * 8192**3 / 1360e12),
    "attention.prefill[n=4096]": (attention(2**27, 2**38), 2**38 / 520e12),
    "attention.decode[n=32768]": (attention(2**32, 2**34), 2**32 / 3.9e12),
    "peak.fma[dtype=fp32]": (Work(work_flop=2**42, dtype="fp32", pipe="fp32"), 2**42 / 64e12),
}
MOVES = {
    "gemm.bf16[n=4096]": (CaseVerdict.REGRESSED, 0.034),
    "bandwidth.read[bytes=4GiB]": (CaseVerdict.REGRESSED, 0.025),
    "pattern.gather[bytes=4GiB]": (CaseVerdict.IMPROVED, -0.10),
}


def make_session(works: Mapping[str, tuple[Work, float]] = SMALL) -> Run:
    """A run of three launches without any spread."""
    infos = {case_id: make_case_info(case_id.partition(".")[0], work=work) for case_id, (work, _) in works.items()}
    infos["launch.gap"] = make_case_info("launch", work=Work(), timing=Timing.GAP)
    medians = {case_id: (time_s,) * 3 for case_id, (_, time_s) in works.items()} | {"launch.gap": (1.31e-6,) * 3}
    environment = replace(ENVIRONMENT, commit="1a2b3c4d5e6f70", dirty=True)
    return make_run(medians, infos=infos, environment=environment)


def make_placed_report(
    works: Mapping[str, tuple[Work, float]] = SMALL,
    moves: Mapping[str, tuple[CaseVerdict, float]] = MOVES,
    **changes: object,
) -> Report:
    """A report whose positions are filled in."""
    run = make_session(works)
    cases = []
    for case_id, info in run.cases.items():
        time_s = 1.31e-6 if case_id == "launch.gap" else works[case_id][1]
        verdict, change = moves.get(case_id, (CaseVerdict.UNCHANGED, 0.0004))
        cases.append(
            CaseResult(
                id=case_id,
                family=info.family,
                verdict=verdict,
                timing=info.timing,
                work=info.work,
                baseline_s=time_s / (1 + change),
                candidate_s=time_s,
                candidate=Estimate(value=time_s, low=0.999 * time_s, high=1.001 * time_s, confidence=0.95),
                change=Estimate(value=change, low=change - 0.001, high=change + 0.001, confidence=0.95),
            )
        )
    report = Report(
        created_utc="2026-11-30T12:00:00Z",
        perfgate_version="0.1.0",
        verdict=CheckVerdict.REGRESSED,
        exit_code=1,
        summary="",
        gpu=H200,
        environment=run.environment,
        device_kind="cuda",
        policy=Policy(),
        cases=tuple(cases),
        sm_clock_hz=1.98e9,
    )
    return positioned(replace(report, **changes), run, TABLE)  # type: ignore[arg-type]
