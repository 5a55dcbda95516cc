"""What is not a plain stream: geometry, declared work, and checks that see a single wrong word."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfgate.core.case import Case, MemoryLevel, Timing
from perfgate.suite import built_in_suite, onchip, peer, transfer
from tests.factories import H200
from tests.unit.suite.builders import SMALL, case_of, table_gpu
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_access import ACCESS_KERNELS
from tests.unit.suite.fake_toolbox import FakeToolbox

PAIR = replace(H200, peer_link="nvlink-18x26.6")
PATTERNS = ("gather", "vector_copy", "misaligned", "strided", "l2_read", "shared", "h2d", "d2h", "peer_both")
COPIES = [case for case in built_in_suite("full", H200).cases if case.sources[:1] == ("access.cu",)]


@pytest.fixture
def small_cases(monkeypatch: pytest.MonkeyPatch) -> tuple[Case, ...]:
    """All cases on a GPU that numpy can be."""
    monkeypatch.setattr(transfer, "_SIZE_BYTES", 2**16)
    monkeypatch.setattr(peer, "_SIZE_BYTES", 2**16)
    monkeypatch.setattr(onchip, "_L2_BYTES_PER_SM", 2**18)
    return built_in_suite("full", replace(SMALL, l2_bytes=2**20, peer_link="pcie")).cases


def named(cases: tuple[Case, ...], name: str) -> list[Case]:
    found = [case for case in cases if case.id.startswith(f"bandwidth.{name}[")]
    assert found
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_verify__sees_what_was_not_written_and_one_flipped_bit(name: str, small_cases: tuple[Case, ...]) -> None:
    for case in named(small_cases, name):
        toolbox = FakeToolbox(gpu=SMALL, kernels=ACCESS_KERNELS)
        workload = case.prepare(toolbox)
        workload.poison()
        unwritten = workload.verify()
        assert not unwritten.passed
        assert unwritten.error == math.inf
        for execution in workload.executions:
            execution()
        assert workload.verify().passed, case.id
        # What is poisoned is an output, but where it is poisoned by a copy.
        poisoned = [bind.args[0] for bind in toolbox.binds if bind.function == "fill_word"]
        output = (toolbox.locked[-1] if name == "d2h" else poisoned[-1]).view(np.uint32)
        output[len(output) - 1] ^= 1
        found = workload.verify()
        assert not found.passed
        assert "1 wrong" in found.detail


@pytest.mark.parametrize("case", COPIES, ids=lambda case: case.id)
def test_prepare__tiles_cover_every_element_once_and_read_inside_the_array(case: Case) -> None:
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    case.prepare(toolbox)
    timed = [bind for bind in toolbox.binds if bind.function in ("access_copy", "access_gather")]
    assert timed
    for bind in timed:
        elements, width = int(bind.args[-1]), int(bind.defines["WIDTH"])
        tile = int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"])
        assert bind.block == (bind.defines["BLOCK"], 1, 1)
        assert (bind.grid[0] - 1) * tile < elements <= bind.grid[0] * tile
        source, written = bind.args[0], 4 * width * elements
        assert written == case.work.write_bytes
        if bind.function == "access_copy":
            offset, stride = int(bind.args[2]), int(bind.args[3])
            assert 4 * width * (offset + (elements - 1) * stride + 1) <= source.size_bytes
            assert f"stride={stride}" in case.id or stride == 1


@pytest.mark.parametrize("case", COPIES, ids=lambda case: case.id)
def test_work__of_copies_equals_the_header_of_the_kernel(case: Case) -> None:
    kernel = "gather" if "gather" in case.id else "copy"
    assert case.work.moved_bytes == evaluated(
        header_formula("access.cu", "Bytes", kernel), n=case.work.write_bytes // 4
    )
    assert case.work.work_flop == int(header_formula("access.cu", "FLOP", kernel)) == 0


@pytest.mark.parametrize(("name", "kernel"), [("l2_read", "l2"), ("shared", "shared")])
def test_work__of_what_is_on_the_chip_equals_the_header_of_the_kernel(name: str, kernel: str) -> None:
    case = case_of(built_in_suite("full", H200), f"bandwidth.{name}")
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    case.prepare(toolbox)
    bind = next(bind for bind in toolbox.binds if bind.source == "onchip.cu")
    words, passes = bind.args[0].size_bytes // 4, int(bind.args[-1])
    formula = header_formula("onchip.cu", "Bytes", kernel)
    assert case.work.moved_bytes == evaluated(formula, n=words, passes=passes)
    assert bind.shared_bytes == 0
    assert 16 * int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"]) <= 48 * 1024


@pytest.mark.parametrize(
    ("name", "size"),
    [("NVIDIA H200", "16MiB"), ("NVIDIA A100-SXM4-80GB", "8MiB"), ("Tesla T4", "1MiB"), ("NVIDIA B200", "32MiB")],
)
def test_l2_cases__fit_the_cache_even_when_every_line_is_kept_twice(name: str, size: str) -> None:
    gpu = table_gpu(name)
    case = case_of(built_in_suite("default", gpu), "bandwidth.l2_read")
    assert case.id == f"bandwidth.l2_read[bytes={size}]"
    assert 2 * case.work.footprint_bytes <= (gpu.l2_bytes or 0)


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({"l2_bytes": None}, "l2_read", "does not tell the size of its L2"),
        ({"l2_bytes": 2**18}, "l2_read", "too small for all SMs"),
        ({"sm_count": None}, "l2_read", "does not tell its SMs"),
        ({"sm_clock_max_hz": None}, "shared", "does not tell its SMs"),
        ({"memory_bytes": None}, "gather", "does not tell its total memory"),
        ({"memory_bytes": 2**22}, "strided[stride=16]", "too small"),
        ({"memory_bytes": 2**31}, "sweep", "has no 3 chunks"),
        ({"memory_bytes": None}, "sweep", "an unknown memory"),
        ({}, "peer_read", "no other GPU is visible"),
    ],
)
def test_built_in_suite__says_why_a_case_is_absent(changes: dict[str, Any], name: str, reason: str) -> None:
    suite = built_in_suite("full", replace(H200, **changes))
    absent = {one.id: one.reason for one in suite.absent}
    assert reason in absent[f"bandwidth.{name}"]


def test_peer_cases__have_the_link_in_their_ids() -> None:
    cases = [case for case in built_in_suite("full", PAIR).cases if case.work.memory_level is MemoryLevel.PEER]
    assert [case.id.split("[")[0] for case in cases] == [f"bandwidth.peer_{one}" for one in ("read", "write", "both")]
    assert all(case.id.endswith(",link=nvlink-18x26.6]") for case in cases)
    assert not any(case.gated for case in cases)
    assert [(case.work.read_bytes > 0, case.work.write_bytes > 0) for case in cases] == [
        (True, False),
        (False, True),
        (True, True),
    ]


@pytest.mark.parametrize("name", ["peer_read", "peer_write"])
def test_peer_cases__use_the_other_gpu_s_memory_and_little_of_their_own(name: str) -> None:
    toolbox = FakeToolbox(gpu=PAIR, emulate=False)
    case_of(built_in_suite("full", PAIR), f"bandwidth.{name}").prepare(toolbox)
    assert toolbox.allocated_bytes < 2**20


def test_peer_exchange__has_an_even_number_of_blocks_that_cover_both_copies() -> None:
    toolbox = FakeToolbox(gpu=PAIR, emulate=False)
    case_of(built_in_suite("full", PAIR), "bandwidth.peer_both").prepare(toolbox)
    bind = next(bind for bind in toolbox.binds if bind.function == "peer_exchange")
    assert bind.grid[0] % 2 == 0
    tile = int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"])
    assert (bind.grid[0] // 2 - 1) * tile < int(bind.args[-1]) <= bind.grid[0] // 2 * tile


def test_sweep_cases__read_nine_tenths_of_the_memory_and_are_only_reported() -> None:
    case = case_of(built_in_suite("full", H200), "bandwidth.sweep")
    assert case.timing is Timing.SLOWEST
    assert not case.gated
    assert case.work.read_bytes == 2**30
    assert 0.89 < case.work.footprint_bytes / (H200.memory_bytes or 0) <= 0.9
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    assert len(case.prepare(toolbox).executions) * 2**30 == case.work.footprint_bytes
