"""Exact checks on the device: how many elements of an output are wrong, and which is the first."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.suite.filling import THREADS, covering_grid, poisoning

# struct Tally of scan.cuh: wrong elements, index of the first one.
_NOTHING_FOUND = np.array([0, np.iinfo(np.uint64).max], dtype=np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One scan on the device.

    Attributes:
        function: kernel whose last argument is the tally.
        count: items that it loops over.
        args: its other arguments.
        per_block: items that a block takes at once.
        source: file of the kernels folder that the function is in.
        defines: its knobs.
    """

    function: str
    count: int
    args: tuple[Any, ...]
    per_block: int = THREADS
    source: str = "verify.cu"
    defines: Mapping[str, str] = field(default_factory=dict)


class Scan:
    """Checks bound to tallies; prepared before anything is timed."""

    def __init__(self, toolbox: Toolbox, checks: Sequence[Check]) -> None:
        self._toolbox = toolbox
        self._tallies = [toolbox.buffer(_NOTHING_FOUND.nbytes) for _ in checks]
        self._commands = [self._bound(check, tally) for check, tally in zip(checks, self._tallies, strict=True)]

    def _bound(self, check: Check, tally: Buffer) -> Any:
        return self._toolbox.kernel(check.source, check.function, defines=check.defines).bind(
            grid=covering_grid(check.count, check.per_block), block=(THREADS, 1, 1), args=(*check.args, tally)
        )

    def found(self) -> list[tuple[int, int]]:
        """Run the checks; return the number of wrong elements and the index of the first, one pair a check."""
        for tally, command in zip(self._tallies, self._commands, strict=True):
            self._toolbox.write(tally, _NOTHING_FOUND)
            command()
        results = [self._toolbox.read(tally, np.uint64, 2) for tally in self._tallies]
        return [(int(wrong), int(first)) for wrong, first in results]


def exact_verification(found: Sequence[tuple[int, int]], compared: str) -> Verification:
    """Return the verdict on outputs that must equal their reference bit by bit; one entry a buffer set."""
    wrong = sum(count for count, _ in found)
    if not wrong:
        return Verification(passed=True, error=0.0, tolerance=0.0, detail=compared)
    index = next(index for index, (count, _) in enumerate(found) if count)
    detail = f"{compared}: {wrong} wrong, the first at index {found[index][1]} of buffer set {index}"
    return Verification(passed=False, error=math.inf, tolerance=0.0, detail=detail)


def exact_workload(
    toolbox: Toolbox,
    executions: Sequence[Callable[[], None]],
    outputs: Sequence[Buffer],
    checks: Sequence[Check],
    compared: str,
) -> Workload:
    """Return a workload whose outputs must equal their reference bit by bit.

    Args:
        toolbox: the device.
        executions: one a buffer set.
        outputs: device memory that the executions write.
        checks: one a buffer set.
        compared: what is compared with what, for people.
    """
    scan = Scan(toolbox, checks)
    return Workload(
        executions=tuple(executions),
        poison=poisoning(toolbox, outputs),
        verify=lambda: exact_verification(scan.found(), compared),
    )
