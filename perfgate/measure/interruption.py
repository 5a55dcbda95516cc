"""Ctrl-C and requests to end, taken as a wish that is looked at between steps, not as an exception anywhere."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Whether somebody has asked to end.

    Attributes:
        signal: name of the first signal that asked; None while none has.
        is_urgent: asked more than once: end now, not gracefully.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self.is_urgent = False

    def ask(self, number: int, frame: FrameType | None = None) -> None:
        """Note a signal; a signal handler."""
        del frame
        self.is_urgent = self.signal is not None
        self.signal = self.signal or signal.Signals(number).name


@contextmanager
def listening() -> Iterator[Interruption]:
    """Take SIGINT, SIGTERM and SIGHUP as wishes until the block ends; the old handlers come back then.

    A signal that is ignored stays ignored (nohup). Outside of the main thread nothing is installed.
    """
    interruption = Interruption()
    previous = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ASKING:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):
                previous[number] = handler
                signal.signal(number, interruption.ask)
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
