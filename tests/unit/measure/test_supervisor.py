"""The supervisor's decisions, with a clock that only sleeping moves and processes that are not there."""

import itertools
import signal
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.run import CaseLaunch
from perfgate.errors import OutputError
from perfgate.measure import attempt as attempt_module
from perfgate.measure.attempt import Surroundings
from perfgate.measure.interruption import listening
from perfgate.measure.journal import (
    CaseMeasured,
    LaunchFinished,
    Message,
    Phase,
    PhaseEntered,
    Started,
    open_journal,
)
from perfgate.measure.order import LaunchOrder
from perfgate.measure.supervisor import Lessons, supervise
from tests.factories import PLAN, make_case_launch

RESULT: CaseLaunch = make_case_launch(1e-3)


class World:
    """A clock, and scripts of what processes do: (second, message), or None as the message for their end."""

    def __init__(self, *scripts: Mapping[float, Message | None], is_killable: bool = True) -> None:
        self.now_s = 100.0
        self.scripts = iter(scripts)
        self.is_killable = is_killable
        self.started = 0
        self.leap_s = 0.0

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s + self.leap_s
        self.leap_s = 0.0

    @property
    def surroundings(self) -> Surroundings:
        moment = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
        return Surroundings(clock=lambda: self.now_s, sleep=self.sleep, now=lambda: moment, memory_kills=lambda: None)

    def start(self, order: LaunchOrder, journal: Path) -> Any:
        self.started += 1
        return next(self.scripts), journal


class FakeChild:
    """Stands for ``Child``: plays its script when it is looked at."""

    world: World
    tail = ""

    def __init__(self, process: Any, *, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        script, self.journal = process
        self.begin_s, self.clock = clock(), clock
        self.events = sorted(script.items())
        self.code: int | None = None
        self.stopped_s: float | None = None

    def has_ended(self) -> bool:
        while self.code is None and self.events and self.events[0][0] <= self.clock() - self.begin_s:
            _, message = self.events.pop(0)
            if message is None:
                self.code = 0
            else:
                with open_journal(self.journal) as journal:
                    journal.write(message)
        return self.code is not None

    def drain(self) -> None:
        pass

    def stop(self, *, grace_s: float, kill_s: float, is_urgent: Callable[[], bool]) -> bool:
        self.world.now_s += grace_s
        if self.world.is_killable:
            self.code = -15
        return self.world.is_killable

    def reap(self) -> int | None:
        return self.code


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    def made(*scripts: Mapping[float, Message | None], is_killable: bool = True) -> World:
        world = World(*scripts, is_killable=is_killable)
        monkeypatch.setattr(attempt_module, "Child", type("Bound", (FakeChild,), {"world": world}))
        return world

    return made


def order(index: int = 0, case_ids: tuple[str, ...] = ("f.a", "f.b")) -> LaunchOrder:
    return LaunchOrder(index=index, device="recorded:none", suite="default", case_ids=case_ids, seed=0)


def phase(case_id: str, name: Phase = Phase.BLOCK) -> PhaseEntered:
    return PhaseEntered(case_id=case_id, phase=name)


def measured(case_id: str) -> CaseMeasured:
    return CaseMeasured(case_id=case_id, result=RESULT, plan=PLAN)


HEALTHY: dict[float, Message | None] = {
    0: Started(pid=1),
    1: phase("f.a"),
    2: measured("f.a"),
    3: phase("f.b"),
    4: measured("f.b"),
    5: LaunchFinished(event_floor_s=2e-6),
    6: None,
}


def test_supervise__a_launch_carries_its_moment(live: Callable[..., World]) -> None:
    world = live(HEALTHY)
    (outcome,) = supervise([order(4)], world.start, surroundings=world.surroundings)
    assert (outcome.launch.index, outcome.launch.started_utc) == (4, "2026-11-30T12:00:00Z")
    assert outcome.launch.cases == {"f.a": RESULT, "f.b": RESULT}


@pytest.mark.parametrize(
    ("at", "patience_s"),
    [
        ({}, 180),
        ({0: Started(pid=1)}, 180),
        ({0: phase("f.a", Phase.COMPILE)}, 600),
        ({0: phase("f.a", Phase.WARM_UP)}, 60),
        ({0: phase("f.a")}, 60),
        ({0: phase("f.a", Phase.VERIFY)}, 60),
    ],
)
def test_supervise__patience_depends_on_what_is_done(
    live: Callable[..., World], at: Mapping[float, Message | None], patience_s: float
) -> None:
    world = live(at, HEALTHY)
    (outcome,) = supervise([order()], world.start, surroundings=world.surroundings)
    assert f"no sign of life for {patience_s} s" in outcome.notes[0]
    assert outcome.launch.failure is None
    assert patience_s + 6 < world.now_s - 100 < patience_s + 12


def test_supervise__signs_of_life_keep_a_slow_launch(live: Callable[..., World]) -> None:
    slow = {50.0 * number: phase("f.a") for number in range(8)}
    world = live({**slow, 400: measured("f.a"), 401: measured("f.b"), 402: LaunchFinished(), 403: None})
    (outcome,) = supervise([order()], world.start, surroundings=world.surroundings)
    assert outcome.launch.failure is None


def test_supervise__signs_of_life_do_not_keep_a_launch_for_ever(live: Callable[..., World]) -> None:
    endless = {50.0 * number: phase("f.a") for number in range(1000)}
    world = live(endless, endless)
    (outcome,) = supervise([order()], world.start, surroundings=world.surroundings)
    assert "out of time" in (outcome.launch.failure or "")
    assert world.now_s - 100 < 2 * 950


def test_supervise__time_in_which_the_parent_slept_is_not_held_against_the_launch(live: Callable[..., World]) -> None:
    script: dict[float, Message | None] = {0: phase("f.a"), 510: measured("f.a"), 511: measured("f.b")}
    world = live({**script, 512: LaunchFinished(), 513: None})
    world.leap_s = 500.0
    (outcome,) = supervise([order()], world.start, surroundings=world.surroundings)
    assert outcome.launch.failure is None
    assert outcome.notes == ()


def test_supervise__a_process_that_cannot_be_killed_ends_the_session(live: Callable[..., World]) -> None:
    world = live({0: phase("f.a")}, is_killable=False)
    first, second = supervise([order(0), order(1)], world.start, surroundings=world.surroundings)
    assert "no sign of life" in (first.launch.failure or "")
    assert second.launch.failure == "launch 0 cannot be stopped and holds the GPU"
    assert set(second.launch.failures) == {"f.a", "f.b"}
    assert world.started == 1


def test_supervise__lessons_are_carried_from_call_to_call(live: Callable[..., World]) -> None:
    dies: dict[float, Message | None] = {0: phase("f.b"), 1: measured("f.b"), 2: phase("f.a"), 3: None}
    lessons = Lessons()
    world = live(dies, dies, {0: measured("f.b"), 1: LaunchFinished(), 2: None})
    supervise([order(0)], world.start, lessons=lessons, surroundings=world.surroundings)
    (outcome,) = supervise([order(1)], world.start, lessons=lessons, surroundings=world.surroundings)
    assert set(lessons.left_out) == {"f.a"}
    assert outcome.launch.failure is None
    assert "left out: launch 0 failed at it twice: " in outcome.launch.failures["f.a"]
    assert world.started == 3


def test_supervise__a_session_without_cases_starts_nothing(live: Callable[..., World]) -> None:
    dies: dict[float, Message | None] = {0: phase("f.a"), 1: None}
    world = live(dies, dies)
    outcomes = supervise([order(index, ("f.a",)) for index in range(3)], world.start, surroundings=world.surroundings)
    assert [outcome.launch.failure for outcome in outcomes[1:]] == ["no case is left"] * 2
    assert world.started == 2


def test_supervise__a_launch_that_passes_over_a_case_says_so(live: Callable[..., World]) -> None:
    world = live({0: measured("f.a"), 1: LaunchFinished(), 2: None})
    (outcome,) = supervise([order()], world.start, surroundings=world.surroundings)
    assert outcome.launch.failures == {"f.b": "not measured: the launch passed it over"}


def test_supervise__without_a_temporary_folder_is_an_error_of_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(OutputError, match="No space left"):
        supervise([order()], World().start)


def test_listening__leaves_ignored_signals_alone_and_restores_the_others() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as interruption:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            for expected in itertools.islice(((False, "SIGTERM"), (True, "SIGTERM")), 2):
                signal.raise_signal(signal.SIGTERM)
                assert (interruption.is_urgent, interruption.signal) == expected
        assert signal.getsignal(signal.SIGTERM) is before[signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before[signal.SIGHUP])
