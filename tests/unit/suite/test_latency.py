"""Latency chains: what so many steps must lead to, and checks that see one step more or less."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from perfgate.core.case import AbsentCase, Case, Timing, Unit
from perfgate.core.gpu import Gpu
from perfgate.core.latency import steps_of
from perfgate.storage.gpu_table import read_latency_table
from perfgate.suite import built_in_suite
from perfgate.suite.atomics import added_words
from perfgate.suite.latency import fibonacci, latency_cases
from perfgate.suite.ring import ring_node
from tests.factories import H200
from tests.unit.suite.builders import SMALL
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox

STEPS_PER_ROUND = 32


def steps_in(bind: Bind) -> int:
    return int(bind.args[-1]) * STEPS_PER_ROUND


def shuffle(bind: Bind) -> None:
    values = np.arange(100, 132, dtype=np.uint32)
    source = np.append((np.arange(31) + 1) % 31, 31)
    for _ in range(steps_in(bind)):
        values = values[source]
    bind.args[0].view(np.uint32)[:] = values


def shared(bind: Bind) -> None:
    following = {ring_node(step, 8): ring_node((step + 1) % 256, 8) for step in range(256)}
    at = ring_node(0, 8)
    for _ in range(steps_in(bind)):
        at = following[at]
    bind.args[0].view(np.uint32)[0] = at


def barrier(bind: Bind) -> None:
    threads = bind.block[0]
    values = int(bind.args[-1]) + np.arange(threads)
    bind.args[0].view(np.uint32)[:] = values[(np.arange(threads) + 33) % threads]


def atomic(bind: Bind) -> None:
    bind.args[0].view(np.uint32)[0] = atomic_word(steps_in(bind))


def atomic_in_turn(bind: Bind) -> None:
    bind.args[0].view(np.uint32)[::1024] = added_words(steps_in(bind))


def contended_shared(bind: Bind) -> None:
    bind.args[0].view(np.uint32)[0] = bind.block[0] * steps_in(bind)


def contended_global(bind: Bind) -> None:
    word = bind.args[0].view(np.uint64)
    word[0] = (int(word[0]) + bind.grid[0] * bind.block[0] * steps_in(bind)) % 2**64


def fence(bind: Bind) -> None:
    bind.args[0].view(np.uint32)[0] = steps_in(bind)


def fill_ring(bind: Bind) -> None:
    ring, bits, window_bits, stride = (bind.args[0], *(int(one) for one in bind.args[1:]))
    nodes = [ring_node(step, window_bits) for step in range(2**bits)]
    words = ring.view(np.uint64)
    for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        words[node * stride // 8] = ring.address + following * stride


def walk(bind: Bind, toolbox: FakeToolbox) -> None:
    state = bind.args[-2].view(np.uint64)
    ring = next(one for one in toolbox.binds if one.function == "fill_ring").args[0]
    words, at = ring.view(np.uint64), int(state[0])
    for _ in range(steps_in(bind)):
        at = int(words[(at - ring.address) // 8])
    state[0] = at
    state[1] += np.uint64(steps_in(bind))


def emulating(gpu: Gpu = SMALL) -> FakeToolbox:
    toolbox = FakeToolbox(gpu=gpu)
    toolbox.kernels = {
        "latency_shuffle": shuffle,
        "latency_shared": shared,
        "latency_barrier": barrier,
        "latency_atomic_shared": atomic,
        "latency_atomic_global": atomic_in_turn,
        "latency_atomic_shared_contended": contended_shared,
        "latency_atomic_global_contended": contended_global,
        "latency_fence_system": fence,
        "fill_ring": fill_ring,
        "latency_l1": lambda bind: walk(bind, toolbox),
        "latency_global": lambda bind: walk(bind, toolbox),
    }
    return toolbox


def device_cases(gpu: Gpu = SMALL) -> list[Case]:
    return [one for one in latency_cases(gpu) if isinstance(one, Case) and one.timing is Timing.EVENTS]


PAIR = replace(SMALL, peer_link="nvlink-18x26.6")
each_chain = pytest.mark.parametrize("case", device_cases(PAIR), ids=lambda case: case.id)


@each_chain
def test_verify__passes_what_the_steps_lead_to_and_sees_what_is_unwritten(case: Case) -> None:
    workload = case.prepare(emulating())
    for execution in 2 * workload.executions:
        execution()
    workload.poison()
    assert not workload.verify().passed
    for execution in 2 * workload.executions:
        execution()
    right = workload.verify()
    assert right.passed, right.detail
    assert right.error == 0.0


@each_chain
def test_verify__sees_a_chain_that_is_a_round_short(case: Case) -> None:
    toolbox = emulating()
    cut: dict[str, Callable[[Bind], None]] = {
        name: (lambda bind, run=run: run(shortened(bind)))
        for name, run in toolbox.kernels.items()
        if name != "fill_ring"
    }
    toolbox.kernels |= cut
    workload = case.prepare(toolbox)
    workload.poison()
    for execution in workload.executions:
        execution()
    wrong = workload.verify()
    assert not wrong.passed
    assert wrong.error == math.inf


def shortened(bind: Bind) -> Bind:
    return Bind(
        source=bind.source,
        function=bind.function,
        defines=bind.defines,
        grid=bind.grid,
        block=bind.block,
        args=(*bind.args[:-1], bind.args[-1] - 1),
        shared_bytes=bind.shared_bytes,
    )


def test_added_words__follow_from_the_words_one_after_the_other() -> None:
    assert set(added_words(0)) == {1}
    assert list(added_words(4)[:5]) == [1, 2, 2, 2, 1]
    words, found = np.ones(1024, dtype=object), 0
    for step in range(3 * 1024 + 7):
        words[step % 1024], found = words[step % 1024] + found, words[step % 1024]
    assert list(added_words(3 * 1024 + 7)) == [word % 2**32 for word in words]


def test_fibonacci__is_the_sequence() -> None:
    assert [fibonacci(index, 10**9) for index in range(1, 11)] == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    assert fibonacci(65537, 2**32) == atomic_word(65536)


def atomic_word(steps: int) -> int:
    word, found = 1, 0
    for _ in range(steps):
        word, found = (word + found) % 2**32, word
    return word


@pytest.mark.parametrize("case", device_cases(H200), ids=lambda case: case.id)
def test_cases__have_whole_rounds_and_say_their_steps(case: Case) -> None:
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    toolbox.write = lambda buffer, values: None  # type: ignore[method-assign]
    case.prepare(toolbox)
    timed = next(one for one in toolbox.binds if one.source == "latency.cu")
    assert steps_in(timed) == steps_of(case.id)
    assert case.work.moved_bytes == 0


def test_cases__on_chip_are_judged_in_cycles_and_all_else_in_time() -> None:
    units = {case.id.split("[")[0].removeprefix("latency."): case.unit for case in device_cases(H200)}
    in_time = {"l2", "dram", "atomic_global", "atomic_global_contended", "fence_system"}
    assert {name for name, unit in units.items() if unit is Unit.SECONDS} == in_time


def test_walks__fit_their_cache_or_exceed_it() -> None:
    sizes = {case.id.split("[")[0]: case.work.footprint_bytes for case in device_cases(H200)}
    l2_bytes = H200.l2_bytes or 0
    assert sizes["latency.l1"] <= 16 * 1024
    assert 256 * 1024 < sizes["latency.l2"] <= l2_bytes // 8
    assert sizes["latency.dram"] >= 16 * l2_bytes


def test_cases__of_an_unknown_gpu_are_absent_with_reasons() -> None:
    absent = [one for one in latency_cases(Gpu(name="?")) if isinstance(one, AbsentCase)]
    assert {one.id: one.reason.split(",")[0] for one in absent} == {
        "latency.atomic_global_contended": "the GPU does not tell how many SMs it has",
        "latency.l2": "the GPU does not tell the size of its L2",
        "latency.dram": "the GPU does not tell the size of its L2",
        "latency.peer": "no other GPU is visible whose memory this one reaches",
    }


def test_peer__walks_through_the_other_gpu_s_memory() -> None:
    case = next(one for one in device_cases(PAIR) if one.id.startswith("latency.peer"))
    assert case.id == "latency.peer[bytes=4MiB,link=nvlink-18x26.6,steps=2048]"
    assert case.work.footprint_bytes == 0
    assert not case.gated
    toolbox = emulating(PAIR)
    lent: list[int] = []
    toolbox.peer_buffer = lambda size_bytes: lent.append(size_bytes) or toolbox.buffer(size_bytes)  # type: ignore[method-assign, func-returns-value]
    case.prepare(toolbox)
    assert lent == [4 * 2**20]


def test_dram__that_does_not_fit_is_absent() -> None:
    small = Gpu(name="?", memory_bytes=2**28, l2_bytes=2**26)
    reasons = {one.id: one.reason for one in latency_cases(small) if isinstance(one, AbsentCase)}
    assert "more than a quarter of the memory" in reasons["latency.dram"]


def test_latency_table__names_cases_of_the_suite() -> None:
    suite = {case.id for case in built_in_suite("full", replace(H200, peer_link="pcie")).cases}
    wanted = [one.case for one in read_latency_table().latencies if one.case is not None]
    assert len(wanted) > 15
    for case in wanted:
        name, _, axes = case.removesuffix("]").partition("[")
        assert any(one.split("[")[0] == name and axes in one for one in suite), case
