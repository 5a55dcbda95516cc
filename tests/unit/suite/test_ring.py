"""Rings: every node once a round, in the order that the kernel lays down."""

import numpy as np
import pytest

from perfgate.core.gpu import Gpu
from perfgate.suite.ring import ring_node, shuffled
from tests.unit.suite.host_toolbox import COMPILER, HostToolbox


@pytest.mark.parametrize("bits", range(13))
def test_shuffled__is_a_bijection(bits: int) -> None:
    assert sorted(shuffled(number, bits) for number in range(2**bits)) == list(range(2**bits))


@pytest.mark.parametrize(("bits", "window_bits"), [(0, 0), (6, 6), (8, 3), (8, 0), (10, 10)])
def test_ring_node__visits_every_node_once_and_window_after_window(bits: int, window_bits: int) -> None:
    nodes = [ring_node(step, window_bits) for step in range(2**bits)]
    assert sorted(nodes) == list(range(2**bits))
    assert [node >> window_bits for node in nodes] == [step >> window_bits for step in range(2**bits)]


def test_ring_node__gives_neighbours_no_regular_distance() -> None:
    nodes = np.array([ring_node(step, 12) for step in range(2**12)])
    distances = np.diff(nodes)
    assert len(np.unique(distances)) > 1500
    assert abs(np.corrcoef(nodes[:-1], nodes[1:])[0, 1]) < 0.05


@pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")
@pytest.mark.parametrize(("bits", "window_bits", "stride"), [(0, 0, 8), (5, 5, 128), (7, 3, 40)])
def test_fill_ring__leads_from_node_to_node_in_order(bits: int, window_bits: int, stride: int) -> None:
    toolbox = HostToolbox(gpu=Gpu(name="host"))
    ring = toolbox.buffer(2**bits * stride)
    arguments = (ring, np.uint32(bits), np.uint32(window_bits), np.uint32(stride))
    toolbox.kernel("ring.cu", "fill_ring").bind(grid=(2, 1, 1), block=(3, 1, 1), args=arguments)()
    toolbox.assert_guarded()
    at = ring.address + ring_node(0, window_bits) * stride
    for step in range(1, 2 * 2**bits + 1):
        at = int(toolbox.read(ring, np.uint64, 1, at - ring.address)[0])
        assert at == ring.address + ring_node(step % 2**bits, window_bits) * stride
