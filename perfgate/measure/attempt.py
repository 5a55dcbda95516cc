"""One attempt at a launch: the process is started, watched by its signs of life, stopped when they fail."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from perfgate.measure.child import Child
from perfgate.measure.interruption import Interruption
from perfgate.measure.journal import JournalReader, Message, Phase
from perfgate.measure.memory_kills import memory_kill_count
from perfgate.measure.order import LaunchOrder
from perfgate.measure.transcript import Transcript

# Between two looks at most this much counts as silence: time in which the parent itself did not run
# (stopped, or its machine asleep) is not held against the launch.
_LONGEST_LOOK_S = 1.0
_TAIL_LINES = 12
# What the numbers of signals mean to a reader who does not know them.
_SIGNAL_MEANINGS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "aborted, by an assertion or a C++ exception",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction: built for another CPU?",
    "SIGFPE": "arithmetic error",
    "SIGKILL": "killed by someone else",
    "SIGTERM": "asked to end by someone else",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a supervisor waits.

    Attributes:
        stall_s: without a sign of life outside of compiling; a case's longest silent step is its
            warm-up window of 50 ms intervals, so this is ample.
        begin_stall_s: before the first case, while the driver wakes the GPU and own suites are imported.
        compile_stall_s: while a case compiles: nvcc takes up to a minute for a WGMMA kernel, and minutes for
            templates of somebody's own. Only a first launch has to.
        launch_s: one attempt as a whole, signs of life or not.
        session_s: all launches of a session.
        exit_s: after the last message, for the process to end by itself.
        grace_s: between SIGTERM and SIGKILL.
        kill_s: after SIGKILL, for the driver to let go.
        look_s: between two looks.
    """

    stall_s: float = 60.0
    begin_stall_s: float = 180.0
    compile_stall_s: float = 600.0
    launch_s: float = 900.0
    session_s: float = 3600.0
    exit_s: float = 15.0
    grace_s: float = 3.0
    kill_s: float = 10.0
    look_s: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an attempt needs of the world; tests give their own."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    memory_kills: Callable[[], int | None] = memory_kill_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How an attempt went.

    Attributes:
        transcript: what the launch said.
        failure: why it ended early; None when it finished.
        culprit: the case that was open when it died.
        is_stuck: the process could not be killed.
        is_interrupted: it was stopped because the session was.
    """

    transcript: Transcript
    failure: str | None
    culprit: str | None = None
    is_stuck: bool = False
    is_interrupted: bool = False


class Watch:
    """Watches one attempt.

    Args:
        order: what the launch was told.
        process: its process.
        journal: where it writes.
        limits: how long to wait.
        end_s: when the session's time is up, by the clock.
        interruption: whether somebody asks the session to end.
        on_message: told after every message.
        surroundings: clocks.
    """

    def __init__(
        self,
        order: LaunchOrder,
        process: subprocess.Popen[bytes],
        journal: Path,
        *,
        limits: Limits,
        end_s: float,
        interruption: Interruption,
        on_message: Callable[[Transcript], None],
        surroundings: Surroundings,
    ) -> None:
        self._limits = limits
        self._interruption = interruption
        self._on_message = on_message
        self._clock, self._sleep = surroundings.clock, surroundings.sleep
        self._memory_kills = surroundings.memory_kills
        self._kills_before = surroundings.memory_kills()
        self._end_s = min(end_s, self._clock() + limits.launch_s)
        self._child = Child(process, clock=self._clock, sleep=self._sleep)
        self._reader = JournalReader(journal)
        self._transcript = Transcript.begun(order.case_ids, surroundings.now())
        self._silent_s = 0.0

    def run(self) -> Attempt:
        """Watch the process until it has ended, by itself or by us."""
        reason: str | None = None
        is_left = True
        try:
            reason = self._stop_reason()
            is_left = False
        finally:
            # Also when the caller's own code raises: nothing that measures outlives its supervisor.
            has_ended = self._child.has_ended() or self._child.stop(
                grace_s=self._limits.grace_s,
                kill_s=self._limits.kill_s,
                is_urgent=lambda: is_left or self._interruption.is_urgent,
            )
            code = self._child.reap()
        self._listen(self._reader.last_messages())
        self._transcript.notes.extend(self._reader.damages)
        failure = self._failure(reason, code)
        if failure is not None and self._child.tail:
            self._transcript.notes.append(
                "its last output:\n" + "\n".join(self._child.tail.splitlines()[-_TAIL_LINES:])
            )
        return Attempt(
            transcript=self._transcript,
            failure=failure,
            culprit=self._transcript.open_case if failure is not None else None,
            is_stuck=not has_ended,
            is_interrupted=self._interruption.signal is not None,
        )

    def _stop_reason(self) -> str | None:
        """Wait until the process has ended (None) or must be stopped (why)."""
        before_s = self._clock()
        while not self._child.has_ended():
            heard = self._listen(self._reader.messages())
            self._child.drain()
            now_s = self._clock()
            self._silent_s = 0.0 if heard else self._silent_s + min(now_s - before_s, _LONGEST_LOOK_S)
            before_s = now_s
            if self._interruption.signal is not None:
                return f"interrupted by {self._interruption.signal}"
            if self._silent_s > self._patience_s:
                return f"no sign of life for {self._patience_s:g} s"
            if now_s > self._end_s:
                return "out of time"
            self._sleep(self._limits.look_s)
        return None

    @property
    def _patience_s(self) -> float:
        if self._transcript.is_over:
            return self._limits.exit_s
        if self._transcript.phase is None:
            return min(self._limits.begin_stall_s, self._limits.compile_stall_s)
        if self._transcript.phase is Phase.COMPILE:
            return self._limits.compile_stall_s
        return self._limits.stall_s

    def _listen(self, messages: Iterable[Message]) -> bool:
        """Take in messages; whether there were any."""
        heard = False
        for message in messages:
            if self._transcript.is_foreign(message):
                self._transcript.notes.append(f"the journal speaks of a case that was not asked for: {message}")
                continue
            heard = True
            self._transcript.add(message)
            self._on_message(self._transcript)
        return heard

    def _failure(self, stopped: str | None, code: int | None) -> str | None:
        """Say why the launch ended early; None when it finished, whatever became of its process then."""
        ending = stopped or self._death(code)
        if self._transcript.finished is not None:
            if stopped is not None or code != 0:
                self._transcript.notes.append(f"after its last message: {ending}")
            return None
        if self._transcript.failed is not None:
            return self._transcript.failed.message
        is_compiling = stopped is not None and self._transcript.phase is Phase.COMPILE and self._silent_s > 0
        advice = "; compile it in a build (--build), or in fewer variants" if is_compiling else ""
        return f"{ending} {self._transcript.place}{advice}"

    def _death(self, code: int | None) -> str:
        if code is None:
            return "cannot be stopped: it hangs in the driver"
        if code == 0:
            return "ended without finishing"
        # Shells and containers report a signal as 128 + its number.
        number = -code if code < 0 else code - 128
        if number not in {int(one) for one in signal.Signals}:
            return f"exited with code {code}"
        name = signal.Signals(number).name
        if number == signal.SIGKILL and self._kernel_was_out_of_memory():
            return "killed by the kernel: the machine, or this job's share of it, is out of memory (SIGKILL)"
        how = "died of" if code < 0 else f"exited with code {code}:"
        meaning = f" ({_SIGNAL_MEANINGS[name]})" if name in _SIGNAL_MEANINGS else ""
        return f"{how} {name}{meaning}"

    def _kernel_was_out_of_memory(self) -> bool:
        kills = self._memory_kills()
        return kills is not None and self._kills_before is not None and kills > self._kills_before
