"""A CUDA driver in virtual time: what PyCUDA offers of it, so far as perfgate.devices.cuda uses it.

The host's clock advances when the host does something; a stream executes its commands in order, each
not before it was enqueued. A queue takes so many commands: the host that enqueues one more waits for
the oldest to end, as in cuLaunchKernel, with nobody left to release a spin kernel.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass
class Host:
    """The host's clock, and what a call to the driver costs it."""

    now_s: float = 100.0
    call_s: float = 4e-6

    def works(self, duration_s: float) -> None:
        self.now_s += duration_s

    def waits_until(self, moment_s: float) -> None:
        self.now_s = max(self.now_s, moment_s)

    def monotonic(self) -> float:
        self.works(1e-8)  # who waits for a time by looking at the clock must see it pass
        return self.now_s

    perf_counter = monotonic


@dataclass
class Command:
    """Something enqueued: how long it takes, and what happens when it is over."""

    enqueued_s: float
    duration_s: float
    done: Callable[[float], None] = lambda end_s: None
    holds: "Word | None" = None
    timeout_s: float = math.inf
    status: "Word | None" = None


class Word:
    """A word of mapped host memory; a release of a held stream happens when the host sets it."""

    def __init__(self, cuda: "FakeCuda") -> None:
        self._cuda = cuda
        self.value = 0
        self.base = SimpleNamespace(get_device_pointer=lambda: self)

    def __getitem__(self, index: int) -> int:
        return self.value

    def __setitem__(self, index: int, value: int) -> None:
        self.value = value
        for stream in self._cuda.streams:
            stream.released()


class Stream:
    """A stream: executes in order, as far as it is decided when commands end."""

    def __init__(self, cuda: "FakeCuda", flags: int = 0) -> None:
        self._cuda = cuda
        self.flags = flags
        self.handle = 0xABC0 + len(cuda.streams)
        self._waiting: list[Command] = []
        self._ends_s: list[float] = []
        self.most_held = 0
        cuda.streams.append(self)

    def enqueue(self, command: Command) -> None:
        self._cuda.host.works(self._cuda.host.call_s)
        while self._unfinished() >= self._cuda.queue_limit:
            self._blocks()
        command.enqueued_s = self._cuda.host.now_s
        self._waiting.append(command)
        self._execute()
        if self._waiting:
            self.most_held = max(self.most_held, len(self._waiting))

    def released(self) -> None:
        self._execute()

    def is_over(self, moment_s: float | None) -> bool:
        return moment_s is not None and moment_s <= self._cuda.host.now_s

    def synchronize(self) -> None:
        self._execute(gives_up=True)
        self._cuda.host.waits_until(self._ends_s[-1] if self._ends_s else 0.0)

    @property
    def end_s(self) -> float:
        return self._ends_s[-1] if self._ends_s else 0.0

    def _unfinished(self) -> int:
        return len(self._waiting) + len(self._ends_s) - bisect.bisect_right(self._ends_s, self._cuda.host.now_s)

    def _blocks(self) -> None:
        """The host waits for the oldest command; one that the host holds ends by its own timeout."""
        if len(self._waiting) == self._unfinished():
            self._execute(gives_up=True)
        self._cuda.host.waits_until(self._ends_s[bisect.bisect_right(self._ends_s, self._cuda.host.now_s)])

    def _execute(self, *, gives_up: bool = False) -> None:
        while self._waiting:
            command = self._waiting[0]
            begin_s = max(command.enqueued_s, self.end_s)
            end_s = begin_s + command.duration_s
            if command.holds is not None:
                late_s = begin_s + command.timeout_s
                if command.holds.value == 0 and self._cuda.host.now_s < late_s and not gives_up:
                    return
                is_released = command.holds.value != 0 and self._cuda.host.now_s < late_s
                end_s = max(begin_s, self._cuda.host.now_s) if is_released else late_s
                if command.status is not None:
                    command.status.value = 1 if is_released else 2
            self._waiting.pop(0)
            self._ends_s.append(end_s)
            command.done(end_s)


@dataclass
class Memory:
    """Device memory by address."""

    content: dict[int, np.ndarray] = field(default_factory=dict)
    free_bytes: int = 2**40
    allocated: int = 0
    next_address: int = 0x10_0000

    def allocate(self, size_bytes: int) -> "Allocation":
        if self.allocated + size_bytes > self.free_bytes:
            raise FakeMemoryError("cuMemAlloc failed: out of memory")
        self.allocated += size_bytes
        allocation = Allocation(self, self.next_address, size_bytes)
        self.next_address += size_bytes + 4096
        return allocation


@dataclass
class Allocation:
    memory: Memory
    address: int
    size_bytes: int
    is_free: bool = False

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        assert not self.is_free
        self.is_free = True
        self.memory.allocated -= self.size_bytes


class FakeError(Exception):
    pass


class FakeMemoryError(FakeError):
    pass


class Function:
    """A device function: its launches take ``duration_s`` and do ``effect``."""

    def __init__(
        self, cuda: "FakeCuda", duration_s: float = 0.0, effect: Callable[..., None] | None = None, name: str = ""
    ) -> None:
        self._cuda = cuda
        self._duration_s = duration_s
        self._effect = effect
        self.name = name
        self.prepared: list[Any] = []
        self.attributes: dict[Any, int] = {}
        self.calls: list[tuple[Any, ...]] = []

    def prepare(self, types: Sequence[Any]) -> "Function":
        self.prepared = list(types)
        return self

    def set_attribute(self, attribute: Any, value: int) -> None:
        self.attributes[attribute] = value

    def prepared_async_call(self, grid: Any, block: Any, stream: Stream, *args: Any, shared_size: int = 0) -> None:
        self.calls.append((grid, block, args, shared_size))
        command = Command(self._cuda.host.now_s, self._duration_s)
        match self.name:
            case "spin_until":
                flag, timeout_ns, status = args
                command.holds, command.timeout_s, command.status = flag, int(timeout_ns) * 1e-9, status
            case "spin_for":
                command.duration_s = int(args[0]) * 1e-9
            case "stamp_clocks":
                command.done = lambda end_s: self._cuda.stamp(args[0], end_s)
        if self._effect is not None:
            effect = self._effect
            command.done = lambda end_s: effect(*args)
        stream.enqueue(command)


class FakeCuda:
    """The module ``pycuda.driver``."""

    Error = FakeError
    MemoryError = FakeMemoryError
    host_alloc_flags = SimpleNamespace(DEVICEMAP=2)
    function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES="shared")
    pagelocked_empty = staticmethod(np.empty)

    def __init__(self, *, queue_limit: int = 512, sm_count: int = 4, clock_hz: float = 1.5e9) -> None:
        self.host = Host()
        self.streams: list[Stream] = []
        self.memory = Memory()
        self.queue_limit = queue_limit
        self.sm_clocks_hz = [clock_hz * (1 + 1e-3 * index) for index in range(sm_count)]
        self.unreached: set[int] = set()
        self.event_stream: Stream | None = None
        cuda = self

        class Event:
            def __init__(self) -> None:
                self._at_s: float | None = None

            def record(self, stream: Stream) -> None:
                self._at_s = None
                where = cuda.event_stream or stream
                where.enqueue(Command(cuda.host.now_s, 0.0, done=self._done))

            def _done(self, end_s: float) -> None:
                self._at_s = end_s

            def query(self) -> bool:
                return self._at_s is not None and self._at_s <= cuda.host.now_s

            def synchronize(self) -> None:
                for stream in cuda.streams:
                    stream._execute(gives_up=True)
                assert self._at_s is not None
                cuda.host.waits_until(self._at_s)

            def time_since(self, other: "Event") -> float:
                assert self._at_s is not None
                assert other._at_s is not None
                return (self._at_s - other._at_s) * 1e3

        self.Event = Event

    def stream(self) -> Stream:
        return Stream(self)

    def timing_module(self) -> Any:
        return SimpleNamespace(get_function=lambda name: Function(self, name=name))

    def kernel(self, stream: Stream, duration_s: float, name: str = "case") -> Callable[[], None]:
        """A callable that enqueues a kernel, as a Workload has them."""
        function = Function(self, duration_s, name=name).prepare([])
        return lambda: function.prepared_async_call((1, 1, 1), (1, 1, 1), stream)

    def stamp(self, address: int, now_s: float) -> None:
        slots = np.zeros((len(self.sm_clocks_hz), 2), dtype=np.uint64)
        for index, clock_hz in enumerate(self.sm_clocks_hz):
            if index not in self.unreached:
                slots[index] = round(now_s * clock_hz), round(now_s * 1e9)
        self.memory.content[address] = slots

    def pagelocked_zeros(self, count: int, dtype: Any, mem_flags: int) -> Word:
        assert (count, dtype, mem_flags) == (1, np.uint32, 2)
        return Word(self)

    def mem_alloc(self, size_bytes: int) -> Allocation:
        return self.memory.allocate(size_bytes)

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory.free_bytes - self.memory.allocated, self.memory.free_bytes

    def memset_d8(self, allocation: Any, value: int, count: int) -> None:
        self.memory.content[int(allocation)] = np.full(count, value, dtype=np.uint8)

    def memcpy_dtoh(self, target: np.ndarray, address: Any) -> None:
        begin = max(one for one in self.memory.content if one <= int(address))
        source = np.ascontiguousarray(self.memory.content[begin]).view(np.uint8).ravel()[int(address) - begin :]
        flat = target.view(np.uint8).reshape(-1)
        flat[: source.size] = source[: flat.size]

    def memcpy_htod(self, address: Any, source: np.ndarray) -> None:
        self.memory.content[int(address)] = source.copy()

    def memcpy_htod_async(self, address: Any, source: np.ndarray, stream: Stream) -> None:
        stream.enqueue(Command(self.host.now_s, 0.0, done=lambda end_s: self.memcpy_htod(address, source)))

    def memcpy_dtoh_async(self, target: np.ndarray, address: Any, stream: Stream) -> None:
        stream.enqueue(Command(self.host.now_s, 0.0, done=lambda end_s: self.memcpy_dtoh(target, address)))
