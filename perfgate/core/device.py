"""What the measuring loop needs of a device. Protocols only; ``devices`` implements them.

Two sides: the parent process holds a Device (identity, health, lock) and never touches the GPU's
compute; each launch is a fresh process that opens a LaunchSession and times cases with it.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from perfgate.core.gpu import Environment, Gpu
from perfgate.core.run import Health
from perfgate.core.toolbox import Verification
from perfgate.shims import StrEnum


class DeviceKind(StrEnum):
    """Where the times come from."""

    CUDA = "cuda"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleBatch:
    """The intervals of one block, as the device timed them.

    Attributes:
        intervals_s: seconds of each timed interval, not yet divided by the executions in it.
        sm_clock_hz: SM clock over the whole batch, from the device's own counters; None if not measured.
        started_s: seconds since the launch began.
        spin_timed_out: the queue was released by the device-side timeout, not by the host: the
            intervals may contain host time and must not be used.
        host_bound: the GPU ran out of queued work, so the intervals contain the host's time.
    """

    intervals_s: tuple[float, ...]
    sm_clock_hz: float | None = None
    started_s: float = 0.0
    spin_timed_out: bool = False
    host_bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Counters of the GPU at one moment; what could not be read is None or absent.

    Attributes:
        clock_events_s: cumulative seconds by reason: ``sw_power_cap``, ``sync_boost``,
            ``sw_thermal``, ``hw_thermal``, ``hw_power_brake``.
        at_s: monotonic seconds when it was read.
    """

    at_s: float
    temperature_c: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    clock_events_s: Mapping[str, float] = field(default_factory=dict)


class OpenCase(Protocol):
    """A case that is prepared on the device."""

    @property
    def sets(self) -> int:
        """Buffer sets that executions rotate over."""
        ...

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        """Time ``samples`` neighbouring intervals of ``executions`` executions each, one after the other.

        For slopes (gap, graph-node) an interval is the difference between a long and a short chain,
        ``executions`` apart.

        Raises:
            DeviceError: the device failed.
        """
        ...

    def poison(self) -> None:
        """Make every output invalid."""
        ...

    def verify(self) -> Verification:
        """Check the outputs of the last executions."""
        ...


class LaunchSession(Protocol):
    """One fresh process on the device."""

    def open_case(self, case_id: str) -> AbstractContextManager[OpenCase]:
        """Prepare a case: buffers, data, module.

        Raises:
            CompileError, DeviceError: see ``devices``.
        """
        ...

    def self_test(self) -> float | None:
        """Prove that the events time this stream: a spin of a known 1 ms must read at least 0.99 ms.

        Returns:
            The SM clock meanwhile [Hz], that of a GPU with next to nothing to do; None where it is not measured.

        Raises:
            DeviceError: they do not.
        """
        ...

    def telemetry(self) -> Telemetry:
        """Read the counters now."""
        ...

    def energy_j(self) -> float | None:
        """Read the cumulative energy; apart from the other counters, since NVML takes 3 to 16 ms for it."""
        ...

    def code_sha256(self, case_id: str) -> str | None:
        """Hash of the machine code that the case ran; None where there is none."""
        ...


class Device(Protocol):
    """A GPU, or recordings of one, as the parent process sees it."""

    @property
    def kind(self) -> DeviceKind:
        """Where its times come from."""
        ...

    @property
    def address(self) -> str:
        """What a launch needs to open the same device again, e.g. ``"cuda:GPU-..."``; never stored."""
        ...

    @property
    def gpu(self) -> Gpu:
        """Identity."""
        ...

    @property
    def environment(self) -> Environment:
        """Environment."""
        ...

    def health(self) -> Health:
        """Read the health block."""
        ...

    def foreign_processes(self, own: int) -> tuple[str, ...]:
        """Name other compute processes on this GPU, given the number of our own processes there."""
        ...

    def locked_clocks(self, asked_mhz: int | None) -> AbstractContextManager[float]:
        """Lock the SM clock [MHz; None for a default] and give the clock [Hz]; restored on every way out.

        Raises:
            ConfigurationError: the device has no such clock.
            DeviceError: the driver refuses.
        """
        ...

    def lock(self, *, wait: bool) -> AbstractContextManager[None]:
        """Hold the chip's lock.

        Raises:
            DeviceBusyError: another perfgate holds it and ``wait`` is false.
        """
        ...
