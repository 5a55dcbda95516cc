"""Launches of two sides in turn: quads of base and change in random order."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from subprocess import Popen
from typing import Any, Protocol

from perfgate.core.sides import FIRST_INDEX
from perfgate.measure.attempt import Limits
from perfgate.measure.order import LaunchOrder, Side, interleaved
from perfgate.measure.supervisor import LaunchOutcome, SessionInterruptedError, SessionProgress, supervise

Start = Callable[[LaunchOrder, Path], "Popen[Any]"]
Starts = Callable[[Sequence[LaunchOrder]], AbstractContextManager[Start]]


class Contender(Protocol):
    """A side: makes the orders of its launches and keeps what became of them."""

    def order(self, index: int) -> LaunchOrder:
        """Return what a launch is told."""
        ...

    def take(self, outcomes: Sequence[LaunchOutcome]) -> None:
        """Keep the outcomes of launches."""
        ...

    def progressed(self, progress: SessionProgress) -> None:
        """Take note of a launch's progress."""
        ...


def measure_in_turn(
    base: Contender,
    head: Contender,
    starts: Starts,
    *,
    launches: int,
    seed: int,
    limits: Limits | None = None,
) -> None:
    """Measure so many launches of each side in turn, as ``starts`` has these orders started; both sides take theirs.

    Raises:
        SessionInterruptedError: asked to end; both sides have taken what was measured.
    """
    sides = {Side.BASE: base, Side.HEAD: head}
    sequence = interleaved(launches, seed)
    orders = [sides[side].order(index) for index, side in enumerate(sequence, start=FIRST_INDEX)]

    def share(outcomes: Sequence[LaunchOutcome]) -> None:
        for side, contender in sides.items():
            contender.take([one for one, where in zip(outcomes, sequence, strict=False) if where is side])

    try:
        with starts(orders) as start:
            share(supervise(orders, start, on_progress=head.progressed, limits=limits))
    except SessionInterruptedError as error:
        share(error.outcomes)
        raise
