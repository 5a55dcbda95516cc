"""A run: what one session measured. Blocks, launches, cases, and what surrounded them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan
from perfgate.shims import StrEnum

# Squares of what lies between do not overflow; the universe is 4e17 s old.
_LEAST, _MOST = 1e-18, 1e18


def are_times(values: Iterable[float]) -> bool:
    """Tell whether values can be times in seconds, or SM cycles: finite, positive, and within all reason."""
    return all(_LEAST <= value <= _MOST for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive samples of one case.

    Attributes:
        sequence: place of the block among all blocks of its launch, from 0.
        started_s: seconds since the launch began.
        times_s: seconds per execution of each sample, finite and positive.
        executions_per_sample: executions that each time was divided by.
        sm_clock_hz: SM clock over the block.
        valid: whether the block may be used.
        reason: why it may not; None when valid.
    """

    sequence: int
    started_s: float
    times_s: tuple[float, ...]
    executions_per_sample: int
    sm_clock_hz: float | None = None
    valid: bool = True
    reason: str | None = None

    def __post_init__(self) -> None:
        if not are_times(self.times_s):
            message = "a block's times must be finite and positive"
            raise ValueError(message)
        if self.valid and not self.times_s:
            message = "a valid block needs at least one time"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLaunch:
    """What one launch measured of one case.

    Attributes:
        blocks: in order of time, invalid ones included.
        settled: warm-up ended because the case had settled, not because time was up.
        clock_events_s: seconds by reason during the case.
        output_verified: None when there was nothing to verify.
    """

    blocks: tuple[Block, ...]
    settled: bool = True
    warm_up_s: float | None = None
    energy_j: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    clock_events_s: Mapping[str, float] = field(default_factory=dict)
    output_verified: bool | None = None
    verification_error: float | None = None

    @property
    def valid_blocks(self) -> tuple[Block, ...]:
        """The blocks that may be used."""
        return tuple(block for block in self.blocks if block.valid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One fresh process: the unit of inference.

    Attributes:
        index: place in the session, from 0.
        started_utc: ISO 8601, UTC.
        cases: by case id.
        failures: by case id, why it has no result in this launch.
        failure: why the launch as a whole ended early; None when it did not.
    """

    index: int
    started_utc: str
    cases: Mapping[str, CaseLaunch]
    failures: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    event_floor_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseInfo:
    """What a run says of a case, once for all its launches."""

    family: str
    work: Work
    version: int
    timing: Timing = Timing.EVENTS
    gated: bool = True
    unit: Unit = Unit.SECONDS
    source_sha256: str | None = None
    code_sha256: str | None = None
    plan: CasePlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the GPU beside a session; what could not be read is None.

    Attributes:
        xids: Xid errors that the driver reported since perfgate looks, in their order.
    """

    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    remapped_rows_correctable: int | None = None
    remapped_rows_uncorrectable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    nvlink_links_active: int | None = None
    nvlink_errors: int | None = None
    mig_enabled: bool | None = None
    mps_active: bool | None = None
    confidential_computing: bool | None = None
    virtualization: str | None = None
    foreign_processes: tuple[str, ...] = ()
    xids: tuple[int, ...] | None = None


class Fault(StrEnum):
    """A fault that the recorded device rehearses."""

    THROTTLE = "throttle"  # the clock drops and the hardware says that it slows down for heat
    HANG = "hang"  # a kernel never ends
    CRASH = "crash"  # the process dies of SIGSEGV
    WRONG_OUTPUT = "wrong-output"  # verification fails
    OUT_OF_MEMORY = "oom"  # the device has no memory left for the case


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A rehearsed slowdown, speed-up or fault: stated in every output.

    Attributes:
        pattern: glob over case ids.
        requested: what was asked for, e.g. ``"+3%"`` or ``"hang"``.
        effective: relative change in executions that was run instead of the nominal number, by case.
    """

    pattern: str
    requested: str
    effective: Mapping[str, float] = field(default_factory=dict)

    @property
    def fault(self) -> Fault | None:
        """The fault that was asked for; None where it was a relative change."""
        return Fault(self.requested) if self.requested in tuple(Fault) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The document that a session writes.

    Attributes:
        settings: parameters of the measuring loop, as they were used; see ``measure.loop.Settings``.
    """

    created_utc: str
    perfgate_version: str
    device_kind: str
    method: int
    suite_name: str
    suite_sha256: str | None
    gpu: Gpu
    environment: Environment
    cases: Mapping[str, CaseInfo]
    launches: tuple[Launch, ...]
    injected: tuple[Injection, ...] = ()
    seed: int | None = None
    health_before: Health | None = None
    health_after: Health | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, object] = field(default_factory=dict)
