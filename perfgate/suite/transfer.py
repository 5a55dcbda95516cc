"""Copies between page-locked host memory and the device, by the copy engines.

Random words, compared bit by bit on the device with recomputed ones: what went to the host is sent back
for that.
"""

import numpy as np

from perfgate.core.case import Case, MemoryLevel, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.filling import WORD_BYTES, fill_normal_patterns, poisoning
from perfgate.suite.sizes import size_axis
from perfgate.suite.tally import Check, Scan, exact_verification

VERSION = 1
# A copy takes some 10 µs to begin, 1 % of this on PCIe 5; page-locking takes 0.3 ms a MiB.
_SIZE_BYTES = 64 * 2**20
# Four lanes of PCIe 3: slower than any link of a GPU that computes.
_SLOWEST_BYTES_PER_S = 3e9
_SEED = 0
_COMPARED = "all words against the recomputed source"


def transfer_cases(_gpu: Gpu) -> tuple[Case, ...]:
    """Return the copies from host to device and back."""
    axis = f"[bytes={size_axis(_SIZE_BYTES)}]"
    return (
        Case(
            id=f"bandwidth.h2d{axis}",
            version=VERSION,
            work=Work(read_bytes=_SIZE_BYTES, footprint_bytes=_SIZE_BYTES, memory_level=MemoryLevel.PCIE),
            prepare=_prepared_to_device,
            sources=("data.cu",),
            predicted_s=_SIZE_BYTES / _SLOWEST_BYTES_PER_S,
        ),
        Case(
            id=f"bandwidth.d2h{axis}",
            version=VERSION,
            work=Work(write_bytes=_SIZE_BYTES, footprint_bytes=2 * _SIZE_BYTES, memory_level=MemoryLevel.PCIE),
            prepare=_prepared_to_host,
            sources=("data.cu",),
            predicted_s=_SIZE_BYTES / _SLOWEST_BYTES_PER_S,
        ),
    )


def _prepared_to_device(toolbox: Toolbox) -> Workload:
    target, source = toolbox.buffer(_SIZE_BYTES), toolbox.pinned(_SIZE_BYTES, np.uint8)
    fill_normal_patterns(toolbox, target, _SEED)
    toolbox.bound_download(source, target)()
    scan = _scan(toolbox, target)
    return Workload(
        executions=(toolbox.bound_upload(target, source),),
        poison=poisoning(toolbox, [target]),
        verify=lambda: exact_verification(scan.found(), _COMPARED),
    )


def _prepared_to_host(toolbox: Toolbox) -> Workload:
    source, spare = (toolbox.buffer(_SIZE_BYTES) for _ in range(2))
    target = toolbox.pinned(_SIZE_BYTES, np.uint8)
    fill_normal_patterns(toolbox, source, _SEED)
    invalid = poisoning(toolbox, [spare])
    spoil, look = toolbox.bound_download(target, spare), toolbox.bound_upload(spare, target)
    scan = _scan(toolbox, spare)

    def poison() -> None:
        invalid()
        spoil()

    def found() -> list[tuple[int, int]]:
        look()
        return scan.found()

    return Workload(
        executions=(toolbox.bound_download(target, source),),
        poison=poison,
        verify=lambda: exact_verification(found(), _COMPARED),
    )


def _scan(toolbox: Toolbox, received: Buffer) -> Scan:
    words = _SIZE_BYTES // WORD_BYTES
    return Scan(
        toolbox, [Check(function="check_copy", count=words, args=(received, np.uint64(words), np.uint64(_SEED)))]
    )
