"""Peaks: declared work by the header's formulas, whole numbers that count every round, checks that see one missing."""

from dataclasses import replace

import numpy as np
import pytest

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.suite.peak import CHAINS, STEPS, THREADS, peak_cases, starts
from perfgate.suite.tensor_peak import bf16_words, operands
from tests.factories import H200
from tests.unit.suite.builders import SMALL
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox

FEW = replace(SMALL, sm_count=2)
HOPPER = replace(FEW, compute_capability="9.0")


def case_named(gpu: Gpu, name: str) -> Case:
    return next(one for one in peak_cases(gpu) if isinstance(one, Case) and one.id == f"peak.{name}")


def stored(bind: Bind, ends: np.ndarray) -> None:
    """Chains lie behind each other, each with all threads."""
    bind.args[0].view(ends.dtype)[:] = ends.reshape(-1, CHAINS).T.ravel()


def assert_counted(bind: Bind, number: type, start: np.ndarray) -> None:
    """The first and the last round in the arithmetic of the type: each adds 1, or it does not hold the numbers."""
    factor, usual, last = (number(one) for one in bind.args[1:4])
    for done in (0, int(bind.args[-1]) - 1):
        begun = (start.astype(np.float64) + done).astype(number)
        x = begun
        for step in range(STEPS):
            x = x * factor + (last if step == STEPS - 1 else usual)
        assert (x.astype(np.float64) == start.astype(np.float64) + done + 1).all()


def fma(number: type, bits: int):
    def run(bind: Bind) -> None:
        count = bind.grid[0] * THREADS * CHAINS
        some = np.concatenate([starts(count, bits)[:64], np.array([0, 2**bits - 1], dtype=np.uint32)])
        assert_counted(bind, number, some)
        stored(bind, (starts(count, bits).astype(np.float64) + int(bind.args[-1])).astype(number))

    return run


def fma_pairs(bind: Bind) -> None:
    count = bind.grid[0] * THREADS * CHAINS
    rounds = int(bind.args[-1])
    halves = [np.array([one], dtype=np.uint32).view(np.float16)[0] for one in bind.args[1:4]]
    plain = replace(bind, args=(bind.args[0], *halves, bind.args[-1]))
    assert_counted(plain, np.float16, np.arange(1024))
    start = starts(count, 20)
    pairs = np.stack([start & np.uint32(1023), start >> np.uint32(10)], axis=-1) + rounds
    stored(bind, np.ascontiguousarray(pairs.astype(np.float16)).view(np.uint32).ravel())


def exponential(bind: Bind) -> None:
    x = (starts(bind.grid[0] * THREADS * CHAINS, 22) * 2.0**-22).astype(np.float32)
    for _ in range(64):
        x = np.exp2(-x)
    stored(bind, x)


def tensor(bind: Bind) -> None:
    a, b, out, rounds = bind.args
    groups = bind.grid[0] * (2 if "wgmma" in bind.function else bind.block[0] // 32)
    rows, columns, repeats = (64, 256, 4) if "wgmma" in bind.function else (16, 64, 1)
    left, right = ((one.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(4, -1, 16) for one in (a, b))
    product = np.zeros((rows, columns), dtype=np.float32)
    for slice_left, slice_right in zip(left[:-1], right[:-1], strict=True):
        step = slice_left @ slice_right.T
        assert np.abs(step).max() + int(rounds) * repeats * 144 < 2**24, "FP32 does not hold these sums"
        product += step - step
    product += int(rounds) * repeats * (left[-1] @ right[-1].T)
    out.view(np.float32).reshape(groups, rows, columns)[:] = product


def emulating(gpu: Gpu) -> FakeToolbox:
    toolbox = FakeToolbox(gpu=gpu)
    toolbox.kernels = {
        "peak_fma_fp32": fma(np.float32, 22),
        "peak_fma_fp64": fma(np.float64, 32),
        "peak_fma_fp16x2": fma_pairs,
        "peak_ex2": exponential,
        "peak_mma_bf16": tensor,
        "peak_wgmma_bf16": tensor,
    }
    return toolbox


every_peak = pytest.mark.parametrize(
    ("gpu", "name"),
    [
        (FEW, "fma_fp32"),
        (FEW, "fma_fp64"),
        (FEW, "fma_fp16x2"),
        (FEW, "exponential"),
        (FEW, "tensor_bf16"),
        (HOPPER, "tensor_bf16"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.compute_capability,
)


@every_peak
def test_verify__passes_the_exact_ends_and_sees_what_is_unwritten(gpu: Gpu, name: str) -> None:
    workload = case_named(gpu, name).prepare(emulating(gpu))
    workload.poison()
    assert not workload.verify().passed
    workload.executions[0]()
    right = workload.verify()
    assert right.passed, right.detail


@every_peak
def test_verify__sees_one_wrong_number(gpu: Gpu, name: str) -> None:
    toolbox = emulating(gpu)
    workload = case_named(gpu, name).prepare(toolbox)
    workload.executions[0]()
    timed = next(one for one in toolbox.binds if one.source == "peak.cu")
    out = max((one for one in timed.args if hasattr(one, "size_bytes")), key=lambda one: one.size_bytes)
    out.view(np.uint32)[12345] ^= np.uint32(1 << 16)
    wrong = workload.verify()
    assert not wrong.passed
    assert "1 wrong" in wrong.detail


def test_work__follows_the_header_of_the_kernel() -> None:
    sm_count = H200.sm_count or 0
    threads, per_sm = sm_count * THREADS, {"fma_fp32": 500, "fma_fp64": 250, "fma_fp16x2": 500, "exponential": 64}
    for name, rounds in per_sm.items():
        kernel = "ex2" if name == "exponential" else name
        formula = header_formula("peak.cu", "FLOP", kernel)
        expected = evaluated(formula, t=threads, c=CHAINS, s=STEPS * rounds)
        assert case_named(H200, name).work.work_flop == expected
    formula = header_formula("peak.cu", "FLOP", "wgmma_bf16")
    assert case_named(H200, "tensor_bf16").work.work_flop == evaluated(formula, g=2 * sm_count, p=512 * 4 * 7)
    formula = header_formula("peak.cu", "FLOP", "mma_bf16")
    ampere = replace(H200, compute_capability="8.0")
    assert case_named(ampere, "tensor_bf16").work.work_flop == evaluated(formula, w=8 * sm_count, p=4096 * 8 * 7)


def test_peaks__are_judged_in_cycles() -> None:
    assert all(one.unit is Unit.CYCLES for one in peak_cases(H200) if isinstance(one, Case))


@pytest.mark.parametrize(
    ("capability", "pipe"),
    [("8.0", "bf16-tensor"), ("9.0", "bf16-tensor"), ("10.0", "bf16-tensor-legacy"), ("12.0", "bf16-tensor")],
)
def test_tensor_peak__is_no_roof_where_mma_sync_is_the_slower_way(capability: str, pipe: str) -> None:
    assert case_named(replace(FEW, compute_capability=capability), "tensor_bf16").work.pipe == pipe


@pytest.mark.parametrize(
    ("gpu", "reasons"),
    [
        (
            replace(H200, compute_capability="7.5"),
            {"peak.tensor_bf16": "BF16 on tensor cores needs compute capability 8.0"},
        ),
        (
            Gpu(name="?"),
            dict.fromkeys(
                (f"peak.{one}" for one in ("fma_fp32", "fma_fp64", "fma_fp16x2", "exponential", "tensor_bf16")),
                "the GPU does not tell how many SMs it has",
            ),
        ),
    ],
)
def test_peaks__that_a_gpu_cannot_run_are_absent_with_a_reason(gpu: Gpu, reasons: dict[str, str]) -> None:
    assert {one.id: one.reason for one in peak_cases(gpu) if isinstance(one, AbsentCase)} == reasons


def test_operands__are_whole_numbers_that_bf16_holds() -> None:
    left, right = operands(64, 256)
    assert left.shape == (4, 64, 16)
    assert right.shape == (4, 256, 16)
    for one in (left, right):
        assert np.array_equal((bf16_words(one).astype(np.uint32) << 16).view(np.float32), one)
        assert np.abs(one[-1]).max() == 3
        assert np.abs(one[:-1]).max() == 127
