"""A case that is open: executions in turn, replays counted as executions, fewer of them where the queue fills."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.case import Case, Timing, Work
from perfgate.core.device import SampleBatch
from perfgate.core.toolbox import Verification, Workload
from perfgate.devices.cuda import session
from perfgate.devices.cuda.session import CudaOpenCase, rotation
from perfgate.devices.cuda.timing import QUEUE_LIMIT


class Timer:
    """Notes what it is asked for; times out as long as more is queued than its queue takes."""

    def __init__(self, takes: int = 10_000) -> None:
        self.takes = takes
        self.asked: list[tuple[int, int, int]] = []

    def time_batch(
        self,
        timing: Timing,
        executions: Sequence[Callable[[], None]],
        turn: int,
        *,
        count: int,
        samples: int,
        queue_limit: int,
    ) -> SampleBatch:
        self.asked.append((turn, count, queue_limit))
        is_full = min(queue_limit, count * samples) > self.takes
        return SampleBatch(intervals_s=(1e-3,) * samples, spin_timed_out=is_full)


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "driver", lambda: SimpleNamespace(Error=RuntimeError))
    monkeypatch.setattr(session, "LeakWatch", lambda case_id: SimpleNamespace(look=lambda _: None))


def opened(timer: Timer, *, sets: int = 3, is_foreign: bool = False, graph: Any = None) -> CudaOpenCase:
    workload = Workload(
        executions=tuple((lambda: None) for _ in range(sets)),
        poison=lambda: None,
        verify=lambda: Verification(passed=True, error=0.0, tolerance=0.0, detail=""),
        is_foreign=is_foreign,
    )
    timing = Timing.EVENTS if graph is None else Timing.REPLAY
    case = Case(id="own.case", version=1, work=Work(), prepare=lambda toolbox: workload, timing=timing)
    return CudaOpenCase(case, workload, timer, None, graph)  # type: ignore[arg-type]


def test_time_batch__takes_the_buffer_sets_in_turn() -> None:
    timer = Timer()
    case = opened(timer)
    for _ in range(2):
        case.time_batch(executions=4, samples=5)
    assert timer.asked == [(0, 4, QUEUE_LIMIT), (20 % 3, 4, QUEUE_LIMIT)]
    assert case.sets == 3


def test_time_batch__counts_a_replay_as_all_the_executions_in_it() -> None:
    timer = Timer()
    case = opened(timer, graph=SimpleNamespace(replay=lambda: None))
    assert case.sets == 66 == len(rotation([lambda: None] * 3))
    case.time_batch(executions=660, samples=5)
    assert [count for _, count, _ in timer.asked] == [10]


def test_time_batch__queues_fewer_of_somebodys_executions_until_they_fit() -> None:
    timer = Timer(takes=5)
    case = opened(timer, is_foreign=True)
    assert not case.time_batch(executions=100, samples=5).spin_timed_out
    assert [limit for _, _, limit in timer.asked] == [60, 7, 1]
    assert not case.time_batch(executions=100, samples=5).spin_timed_out
    assert len(timer.asked) == 4


def test_time_batch__that_times_out_with_one_command_each_is_told_as_it_is() -> None:
    timer = Timer(takes=5)
    assert opened(timer).time_batch(executions=100, samples=5).spin_timed_out
    assert len(timer.asked) == 1
