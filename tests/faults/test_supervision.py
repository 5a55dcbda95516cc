"""Launches that die in every way there is: named, retried once, the others' results kept, nothing left running."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from perfgate.errors import ExitCode
from perfgate.measure.attempt import Limits, Surroundings
from perfgate.measure.child import start_child
from perfgate.measure.order import LaunchOrder
from perfgate.measure.supervisor import LaunchOutcome, SessionInterruptedError, SessionProgress, supervise

CHILD = Path(__file__).with_name("launch_child.py")
CASES = ("family.a", "family.b", "family.c")
LIMITS = Limits(stall_s=0.5, compile_stall_s=10, launch_s=10, exit_s=0.3, grace_s=0.2, kill_s=2)


class Starter:
    """Starts children that misbehave: by attempt (from 1, over the session), case and behaviour."""

    def __init__(self, *attempts: dict[str, str], always: dict[str, str] | None = None) -> None:
        self.attempts = attempts
        self.always = always or {}
        self.orders: list[LaunchOrder] = []
        self.pids: list[int] = []
        self.journals: list[Path] = []

    def __call__(self, order: LaunchOrder, journal: Path) -> subprocess.Popen[bytes]:
        behaviours = self.attempts[len(self.orders)] if len(self.orders) < len(self.attempts) else self.always
        self.orders.append(order)
        self.journals.append(journal)
        steps = [(case_id, behaviours.get(case_id, "")) for case_id in order.case_ids]
        if "after" in behaviours:
            steps.append(("after", behaviours["after"]))
        process = start_child([sys.executable, str(CHILD), str(journal), json.dumps(steps)], os.environ)
        self.pids.append(process.pid)
        return process


def order(index: int = 0, case_ids: tuple[str, ...] = CASES) -> LaunchOrder:
    return LaunchOrder(index=index, device="recorded:none", suite="default", case_ids=case_ids, seed=0)


def run(starter: Starter, count: int = 1, **limits: float) -> tuple[LaunchOutcome, ...]:
    changed = {name: getattr(LIMITS, name) for name in LIMITS.__slots__} | limits
    outcomes = supervise([order(index) for index in range(count)], starter, limits=Limits(**changed))
    for pid in starter.pids:
        with pytest.raises(ProcessLookupError):
            os.killpg(pid, 0)
    return outcomes


def test_supervise__healthy_launches_are_returned_whole() -> None:
    starter = Starter()
    heard: list[SessionProgress] = []
    first, second = supervise([order(0), order(1)], starter, on_progress=heard.append, limits=LIMITS)
    assert set(first.launch.cases) == set(CASES)
    assert (first.launch.failure, first.notes, dict(first.launch.failures)) == (None, (), {})
    assert (first.launch.event_floor_s, first.code_sha256["family.a"]) == (2e-6, "c0de")
    assert first.plans["family.b"].executions_per_sample == 4
    assert (second.launch.index, len(starter.orders)) == (1, 2)
    assert (heard[-1].launch, heard[-1].launches, heard[-1].cases_done, heard[-1].case_count) == (1, 2, 3, 3)
    assert not starter.journals[0].parent.exists()


@pytest.mark.parametrize(
    ("behaviour", "named"),
    [
        ("hang", "no sign of life for 0.5 s in family.b (block)"),
        ("hang-deaf", "no sign of life for 0.5 s in family.b (block)"),
        ("stop", "no sign of life for 0.5 s in family.b (block)"),
        ("segv", "died of SIGSEGV (segmentation fault) in family.b (block)"),
        ("kill", "died of SIGKILL (killed by someone else) in family.b (block)"),
        ("exit-3", "exited with code 3 in family.b (block)"),
        ("exit-137", "exited with code 137: SIGKILL (killed by someone else) in family.b (block)"),
        ("exit-0", "ended without finishing in family.b (block)"),
        ("raise", "exited with code 1 in family.b (block)"),
        ("lost", "the GPU has fallen off the bus"),
    ],
)
def test_supervise__a_launch_that_dies_once_is_named_and_repeated(behaviour: str, named: str) -> None:
    starter = Starter({"family.b": behaviour})
    (outcome,) = run(starter)
    assert outcome.launch.failure is None
    assert set(outcome.launch.cases) == set(CASES)
    assert not outcome.launch.failures
    assert outcome.notes[0] == f"launch 0: it was run twice; the other attempt: {named}"
    assert starter.orders[1].case_ids == ("family.a", "family.c", "family.b")


def test_supervise__the_last_output_of_a_dead_launch_is_shown() -> None:
    (outcome,) = run(Starter({"family.b": "raise"}))
    assert "RuntimeError: the driver says no" in outcome.notes[1]


def test_supervise__a_case_that_always_kills_costs_only_itself() -> None:
    starter = Starter(always={"family.a": "segv"})
    first, second = run(starter, count=2)
    assert set(first.launch.cases) == {"family.b", "family.c"}
    assert "SIGSEGV" in (first.launch.failure or "")
    assert "SIGSEGV" in first.launch.failures["family.a"]
    assert set(second.launch.cases) == {"family.b", "family.c"}
    assert second.launch.failure is None
    assert "left out: launch 0 failed at it twice: died of SIGSEGV" in second.launch.failures["family.a"]
    assert len(starter.orders) == 3


def test_supervise__what_a_dead_launch_had_finished_is_kept_when_the_repetition_is_worse() -> None:
    starter = Starter({"family.c": "segv"}, {"family.a": "exit-3"})
    (outcome,) = run(starter)
    assert set(outcome.launch.cases) == {"family.a", "family.b"}
    assert outcome.launch.failures["family.c"].startswith("not measured: died of SIGSEGV")
    assert "code 3" in outcome.notes[0]


def test_supervise__a_session_that_measures_nothing_is_given_up_after_one_repetition() -> None:
    starter = Starter({"family.a": "lost"}, {"family.b": "lost"})
    outcomes = run(starter, count=4)
    assert len(starter.orders) == 2
    assert "launch 0 failed twice before it had measured anything" in (outcomes[3].launch.failure or "")
    assert set(outcomes[3].launch.failures) == set(CASES)


@pytest.mark.parametrize("behaviour", ["abort", "exit-3", "hang", "hang-deaf"])
def test_supervise__what_happens_after_the_last_message_is_no_failure(behaviour: str) -> None:
    starter = Starter({"after": behaviour})
    (outcome,) = run(starter)
    assert outcome.launch.failure is None
    assert set(outcome.launch.cases) == set(CASES)
    assert outcome.notes[0].startswith("launch 0: after its last message: ")
    assert len(starter.orders) == 1


def test_supervise__garbage_in_the_journal_is_named_and_skipped() -> None:
    (outcome,) = run(Starter({"family.b": "garbage"}))
    assert set(outcome.launch.cases) == set(CASES)
    assert outcome.launch.failure is None
    assert any("not JSON: 'hello from printf'" in note for note in outcome.notes)


def test_supervise__a_foreign_case_is_named_and_skipped() -> None:
    (outcome,) = run(Starter({"family.b": "foreign"}))
    assert set(outcome.launch.cases) == set(CASES)
    assert "not.ours" in outcome.notes[0]
    assert not outcome.case_failures


def test_supervise__half_a_line_is_named() -> None:
    (outcome,) = run(Starter({"family.b": "half-line"}))
    assert set(outcome.launch.cases) == set(CASES)
    assert any("cut off after 29 bytes" in note for note in outcome.notes)


def test_supervise__a_lingering_grandchild_is_ended() -> None:
    pids: list[int] = []

    class Reading(Starter):
        def __call__(self, order: LaunchOrder, journal: Path) -> subprocess.Popen[bytes]:
            self.folder = journal.parent
            return super().__call__(order, journal)

    starter = Reading({"family.b": "grandchild"})

    def note(progress: SessionProgress) -> None:
        path = starter.folder / "grandchild"
        if path.exists() and not pids:
            pids.append(int(path.read_text()))

    (outcome,) = supervise([order()], starter, on_progress=note, limits=LIMITS)
    assert outcome.launch.failure is None
    assert _is_gone(pids[0])


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # dead; the init of this container may never reap it
            return True
        time.sleep(0.02)
    return False


def test_supervise__a_flood_of_output_neither_blocks_nor_fills_memory() -> None:
    (outcome,) = run(Starter({"family.b": "flood"}))
    assert set(outcome.launch.cases) == set(CASES)
    assert outcome.launch.failure is None


def test_supervise__a_wrong_output_is_reported_with_its_kind_and_not_repeated() -> None:
    starter = Starter({"family.b": "wrong"})
    (outcome,) = run(starter)
    assert [failed.kind for failed in outcome.case_failures] == ["wrong-output"]
    assert outcome.launch.failures == {"family.b": "NaN"}
    assert outcome.launch.failure is None
    assert len(starter.orders) == 1


def test_supervise__a_kill_for_lack_of_memory_is_told_from_others() -> None:
    counts = iter([3, 4, 4, 4])
    surroundings = Surroundings(memory_kills=lambda: next(counts))
    (outcome,) = supervise([order()], Starter({"family.b": "kill"}), limits=LIMITS, surroundings=surroundings)
    assert "out of memory" in outcome.notes[0]


def test_supervise__a_process_that_cannot_be_started_is_a_failed_launch() -> None:
    def start(order: LaunchOrder, journal: Path) -> subprocess.Popen[bytes]:
        raise FileNotFoundError(2, "No such file or directory", "python")

    (outcome,) = supervise([order()], start, limits=LIMITS)
    assert "cannot be started" in (outcome.launch.failure or "")


def test_supervise__an_error_of_the_caller_leaves_no_process() -> None:
    starter = Starter(always={"family.a": "hang-deaf"})

    def broken(progress: SessionProgress) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        supervise([order()], starter, on_progress=broken, limits=LIMITS)
    assert _is_gone(starter.pids[0])


def test_supervise__the_time_of_a_session_is_bounded() -> None:
    starter = Starter(always={"family.b": "hang"})
    begin = time.monotonic()
    # Enough for a process to start on a busy machine; the hang is what uses it up.
    outcomes = run(starter, count=5, session_s=2.5, stall_s=30.0)
    assert time.monotonic() - begin < 10
    assert set(outcomes[0].launch.cases) == {"family.a"}
    assert "out of time" in (outcomes[0].launch.failure or "")
    assert "used up" in (outcomes[4].launch.failure or "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_supervise__an_interruption_stops_the_launch_and_keeps_what_was_measured(number: signal.Signals) -> None:
    starter = Starter({}, always={"family.b": "hang-deaf"})

    def interrupt(progress: SessionProgress) -> None:
        if progress.launch == 1 and progress.case_id == "family.b":
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(SessionInterruptedError) as caught:
        supervise([order(index) for index in range(3)], starter, on_progress=interrupt, limits=LIMITS)
    first, second = caught.value.outcomes
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert set(first.launch.cases) == set(CASES)
    assert set(second.launch.cases) == {"family.a"}
    assert second.launch.failure == f"interrupted by {number.name} in family.b (block)"
    assert signal.getsignal(number) is before
    assert _is_gone(starter.pids[1])
    assert len(starter.orders) == 2


def test_supervise__a_second_interruption_does_not_wait() -> None:
    starter = Starter(always={"family.a": "hang-deaf"})

    def interrupt(progress: SessionProgress) -> None:
        if progress.case_id == "family.a":
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    begin = time.monotonic()
    try:
        with pytest.raises(SessionInterruptedError):
            supervise([order()], starter, on_progress=interrupt, limits=Limits(grace_s=30))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 5


def test_supervise__launches_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import json, os, sys
        from perfgate.measure.child import start_child
        steps = json.dumps([["family.a", "hang-deaf"]])
        process = start_child([sys.executable, {str(CHILD)!r}, {str(tmp_path / "journal")!r}, steps], os.environ)
        print(process.pid, flush=True)
        process.wait()
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        for _ in range(200):
            if (tmp_path / "journal").exists() and "block" in (tmp_path / "journal").read_text():
                break
            time.sleep(0.02)
        parent.kill()
    assert _is_gone(pid)
