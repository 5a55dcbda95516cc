"""Who is told while a session goes on; a progress bar, a log, or nobody."""

from typing import Protocol


class Listener(Protocol):
    """Told what happens; must not raise."""

    def begins(self, launches: int, cases: int) -> None:
        """Launches begin, of that many cases each."""
        ...

    def progresses(self, launch: int, done_cases: int, case_id: str, phase: str) -> None:
        """A launch (from 0) is in a phase of a case."""
        ...

    def notices(self, message: str) -> None:
        """Something a person should know now: a retry, a pause, a failure that the session survives."""
        ...

    def ends(self) -> None:
        """Nothing more comes for now."""
        ...


class Silent:
    """Tells nobody."""

    def begins(self, launches: int, cases: int) -> None:
        """See Listener."""

    def progresses(self, launch: int, done_cases: int, case_id: str, phase: str) -> None:
        """See Listener."""

    def notices(self, message: str) -> None:
        """See Listener."""

    def ends(self) -> None:
        """See Listener."""
