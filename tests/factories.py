"""Builders of domain objects for tests: everything has a sensible default, a test names what matters to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np

from perfgate.core.baseline import Baseline, BaselineSession, Provenance, SessionCase
from perfgate.core.case import MemoryLevel, Timing, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan
from perfgate.core.run import Block, CaseInfo, CaseLaunch, Launch, Run

H200 = Gpu(
    name="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    memory_bytes=150_109_880_320,
    memory_bus_bits=6016,
    memory_clock_hz=3.201e9,
    sm_clock_max_hz=1.98e9,
    l2_bytes=62_914_560,
    ecc_enabled=True,
    integrated=False,
    power_limit_w=700.0,
    pci_device_id="0x233510de",
    pci_subsystem_id="0x18be10de",
    board_part_number="692-2G520-0282-000",
    chip="3f9c21aa",
)

ENVIRONMENT = Environment(
    driver_version="580.159.04",
    cuda_driver_version="13.0",
    cuda_toolkit_version="13.0",
    compiler="nvcc 13.0.88",
    pycuda_version="2026.1",
    python_version="3.12.3",
    os="Linux",
    cpu_model="Intel Xeon",
    clock_policy="default",
    nvml_tier=1,
    vbios_version="96.00.CF.00.01",
)

PLAN = CasePlan(executions_per_sample=4, samples_per_block=10, blocks=5)


def make_case_info(
    family: str = "bandwidth",
    *,
    work: Work | None = None,
    timing: Timing = Timing.EVENTS,
    unit: Unit = Unit.SECONDS,
    gated: bool = True,
    source_sha256: str | None = "a" * 64,
    code_sha256: str | None = "b" * 64,
    version: int = 1,
    plan: CasePlan | None = PLAN,
) -> CaseInfo:
    """A case of a run; by default a copy of 4 GiB."""
    default = Work(
        read_bytes=2**32, write_bytes=2**32, footprint_bytes=2**33, dtype="fp32", memory_level=MemoryLevel.DRAM
    )
    return CaseInfo(
        family=family,
        work=work or default,
        version=version,
        timing=timing,
        gated=gated,
        unit=unit,
        source_sha256=source_sha256,
        code_sha256=code_sha256,
        plan=plan,
    )


def make_case_launch(median_s: float, *, plan: CasePlan = PLAN, sm_clock_hz: float | None = 1.98e9) -> CaseLaunch:
    """A launch of one case whose statistic is exactly ``median_s``."""
    blocks = tuple(
        Block(
            sequence=index,
            started_s=0.1 * index,
            times_s=(median_s,) * plan.samples_per_block,
            executions_per_sample=plan.executions_per_sample,
            sm_clock_hz=sm_clock_hz,
        )
        for index in range(plan.blocks)
    )
    return CaseLaunch(blocks=blocks, output_verified=True, temperature_c=40.0, power_w=500.0)


def make_run(
    medians_s: Mapping[str, Sequence[float]],
    *,
    gpu: Gpu = H200,
    environment: Environment = ENVIRONMENT,
    infos: Mapping[str, CaseInfo] | None = None,
    created_utc: str = "2026-11-30T12:00:00Z",
    **changes: object,
) -> Run:
    """A run whose launch statistics are given by case."""
    infos = infos or {case_id: make_case_info(case_id.split(".", 1)[0]) for case_id in medians_s}
    count = max((len(values) for values in medians_s.values()), default=0)
    launches = tuple(
        Launch(
            index=index,
            started_utc=created_utc,
            cases={
                case_id: make_case_launch(values[index], plan=infos[case_id].plan or PLAN)
                for case_id, values in medians_s.items()
                if index < len(values)
            },
        )
        for index in range(count)
    )
    fields: dict[str, object] = {
        "created_utc": created_utc,
        "perfgate_version": "0.1.0",
        "device_kind": "cuda",
        "method": 1,
        "suite_name": "default",
        "suite_sha256": "c" * 64,
        "gpu": gpu,
        "environment": environment,
        "cases": infos,
        "launches": launches,
        "seed": 0,
    }
    return Run(**(fields | changes))  # type: ignore[arg-type]


def normal_medians(seed: int, count: int, *, median_s: float = 2e-3, spread: float = 5e-4) -> list[float]:
    """Launch statistics of a session with a relative spread between launches, log-normal, seeded."""
    generator = np.random.default_rng(seed)
    return [float(value) for value in median_s * np.exp(spread * generator.standard_normal(count))]


def make_session_case(median_s: float = 2.03412e-3, *, launches: int = 12, **changes: object) -> SessionCase:
    """What a baseline keeps of one case; the launches repeat ``median_s`` exactly."""
    fields: dict[str, object] = {
        "version": 1,
        "timing": Timing.EVENTS,
        "unit": Unit.SECONDS,
        "gated": True,
        "plan": PLAN,
        "work": make_case_info().work,
        "launch_medians_s": (median_s,) * launches,
        "source_sha256": "a" * 64,
        "code_sha256": "b" * 64,
    }
    return SessionCase(**(fields | changes))  # type: ignore[arg-type]


def make_session(
    medians_s: Mapping[str, float], *, recorded_utc: str = "2026-11-29T12:00:00Z", **changes: object
) -> BaselineSession:
    """An accepted session whose cases repeat the given medians exactly."""
    fields: dict[str, object] = {
        "chip": H200.chip,
        "method": 1,
        "power_limit_w": 700.0,
        "environment": ENVIRONMENT,
        "provenance": Provenance(
            recorded_utc=recorded_utc, reason="first session", device_kind="cuda", perfgate_version="0.1.0"
        ),
        "suite_name": "default",
        "suite_sha256": "c" * 64,
        "cases": {case_id: make_session_case(median_s) for case_id, median_s in medians_s.items()},
    }
    return BaselineSession(**(fields | changes))  # type: ignore[arg-type]


def make_baseline(*sessions: BaselineSession, gpu: Gpu = H200, **changes: object) -> Baseline:
    """A baseline of the given sessions, or of one with one case."""
    shared = replace(gpu, chip=None, power_limit_w=None)
    return Baseline(
        gpu=shared,
        sessions=sessions or (make_session({"bandwidth.copy[bytes=4GiB]": 2.03412e-3}),),
        **changes,  # type: ignore[arg-type]
    )


def make_trend_sessions(
    levels: Mapping[str, Sequence[float]],
    *,
    spread: float = 0.0,
    median_s: float = 2e-3,
    launches: int = 12,
    seed: int = 0,
    steps_source: Mapping[int, str] | None = None,
    **changes: object,
) -> list[BaselineSession]:
    """Sessions, one a day from 2026-01-01 on, whose cases have the given levels relative to ``median_s``.

    Args:
        spread: standard deviation of the launches, relative.
        steps_source: the source of the cases from a session on, by its index; else it never changes.
    """
    generator = np.random.default_rng(seed)
    first = datetime(2026, 1, 1, tzinfo=timezone.utc)
    sessions = []
    for index in range(max(map(len, levels.values()))):
        source = "a" * 64
        for start, name in (steps_source or {}).items():
            source = name if index >= start else source
        cases = {
            case_id: make_session_case(
                launch_medians_s=tuple(
                    (median_s * (1 + own[index]) * np.exp(spread * generator.standard_normal(launches))).tolist()
                ),
                source_sha256=source,
            )
            for case_id, own in levels.items()
            if index < len(own)
        }
        when = (first + timedelta(days=index)).strftime("%Y-%m-%dT%H:%M:%SZ")
        sessions.append(replace(make_session({}, recorded_utc=when, **changes), cases=cases))
    return sessions
