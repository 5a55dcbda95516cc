"""A case: one kernel at one size and data type, with its declared work. Fit for own suites too.

A suite is a function from a GPU to cases; a case says what it is (id, work, version) without
touching a device, and ``prepare`` builds it on one through the Toolbox of ``core.toolbox``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from perfgate.core.toolbox import Toolbox, Workload
from perfgate.shims import StrEnum

# Also the pattern of the schemas: anchored there, and in a syntax that JSON Schema (ECMA 262) shares.
CASE_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+(\[[a-z0-9_]+=[A-Za-z0-9_.+-]+(,[a-z0-9_]+=[A-Za-z0-9_.+-]+)*\])?")


class Timing(StrEnum):
    """How a case is timed; docs/measurement.md defines each."""

    EVENTS = "events"  # GPU events around back-to-back executions, queued behind a spin kernel
    SLOWEST = "slowest"  # the longest execution of a rotation over all buffer sets, each between events of its own
    GAP = "gap"  # slope of event time over the number of queued empty kernels
    GRAPH_NODE = "graph-node"  # slope of graph replay time over the number of nodes
    GRAPH = "graph"  # replay of a graph of one node
    SUBMIT = "submit"  # host time of one launch call while the queue is never full
    ROUNDTRIP = "roundtrip"  # host time of launch and synchronize
    EVENT_FLOOR = "event-floor"  # event pair around nothing
    REPLAY = "replay"  # GPU events around replays of a graph of executions: for work shorter than its launch
    PROGRAM = "program"  # a program of its own that says how long it took

    @property
    def is_of_work(self) -> bool:
        """Whether the value is the time of one execution's declared work, so that rates follow from it."""
        return self in (Timing.EVENTS, Timing.SLOWEST, Timing.REPLAY, Timing.PROGRAM)

    @property
    def is_host_timed(self) -> bool:
        """Whether the host's clock and CPU are part of the value."""
        return self in (Timing.SUBMIT, Timing.ROUNDTRIP, Timing.GRAPH)


class Unit(StrEnum):
    """What a case is judged in."""

    SECONDS = "s"
    CYCLES = "cycles"


class MemoryLevel(StrEnum):
    """Which memory a case's bytes come from: the roof that they are measured against."""

    DRAM = "dram"
    L2 = "l2"
    SHARED = "shared"
    PCIE = "pcie"
    PEER = "peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the algorithm must do in one execution: compulsory traffic, not what a kernel happens to move.

    Attributes:
        work_flop: floating-point operations, 2 per fused multiply-add.
        read_bytes, write_bytes: bytes that must be read and written once.
        footprint_bytes: memory that one rotation over all buffer sets touches.
        dtype: element type, e.g. ``"fp32"``; None where there is none.
        pipe: compute unit whose roof applies, e.g. ``"fp32"``, ``"bf16-tensor"``; None without FLOP.
        memory_level: memory whose roof applies.
    """

    work_flop: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    footprint_bytes: int = 0
    dtype: str | None = None
    pipe: str | None = None
    memory_level: MemoryLevel = MemoryLevel.DRAM

    def __post_init__(self) -> None:
        for name in ("work_flop", "read_bytes", "write_bytes", "footprint_bytes"):
            if getattr(self, name) < 0:
                message = f"work: {name} is negative"
                raise ValueError(message)

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def intensity_flop_per_byte(self) -> float | None:
        """Arithmetic intensity; None without FLOP or bytes."""
        return self.work_flop / self.moved_bytes if self.work_flop and self.moved_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that measures itself, in place of a workload that perfgate measures.

    Attributes:
        command: program and arguments; ``{json}`` stands for a file that it writes nvbench's JSON into.
        folder: working directory; "" for that of the launch.
        timeout_s: longest run.
    """

    command: tuple[str, ...]
    folder: str = ""
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that is timed, compared and judged.

    Attributes:
        id: ``family.name[axis=value,...]``, e.g. ``"bandwidth.copy[bytes=4GiB]"``.
        version: raised with every change of kernel, size or data: another version is not comparable.
        work: declared work of one execution.
        sources: kernel files, relative to the kernels folder or absolute; hashed into ``source_sha256``.
            The first is the one that is timed: its machine code is hashed into ``code_sha256``.
        prepare: builds the case on a device. Everything slow or failing belongs here.
        timing: how it is timed.
        gated: whether the default policy judges it (host-timed cases are only reported).
        unit: what it is judged in.
        predicted_s: rough time of one execution on the GPU at hand, None if unknown.
        margin: relative change that counts as slower, where the case has one of its own; a policy's goes first.
        program: for ``Timing.PROGRAM``; such a case is not prepared.
        library: the vendor's library that it calls in place of a kernel, e.g. ``"cuBLASLt"``; absent where that is.
    """

    id: str
    version: int
    work: Work
    prepare: Callable[[Toolbox], Workload]
    sources: tuple[str, ...] = ()
    timing: Timing = Timing.EVENTS
    gated: bool = True
    unit: Unit = Unit.SECONDS
    predicted_s: float | None = None
    margin: float | None = None
    program: Program | None = None
    library: str | None = None

    def __post_init__(self) -> None:
        if not CASE_ID.fullmatch(self.id):
            message = f"case id {self.id!r} is not of the form family.name[axis=value,...]"
            raise ValueError(message)

    @property
    def family(self) -> str:
        """The first part of the id."""
        return self.id.split(".", 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentCase:
    """A case that this GPU cannot run, and why: listed, never silently left out."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The cases of a suite on one GPU."""

    name: str
    cases: tuple[Case, ...]
    absent: tuple[AbsentCase, ...] = field(default=())

    def __post_init__(self) -> None:
        ids = [case.id for case in self.cases]
        doubled = sorted({one for one in ids if ids.count(one) > 1})
        if doubled:
            message = f"suite {self.name!r} defines {', '.join(doubled)} more than once"
            raise ValueError(message)
