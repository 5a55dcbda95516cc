"""Timing on the device: events behind a spin kernel, slopes, and the host's clock where that is what is asked.

The queue is filled while the spin kernel holds the stream, so that what is timed starts back to back
and the host's share (7-11 µs a launch, 11 % spread) is outside. PyCUDA holds the interpreter lock in
cuLaunchKernel: a full queue would hang Python for ever, so at most QUEUE_LIMIT commands are queued
before the release, and the spin ends by itself on the device.
"""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perfgate.core.case import Timing
from perfgate.core.device import SampleBatch
from perfgate.devices.cuda.driver import driver
from perfgate.devices.cuda.graph import Graph
from perfgate.errors import DeviceError

# 512 launches fit behind the spin kernel on H200 without blocking; events and stamps count too.
QUEUE_LIMIT = 480
# Far above the host's time to fill the queue (5 ms), far below a person's patience.
SPIN_TIMEOUT_S = 2.0
# A slope is the difference of two chains; the short one hides ramp-up. docs/measurement.md 12.
SHORT_CHAIN = 64
# Host-timed batches never fill the queue (1024 entries), or the time would be the drain rate.
HOST_BATCH = 256
# A GPU that waits for the host passes an event within microseconds of its enqueueing.
_BACKLOG_S = 50e-6

_SELF_TEST_SPIN_S = 1e-3
_SELF_TEST_LEAST = 0.99


class StreamTimer:
    """Times work on one non-blocking stream.

    Args:
        stream: PyCUDA stream that everything is enqueued on.
        module: the compiled ``timing.cu``.
        sm_count: number of SMs whose clocks are stamped.
        began_s: ``time.monotonic()`` of the launch's begin.
    """

    def __init__(self, stream: Any, module: Any, sm_count: int, began_s: float) -> None:
        drv = driver()
        self._stream = stream
        self._began_s = began_s
        self._sm_count = sm_count
        self._events: list[Any] = []
        self._flag = _mapped_word()
        self._status = _mapped_word()
        self._spin_until = module.get_function("spin_until").prepare(["P", np.uint64, "P"])
        self._spin_for = module.get_function("spin_for").prepare([np.uint64])
        self._stamp = module.get_function("stamp_clocks").prepare(["P", np.uint32])
        self._stamps = [drv.mem_alloc(16 * sm_count) for _ in range(2)]
        for stamps in self._stamps:
            drv.memset_d8(stamps, 0, 16 * sm_count)
        # The spin's own module is loaded before anything is queued behind it.
        self._hold()
        self._release()
        stream.synchronize()

    def self_test(self) -> float | None:
        """A spin of a known 1 ms must read at least 0.99 ms between events on this stream.

        Returns:
            The SM clock meanwhile [Hz].

        Raises:
            DeviceError: it does not; the events time something else.
        """
        begin, end = self._event(0), self._event(1)
        self._stamped(0)
        begin.record(self._stream)
        self._spin_for.prepared_async_call((1, 1), (1, 1, 1), self._stream, np.uint64(round(_SELF_TEST_SPIN_S * 1e9)))
        end.record(self._stream)
        self._stamped(1)
        self._stream.synchronize()
        measured_s = end.time_since(begin) * 1e-3
        if measured_s < _SELF_TEST_LEAST * _SELF_TEST_SPIN_S:
            raise DeviceError(
                f"self-test failed: a spin of {_SELF_TEST_SPIN_S * 1e3:.0f} ms read {measured_s * 1e3:.4f} ms between"
                " events: the events do not time this stream",
                hint="is a profiler or an interposed CUDA library active?",
            )
        return self._clock_between_stamps()

    def is_held_through(self, command: Callable[[], None], look: Callable[[], None]) -> bool:
        """Call something while the stream is held, look around, release; tell whether the stream was held all the time.

        It was not when ``command`` waited for the stream, or enqueued more than the queue takes: then the
        spin kernel ended by itself.
        """
        self._hold()
        try:
            command()
            is_held = int(self._status[0]) == 0
            if is_held:
                look()
        finally:
            self._release()
        self._stream.synchronize()
        return is_held

    def time_batch(
        self,
        timing: Timing,
        executions: Sequence[Callable[[], None]],
        turn: int,
        *,
        count: int,
        samples: int,
        queue_limit: int = QUEUE_LIMIT,
    ) -> SampleBatch:
        """Time ``samples`` intervals of ``count`` executions each; see core.device.OpenCase.time_batch.

        Args:
            timing: what an interval is.
            executions: one callable a buffer set.
            turn: which of them comes first.
            count: executions in an interval.
            samples: intervals.
            queue_limit: executions that are queued before the release; fewer where each is several commands.
        """
        started_s = time.monotonic() - self._began_s
        if timing in (Timing.EVENTS, Timing.REPLAY):
            return self._time_events(executions, turn, count, samples, started_s, queue_limit)
        if timing is Timing.SLOWEST:
            singly = self._time_events(executions, turn, 1, count * samples, started_s, queue_limit)
            return replace(singly, intervals_s=_slowest(singly.intervals_s, count))
        single = executions[turn % len(executions)]
        intervals: list[float] = []
        timed_out = False
        graphs = self._graphs(timing, single, count)
        is_slope = timing in (Timing.GAP, Timing.GRAPH_NODE)
        try:
            if is_slope:
                self._stamped(0)
            for _ in range(samples):
                if timing is Timing.GAP:
                    interval, late = self._slope(lambda chain: _repeat(single, chain), count)
                elif timing is Timing.GRAPH_NODE:
                    interval, late = self._slope(lambda chain: graphs[chain].replay(), count)
                elif timing is Timing.EVENT_FLOOR:
                    interval, late = self._chain(lambda: None)
                    interval *= count
                else:
                    interval, late = self._host_interval(timing, single, count, graphs), False
                intervals.append(interval)
                timed_out = timed_out or late
            if is_slope:
                self._stamped(1)
                self._stream.synchronize()
        finally:
            for graph in graphs.values():
                graph.close()
        return SampleBatch(
            intervals_s=tuple(intervals),
            sm_clock_hz=self._clock_between_stamps() if is_slope else None,
            started_s=started_s,
            spin_timed_out=timed_out,
        )

    def _time_events(
        self,
        executions: Sequence[Callable[[], None]],
        turn: int,
        count: int,
        samples: int,
        started_s: float,
        queue_limit: int,
    ) -> SampleBatch:
        """Neighbouring events around back-to-back executions; SM clocks over the whole batch."""
        events = [self._event(index) for index in range(samples + 1)]
        queued = 0
        held = True

        def enqueued(command: Callable[[], None]) -> None:
            nonlocal queued, held
            if held and queued >= queue_limit:
                self._release()
                held = False
            command()
            queued += 1

        self._hold()
        enqueued(executions[turn % len(executions)])  # untimed: the first one after the spin starts cold
        enqueued(lambda: self._stamped(0))
        enqueued(lambda: events[0].record(self._stream))
        for sample in range(samples):
            for _ in range(count):
                turn += 1
                enqueued(executions[turn % len(executions)])
            enqueued(functools.partial(events[sample + 1].record, self._stream))
        # What was queued before the release cannot have waited; beyond it the GPU must stay behind the host.
        host_bound = not held and self._has_caught_up(events[-1])
        enqueued(lambda: self._stamped(1))
        if held:
            self._release()
        self._stream.synchronize()
        intervals = tuple(events[index + 1].time_since(events[index]) * 1e-3 for index in range(samples))
        return SampleBatch(
            intervals_s=intervals,
            sm_clock_hz=self._clock_between_stamps(),
            started_s=started_s,
            spin_timed_out=self._has_timed_out(),
            host_bound=host_bound,
        )

    def _slope(self, enqueue: Callable[[int], None], count: int) -> tuple[float, bool]:
        """Time of a long chain less that of a short one, ``count`` links apart."""
        short, short_late = self._chain(lambda: enqueue(SHORT_CHAIN))
        long, long_late = self._chain(lambda: enqueue(SHORT_CHAIN + count))
        return long - short, short_late or long_late

    def _chain(self, enqueue: Callable[[], None]) -> tuple[float, bool]:
        begin, end = self._event(0), self._event(1)
        self._hold()
        begin.record(self._stream)
        enqueue()
        end.record(self._stream)
        self._release()
        end.synchronize()
        return end.time_since(begin) * 1e-3, self._has_timed_out()

    def _host_interval(self, timing: Timing, single: Callable[[], None], count: int, graphs: dict[int, Graph]) -> float:
        """Host seconds of ``count`` launches: submit alone, or each with its synchronize."""
        command = graphs[1].replay if timing is Timing.GRAPH else single
        waits = timing is not Timing.SUBMIT
        total_s, left = 0.0, count
        while left:
            batch = min(left, HOST_BATCH)
            begin = time.perf_counter()
            for _ in range(batch):
                command()
                if waits:
                    self._stream.synchronize()
            total_s += time.perf_counter() - begin
            self._stream.synchronize()
            left -= batch
        return total_s

    def _graphs(self, timing: Timing, single: Callable[[], None], count: int) -> dict[int, Graph]:
        lengths = {Timing.GRAPH: (1,), Timing.GRAPH_NODE: (SHORT_CHAIN, SHORT_CHAIN + count)}.get(timing, ())
        graphs = {length: Graph(self._stream.handle, functools.partial(_repeat, single, length)) for length in lengths}
        for graph in graphs.values():  # the first replay uploads the graph
            graph.replay()
        self._stream.synchronize()
        return graphs

    def _hold(self) -> None:
        self._flag[0] = 0
        self._status[0] = 0
        self._spin_until.prepared_async_call(
            (1, 1),
            (1, 1, 1),
            self._stream,
            self._flag.base.get_device_pointer(),
            np.uint64(round(SPIN_TIMEOUT_S * 1e9)),
            self._status.base.get_device_pointer(),
        )

    def _release(self) -> None:
        self._flag[0] = 1

    @staticmethod
    def _has_caught_up(last: Any) -> bool:
        """Whether the GPU reaches an event that was just enqueued sooner than it could have finished a backlog."""
        end_s = time.perf_counter() + _BACKLOG_S
        while time.perf_counter() < end_s:
            pass
        return bool(last.query())

    def _has_timed_out(self) -> bool:
        return int(self._status[0]) != 1

    def _stamped(self, index: int) -> None:
        self._stamp.prepared_async_call(
            (4 * self._sm_count, 1), (32, 1, 1), self._stream, int(self._stamps[index]), np.uint32(self._sm_count)
        )

    def _clock_between_stamps(self) -> float | None:
        """Median over SMs of cycles / seconds; an SM that no stamp reached is left out."""
        first, last = np.zeros((2, self._sm_count, 2), dtype=np.uint64)
        driver().memcpy_dtoh(first, self._stamps[0])
        driver().memcpy_dtoh(last, self._stamps[1])
        reached = (first[:, 1] > 0) & (last[:, 1] > first[:, 1])
        if not reached.any():
            return None
        cycles = (last[reached, 0] - first[reached, 0]).astype(np.float64)
        seconds = (last[reached, 1] - first[reached, 1]).astype(np.float64) * 1e-9
        return float(np.median(cycles / seconds))

    def _event(self, index: int) -> Any:
        while len(self._events) <= index:
            self._events.append(driver().Event())
        return self._events[index]


def _mapped_word() -> Any:
    """One 32-bit word of host memory that the device sees: an array whose base knows its device pointer."""
    drv = driver()
    return drv.pagelocked_zeros(1, np.uint32, mem_flags=drv.host_alloc_flags.DEVICEMAP)


def _slowest(times_s: tuple[float, ...], count: int) -> tuple[float, ...]:
    """Return for each ``count`` executions the time that they would take were all as slow as the slowest of them."""
    return tuple(count * max(times_s[begin : begin + count]) for begin in range(0, len(times_s), count))


def _repeat(command: Callable[[], None], count: int) -> None:
    for _ in range(count):
        command()
