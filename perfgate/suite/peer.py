"""Reading, writing and both at once in the memory of another GPU, by kernels of this one.

The link is part of a case's id: with fewer links, or slower ones, it is another case. Reported, not gated: whether a
second GPU is visible is no part of a GPU's identity, and a baseline that has it would fail where it is not.
"""

import numpy as np

from perfgate.core.case import AbsentCase, Case, MemoryLevel, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Workload
from perfgate.suite.bandwidth import READ, SOURCE, WRITE, Layout, prepared_read, prepared_write
from perfgate.suite.filling import WORD_BYTES, fill_normal_patterns
from perfgate.suite.sizes import size_axis
from perfgate.suite.tally import Check, exact_workload

VERSION = 1
_EXCHANGE_SOURCE = "peer.cu"
# 1.3 ms over the links of an H200, 20 ms over PCIe 4.
_SIZE_BYTES = 2**29
_VECTOR_BYTES = 16
_BLOCK, _UNROLL = 512, 4
# PCIe 4: slower than what joins GPUs that compute.
_SLOWEST_BYTES_PER_S = 12e9
NO_PEER = "no other GPU is visible whose memory this one reaches"
_NAMES = ("peer_read", "peer_write", "peer_both")


def peer_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the cases between two GPUs; absent where no other GPU is within reach."""
    if gpu.peer_link is None:
        return tuple(AbsentCase(id=f"bandwidth.{name}", reason=NO_PEER) for name in _NAMES)
    read, write, both = (f"bandwidth.{name}[bytes={size_axis(_SIZE_BYTES)},link={gpu.peer_link}]" for name in _NAMES)
    return (
        Case(
            id=read,
            version=VERSION,
            work=Work(read_bytes=_SIZE_BYTES, memory_level=MemoryLevel.PEER),
            prepare=_prepared_read,
            sources=(SOURCE, "data.cu"),
            gated=False,
            predicted_s=_SIZE_BYTES / _SLOWEST_BYTES_PER_S,
        ),
        Case(
            id=write,
            version=VERSION,
            work=Work(write_bytes=_SIZE_BYTES, memory_level=MemoryLevel.PEER),
            prepare=_prepared_write,
            sources=(SOURCE, "data.cu"),
            gated=False,
            predicted_s=_SIZE_BYTES / _SLOWEST_BYTES_PER_S,
        ),
        Case(
            id=both,
            version=VERSION,
            work=Work(
                read_bytes=_SIZE_BYTES,
                write_bytes=_SIZE_BYTES,
                footprint_bytes=2 * _SIZE_BYTES,
                memory_level=MemoryLevel.PEER,
            ),
            prepare=_prepared_exchange,
            sources=(_EXCHANGE_SOURCE, "data.cu"),
            gated=False,
            predicted_s=_SIZE_BYTES / _SLOWEST_BYTES_PER_S,
        ),
    )


def _prepared_read(toolbox: Toolbox) -> Workload:
    layout = Layout(stream=READ, array_bytes=_SIZE_BYTES, sets=1)
    return prepared_read(layout, toolbox, [toolbox.peer_buffer(_SIZE_BYTES)])


def _prepared_write(toolbox: Toolbox) -> Workload:
    layout = Layout(stream=WRITE, array_bytes=_SIZE_BYTES, sets=1)
    return prepared_write(layout, toolbox, [toolbox.peer_buffer(_SIZE_BYTES)])


def _prepared_exchange(toolbox: Toolbox) -> Workload:
    sent, fetched_to = (toolbox.buffer(_SIZE_BYTES) for _ in range(2))
    sent_to, fetched = (toolbox.peer_buffer(_SIZE_BYTES) for _ in range(2))
    words, vectors = _SIZE_BYTES // WORD_BYTES, _SIZE_BYTES // _VECTOR_BYTES
    checks = []
    for seed, (source, target) in enumerate(((sent, sent_to), (fetched, fetched_to))):
        fill_normal_patterns(toolbox, source, seed)
        arguments = (target, np.uint64(words), np.uint64(seed))
        checks.append(Check(function="check_copy", count=words, args=arguments))
    kernel = toolbox.kernel(_EXCHANGE_SOURCE, "peer_exchange", defines={"BLOCK": _BLOCK, "UNROLL": _UNROLL})
    execution = kernel.bind(
        grid=(2 * -(-vectors // (_BLOCK * _UNROLL)), 1, 1),
        block=(_BLOCK, 1, 1),
        args=(sent, sent_to, fetched, fetched_to, np.uint64(vectors)),
    )
    return exact_workload(
        toolbox, [execution], [sent_to, fetched_to], checks, "all words of both ways against the recomputed sources"
    )
