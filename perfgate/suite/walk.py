"""Walks through memory by chains of dependent loads: the latency of the L1, the L2 and the device memory.

A walk goes on where the execution before it stopped, so that a ring larger than a cache never finds
its nodes there; the node that so many steps lead to is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.suite.chain import SOURCE, rounds
from perfgate.suite.filling import THREADS, covering_grid
from perfgate.suite.peer import NO_PEER
from perfgate.suite.ring import ring_node
from perfgate.suite.sizes import STREAM_OVER_L2, DoesNotFitError, checked_footprint, size_axis
from perfgate.suite.tally import exact_verification

VERSION = 1
_RING_SOURCE = "ring.cu"
# struct Walk of latency.cu: address, steps, preloaded.
_WALK_BYTES = 24
# A line of any cache of the GPUs known; a node each, so that no load finds what its neighbour brought.
_LINE_BYTES = 128
# Neighbouring nodes of the ring in device memory are four lines apart: the memory fetches two at once at most.
_DRAM_STRIDE_BYTES = 512
# A page of device memory: the walk visits all nodes of a page before it goes to the next one.
_PAGE_BYTES = 2 * 2**20
# Fits any L1 (T4: 32 KiB beside shared memory), and is soon there.
_L1_NODES = 64
_L2_SHARE = 8
_PEER_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ring:
    """Nodes in memory, and how many of them an execution visits.

    Attributes:
        peer_link: what joins this GPU and the one whose memory the nodes are in; None for its own memory.
    """

    name: str
    function: str
    node_bits: int
    window_bits: int
    stride_bytes: int
    steps: int
    slowest_step_s: float
    unit: Unit = Unit.SECONDS
    peer_link: str | None = None

    @property
    def nodes(self) -> int:
        return 1 << self.node_bits

    @property
    def size_bytes(self) -> int:
        return self.nodes * self.stride_bytes

    @property
    def axes(self) -> str:
        link = "" if self.peer_link is None else f",link={self.peer_link}"
        return f"[bytes={size_axis(self.size_bytes)}{link},steps={self.steps}]"


def walk_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the walks; absent where the size of the L2 or the memory is not known, or no peer is within reach."""
    return (
        _case(_l1_ring()),
        _case_or_reason("l2", _l2_ring, gpu),
        _case_or_reason("dram", _dram_ring, gpu),
        _case_or_reason("peer", _peer_ring, gpu),
    )


def _case_or_reason(name: str, ring_of: Callable[[Gpu], _Ring], gpu: Gpu) -> Case | AbsentCase:
    try:
        return _case(ring_of(gpu))
    except DoesNotFitError as error:
        return AbsentCase(id=f"latency.{name}", reason=str(error))


def _l1_ring() -> _Ring:
    bits = _bits(_L1_NODES)
    return _Ring(
        name="l1",
        function="latency_l1",
        node_bits=bits,
        window_bits=bits,
        stride_bytes=_LINE_BYTES,
        steps=2**17,
        slowest_step_s=60e-9,
        unit=Unit.CYCLES,
    )


def _l2_ring(gpu: Gpu) -> _Ring:
    """An eighth of the L2 at most: both of its partitions hold it, and nothing else drives it out."""
    bits = _bits(_known_l2_bytes(gpu) // _L2_SHARE // _LINE_BYTES)
    return _Ring(
        name="l2",
        function="latency_global",
        node_bits=bits,
        window_bits=bits,
        stride_bytes=_LINE_BYTES,
        steps=2**14,
        slowest_step_s=500e-9,
    )


def _dram_ring(gpu: Gpu) -> _Ring:
    """16 times the L2 at least, page by page, so that the caches of translations serve all steps but one a page."""
    bits = _bits(2 * STREAM_OVER_L2 * _known_l2_bytes(gpu) // _DRAM_STRIDE_BYTES - 1)
    ring = _Ring(
        name="dram",
        function="latency_global",
        node_bits=bits,
        window_bits=min(bits, _bits(_PAGE_BYTES // _DRAM_STRIDE_BYTES)),
        stride_bytes=_DRAM_STRIDE_BYTES,
        steps=2**12,
        slowest_step_s=1500e-9,
    )
    checked_footprint(gpu, ring.size_bytes)
    return ring


def _peer_ring(gpu: Gpu) -> _Ring:
    """Memory of another GPU, whose L2 holds it: a step is a round trip over the link."""
    if gpu.peer_link is None:
        raise DoesNotFitError(NO_PEER)
    bits = _bits(_PEER_BYTES // _LINE_BYTES)
    return _Ring(
        name="peer",
        function="latency_global",
        node_bits=bits,
        window_bits=bits,
        stride_bytes=_LINE_BYTES,
        steps=2**11,
        slowest_step_s=5e-6,
        peer_link=gpu.peer_link,
    )


def _known_l2_bytes(gpu: Gpu) -> int:
    if not gpu.l2_bytes:
        message = "the GPU does not tell the size of its L2, which the walk must fit or exceed"
        raise DoesNotFitError(message)
    return gpu.l2_bytes


def _bits(count: int) -> int:
    """Return the logarithm of the largest power of two up to a count."""
    return count.bit_length() - 1


def _case(ring: _Ring) -> Case:
    return Case(
        id=f"latency.{ring.name}{ring.axes}",
        version=VERSION,
        work=Work(footprint_bytes=ring.size_bytes if ring.peer_link is None else 0),
        prepare=partial(_prepared, ring),
        sources=(SOURCE, _RING_SOURCE),
        unit=ring.unit,
        # As all that needs a second GPU (peer.py): a baseline that has it would fail where that GPU is not visible.
        gated=ring.peer_link is None,
        predicted_s=ring.steps * ring.slowest_step_s,
    )


def _prepared(ring: _Ring, toolbox: Toolbox) -> Workload:
    memory = toolbox.buffer if ring.peer_link is None else toolbox.peer_buffer
    nodes, walk = memory(ring.size_bytes), toolbox.buffer(_WALK_BYTES)
    stride = np.uint32(ring.stride_bytes)
    toolbox.kernel(_RING_SOURCE, "fill_ring").bind(
        grid=covering_grid(ring.nodes),
        block=(THREADS, 1, 1),
        args=(nodes, np.uint32(ring.node_bits), np.uint32(ring.window_bits), stride),
    )()
    preloaded = (nodes, np.uint32(ring.nodes), stride) if ring.function == "latency_l1" else ()
    execution = toolbox.kernel(SOURCE, ring.function).bind(
        grid=(1, 1, 1), block=(1, 1, 1), args=(*preloaded, walk, rounds(ring.steps))
    )

    def address(step: int) -> int:
        return nodes.address + ring_node(step % ring.nodes, ring.window_bits) * ring.stride_bytes

    def begin() -> None:
        toolbox.write(walk, np.array([address(0), 0, 0], dtype=np.uint64))

    def verification() -> Verification:
        at, steps = (int(word) for word in toolbox.read(walk, np.uint64, 2))
        is_right = steps > 0 and steps % ring.steps == 0 and at == address(steps)
        return exact_verification([(0 if is_right else 1, 0)], f"the node that {steps} steps lead to")

    begin()
    return Workload(executions=(execution,), poison=begin, verify=verification)
