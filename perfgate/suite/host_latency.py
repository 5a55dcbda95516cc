"""Small copies and synchronizing, as the host sees them: reported, not gated (docs/measurement.md)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Timing, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.suite.filling import WORD_BYTES, poisoning
from perfgate.suite.sizes import size_axis
from perfgate.suite.tally import exact_verification

VERSION = 1
_COPIED_BYTES = (4, 64 * 1024)
_SEED = 0x5EED


def host_latency_cases(_gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the host-timed latencies."""
    smallest = _COPIED_BYTES[0]
    return (
        *(
            _case(f"copy_host[bytes={size_axis(size)},to=device]", Timing.ROUNDTRIP, partial(_prepared_upload, size))
            for size in _COPIED_BYTES
        ),
        *(
            _case(f"copy_host[bytes={size_axis(size)},to=host]", Timing.ROUNDTRIP, partial(_prepared_download, size))
            for size in _COPIED_BYTES
        ),
        _case(f"copy_async[bytes={size_axis(smallest)}]", Timing.SUBMIT, partial(_prepared_upload, smallest)),
        _case("stream_synchronize", Timing.SUBMIT, lambda toolbox: _waiting(toolbox.synchronize)),
        _case("device_synchronize", Timing.SUBMIT, lambda toolbox: _waiting(toolbox.synchronize_device)),
    )


def _case(name: str, timing: Timing, prepare: Callable[[Toolbox], Workload]) -> Case:
    return Case(
        id=f"latency.{name}",
        version=VERSION,
        work=Work(),
        prepare=prepare,
        timing=timing,
        gated=False,
        predicted_s=20e-6,
    )


def _prepared_upload(size_bytes: int, toolbox: Toolbox) -> Workload:
    source, target = _random_words(toolbox, size_bytes), toolbox.buffer(size_bytes)
    return Workload(
        executions=(toolbox.bound_upload(target, source),),
        poison=poisoning(toolbox, [target]),
        verify=lambda: _compared(toolbox.read(target, np.uint32, len(source)), source),
    )


def _prepared_download(size_bytes: int, toolbox: Toolbox) -> Workload:
    words = _random_words(toolbox, size_bytes)
    source: Buffer = toolbox.buffer(size_bytes)
    toolbox.write(source, words)
    target = toolbox.pinned(len(words), np.uint32)

    def verification() -> Verification:
        toolbox.synchronize()
        return _compared(target, words)

    return Workload(
        executions=(toolbox.bound_download(target, source),),
        poison=lambda: target.fill(~np.uint32(0)),
        verify=verification,
    )


def _random_words(toolbox: Toolbox, size_bytes: int) -> np.ndarray:
    words = toolbox.pinned(size_bytes // WORD_BYTES, np.uint32)
    words[:] = np.random.default_rng(_SEED).integers(0, 2**32 - 1, len(words), dtype=np.uint32)
    return words


def _compared(found: np.ndarray, expected: np.ndarray) -> Verification:
    wrong = np.flatnonzero(found != expected)
    return exact_verification([(len(wrong), int(wrong[0]) if len(wrong) else 0)], "all words against the source")


def _waiting(wait: Callable[[], None]) -> Workload:
    return Workload(executions=(wait,), poison=lambda: None, verify=_verified_nothing)


def _verified_nothing() -> Verification:
    return Verification(passed=True, error=0.0, tolerance=0.0, detail="waiting has no output")
