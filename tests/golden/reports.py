"""The reports whose renderings are kept as golden files: what a person is to see, each for one situation."""

from dataclasses import replace

from perfgate.core.case import MemoryLevel, Timing, Unit, Work
from perfgate.core.caveat import Caveat
from perfgate.core.gpu import Difference
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import (
    BaselineUsed,
    Bound,
    CaseResult,
    Cause,
    Estimate,
    Margin,
    MarginSource,
    Report,
    RooflinePosition,
)
from perfgate.core.roofs import Roof, Roofs
from perfgate.core.run import Injection
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from tests.factories import ENVIRONMENT, H200

DRAM_BYTES_PER_S = 4.53e12
BF16_FLOP_PER_S = 735e12
ROOFS = Roofs(
    gpu_name="NVIDIA H200",
    memory=(Roof(key="dram", label="DRAM", unit="B", measured_per_s=DRAM_BYTES_PER_S, theoretical_per_s=4.81e12),),
    compute=(
        Roof(key="fp32", label="FP32", unit="FLOP", measured_per_s=50.3e12, theoretical_per_s=66.9e12),
        Roof(key="bf16-tensor", label="BF16 tensor", unit="FLOP", measured_per_s=BF16_FLOP_PER_S),
        Roof(key="fp64", label="FP64", unit="FLOP", theoretical_per_s=33.5e12),
    ),
)

SAME_CHIP = Margin(relative=0.005, source=MarginSource.SAME_CHIP_DEFAULT, sessions=3, session_term=0.0012)
BASELINE = BaselineUsed(
    source="baselines/nvidia-h200-692-2g520-0282-000.json",
    sessions=4,
    sessions_of_chip=3,
    newest_utc="2026-11-20T09:12:00Z",
    environment=ENVIRONMENT,
)


def copy_work(moved_bytes: int = 2**33) -> Work:
    return Work(read_bytes=moved_bytes // 2, write_bytes=moved_bytes // 2, footprint_bytes=moved_bytes, dtype="fp32")


def gemm_work(n: int = 4096) -> Work:
    return Work(
        work_flop=2 * n**3,
        read_bytes=4 * n * n,
        write_bytes=2 * n * n,
        footprint_bytes=16 * 6 * n * n,
        dtype="bf16",
        pipe="bf16-tensor",
        memory_level=MemoryLevel.DRAM,
    )


def memory_position(work: Work, time_s: float) -> RooflinePosition:
    rate = work.moved_bytes / time_s
    return RooflinePosition(
        bandwidth_bytes_per_s=rate, bound=Bound.MEMORY, roof="DRAM", of_measured=rate / DRAM_BYTES_PER_S
    )


def compute_position(work: Work, time_s: float) -> RooflinePosition:
    rate = work.work_flop / time_s
    return RooflinePosition(
        bandwidth_bytes_per_s=work.moved_bytes / time_s,
        rate_flop_per_s=rate,
        intensity_flop_per_byte=work.intensity_flop_per_byte,
        bound=Bound.COMPUTE,
        roof="BF16 tensor",
        of_measured=rate / BF16_FLOP_PER_S,
    )


def bandwidth_case(
    name: str,
    time_s: float,
    change: float,
    half_width: float = 0.0006,
    *,
    verdict: CaseVerdict = CaseVerdict.UNCHANGED,
    **changes: object,
) -> CaseResult:
    """A bandwidth case of 8 GiB moved."""
    work = copy_work()
    base_s = time_s / (1 + change)
    result = CaseResult(
        id=name,
        family=name.split(".", 1)[0],
        verdict=verdict,
        work=work,
        baseline=Estimate(value=base_s, low=base_s * 0.999, high=base_s * 1.001, confidence=0.95),
        candidate=Estimate(value=time_s, low=time_s * 0.999, high=time_s * 1.001, confidence=0.95),
        baseline_s=base_s,
        candidate_s=time_s,
        change=Estimate(value=change, low=change - half_width, high=change + half_width, confidence=0.95),
        margin=SAME_CHIP,
        p_slower=1.0,
        p_adjusted=1.0,
        p_equivalent=1e-6,
        baseline_launches=36,
        candidate_launches=6,
        roofline=memory_position(work, time_s),
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def gemm_case(change: float = 0.001, *, verdict: CaseVerdict = CaseVerdict.UNCHANGED, **changes: object) -> CaseResult:
    """The BF16 GEMM, judged in cycles."""
    work = gemm_work()
    base_s = 188.5e-6
    time_s = base_s * (1 + change)
    result = CaseResult(
        id="gemm.bf16[n=4096]",
        family="gemm",
        verdict=verdict,
        unit=Unit.CYCLES,
        work=work,
        baseline=Estimate(value=base_s * 1.9e9),
        candidate=Estimate(value=time_s * 1.9e9),
        baseline_s=base_s,
        candidate_s=time_s,
        change=Estimate(value=change, low=change - 0.002, high=change + 0.002, confidence=0.95),
        margin=replace(SAME_CHIP, relative=0.01, source=MarginSource.SAME_CHIP_CALIBRATED),
        p_slower=1.0,
        p_adjusted=1.0,
        p_equivalent=1e-5,
        baseline_launches=36,
        candidate_launches=6,
        roofline=compute_position(work, time_s),
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def launch_case(name: str, time_s: float, change: float, half_width: float, **changes: object) -> CaseResult:
    """A case without work: time alone."""
    result = CaseResult(
        id=name,
        family="launch",
        verdict=CaseVerdict.UNCHANGED,
        timing=Timing.GAP,
        work=Work(),
        baseline_s=time_s / (1 + change),
        candidate_s=time_s,
        change=Estimate(value=change, low=change - half_width, high=change + half_width, confidence=0.95),
        margin=Margin(relative=0.1, source=MarginSource.SAME_CHIP_DEFAULT),
        baseline_launches=36,
        candidate_launches=6,
        roofline=RooflinePosition(bound=Bound.LATENCY),
    )
    return replace(result, **changes)  # type: ignore[arg-type]


SUBMIT = launch_case(
    "launch.submit", 6.9e-6, 0.21, 0.04, verdict=CaseVerdict.NOT_GATED, gated=False, timing=Timing.SUBMIT, margin=None
)
UNCHANGED = (
    bandwidth_case("bandwidth.read[bytes=4GiB]", 1.896e-3, 0.0004),
    bandwidth_case("bandwidth.write[bytes=4GiB]", 1.951e-3, -0.0001),
    bandwidth_case("bandwidth.copy[bytes=4GiB]", 2.034e-3, -0.0002, 0.0005),
    launch_case("launch.gap", 1.31e-6, 0.041, 0.05),
)
REGRESSED_GEMM = gemm_case(
    0.034,
    verdict=CaseVerdict.REGRESSED,
    p_slower=2e-7,
    p_adjusted=3e-6,
    p_equivalent=1.0,
    significant=True,
    relevant=True,
    confirmed=True,
    causes=(
        Cause(
            code="compiler-changed",
            message="same source, other machine code (CUDA toolkit 13.0 to 13.1)",
            who="maintainer",
        ),
    ),
)


TRIAD = bandwidth_case(
    "bandwidth.triad[bytes=4GiB]",
    1.962e-3,
    -0.026,
    verdict=CaseVerdict.IMPROVED,
    work=replace(copy_work(), work_flop=2**30),
    roofline=replace(
        memory_position(copy_work(), 1.962e-3), rate_flop_per_s=2**30 / 1.962e-3, intensity_flop_per_byte=2**30 / 2**33
    ),
)


def make_report(
    cases: tuple[CaseResult, ...], verdict: CheckVerdict, summary: str, *, exit_code: int = 0, **changes: object
) -> Report:
    """A report of a calm H200, judged against a baseline of the same chip."""
    report = Report(
        created_utc="2026-11-30T12:00:31Z",
        perfgate_version="0.1.0",
        verdict=verdict,
        exit_code=exit_code,
        summary=summary,
        gpu=H200,
        environment=replace(ENVIRONMENT, commit="1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", dirty=False),
        device_kind="cuda",
        policy=Policy(),
        cases=cases,
        baseline=BASELINE,
        launches=6,
        looks=2,
        measured_s=31.4,
        sm_clock_hz=1.98e9,
        temperature_c=34.0,
        roofs=ROOFS,
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def passed() -> Report:
    return make_report(
        (*UNCHANGED[:3], gemm_case(), UNCHANGED[3], SUBMIT),
        CheckVerdict.PASSED,
        "5 cases are unchanged within their margins. Smallest change that would be found: 0.5 %.",
    )


def regressed() -> Report:
    return make_report(
        (
            *UNCHANGED[:3],
            REGRESSED_GEMM,
            TRIAD,
            launch_case(
                "launch.graph_node",
                1.02e-6,
                0.008,
                0.031,
                verdict=CaseVerdict.INCONCLUSIVE,
                reason="12 more launches would decide.",
                margin=replace(SAME_CHIP, relative=0.01),
            ),
            UNCHANGED[3],
            SUBMIT,
        ),
        CheckVerdict.REGRESSED,
        "1 of 7 gated cases is slower beyond its margin, confirmed by 6 fresh launches. "
        "4 unchanged, 1 improved, 1 inconclusive.",
        exit_code=1,
        environment=replace(ENVIRONMENT, cuda_toolkit_version="13.1", commit="1a2b3c4d5e6f", dirty=True),
        environment_differences=(Difference(field="cuda_toolkit_version", baseline="13.0", candidate="13.1"),),
        next_step="Look at the change that moved CUDA to 13.1. To accept the slowdown, label this pull request "
        "perfgate-accepted, or add an accept entry to the policy.",
    )


def accepted() -> Report:
    return make_report(
        (*UNCHANGED, replace(REGRESSED_GEMM, accepted="up to 5 %: FP32 accumulation is worth it")),
        CheckVerdict.REGRESSED,
        "1 of 5 cases is slower beyond its margin, and this is accepted.",
        policy=Policy(
            margins={"gemm.*": 0.01},
            accept=(
                Acceptance(
                    case="gemm.*",
                    limit=0.05,
                    reason="FP32 accumulation is worth it",
                    link="docs/decisions/7.md",
                    expires="2027-01-31",
                ),
            ),
        ),
    )


def suspected() -> Report:
    return make_report(
        (
            *UNCHANGED,
            gemm_case(
                0.014,
                verdict=CaseVerdict.SUSPECTED,
                relevant=True,
                confirmed=False,
                first_change=Estimate(value=0.019, low=0.006, high=0.032, confidence=0.95),
                causes=(Cause(code="clock-lower", message="the SM clock was 1.2 % lower", who="runner-owner"),),
            ),
        ),
        CheckVerdict.SUSPECTED,
        "1 of 5 cases looks slower beyond its margin, but the launches do not prove it.",
        exit_code=8,
        next_step="Run the check again with more launches: perfgate check --launches 12.",
    )


def invalid() -> Report:
    throttled = Caveat(
        code="throttled",
        message="The GPU was throttled for thermal reasons in 5 of 6 launches.",
        remedy="Check the cooling of this machine, then measure again.",
    )
    return make_report(
        (
            *UNCHANGED[:2],
            bandwidth_case(
                "bandwidth.copy[bytes=4GiB]",
                2.41e-3,
                0.185,
                verdict=CaseVerdict.INVALID,
                reason="no launch had enough valid blocks",
                caveats=(throttled,),
            ),
        ),
        CheckVerdict.INVALID,
        "1 of 3 cases could not be measured: its times mean nothing.",
        exit_code=8,
        caveats=(throttled,),
        causes=(Cause(code="foreign-process", message="another process used this GPU", who="runner-owner"),),
        temperature_c=88.0,
        next_step="Measure again on an idle, cool GPU.",
    )


def not_comparable() -> Report:
    reason = "the baseline is of another board"
    return make_report(
        tuple(
            replace(
                case,
                verdict=CaseVerdict.NOT_COMPARABLE,
                baseline=None,
                baseline_s=None,
                change=None,
                margin=None,
                reason=reason,
            )
            for case in UNCHANGED[:2]
        ),
        CheckVerdict.NOT_COMPARABLE,
        "This runner's NVIDIA H200 is board 692-2G520-0282-001; the baseline is of board 692-2G520-0282-000. "
        "They differ by up to 10 % on random access, so no verdict is given.",
        exit_code=4,
        gpu=replace(H200, board_part_number="692-2G520-0282-001", chip="77aa01bc"),
        identity_differences=(
            Difference(field="board_part_number", baseline="692-2G520-0282-000", candidate="692-2G520-0282-001"),
        ),
        baseline=replace(BASELINE, sessions_of_chip=0),
        next_step='Record one on this runner: perfgate baseline update --reason "..."',
    )


def no_baseline() -> Report:
    return make_report(
        tuple(
            replace(case, verdict=CaseVerdict.NEW, baseline=None, baseline_s=None, change=None, margin=None)
            for case in (*UNCHANGED, gemm_case())
        ),
        CheckVerdict.NO_BASELINE,
        "There is no baseline yet: nothing was compared.",
        exit_code=4,
        baseline=None,
        next_step='Record one: perfgate baseline update --reason "..."',
    )


def recorded_and_injected() -> Report:
    return replace(
        regressed(),
        device_kind="recorded",
        injected=(
            Injection(pattern="gemm.*", requested="+3%", effective={"gemm.bf16[n=4096]": 0.0312}),
            Injection(pattern="launch.gap", requested="hang"),
        ),
    )


HOSTILE = (
    "x|y`z\n# <img src=x onerror=alert(1)> @octocat #1 [l](http://evil.example) www.evil.example \x1b[31m \u202e *b*"
)


def hostile() -> Report:
    cause = Cause(code=HOSTILE, message=f"cause {HOSTILE}", who=f"who {HOSTILE}")
    caveat = Caveat(code=HOSTILE, message=f"caveat {HOSTILE}", remedy=f"remedy {HOSTILE}")
    return make_report(
        (
            gemm_case(
                0.034,
                verdict=CaseVerdict.REGRESSED,
                id=HOSTILE,
                family=HOSTILE,
                causes=(cause,),
                caveats=(caveat,),
                reason=f"reason {HOSTILE}",
            ),
            bandwidth_case("=cmd|'/c calc'!A1", 1e-3, 0.0),
            bandwidth_case("  | --- | ```mermaid </details>", 1e-3, 0.0),
        ),
        CheckVerdict.REGRESSED,
        f"summary {HOSTILE}",
        exit_code=1,
        gpu=replace(H200, name=f"GPU {HOSTILE}", board_part_number=HOSTILE, chip=HOSTILE),
        environment=replace(ENVIRONMENT, driver_version=HOSTILE, cuda_toolkit_version=HOSTILE, commit=HOSTILE),
        environment_differences=(Difference(field=HOSTILE, baseline=HOSTILE, candidate=HOSTILE),),
        identity_differences=(Difference(field=HOSTILE, baseline=HOSTILE, candidate=HOSTILE),),
        baseline=replace(BASELINE, source=HOSTILE),
        injected=(Injection(pattern=HOSTILE, requested=HOSTILE),),
        causes=(cause,),
        caveats=(caveat,),
        next_step=f"next {HOSTILE}",
        perfgate_version=HOSTILE,
        policy=Policy(accept=(Acceptance(case=HOSTILE, limit=0.1, reason=HOSTILE, link=HOSTILE, expires=HOSTILE),)),
    )


def hundred_cases() -> Report:
    many = tuple(
        bandwidth_case(
            f"bandwidth.copy[bytes={2 ** (index % 16)}MiB,stride={index}]", 2e-3 + index * 1e-6, 1e-5 * index
        )
        for index in range(97)
    )
    return make_report(
        (
            *many,
            REGRESSED_GEMM,
            SUBMIT,
            replace(
                UNCHANGED[3],
                verdict=CaseVerdict.MISSING,
                candidate=None,
                candidate_s=None,
                change=None,
                reason="not in the run",
            ),
        ),
        CheckVerdict.REGRESSED,
        "1 of 99 gated cases is slower beyond its margin, 1 is missing. 97 unchanged.",
        exit_code=1,
        next_step="Look at the change that moved CUDA to 13.1.",
    )


REPORTS = {
    "passed": passed,
    "regressed": regressed,
    "accepted": accepted,
    "suspected": suspected,
    "invalid": invalid,
    "not-comparable": not_comparable,
    "no-baseline": no_baseline,
    "recorded-injected": recorded_and_injected,
    "hostile-names": hostile,
    "hundred-cases": hundred_cases,
}
