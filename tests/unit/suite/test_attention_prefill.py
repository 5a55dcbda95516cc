"""Prefill attention: which kernel where, declared work, and a check that sees what masks and tiles get wrong."""

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification
from perfgate.resources import resource_folder
from perfgate.suite.attention_check import HEAD_DIM, edge_positions, prefill_tolerance
from perfgate.suite.attention_prefill import (
    HEADS,
    POSITIONS,
    WGMMA,
    attention_prefill_cases,
    mma_kernel,
    prefill_kernel,
    prepared_prefill,
)
from tests.factories import H200
from tests.unit.suite.builders import table_gpu
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox, numbers, patterns, random_bits
from tests.unit.suite.host_toolbox import COMPILER, HostToolbox

HEADS_TRIED, POSITIONS_TRIED = 2, 300
KERNEL = mma_kernel(tile_queries=64, tile_keys=32, slots=2)

Attention = Callable[[np.ndarray, np.ndarray, np.ndarray, bool], np.ndarray]


def random_normal(seed: int, count: int) -> np.ndarray:
    """random_normal.cuh, for indices 0 to count - 1, as BF16 patterns."""
    sums = random_bits(seed, count).view(np.uint8).reshape(count, 8).sum(axis=1, dtype=np.int64)
    return patterns((sums - 1020).astype(np.float32) * np.float32(0.0047842), "bf16")


def weights(q: np.ndarray, k: np.ndarray, causal: bool) -> np.ndarray:
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD_DIM)
    if causal:
        scores[:, ~np.tri(scores.shape[1], dtype=bool)] = -np.inf
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    return weights(q, k, causal) @ v


def rounded(values: np.ndarray) -> np.ndarray:
    """To BF16 and back."""
    return (patterns(values.astype(np.float32), "bf16").astype(np.uint32) << np.uint32(16)).view(np.float32)


def _fill_normal(bind: Bind) -> None:
    buffer, count, seed = bind.args
    buffer.view(np.uint16)[: int(count)] = random_normal(int(seed), int(count))


def _attention_rows(bind: Bind) -> None:
    out, n, causal, positions, count, *seeds, results = bind.args
    shape = (-1, int(n), HEAD_DIM)
    size = out.size_bytes // 2
    q, k, v = (
        (random_normal(int(seed), size).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        for seed in seeds
    )
    q, k, v = (one.reshape(shape) for one in (q, k, v))
    found = weights(q, k, bool(causal))
    head, row = positions.view(np.uint32).reshape(int(count), 2).T
    rows = results.view(np.float64).reshape(int(count), HEAD_DIM, 3)
    rows[:, :, 0] = (found @ v)[head, row]
    rows[:, :, 1] = np.sqrt(found**2 @ v**2)[head, row]
    rows[:, :, 2] = numbers(out, "bf16").reshape(shape)[head, row]


def emulated(kernel: Attention) -> Callable[[Bind], None]:
    def run(bind: Bind) -> None:
        *operands, out, n = bind.args
        q, k, v = (numbers(one, "bf16").astype(np.float64).reshape(-1, int(n), HEAD_DIM) for one in operands)
        made = kernel(q, k, v, bool(bind.defines["CAUSAL"]))
        out.view(np.uint16)[:] = patterns(made.astype(np.float32).reshape(-1), "bf16")

    return run


def verified(kernel: Attention, causal: bool = True) -> Verification:
    """The verdict on O as ``kernel`` makes it of Q, K and V."""
    emulations = {
        "attention_prefill": emulated(kernel),
        "fill_normal_bf16": _fill_normal,
        "attention_rows": _attention_rows,
    }
    toolbox = FakeToolbox(gpu=Gpu(name="small"), kernels=emulations)
    workload = prepared_prefill(KERNEL, HEADS_TRIED, POSITIONS_TRIED, causal, 1, toolbox)
    workload.poison()
    for execution in workload.executions:
        execution()
    return workload.verify()


def cases(gpu: Gpu) -> tuple[Case, ...]:
    found = attention_prefill_cases(gpu)
    assert all(isinstance(case, Case) for case in found)
    return tuple(case for case in found if isinstance(case, Case))


def test_cases__are_all_keys_and_causal() -> None:
    assert [case.id for case in cases(H200)] == [
        f"operator.attention_prefill[heads=16,n=8192,causal={causal}]" for causal in (0, 1)
    ]


@pytest.mark.parametrize("gpu", [H200, table_gpu("NVIDIA A100-SXM4-40GB")], ids=lambda gpu: gpu.name)
def test_work__equals_the_header_of_the_kernel(gpu: Gpu) -> None:
    for case, pairs in zip(cases(gpu), (POSITIONS**2, POSITIONS * (POSITIONS + 1) // 2), strict=True):
        sizes = {"heads": HEADS, "n": POSITIONS, "d": HEAD_DIM, "pairs": pairs}
        assert case.work.work_flop == evaluated(header_formula(case.sources[0], "FLOP"), **sizes)
        assert case.work.moved_bytes == evaluated(header_formula(case.sources[0], "Bytes"), **sizes)


@pytest.mark.parametrize(
    ("capability", "pipe"),
    [("8.0", "bf16-tensor"), ("9.0", "bf16-tensor"), ("10.0", "bf16-tensor-legacy"), ("12.0", "bf16-tensor")],
)
def test_cases__say_where_mma_is_the_slower_way(capability: str, pipe: str) -> None:
    assert {case.work.pipe for case in cases(replace(H200, compute_capability=capability))} == {pipe}


def test_kernel__is_wgmma_on_hopper_alone() -> None:
    assert prefill_kernel("9.0").source == "attention_prefill_wgmma.cu"
    for capability in ("8.0", "8.6", "8.7", "8.9", "10.0", "10.3", "12.0", "12.1"):
        assert prefill_kernel(capability).source == "attention_prefill.cu"


# CUDA C++ Programming Guide, technical specifications: shared memory of an SM and, less 1 KB, of a block.
@pytest.mark.parametrize(
    ("capability", "shared_kb"),
    [("8.0", 164), ("8.6", 100), ("8.7", 164), ("8.9", 100), ("9.0", 228), ("10.0", 228), ("12.0", 100)],
)
def test_kernel__has_the_shared_memory_that_it_needs(capability: str, shared_kb: int) -> None:
    kernel = prefill_kernel(capability)
    blocks = kernel.defines.get("BLOCKS", 1)
    assert blocks * (kernel.shared_bytes + 1024) <= shared_kb * 1024


@pytest.mark.parametrize(("capability", "reason"), [("7.5", "have no BF16"), (None, "compute capability")])
def test_cases__are_absent_with_a_reason(capability: str | None, reason: str) -> None:
    for absent in attention_prefill_cases(replace(H200, compute_capability=capability)):
        assert isinstance(absent, AbsentCase)
        assert reason in absent.reason


def test_prepare__blocks_cover_all_rows() -> None:
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    workload = prepared_prefill(KERNEL, 3, 129, False, 2, toolbox)
    binds = [bind for bind in toolbox.binds if bind.function == "attention_prefill"]
    assert len(workload.executions) == len(binds) == 2
    assert {bind.grid for bind in binds} == {(3, 3, 1)}
    assert len({buffer.address for bind in binds for buffer in bind.args[:4]}) == 8


def test_prepare__describes_operands_to_the_copy_engine() -> None:
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    prepared_prefill(WGMMA, 3, 129, False, 1, toolbox)
    (bind,) = (bind for bind in toolbox.binds if bind.function == "attention_prefill")
    assert bind.grid == (2, 3, 1)
    assert [toolbox.maps[one.address][1:] for one in bind.args[:3]] == [((3 * 129, 128), (128, 64))] * 3


@pytest.mark.slow
def test_wgmma__takes_the_softmax_while_products_are_in_flight(tmp_path: Path) -> None:
    """A compiler may move either of the waits for products, or wait after each where it runs out of registers."""
    nvcc, cuobjdump = shutil.which("nvcc"), shutil.which("cuobjdump")
    if nvcc is None:
        pytest.skip("no nvcc on PATH: the CUDA toolkit is not installed")
    cubin, source = tmp_path / "cubin", resource_folder("kernels") / WGMMA.source
    options = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-Xptxas", "-v"]
    told = subprocess.run([nvcc, *options, "-o", str(cubin), str(source)], capture_output=True, text=True, check=True)
    text = told.stdout + told.stderr
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in text
    assert "wgmma" not in text.replace(WGMMA.source, "")
    if cuobjdump is None:
        pytest.skip("no cuobjdump on PATH")
    code = subprocess.run([cuobjdump, "-sass", str(cubin)], capture_output=True, text=True, check=True).stdout
    under_products = re.findall(r"DEPBAR\.LE gsb0, 0x1(.*?)DEPBAR\.LE gsb0, 0x0", code, re.DOTALL)
    assert [one.count("MUFU.EX2") for one in under_products] == [64 + 2]


@pytest.mark.parametrize("causal", [False, True])
def test_verify__passes_the_rounding_of_the_kernels(causal: bool) -> None:
    def kernel(q: np.ndarray, k: np.ndarray, v: np.ndarray, is_causal: bool) -> np.ndarray:
        found = weights(q, k, is_causal)
        powers = found / found.max(axis=2, keepdims=True)
        return (rounded(powers).astype(np.float64) @ v) / powers.sum(axis=2, keepdims=True)

    right = verified(kernel, causal)
    assert right.passed
    assert 0 < right.error < right.tolerance


def test_verify__refuses_a_mask_that_is_off_by_one() -> None:
    def kernel(q: np.ndarray, k: np.ndarray, v: np.ndarray, _: bool) -> np.ndarray:
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(HEAD_DIM)
        scores[:, ~np.tri(scores.shape[1], k=1, dtype=bool)] = -np.inf
        powers = np.exp(scores)
        return np.asarray(powers @ v / powers.sum(axis=2, keepdims=True))

    assert not verified(kernel).passed


@pytest.mark.parametrize(
    "kernel",
    [
        lambda q, k, v, causal: attention(q, k, v, not causal),
        lambda q, k, v, causal: attention(q * 1.01, k, v, causal),
        lambda q, k, v, causal: attention(q, k[:, :, ::-1], v, causal),
        lambda q, k, v, causal: attention(q, k, np.roll(v, 1, axis=1), causal),
        lambda q, k, v, causal: attention(q, k, v, causal)[::-1],
        lambda q, k, v, causal: np.zeros_like(q),
    ],
    ids=["mask", "scale", "dimensions", "values", "heads", "zeros"],
)
def test_verify__refuses_another_result(kernel: Attention) -> None:
    assert not verified(kernel).passed


def test_verify__refuses_a_tile_of_keys_that_was_left_out() -> None:
    assert not verified(lambda q, k, v, _: attention(q, k[:, :-32], v[:, :-32], False), causal=False).passed


def test_verify__names_the_row_that_was_not_written() -> None:
    def kernel(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
        made = attention(q, k, v, causal)
        made[1, 77, 5] = np.nan
        return made

    unwritten = verified(kernel)
    assert not unwritten.passed
    assert math.isnan(unwritten.error)
    assert "1 elements are NaN, the first in row 77 of head 1 of buffer set 0" in unwritten.detail


def test_verify__names_the_worst_row() -> None:
    def kernel(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
        made = attention(q, k, v, causal)
        made[0, POSITIONS_TRIED - 1, 3] = np.inf
        return made

    wrong = verified(kernel)
    assert wrong.error == math.inf
    assert f"row {POSITIONS_TRIED - 1} of head 0" in wrong.detail


def test_tolerance__is_the_derived_one() -> None:
    assert prefill_tolerance() == pytest.approx(2.0**-8 * math.sqrt(1 + 64 / 3))


@pytest.mark.parametrize("positions", [1, 64, 65, 8192])
def test_edge_positions__are_of_every_head_and_inside(positions: int) -> None:
    places = edge_positions(5, positions, 64)
    assert set(places[:, 0].tolist()) == set(range(5))
    assert places[:, 1].max() == positions - 1
    for head in range(5):
        rows = set(places[places[:, 0] == head, 1].tolist())
        assert {0, positions - 1} <= rows
        assert all(row % 64 in (0, 63) or row == positions - 1 for row in rows)


def test_random_normal__is_nearly_normal() -> None:
    values = (random_normal(1, 2**18).astype(np.uint32) << np.uint32(16)).view(np.float32)
    assert abs(values.mean()) < 0.01
    assert abs(values.var() - 1) < 0.01
    assert abs((np.abs(values) < 1).mean() - 0.683) < 0.01


@pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")
@pytest.mark.parametrize("causal", [False, True])
def test_attention_rows__are_the_definition(causal: bool) -> None:
    heads, positions = 2, 259
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    size = heads * positions * HEAD_DIM
    out = toolbox.buffer(2 * size)
    fill = toolbox.kernel("attention_data.cu", "fill_normal_bf16")
    fill.bind(grid=(2, 1, 1), block=(256, 1, 1), args=(out, np.uint64(size), np.uint64(9)))()
    assert (out.view(np.uint16) == random_normal(9, size)).all()
    places = np.array([[0, 0], [1, 0], [0, 258], [1, 257], [1, 100]], dtype=np.uint32)
    positions_buffer, results = toolbox.buffer(places.nbytes), toolbox.buffer(24 * len(places) * HEAD_DIM)
    toolbox.write(positions_buffer, places)
    args = (out, np.uint64(positions), np.uint32(causal), positions_buffer, np.uint64(len(places)))
    seeds = tuple(np.uint64(seed) for seed in (3, 4, 5))
    rows = toolbox.kernel("attention_verify.cu", "attention_rows")
    rows.bind(grid=(2, 1, 1), block=(256, 1, 1), args=(*args, *seeds, results))()
    emulation = FakeToolbox(gpu=Gpu(name="fake"), kernels={"attention_rows": _attention_rows})
    fakes = [emulation.buffer(one.size_bytes) for one in (out, positions_buffer, results)]
    for fake, real in zip(fakes, (out, positions_buffer, results), strict=True):
        emulation.write(fake, real.view(np.uint8))
    bind = emulation.kernel("attention_verify.cu", "attention_rows").bind(
        grid=(1, 1, 1),
        block=(256, 1, 1),
        args=(fakes[0], *args[1:3], fakes[1], args[4], *seeds, fakes[2]),
    )
    bind()
    assert np.allclose(results.view(np.float64), fakes[2].view(np.float64), rtol=1e-9, atol=1e-12)
    toolbox.assert_guarded()
