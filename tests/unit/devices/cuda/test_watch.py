"""Somebody's callable under watch, on a driver in virtual time."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfgate.core.toolbox import Verification, Workload
from perfgate.devices.cuda import timing, watch
from perfgate.devices.cuda.timing import StreamTimer
from perfgate.errors import ConfigurationError, DeviceError
from tests.unit.devices.cuda.fake_cuda import Command, FakeCuda, Stream

KERNEL_S = 20e-6
OUTPUT = 0x5000


class Bench:
    """A stream, a timer of it, and one output that kernels write."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.stream: Stream = cuda.stream()
        self.other: Stream = cuda.stream()
        self.timer = StreamTimer(self.stream, cuda.timing_module(), len(cuda.sm_clocks_hz), cuda.host.now_s)
        self.toolbox = SimpleNamespace(synchronize=self.stream.synchronize, stream=self.stream.handle, peek=self.peek)
        self.output = np.zeros(192, dtype=np.uint32)

    def peek(self, target: np.ndarray, address: int) -> None:
        first = (address - OUTPUT) // 4
        target[:] = self.output[first : first + target.size]

    def poison(self) -> None:
        self.output[:] = 0xFFFFFFFF

    def writes(self, stream: Stream) -> Callable[[], None]:
        def written(end_s: float) -> None:
            self.output[:] = 7

        return lambda: stream.enqueue(Command(self.cuda.host.now_s, KERNEL_S, done=written))

    def watched(self, *executions: Callable[[], None]) -> None:
        workload = Workload(
            executions=executions,
            poison=self.poison,
            verify=lambda: Verification(passed=True, error=0.0, tolerance=0.0, detail=""),
            is_foreign=True,
            outputs=(SimpleNamespace(address=OUTPUT, size_bytes=self.output.nbytes),),
        )
        watch.refuse_misuse("own.case", workload, self.toolbox, self.timer, sleep=self.cuda.host.works)  # type: ignore[arg-type]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    cuda = FakeCuda()
    cuda.Context = SimpleNamespace(synchronize=lambda: [stream.synchronize() for stream in cuda.streams])  # type: ignore[attr-defined]
    monkeypatch.setattr(timing, "driver", lambda: cuda)
    monkeypatch.setattr(watch, "driver", lambda: cuda)
    monkeypatch.setattr(timing, "time", cuda.host)
    return Bench(cuda)


class FakeGraph:
    """What was captured; a synchronization cannot be."""

    def __init__(self, nodes: int | None) -> None:
        if nodes is None:
            raise DeviceError("CUDA graph: end of the capture failed")
        self.node_count = nodes

    def close(self) -> None:
        pass


def test_refuse_misuse__lets_a_callable_through_that_only_enqueues(bench: Bench) -> None:
    bench.watched(bench.writes(bench.stream), bench.writes(bench.stream))


def test_refuse_misuse__lets_a_first_call_compile_and_wait(bench: Bench) -> None:
    calls: list[int] = []

    def tuned() -> None:
        bench.writes(bench.stream)()
        if not calls:
            bench.stream.synchronize()
            bench.cuda.host.works(10.0)
        calls.append(1)

    bench.watched(tuned)


def test_refuse_misuse__names_a_callable_that_synchronizes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "Graph", lambda stream, enqueue: FakeGraph(None))

    def waits() -> None:
        bench.writes(bench.stream)()
        bench.stream.synchronize()

    with pytest.raises(ConfigurationError, match="the callable synchronizes"):
        bench.watched(waits)


def test_refuse_misuse__names_a_callable_that_works_on_another_stream(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match="output 0 was written while the stream was held"):
        bench.watched(bench.writes(bench.other))


def test_refuse_misuse__names_a_callable_that_fills_the_queue(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "Graph", lambda stream, enqueue: FakeGraph(700))
    single = bench.writes(bench.stream)

    def many() -> None:
        for _ in range(700):
            single()

    with pytest.raises(ConfigurationError, match="enqueues 700 commands") as caught:
        bench.watched(many)
    assert "graph=True" in caught.value.hint


def looked(bench: Bench, lost_bytes: int, batches: int = 10) -> None:
    leaks = watch.LeakWatch("own.case")
    for _ in range(batches):
        bench.cuda.memory.allocated += lost_bytes
        leaks.look(100)
    leaks.refuse_leak()


def test_leak_watch__names_how_much_an_execution_loses(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match=r"leaks memory: 70 MiB .* in 700 executions, 104858 bytes each"):
        looked(bench, 10 * 2**20)


@pytest.mark.parametrize(("lost_bytes", "batches"), [(0, 10), (2**20, 10), (2**30, 3), (2**30, 0)])
def test_leak_watch__lets_warm_up_and_noise_through(bench: Bench, lost_bytes: int, batches: int) -> None:
    looked(bench, lost_bytes, batches)


def test_time_batch__queues_fewer_executions_where_asked(bench: Bench) -> None:
    kernel: Any = bench.cuda.kernel(bench.stream, KERNEL_S)
    bench.timer.time_batch(timing.Timing.EVENTS, [kernel], 0, count=100, samples=3, queue_limit=60)
    assert bench.stream.most_held <= 61
