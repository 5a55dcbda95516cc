"""Somebody's callable under watch: it may neither wait for the stream nor work on another, nor lose memory."""

import time
from collections.abc import Callable

import numpy as np

from perfgate.core.toolbox import Buffer, Workload
from perfgate.devices.cuda.driver import driver
from perfgate.devices.cuda.graph import Graph
from perfgate.devices.cuda.timing import QUEUE_LIMIT, StreamTimer
from perfgate.devices.cuda.toolbox import CudaToolbox
from perfgate.errors import ConfigurationError, PerfgateError

# Work on a stream that is not held shows within this: kernels take microseconds, a copy of a gigabyte a millisecond.
_LOOK_S = 0.02
_STEP_S = 2e-3
_SAMPLED_WORDS = 64
# Batches after which memory that a framework keeps for itself has stopped growing.
_WARM_BATCHES = 3
_LEAK_BYTES = 32 * 2**20


def refuse_misuse(
    case_id: str,
    workload: Workload,
    toolbox: CudaToolbox,
    timer: StreamTimer,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Call each execution once, then the first again while the stream is held: nothing of it may end meanwhile.

    Raises:
        ConfigurationError: it waits for the stream, writes its outputs on another, or enqueues too much at once.
    """
    for execute in workload.executions:
        execute()  # a first call may compile, tune and synchronize
    toolbox.synchronize()
    driver().Context.synchronize()
    workload.poison()
    toolbox.synchronize()
    before = [_samples(toolbox, buffer) for buffer in workload.outputs]
    elsewhere: list[int] = []

    def look() -> None:
        for _ in range(round(_LOOK_S / _STEP_S)):
            sleep(_STEP_S)
            after = [_samples(toolbox, buffer) for buffer in workload.outputs]
            elsewhere.extend(place for place, pair in enumerate(zip(before, after, strict=True)) if _differs(*pair))
            if elsewhere:
                return

    first = workload.executions[0]
    # Once more before it is accused: the host may have been busy for as long as the spin kernel waits.
    if not timer.is_held_through(first, look) and not timer.is_held_through(first, look):
        raise _waited(case_id, first, toolbox)
    if elsewhere:
        raise ConfigurationError(
            f"{case_id}: output {elsewhere[0]} was written while the stream was held: the callable works on another"
            " stream, which nobody times",
            hint="enqueue on the stream that set-up is given, e.g. under torch.cuda.ExternalStream(stream.handle)",
        )


class LeakWatch:
    """Looks at the free memory of the device from batch to batch.

    Args:
        case_id: for the message.
    """

    def __init__(self, case_id: str) -> None:
        self._id = case_id
        self._batches = 0
        self._executions = 0
        self._free_bytes: int | None = None

    def look(self, executions: int) -> None:
        """Note the free memory after a batch."""
        self._batches += 1
        if self._batches == _WARM_BATCHES:
            self._free_bytes = driver().mem_get_info()[0]
        elif self._batches > _WARM_BATCHES:
            self._executions += executions

    def refuse_leak(self) -> None:
        """Refuse a callable that has taken memory all along.

        Raises:
            ConfigurationError: names how much.
        """
        if self._free_bytes is None or not self._executions:
            return
        lost_bytes = self._free_bytes - driver().mem_get_info()[0]
        if lost_bytes >= _LEAK_BYTES:
            raise ConfigurationError(
                f"{self._id}: it leaks memory: {lost_bytes / 2**20:.0f} MiB of the device were lost in"
                f" {self._executions} executions, {lost_bytes / self._executions:.0f} bytes each",
                hint="allocate outputs in set-up, and free what an execution allocates",
            )


def _waited(case_id: str, execute: Callable[[], None], toolbox: CudaToolbox) -> ConfigurationError:
    """Tell a callable that waits from one that fills the queue: what can be captured does not wait."""
    try:
        graph = Graph(toolbox.stream, execute)
        commands = graph.node_count
        graph.close()
    except (PerfgateError, driver().Error):
        commands = 0
    if commands > QUEUE_LIMIT:
        return ConfigurationError(
            f"{case_id}: one execution enqueues {commands} commands, more than a stream takes at once",
            hint="pass graph=True: a replay is one command",
        )
    return ConfigurationError(
        f"{case_id}: the callable synchronizes: it waits for the stream that it is to enqueue on",
        hint="leave out .item(), .cpu(), print of a tensor, synchronize() and copies to pageable memory",
    )


def _samples(toolbox: CudaToolbox, buffer: Buffer) -> np.ndarray:
    """Some words of a buffer, read without waiting for the stream."""
    words = buffer.size_bytes // 4
    count = min(_SAMPLED_WORDS, words)
    found = np.empty((3, count), dtype=np.uint32)
    for row, place in enumerate((0, (words - count) // 2, words - count)):
        toolbox.peek(found[row], buffer.address + 4 * place)
    return found


def _differs(one: np.ndarray, other: np.ndarray) -> bool:
    return not np.array_equal(one, other)
