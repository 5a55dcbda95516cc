"""The kernels themselves, run on the CPU at shapes where tiles, vectors and depths do not come out even."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfgate.core.gpu import Gpu
from perfgate.suite import built_in_suite
from perfgate.suite.filling import fill_normal_patterns, fill_uniform, poisoning
from perfgate.suite.gemm import TILE_COLUMNS, TILE_ROWS
from perfgate.suite.product import FP32, product_check
from tests.unit.suite.builders import SMALL, case_of
from tests.unit.suite.fake_toolbox import pattern_words, random_normal_patterns, random_uniform, tile_sums, triad
from tests.unit.suite.host_toolbox import COMPILER, HostBuffer, HostToolbox

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")

TINY = replace(SMALL, memory_bytes=16 * 2**20)
KNOBS = {"BLOCK": 64, "UNROLL": 3}
TILE = 64 * 3


def run(toolbox: HostToolbox, name: str, grid: int, *args: Any) -> None:
    kernel = toolbox.kernel("bandwidth.cu", f"bandwidth_{name}", defines=KNOBS)
    kernel.bind(grid=(grid, 1, 1), block=(64, 1, 1), args=args)()
    toolbox.assert_guarded()


def array(toolbox: HostToolbox, vectors: int) -> HostBuffer:
    return toolbox.buffer(16 * vectors)


vectors_and_grids = pytest.mark.parametrize(
    ("vectors", "grid"), [(1, 1), (TILE - 1, 1), (TILE, 2), (TILE + 1, 2), (5 * TILE + 65, 2), (4 * TILE, 4)]
)


@vectors_and_grids
def test_bandwidth_read__sums_every_word_once(vectors: int, grid: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    source, partials = array(toolbox, vectors), toolbox.buffer(4 * grid)
    fill_normal_patterns(toolbox, source, 7)
    run(toolbox, "read", grid, source, partials, np.uint64(vectors))
    sums = tile_sums(random_normal_patterns(7, 4 * vectors), 4 * TILE)
    expected = [sums[block::grid].sum(dtype=np.uint32) for block in range(grid)]
    assert partials.view(np.uint32).tolist() == [int(one) for one in expected]


@vectors_and_grids
def test_bandwidth_write__writes_the_pattern(vectors: int, grid: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    target = array(toolbox, vectors)
    run(toolbox, "write", grid, target, np.uint32(3), np.uint64(vectors))
    assert (target.view(np.uint32) == pattern_words(3, 4 * vectors)).all()


@vectors_and_grids
def test_bandwidth_copy__copies_every_word(vectors: int, grid: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    source, target = array(toolbox, vectors), array(toolbox, vectors)
    fill_normal_patterns(toolbox, source, 7)
    run(toolbox, "copy", grid, source, target, np.uint64(vectors))
    assert (target.view(np.uint32) == random_normal_patterns(7, 4 * vectors)).all()


@vectors_and_grids
def test_bandwidth_triad__rounds_once(vectors: int, grid: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    added, scaled, target = (array(toolbox, vectors) for _ in range(3))
    fill_uniform(toolbox, added, 1)
    fill_uniform(toolbox, scaled, 2)
    run(toolbox, "triad", grid, added, scaled, target, np.float32(0.75), np.uint64(vectors))
    expected = triad(random_uniform(1, 4 * vectors), random_uniform(2, 4 * vectors), np.float32(0.75))
    assert (target.view(np.uint32) == expected.view(np.uint32)).all()


@pytest.mark.parametrize("name", ["read", "write", "copy", "triad"])
def test_bandwidth_cases__verify_themselves_and_see_a_wrong_word(name: str) -> None:
    toolbox = HostToolbox(gpu=TINY)
    case = case_of(built_in_suite("default", TINY), f"bandwidth.{name}")
    workload = case.prepare(toolbox)
    workload.poison()
    assert not workload.verify().passed
    for execution in workload.executions:
        execution()
    assert workload.verify().passed
    poisoned = [args[0] for function, args in toolbox.bound if function == "fill_word"]
    poisoned[-1].view(np.uint32)[-1] ^= 1
    assert not workload.verify().passed
    toolbox.assert_guarded()


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (128, 256, 8),
        (128, 256, 24),
        (128, 256, 48),
        (256, 512, 16),
        (1, 1, 1),
        (130, 260, 20),
        (127, 255, 7),
        (5, 300, 3),
        (129, 4, 40),
    ],
)
def test_gemm_fp32__is_right_at_any_shape(m: int, n: int, k: int, backwards: bool) -> None:
    toolbox = HostToolbox(gpu=SMALL, backwards=backwards)
    a, b, c = (toolbox.buffer(4 * size) for size in (m * k, n * k, m * n))
    fill_uniform(toolbox, a, 1)
    fill_uniform(toolbox, b, 2)
    poison = poisoning(toolbox, [c])
    kernel = toolbox.kernel("gemm.cu", "gemm_fp32")
    grid = (math.ceil(n / TILE_COLUMNS), math.ceil(m / TILE_ROWS), 1)
    execute = kernel.bind(grid=grid, block=(256, 1, 1), args=(a, b, c, np.uint32(m), np.uint32(n), np.uint32(k)))
    check = product_check(toolbox, FP32, (m, n, k), (TILE_ROWS, TILE_COLUMNS), [(a, b, c)])
    poison()
    assert "unwritten" in check.verification().detail
    execute()
    left, right = (one.view(np.float32).reshape(-1, k).astype(np.float64) for one in (a, b))
    expected = left @ right.T
    actual = c.view(np.float32).reshape(m, n)
    assert np.abs(actual - expected).max() <= k * 2.0**-24 * (np.abs(left) @ np.abs(right).T).max()
    assert check.verification().passed
    actual[m - 1, n - 1] += np.float32(0.05)
    assert not check.verification().passed
    toolbox.assert_guarded()


def test_fill_uniform__is_the_generator_of_the_emulation() -> None:
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    buffer = toolbox.buffer(4 * 1001)
    fill_uniform(toolbox, buffer, 42)
    assert (buffer.view(np.float32) == random_uniform(42, 1001)).all()
    toolbox.assert_guarded()
