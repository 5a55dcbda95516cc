"""Streams: geometry, declared work, and checks that see a single wrong word."""

import math

import numpy as np
import pytest

from perfgate.core.gpu import Gpu
from perfgate.suite import built_in_suite
from tests.factories import H200
from tests.unit.suite.builders import case_of, small_case, table_gpu
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox, buffers_of

STREAMS = ("read", "write", "copy", "triad")


def timed_binds(toolbox: FakeToolbox, name: str) -> list[Bind]:
    return [bind for bind in toolbox.binds if bind.function == f"bandwidth_{name}"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("gpu", [H200, table_gpu("Tesla T4")], ids=lambda gpu: gpu.name)
def test_prepare__tiles_cover_every_vector_once(name: str, gpu: Gpu) -> None:
    case = case_of(built_in_suite("default", gpu), f"bandwidth.{name}")
    toolbox = FakeToolbox(gpu=gpu, emulate=False)
    case.prepare(toolbox)
    for bind in timed_binds(toolbox, name):
        vectors = int(bind.args[-1])
        tile = int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"])
        assert bind.block == (bind.defines["BLOCK"], 1, 1)
        assert (bind.grid[0] - 1) * tile < vectors <= bind.grid[0] * tile
        arrays = [one for one in buffers_of(bind) if one.size_bytes == 16 * vectors]
        assert len(arrays) == {"read": 1, "write": 1, "copy": 2, "triad": 3}[name]


@pytest.mark.parametrize("name", STREAMS)
def test_work__equals_the_header_of_the_kernel(name: str) -> None:
    work = case_of(built_in_suite("default", H200), f"bandwidth.{name}").work
    words = 2**32 // 4
    assert work.moved_bytes == evaluated(header_formula("bandwidth.cu", "Bytes", name), n=words)
    flop = header_formula("bandwidth.cu", "FLOP", name).split("(")[0].strip()
    assert work.work_flop == evaluated(flop, n=words)


@pytest.mark.parametrize("name", STREAMS)
def test_verify__passes_right_outputs_and_sees_unwritten_ones(name: str) -> None:
    toolbox = FakeToolbox(gpu=Gpu(name="small"))
    workload = small_case(f"bandwidth.{name}").prepare(toolbox)
    for execution in workload.executions:
        execution()
    right = workload.verify()
    assert right.passed
    assert right.error == 0.0
    workload.poison()
    unwritten = workload.verify()
    assert not unwritten.passed
    assert unwritten.error == math.inf
    assert "the first at index 0 of buffer set 0" in unwritten.detail


@pytest.mark.parametrize("name", STREAMS)
def test_verify__sees_one_flipped_bit(name: str) -> None:
    toolbox = FakeToolbox(gpu=Gpu(name="small"))
    workload = small_case(f"bandwidth.{name}").prepare(toolbox)
    for execution in workload.executions:
        execution()
    buffers = buffers_of(timed_binds(toolbox, name)[-1])
    output = buffers[-1].view(np.uint32)
    output[len(output) - 1] ^= 1
    found = workload.verify()
    assert not found.passed
    assert f"1 wrong, the first at index {len(output) - 1} of buffer set {len(workload.executions) - 1}" in found.detail
