"""Roofs of a run and the place of a case under them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.case import MemoryLevel, Timing, Work
from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import gpu_sheet
from perfgate.core.peaks import legacy_pipe
from perfgate.core.policy import Policy
from perfgate.core.report import Bound, CaseResult, Report
from perfgate.core.roofline import attainable_per_s, positioned, roofline_position
from perfgate.core.roofs import (
    Roof,
    RoofKind,
    Roofs,
    measured_roofs,
    paper_roofs,
    ridge_flop_per_byte,
    sheet_roofs,
    sustained_roofs,
)
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.storage.gpu_table import read_gpu_table
from tests.factories import ENVIRONMENT, H200, make_case_info, make_run

TABLE = read_gpu_table()
COPY = Work(read_bytes=2**32, write_bytes=2**32, footprint_bytes=2**33)
READ = Work(read_bytes=2**32, footprint_bytes=2**32)
TRIAD = Work(
    work_flop=2 * 2**28, read_bytes=2**31, write_bytes=2**30, footprint_bytes=3 * 2**30, dtype="fp32", pipe="fp32"
)
SGEMM = Work(work_flop=2 * 4096**3, read_bytes=2 * 4 * 4096**2, write_bytes=4 * 4096**2, dtype="fp32", pipe="fp32")
BGEMM = Work(
    work_flop=2 * 4096**3, read_bytes=2 * 2 * 4096**2, write_bytes=2 * 4096**2, dtype="bf16", pipe="bf16-tensor"
)
WORKS = {
    "bandwidth.copy[bytes=4GiB]": (COPY, 2 * 2**32 / 4.22e12),
    "bandwidth.read[bytes=4GiB]": (READ, 2**32 / 4.53e12),
    "bandwidth.triad[bytes=1GiB]": (TRIAD, 3 * 2**30 / 4.38e12),
    "gemm.fp32[n=4096]": (SGEMM, 2 * 4096**3 / 48.3e12),
    "gemm.bf16[n=4096]": (BGEMM, 2 * 4096**3 / 735e12),
}


def h200_run(works: dict[str, tuple[Work, float]] = WORKS, gpu: Gpu = H200) -> Run:
    infos = {case_id: make_case_info(case_id.split(".")[0], work=work) for case_id, (work, _) in works.items()}
    infos["launch.gap"] = make_case_info("launch", work=Work(), timing=Timing.GAP)
    medians = {case_id: (time_s,) * 3 for case_id, (_, time_s) in works.items()} | {"launch.gap": (1.31e-6,) * 3}
    return make_run(medians, infos=infos, gpu=gpu)


ROOFS = measured_roofs(h200_run(), TABLE)


def test_measured_roofs__name_the_case_that_won() -> None:
    dram = ROOFS.memory_roof(MemoryLevel.DRAM)
    assert dram.measured_per_s == pytest.approx(4.53e12)
    assert dram.measured_case == "bandwidth.read[bytes=4GiB]"
    assert dram.theoretical_per_s == pytest.approx(4814.304e9)
    assert dram.datasheet_per_s == 4.8e12
    assert ROOFS.compute_roof("fp32").measured_case == "gemm.fp32[n=4096]"
    assert ROOFS.compute_roof("bf16-tensor").measured_per_s == pytest.approx(735e12)
    assert ROOFS.compute_roof("fp64").measured_per_s is None
    assert ROOFS.launch_s == pytest.approx(1.31e-6)


def test_measured_roofs__a_streaming_case_is_no_compute_roof() -> None:
    run = h200_run({"bandwidth.triad[bytes=1GiB]": (TRIAD, 3 * 2**30 / 4.38e12)})
    assert measured_roofs(run, TABLE).compute_roof("fp32").measured_per_s is None


def test_measured_roofs__a_gemm_is_no_memory_roof() -> None:
    run = h200_run({"gemm.bf16[n=4096]": (BGEMM, 2 * 4096**3 / 735e12)})
    assert measured_roofs(run, TABLE).memory_roof(MemoryLevel.DRAM).measured_per_s is None


def test_measured_roofs__a_cached_footprint_is_no_dram_roof() -> None:
    small = Work(read_bytes=2**26, write_bytes=2**26, footprint_bytes=2**27)
    run = h200_run({"bandwidth.copy[bytes=64MiB]": (small, 2**27 / 4.7e12)})
    assert measured_roofs(run, TABLE).memory_roof(MemoryLevel.DRAM).measured_per_s is None


def test_measured_roofs__a_rate_beyond_physics_is_no_roof() -> None:
    run = h200_run(WORKS | {"bandwidth.lie": (READ, 2**32 / 9e12), "gemm.lie": (BGEMM, 2 * 4096**3 / 5e15)})
    roofs = measured_roofs(run, TABLE)
    assert roofs.memory_roof(MemoryLevel.DRAM).measured_case == "bandwidth.read[bytes=4GiB]"
    assert roofs.compute_roof("bf16-tensor").measured_case == "gemm.bf16[n=4096]"


@pytest.mark.parametrize(
    ("gpu", "moved_bytes", "footprint_bytes", "time_s"),
    [
        # A fill of 16 MiB that a cache took: 2.05 TB/s are 114 % of 1.792 (NVIDIA/nvbench#270).
        (Gpu(name="x", memory_clock_hz=14.001e9, memory_bus_bits=512), 2**24, 2**33, 8.182e-6),
        # Arrays of 8 MiB on a part with 32 MiB of L2: 697 of 288 GB/s (RRZE-HPC/gpu-benches#6).
        (Gpu(name="x", memory_clock_hz=9.001e9, memory_bus_bits=128, l2_bytes=2**25), 2**24, 2**24, 2**24 / 697e9),
        # A pattern that compresses: 505.84 of 136.53 GB/s (krrishnarraj/clpeak#159).
        (Gpu(name="x", memory_clock_hz=4.2666e9, memory_bus_bits=128), 2**30, 2**33, 2**30 / 505.84e9),
    ],
)
def test_measured_roofs__of_public_reports_that_beat_their_memory_are_no_roofs(
    gpu: Gpu, moved_bytes: int, footprint_bytes: int, time_s: float
) -> None:
    work = Work(write_bytes=moved_bytes, footprint_bytes=footprint_bytes)
    dram = measured_roofs(h200_run({"user.fill": (work, time_s)}, gpu), TABLE).memory_roof(MemoryLevel.DRAM)
    assert dram.theoretical_per_s is not None
    assert dram.measured_per_s is None


def test_measured_roofs__of_l2_shared_and_links_come_from_their_cases() -> None:
    works = {
        "bandwidth.l2": (Work(read_bytes=2**24, footprint_bytes=2**24, memory_level=MemoryLevel.L2), 2**24 / 9.9e12),
        "transfer.h2d": (Work(read_bytes=2**30, memory_level=MemoryLevel.PCIE), 2**30 / 55.4e9),
        "transfer.peer": (Work(read_bytes=2**30, memory_level=MemoryLevel.PEER), 2**30 / 396e9),
        "bandwidth.shared": (Work(read_bytes=2**40, memory_level=MemoryLevel.SHARED), 2**40 / 30e12),
    }
    roofs = measured_roofs(h200_run(works), TABLE)
    assert roofs.memory_roof(MemoryLevel.L2).measured_per_s == pytest.approx(9.9e12)
    assert roofs.memory_roof(MemoryLevel.PCIE).measured_per_s == pytest.approx(55.4e9)
    assert roofs.memory_roof(MemoryLevel.PEER).datasheet_per_s == 450e9
    assert roofs.memory_roof(MemoryLevel.SHARED).theoretical_per_s == pytest.approx(33.45e12, rel=1e-3)


def test_measured_roofs__of_an_unknown_gpu_have_measurements_only() -> None:
    gpu = Gpu(name="NVIDIA Z999")
    fma = Work(work_flop=10**12, dtype="fp32", pipe="fp32")
    low = Work(work_flop=10**12, read_bytes=10**11, dtype="fp16", pipe="fp16")
    roofs = measured_roofs(h200_run(WORKS | {"peak.fma": (fma, 0.02), "user.low": (low, 0.1)}, gpu), TABLE)
    assert roofs.compute_roof("fp32").measured_per_s == pytest.approx(50e12)
    assert roofs.compute_roof("fp32").reference_kind is None
    assert roofs.compute_roof("fp16") is None
    assert roofs.memory_roof(MemoryLevel.DRAM).best_kind is RoofKind.MEASURED


def test_measured_roofs__take_the_rate_of_exponentials_from_a_run_and_draw_no_roof_of_it() -> None:
    paper = ROOFS.exponentials_per_s
    assert paper == pytest.approx(16 * 132 * 1.98e9)
    work = Work(work_flop=4 * 10**9, dtype="fp32", pipe="exponential")
    roofs = measured_roofs(h200_run({"peak.exponential": (work, 1e-3)}), TABLE)
    assert roofs.exponentials_per_s == pytest.approx(4e12)
    assert roofs.compute_roof("exponential") is None
    beyond_physics = measured_roofs(h200_run({"peak.exponential": (work, 1e-4)}), TABLE)
    assert beyond_physics.exponentials_per_s == paper


def test_sustained_roofs__are_of_products_and_of_peaks_only_where_there_are_none() -> None:
    peak, lonely = (Work(work_flop=10**12, dtype="fp32", pipe=pipe) for pipe in ("fp32", "fp64"))
    run = h200_run(WORKS | {"peak.fma_fp32": (peak, 10**12 / 65e12), "peak.fma_fp64": (lonely, 10**12 / 33e12)})
    roofs, sustained = measured_roofs(run, TABLE), sustained_roofs(run, TABLE)
    assert roofs.compute_roof("fp32").measured_case == "peak.fma_fp32"
    assert sustained.compute_roof("fp32").measured_case == "gemm.fp32[n=4096]"
    assert sustained.compute_roof("fp64") == roofs.compute_roof("fp64")
    assert sustained.memory == roofs.memory
    assert [roof.key for roof in sustained.compute] == [roof.key for roof in roofs.compute]


def test_measured_roofs__of_an_integer_pipe_count_operations() -> None:
    igemm = Work(work_flop=2 * 4096**3, read_bytes=2 * 4096**2, write_bytes=4 * 4096**2, dtype="int8", pipe="int8-x")
    roofs = measured_roofs(h200_run({"gemm.int8": (igemm, 1e-4)}), TABLE)
    assert roofs.compute_roof("int8-x").unit == "OP"
    assert roofs.compute_roof("int8-tensor").unit == "OP"


def test_measured_roofs__the_slower_way_to_tensor_cores_forms_none() -> None:
    slower = replace(BGEMM, pipe=legacy_pipe("bf16-tensor"))
    roofs = measured_roofs(h200_run({"gemm.bf16[n=4096]": (slower, 2 * 4096**3 / 400e12)}), TABLE)
    assert roofs.compute_roof("bf16-tensor").measured_per_s is None
    assert roofs.compute_roof(slower.pipe) is None
    position = roofline_position(slower, 2 * 4096**3 / 400e12, roofs)
    assert (position.bound, position.rate_flop_per_s) == (None, pytest.approx(400e12))


def test_measured_roofs__a_case_that_names_a_pipe_without_flop_is_no_compute_roof() -> None:
    idle = Work(dtype="fp32", pipe="fp32")
    roofs = measured_roofs(h200_run({"user.idle": (idle, 1e-3)}), TABLE)
    assert roofs.compute_roof("fp32").measured_per_s is None


def test_roof__reference_is_pins_for_memory_and_the_datasheet_for_compute() -> None:
    assert ROOFS.memory_roof(MemoryLevel.DRAM).reference_kind is RoofKind.THEORETICAL
    assert ROOFS.compute_roof("bf16-tensor").reference_kind is RoofKind.DATASHEET
    assert ROOFS.compute_roof("bf16-tensor").reference_per_s == 989.4e12
    empty = Roof(key="dram", label="DRAM", unit="B")
    assert (empty.best_kind, empty.best_per_s, empty.reference_per_s) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "pipe", "ridge"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16-tensor", 295),
        ("NVIDIA H200", "bf16-tensor", 206),
        ("NVIDIA A100-SXM4-80GB", "bf16-tensor", 153),
        ("NVIDIA A100-SXM4-40GB", "bf16-tensor", 201),
        ("NVIDIA A800 80GB PCIe", "bf16-tensor", 161),
        ("NVIDIA H800", "bf16-tensor", 295),
        ("NVIDIA H800 PCIe", "bf16-tensor", 371),
        ("NVIDIA H100 NVL", "bf16-tensor", 212),
        ("NVIDIA GB200", "bf16-tensor", 312),
        ("NVIDIA A100-SXM4-40GB", "fp32", 12.5),
        ("NVIDIA A100-SXM4-80GB", "fp32", 9.6),
        ("NVIDIA GeForce RTX 3060", "fp32", 35.3),
    ],
)
def test_ridge__of_the_documents_by_datasheet(name: str, pipe: str, ridge: float) -> None:
    roofs = sheet_roofs(gpu_sheet(TABLE, name), TABLE)
    found = ridge_flop_per_byte(
        roofs.compute_roof(pipe).datasheet_per_s, roofs.memory_roof(MemoryLevel.DRAM).datasheet_per_s
    )
    assert found == pytest.approx(ridge, rel=0.005)


def test_ridge__of_the_laptop_3060_depends_on_its_clock() -> None:
    for clock_hz, ridge in ((1.425e9, 32.6), (1.702e9, 38.9)):
        gpu = Gpu(
            name="NVIDIA GeForce RTX 3060 Laptop GPU",
            compute_capability="8.6",
            sm_count=30,
            sm_clock_max_hz=clock_hz,
            memory_clock_hz=7.001e9,
            memory_bus_bits=192,
        )
        roofs = paper_roofs(gpu, TABLE)
        found = ridge_flop_per_byte(
            roofs.compute_roof("fp32").best_per_s, roofs.memory_roof(MemoryLevel.DRAM).best_per_s
        )
        assert found == pytest.approx(ridge, rel=0.002)


def test_ridge__of_unknown_roofs_is_none() -> None:
    assert ridge_flop_per_byte(None, 1.0) is None
    assert ridge_flop_per_byte(1.0, None) is None


def test_intensity_20__is_compute_bound_on_a100_and_memory_bound_on_3060() -> None:
    a100 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA A100-SXM4-40GB"), TABLE)
    rtx3060 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA GeForce RTX 3060"), TABLE)
    work = Work(work_flop=20 * 10**10, read_bytes=10**10, dtype="fp32", pipe="fp32")
    assert roofline_position(work, 0.02, a100).bound is Bound.COMPUTE
    assert roofline_position(work, 0.04, rtx3060).bound is Bound.MEMORY
    # Moving it to tensor cores raises the ridge to 201 and makes it memory-bound on the A100 too.
    tensor = Work(work_flop=20 * 10**10, read_bytes=10**10, dtype="bf16", pipe="bf16-tensor")
    assert roofline_position(tensor, 0.02, a100).bound is Bound.MEMORY


def test_attainable__is_the_lower_roof() -> None:
    assert attainable_per_s(20, 19.5e12, 1.555e12) == 19.5e12
    assert attainable_per_s(20, 12.7e12, 0.36e12) == pytest.approx(7.2e12)


def test_roofline_position__of_a_gemm_2048_in_one_millisecond() -> None:
    work = Work(work_flop=2 * 2048**3, read_bytes=2 * 4 * 2048**2, write_bytes=4 * 2048**2, dtype="fp32", pipe="fp32")
    position = roofline_position(work, 1e-3, ROOFS)
    assert work.moved_bytes == 50_331_648
    assert position.bandwidth_bytes_per_s == pytest.approx(50.331648e9)
    assert position.rate_flop_per_s == pytest.approx(17.179869e12, rel=1e-6)
    assert position.intensity_flop_per_byte == pytest.approx(341.33, abs=0.01)
    assert position.bound is Bound.COMPUTE
    assert position.roof == "FP32"


def test_roofline_position__of_a_copy() -> None:
    position = roofline_position(COPY, 2 * 2**32 / 4.22e12, ROOFS)
    assert position.bound is Bound.MEMORY
    assert position.roof == "DRAM"
    assert position.of_measured == pytest.approx(4.22 / 4.53)
    assert position.of_theoretical == pytest.approx(4.22 / 4.814304)
    assert position.rate_flop_per_s is None
    assert position.intensity_flop_per_byte is None


def test_roofline_position__of_a_tensor_gemm_is_of_the_datasheet() -> None:
    position = roofline_position(BGEMM, 2 * 4096**3 / 705e12, ROOFS)
    assert position.roof == "BF16 tensor"
    assert position.intensity_flop_per_byte == pytest.approx(1365.3, abs=0.1)
    assert position.of_measured == pytest.approx(705 / 735)
    assert position.of_theoretical == pytest.approx(705 / 989.4)


@pytest.mark.parametrize("timing", [timing for timing in Timing if timing is not Timing.EVENTS])
def test_roofline_position__of_launch_times_is_latency(timing: Timing) -> None:
    position = roofline_position(Work(), 1.31e-6, ROOFS, timing)
    assert position.bound is Bound.LATENCY
    assert position.roof is None


def test_roofline_position__of_a_tiny_kernel_is_latency() -> None:
    tiny = Work(read_bytes=65536, write_bytes=65536)
    assert roofline_position(tiny, 2.5e-6, ROOFS).bound is Bound.LATENCY


def test_roofline_position__of_serial_steps_is_latency_and_of_a_gather_memory() -> None:
    chase = Work(read_bytes=4 * 10**6)
    assert roofline_position(chase, 0.35, ROOFS).bound is Bound.LATENCY
    gather = Work(read_bytes=2 * 2**28 * 4, write_bytes=2**28 * 4)
    assert roofline_position(gather, 0.006, ROOFS).bound is Bound.MEMORY


def test_roofline_position__without_a_roof_that_it_needs_has_no_bound() -> None:
    odd = Work(work_flop=10**12, read_bytes=10**6, dtype="fp6", pipe="fp6-tensor")
    position = roofline_position(odd, 1e-3, ROOFS)
    assert (position.bound, position.roof, position.of_measured) == (None, None, None)
    assert position.rate_flop_per_s == pytest.approx(1e15)
    paper = sheet_roofs(gpu_sheet(TABLE, "NVIDIA H200"), TABLE)
    assert roofline_position(COPY, 2e-3, paper).of_measured is None
    assert roofline_position(COPY, 2e-3, Roofs(gpu_name="x")).bound is None


@pytest.mark.parametrize("time_s", [0.0, -1.0, math.nan, math.inf])
def test_roofline_position__refuses_times_that_are_none(time_s: float) -> None:
    with pytest.raises(ValueError, match="finite and positive"):
        roofline_position(COPY, time_s, ROOFS)


@given(
    flop=st.integers(0, 10**16),
    moved=st.integers(0, 10**12),
    time_s=st.floats(1e-6, 10),
)
def test_roofline_position__the_named_roof_is_the_one_it_comes_closest_to(flop: int, moved: int, time_s: float) -> None:
    work = Work(work_flop=flop, read_bytes=moved, dtype="fp32", pipe="fp32")
    position = roofline_position(work, time_s, ROOFS)
    memory = moved / time_s / ROOFS.memory_roof(MemoryLevel.DRAM).best_per_s
    compute = flop / time_s / ROOFS.compute_roof("fp32").best_per_s
    if position.bound in (Bound.MEMORY, Bound.COMPUTE):
        assert position.of_measured == pytest.approx(max(memory, compute))


def test_positioned__fills_measured_cases_and_leaves_the_rest() -> None:
    cases = (
        CaseResult(
            id="gemm.fp32[n=4096]",
            family="gemm",
            verdict=CaseVerdict.UNCHANGED,
            work=SGEMM,
            candidate_s=2 * 4096**3 / 48.3e12,
        ),
        CaseResult(id="gone.case", family="gone", verdict=CaseVerdict.MISSING, work=COPY),
        CaseResult(id="user.case", family="user", verdict=CaseVerdict.INVALID),
    )
    report = Report(
        created_utc="2026-11-30T12:00:00Z",
        perfgate_version="0.1.0",
        verdict=CheckVerdict.PASSED,
        exit_code=0,
        summary="",
        gpu=H200,
        environment=ENVIRONMENT,
        device_kind="cuda",
        policy=Policy(),
        cases=cases,
    )
    placed = positioned(report, h200_run(), TABLE)
    assert placed.cases[0].roofline.of_measured == pytest.approx(1.0)
    assert placed.cases[1].roofline is None
    assert placed.cases[2].roofline is None
    assert placed.roofs == ROOFS
