"""access.cu, onchip.cu and peer.cu themselves, run on the CPU at counts that do not come out even."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfgate.suite import built_in_suite
from perfgate.suite.filling import fill_normal_patterns
from tests.unit.suite.builders import SMALL
from tests.unit.suite.fake_access import random_indices, round_robin_sums, strided
from tests.unit.suite.fake_toolbox import random_normal_patterns, tile_sums
from tests.unit.suite.host_toolbox import COMPILER, HostBuffer, HostToolbox

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")

BLOCK, UNROLL = 64, 2
TILE = BLOCK * UNROLL
KNOBS = {"BLOCK": BLOCK, "UNROLL": UNROLL}

counts = pytest.mark.parametrize("count", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + BLOCK + 1])


def run(toolbox: HostToolbox, source: str, name: str, grid: int, *args: Any, **knobs: int) -> None:
    kernel = toolbox.kernel(source, name, defines={**KNOBS, **knobs})
    kernel.bind(grid=(grid, 1, 1), block=(BLOCK, 1, 1), args=args)()
    toolbox.assert_guarded()


def filled(toolbox: HostToolbox, words: int, seed: int) -> HostBuffer:
    buffer = toolbox.buffer(4 * words)
    fill_normal_patterns(toolbox, buffer, seed)
    return buffer


@counts
@pytest.mark.parametrize(
    ("width", "offset", "stride"), [(1, 0, 1), (2, 0, 1), (4, 0, 1), (1, 1, 1), (1, 0, 3), (2, 1, 5)]
)
def test_access_copy__reads_the_elements_of_its_pattern(count: int, width: int, offset: int, stride: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    # Not a word more than the last element needs, so that a read beyond it is outside.
    words = width * (offset + (count - 1) * stride + 1)
    source, target = filled(toolbox, words, 7), toolbox.buffer(4 * width * count)
    place = (np.uint64(offset), np.uint64(stride), np.uint64(count))
    run(toolbox, "access.cu", "access_copy", -(-count // TILE), source, target, *place, WIDTH=width)
    expected = strided(random_normal_patterns(7, words), width=width, offset=offset, stride=stride, count=count)
    assert (target.view(np.uint32) == expected.ravel()).all()


@counts
def test_access_gather__reads_where_the_indices_say(count: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    limit = 1000
    source, indices, target = filled(toolbox, limit, 7), toolbox.buffer(4 * count), toolbox.buffer(4 * count)
    made = (np.uint64(count), np.uint64(3), np.uint64(limit))
    run(toolbox, "access.cu", "access_indices", 2, indices, *made)
    places = random_indices(3, count, limit)
    assert (indices.view(np.uint32) == places).all()
    assert places.max() < limit
    run(toolbox, "access.cu", "access_gather", -(-count // TILE), source, indices, target, np.uint64(count))
    assert (target.view(np.uint32) == random_normal_patterns(7, limit)[places.astype(np.int64)]).all()


@pytest.mark.parametrize(
    ("vectors", "passes", "grid"), [(1, 3, 2), (TILE, 4, 3), (TILE + 1, 2, 3), (5 * TILE + 9, 7, 4), (4 * TILE, 2, 4)]
)
def test_onchip_l2__reads_every_word_in_every_pass(vectors: int, passes: int, grid: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    source, partials = filled(toolbox, 4 * vectors, 7), toolbox.buffer(4 * grid)
    run(toolbox, "onchip.cu", "onchip_l2", grid, source, partials, np.uint32(vectors), np.uint32(passes))
    sums = tile_sums(random_normal_patterns(7, 4 * vectors), 4 * TILE)
    assert (partials.view(np.uint32) == round_robin_sums(sums, len(sums) * passes, grid)).all()
    assert partials.view(np.uint32).sum(dtype=np.uint32) == np.uint32(int(sums.sum(dtype=np.uint64)) * passes % 2**32)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("passes", [1, 5])
def test_onchip_shared__sums_its_own_tile_so_many_times(passes: int, backwards: bool) -> None:
    toolbox = HostToolbox(gpu=SMALL, backwards=backwards)
    source, partials = filled(toolbox, 3 * 4 * TILE, 7), toolbox.buffer(4 * 3)
    run(toolbox, "onchip.cu", "onchip_shared", 3, source, partials, np.uint32(passes))
    sums = tile_sums(random_normal_patterns(7, 3 * 4 * TILE), 4 * TILE)
    assert partials.view(np.uint32).tolist() == [int(one) * passes % 2**32 for one in sums]


@counts
def test_peer_exchange__copies_both_ways(count: int) -> None:
    toolbox = HostToolbox(gpu=SMALL)
    sent, fetched = filled(toolbox, 4 * count, 1), filled(toolbox, 4 * count, 2)
    sent_to, fetched_to = toolbox.buffer(16 * count), toolbox.buffer(16 * count)
    run(
        toolbox, "peer.cu", "peer_exchange", 2 * -(-count // TILE), sent, sent_to, fetched, fetched_to, np.uint64(count)
    )
    assert (sent_to.view(np.uint32) == random_normal_patterns(1, 4 * count)).all()
    assert (fetched_to.view(np.uint32) == random_normal_patterns(2, 4 * count)).all()


@pytest.mark.parametrize("name", ["gather", "misaligned", "shared"])
def test_access_cases__verify_themselves_and_see_a_wrong_word(name: str) -> None:
    tiny = replace(SMALL, memory_bytes=16 * 2**20, sm_count=1)
    for case in built_in_suite("full", tiny).cases:
        if not case.id.startswith(f"bandwidth.{name}["):
            continue
        toolbox = HostToolbox(gpu=tiny)
        workload = case.prepare(toolbox)
        workload.poison()
        assert not workload.verify().passed
        for execution in workload.executions:
            execution()
        assert workload.verify().passed, case.id
        poisoned = [args[0] for function, args in toolbox.bound if function == "fill_word"]
        poisoned[-1].view(np.uint32)[-1] ^= 1
        assert not workload.verify().passed
        toolbox.assert_guarded()
