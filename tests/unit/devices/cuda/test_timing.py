"""The timer on a driver in virtual time: a slow interpreter is outside of what is timed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perfgate.core.case import Timing
from perfgate.core.device import SampleBatch
from perfgate.devices.cuda import timing
from perfgate.devices.cuda.timing import QUEUE_LIMIT, SHORT_CHAIN, SPIN_TIMEOUT_S, StreamTimer
from perfgate.errors import DeviceError
from tests.unit.devices.cuda.fake_cuda import FakeCuda, Stream

KERNEL_S = 8e-6


class Bench:
    """A timer on a fake device, and kernels for it."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.stream: Stream = cuda.stream()
        self.timer = StreamTimer(self.stream, cuda.timing_module(), len(cuda.sm_clocks_hz), cuda.host.now_s)

    def kernels(self, *durations_s: float) -> list[Callable[[], None]]:
        return [self.cuda.kernel(self.stream, duration_s) for duration_s in durations_s]

    def events(self, *, count: int, samples: int, durations_s: tuple[float, ...] = (KERNEL_S,)) -> SampleBatch:
        return self.timer.time_batch(Timing.EVENTS, self.kernels(*durations_s), 0, count=count, samples=samples)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def made(**settings: Any) -> Bench:
        cuda = FakeCuda(**settings)
        monkeypatch.setattr(timing, "driver", lambda: cuda)
        monkeypatch.setattr(timing, "time", cuda.host)
        return Bench(cuda)

    return made


def test_fake__times_a_slow_host_where_nothing_holds_the_stream(bench: Any) -> None:
    """The fake can show what the spin kernel is for: without it the host's delays are in the times."""
    one = bench()
    one.cuda.host.call_s = 50e-6
    first, second = one.cuda.Event(), one.cuda.Event()
    (kernel,) = one.kernels(KERNEL_S)
    first.record(one.stream)
    for _ in range(10):
        kernel()
    second.record(one.stream)
    second.synchronize()
    assert second.time_since(first) * 1e-3 > 10 * 50e-6


@pytest.mark.parametrize("call_s", [0.0, 4e-6, 50e-6, 1e-3])
@pytest.mark.parametrize(("count", "samples"), [(1, 10), (20, 10), (40, 11)])
def test_time_batch__a_slow_interpreter_leaves_the_intervals_unchanged(
    bench: Any, call_s: float, count: int, samples: int
) -> None:
    one = bench()
    one.cuda.host.call_s = call_s
    batch = one.events(count=count, samples=samples)
    assert batch.intervals_s == pytest.approx([count * KERNEL_S] * samples, rel=1e-6)
    assert not batch.spin_timed_out
    assert not batch.host_bound


def test_time_batch__a_pause_of_the_host_in_the_middle_is_not_timed(bench: Any) -> None:
    one = bench()
    (kernel,) = one.kernels(KERNEL_S)
    launches = 0

    def with_a_pause() -> None:
        nonlocal launches
        launches += 1
        if launches == 17:
            one.cuda.host.works(0.5)  # the garbage collector, or another process on this CPU
        kernel()

    batch = one.timer.time_batch(Timing.EVENTS, [with_a_pause], 0, count=4, samples=10)
    assert batch.intervals_s == pytest.approx([4 * KERNEL_S] * 10, rel=1e-6)
    assert not batch.spin_timed_out


def test_time_batch__a_host_that_never_releases_is_marked(bench: Any) -> None:
    one = bench()
    (kernel,) = one.kernels(KERNEL_S)
    launches = 0

    def stuck() -> None:
        nonlocal launches
        launches += 1
        if launches == 17:
            one.cuda.host.works(1.5 * SPIN_TIMEOUT_S)
        kernel()

    batch = one.timer.time_batch(Timing.EVENTS, [stuck], 0, count=4, samples=10)
    assert batch.spin_timed_out


def test_time_batch__after_a_timeout_the_next_is_good_again(bench: Any) -> None:
    one = bench()
    one.cuda.host.call_s = SPIN_TIMEOUT_S
    assert one.events(count=1, samples=3).spin_timed_out
    one.cuda.host.call_s = 4e-6
    assert not one.events(count=1, samples=3).spin_timed_out


@pytest.mark.parametrize(("count", "samples"), [(1000, 3), (48, 10), (479, 1), (480, 1), (5, 200)])
def test_time_batch__never_holds_more_than_the_queue_takes(bench: Any, count: int, samples: int) -> None:
    one = bench(queue_limit=512)
    begun_s = one.cuda.host.now_s
    batch = one.events(count=count, samples=samples)
    assert one.stream.most_held <= QUEUE_LIMIT + 1  # the spin kernel itself
    assert not batch.spin_timed_out
    assert one.cuda.host.now_s - begun_s < SPIN_TIMEOUT_S
    assert len(batch.intervals_s) == samples


def test_fake__a_full_queue_behind_the_spin_kernel_blocks_until_its_timeout(bench: Any) -> None:
    """What the bound is for: a queue that takes less than is held hangs, and the device's timeout ends it."""
    one = bench(queue_limit=100)
    begun_s = one.cuda.host.now_s
    assert one.events(count=30, samples=10).spin_timed_out
    assert one.cuda.host.now_s - begun_s >= SPIN_TIMEOUT_S


def test_time_batch__beyond_the_queue_a_gpu_that_waits_for_the_host_is_noticed(bench: Any) -> None:
    slow = bench()
    slow.cuda.host.call_s = 4 * KERNEL_S
    assert slow.events(count=1000, samples=3).host_bound
    quick = bench()
    quick.cuda.host.call_s = KERNEL_S / 4
    batch = quick.events(count=1000, samples=3)
    assert not batch.host_bound
    assert batch.intervals_s == pytest.approx([1000 * KERNEL_S] * 3, rel=1e-6)


def test_time_batch__rotates_over_the_buffer_sets_from_where_it_is_told(bench: Any) -> None:
    one = bench()
    calls: list[int] = []
    kernels = one.kernels(1e-6, 2e-6, 3e-6)

    def counted(index: int) -> Callable[[], None]:
        return lambda: (calls.append(index), kernels[index]())[1]

    one.timer.time_batch(Timing.EVENTS, [counted(index) for index in range(3)], 1, count=3, samples=2)
    assert calls == [1, 2, 0, 1, 2, 0, 1]  # the first one is untimed


def test_time_batch__the_untimed_execution_takes_what_is_cold(bench: Any) -> None:
    one = bench()
    durations = iter([1e-3] + [KERNEL_S] * 100)

    def warming() -> None:
        one.cuda.kernel(one.stream, next(durations))()

    batch = one.timer.time_batch(Timing.EVENTS, [warming], 0, count=2, samples=5)
    assert batch.intervals_s == pytest.approx([2 * KERNEL_S] * 5, rel=1e-6)


def test_time_batch__the_clock_is_the_median_over_the_sms(bench: Any) -> None:
    one = bench(sm_count=5, clock_hz=1.98e9)
    batch = one.events(count=100, samples=4, durations_s=(1e-4,))
    assert batch.sm_clock_hz == pytest.approx(np.median(one.cuda.sm_clocks_hz), rel=1e-5)


def test_time_batch__an_sm_that_no_stamp_reached_has_no_clock(bench: Any) -> None:
    one = bench(sm_count=3)
    one.cuda.unreached = {0, 1}
    batch = one.events(count=100, samples=4, durations_s=(1e-4,))
    assert batch.sm_clock_hz == pytest.approx(one.cuda.sm_clocks_hz[2], rel=1e-5)
    one.cuda.unreached = {0, 1, 2}
    assert one.events(count=1, samples=3).sm_clock_hz is None


def test_time_batch__begins_are_seconds_since_the_launch(bench: Any) -> None:
    one = bench()
    first = one.events(count=1, samples=3)
    one.cuda.host.works(2.0)
    second = one.events(count=1, samples=3)
    assert second.started_s - first.started_s == pytest.approx(2.0, abs=0.01)
    assert 0 <= first.started_s < 0.1


@pytest.mark.parametrize("call_s", [1e-6, 50e-6, 1e-3])
def test_gap__is_the_slope_whatever_the_host_takes(bench: Any, call_s: float) -> None:
    one = bench()
    one.cuda.host.call_s = call_s
    batch = one.timer.time_batch(Timing.GAP, one.kernels(1.3e-6), 0, count=384, samples=3)
    assert batch.intervals_s == pytest.approx([384 * 1.3e-6] * 3, rel=1e-6)
    assert one.stream.most_held <= QUEUE_LIMIT + 1


def test_event_floor__times_a_pair_around_nothing(bench: Any) -> None:
    one = bench()
    batch = one.timer.time_batch(Timing.EVENT_FLOOR, one.kernels(1.0), 0, count=1, samples=4)
    assert batch.intervals_s == (0.0,) * 4


def test_submit__is_the_hosts_time_of_launches_alone(bench: Any) -> None:
    one = bench(queue_limit=1024)
    one.cuda.host.call_s = 5e-6
    batch = one.timer.time_batch(Timing.SUBMIT, one.kernels(1e-3), 0, count=700, samples=2)
    assert batch.intervals_s == pytest.approx([700 * 5e-6] * 2, rel=1e-4)


def test_roundtrip__is_the_hosts_time_with_the_wait(bench: Any) -> None:
    one = bench()
    one.cuda.host.call_s = 5e-6
    batch = one.timer.time_batch(Timing.ROUNDTRIP, one.kernels(20e-6), 0, count=64, samples=2)
    assert batch.intervals_s == pytest.approx([64 * 25e-6] * 2, rel=1e-4)


def test_graphs__are_closed_also_when_a_replay_fails(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = bench()
    made: list[Any] = []

    class Graph:
        def __init__(self, stream: int, enqueue: Callable[[], None]) -> None:
            assert stream == one.stream.handle
            self.is_closed = False
            self.replays = 0
            made.append(self)

        def replay(self) -> None:
            self.replays += 1
            if self.replays == 3:
                raise DeviceError("CUDA graph: launch failed")

        def close(self) -> None:
            self.is_closed = True

    monkeypatch.setattr(timing, "Graph", Graph)
    with pytest.raises(DeviceError):
        one.timer.time_batch(Timing.GRAPH_NODE, one.kernels(1e-6), 0, count=384, samples=5)
    assert len(made) == 2
    assert all(graph.is_closed for graph in made)


def test_graph_node__is_the_slope_over_the_nodes(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = bench()
    lengths: list[int] = []

    class Graph:
        def __init__(self, stream: int, enqueue: Callable[[], None]) -> None:
            before = len(captured)
            enqueue()
            self.nodes = len(captured) - before
            lengths.append(self.nodes)

        def replay(self) -> None:
            one.cuda.kernel(one.stream, 10e-6 + self.nodes * 1.1e-6)()

        def close(self) -> None:
            pass

    captured: list[int] = []
    monkeypatch.setattr(timing, "Graph", Graph)
    batch = one.timer.time_batch(Timing.GRAPH_NODE, [lambda: captured.append(1)], 0, count=384, samples=3)
    assert lengths == [SHORT_CHAIN, SHORT_CHAIN + 384]
    assert batch.intervals_s == pytest.approx([384 * 1.1e-6] * 3, rel=1e-6)


def test_self_test__passes_where_events_time_the_stream(bench: Any) -> None:
    assert bench().timer.self_test() == pytest.approx(1.5e9, rel=5e-3)


@pytest.mark.parametrize("slope", [Timing.GAP, Timing.GRAPH_NODE])
def test_time_batch__a_slope_knows_the_clock_that_it_ran_at(bench: Any, monkeypatch: Any, slope: Timing) -> None:
    class Graph:
        def __init__(self, stream: Any, capture: Any) -> None: ...
        def replay(self) -> None: ...
        def close(self) -> None: ...

    monkeypatch.setattr(timing, "Graph", Graph)
    one = bench()
    batch = one.timer.time_batch(slope, one.kernels(1e-6), 0, count=384, samples=3)
    assert batch.sm_clock_hz == pytest.approx(1.5e9, rel=5e-3)


def test_self_test__finds_events_that_time_another_stream(bench: Any) -> None:
    one = bench()
    one.cuda.event_stream = one.cuda.stream()
    with pytest.raises(DeviceError, match=r"the events do not time this stream") as raised:
        one.timer.self_test()
    assert "profiler" in raised.value.hint


def test_time_batch__the_slowest_of_a_rotation_stands_for_all_of_it(bench: Any) -> None:
    one = bench()
    kernels = one.kernels(10e-6, 10e-6, 13e-6, 10e-6)
    batch = one.timer.time_batch(Timing.SLOWEST, kernels, 0, count=4, samples=3)
    assert batch.intervals_s == pytest.approx([4 * 13e-6] * 3, rel=1e-6)


def test_time_batch__the_slowest_is_found_among_more_executions_than_the_queue_takes(bench: Any) -> None:
    one = bench()
    one.cuda.host.call_s = 1e-6
    kernels = one.kernels(*([2e-4] * 100 + [3e-4] + [2e-4] * 24))
    batch = one.timer.time_batch(Timing.SLOWEST, kernels, 0, count=125, samples=3)
    assert batch.intervals_s == pytest.approx([125 * 3e-4] * 3, rel=1e-6)
    assert not batch.spin_timed_out
    assert not batch.host_bound
