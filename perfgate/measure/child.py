"""A launch's process as its parent sees it: started in a group of its own, watched, and stopped whole."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from perfgate.measure.orphan import PARENT_VARIABLE

# What a process writes is shown when it dies; more than this nobody reads.
_TAIL_BYTES = 16 * 2**10
# Read at one look, so that a process that floods its output cannot keep the parent from watching.
_LOOK_BYTES = 8 * 2**20
_CHUNK_BYTES = 64 * 2**10
_POLL_S = 0.01


def start_child(
    command: Sequence[str], environment: Mapping[str, str], *, folder: str | None = None, has_input: bool = False
) -> subprocess.Popen[bytes]:
    """Start a launch: a session of its own, no input, and all output to one pipe that the parent drains.

    A session of its own keeps the terminal's Ctrl-C away from it (the parent stops it) and lets the
    parent stop it with everything that it started.

    Args:
        command: program and arguments.
        environment: less the name of the parent.
        folder: where it works; None for here.
        has_input: give it a pipe to read from after all.
    """
    return subprocess.Popen(
        list(command),
        env={**environment, PARENT_VARIABLE: str(os.getpid())},
        cwd=folder,
        stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


class Child:
    """A running launch.

    Args:
        process: as started by ``start_child``; at least one of its outputs may be a pipe.
        clock: monotonic seconds.
        sleep: waits some seconds.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._process = process
        self._clock = clock
        self._sleep = sleep
        self._tail = b""
        self._pipes = [pipe.fileno() for pipe in (process.stdout, process.stderr) if pipe is not None]
        for pipe in self._pipes:
            os.set_blocking(pipe, False)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def tail(self) -> str:
        """The last lines of its output."""
        return self._tail.decode("utf-8", "replace").strip()

    def has_ended(self) -> bool:
        """Tell whether the process has ended; it is not reaped, so that its group cannot be another's."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def drain(self) -> None:
        """Take what the process has written, so that it never waits for its reader; keep the end."""
        for pipe in tuple(self._pipes):
            for _ in range(_LOOK_BYTES // _CHUNK_BYTES):
                try:
                    chunk = os.read(pipe, _CHUNK_BYTES)
                except BlockingIOError:
                    break
                if not chunk:
                    self._pipes.remove(pipe)
                    break
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def stop(self, *, grace_s: float, kill_s: float, is_urgent: Callable[[], bool] = lambda: False) -> bool:
        """Stop the process with all that it started: SIGTERM, after ``grace_s`` SIGKILL.

        Args:
            grace_s: time to end by itself.
            kill_s: time for the kernel to end it: one that hangs in a driver cannot be killed.
            is_urgent: asked while waiting; true cuts the grace short.

        Returns:
            Whether it has ended.
        """
        self._signal(signal.SIGTERM)
        # A stopped process takes no SIGTERM before it goes on.
        self._signal(signal.SIGCONT)
        if not self._wait(grace_s, is_urgent):
            self._signal(signal.SIGKILL)
            return self._wait(kill_s, lambda: False)
        return True

    def reap(self) -> int | None:
        """End what is left of the group, release the process and return its exit code, negative for signals.

        None when it has not ended.
        """
        ended = self.has_ended()
        self._signal(signal.SIGKILL)
        self.drain()
        code = self._process.wait() if ended else None
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._pipes = []
        return code

    def _wait(self, duration_s: float, is_urgent: Callable[[], bool]) -> bool:
        end_s = self._clock() + duration_s
        while not self.has_ended():
            if self._clock() >= end_s or is_urgent():
                return False
            self.drain()
            self._sleep(_POLL_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            return
        try:
            # Only a group of its own: that of the parent is the parent, its shell and its job.
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return
