"""A baseline: accepted sessions for one GPU identity."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a session came from and why it was accepted."""

    recorded_utc: str
    reason: str
    device_kind: str
    perfgate_version: str
    commit: str | None = None
    runner: str | None = None
    actor: str | None = None
    forced: str | None = None  # what was overridden, in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCase:
    """What a baseline keeps of one case of one session.

    Attributes:
        launch_medians_s: one a launch.
        launch_cycles: SM cycles per execution, one a launch; None where the clock was not measured.
        within_spread: median over launches of the coefficient of variation of the samples.
        sm_clock_hz, power_w: medians over the session.
    """

    version: int
    timing: Timing
    unit: Unit
    gated: bool
    plan: CasePlan
    work: Work
    launch_medians_s: tuple[float, ...]
    launch_cycles: tuple[float, ...] | None = None
    within_spread: float | None = None
    source_sha256: str | None = None
    code_sha256: str | None = None
    sm_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None

    def statistics(self) -> tuple[float, ...]:
        """Return the launches' statistics in the unit that the case is judged in."""
        if self.unit is Unit.CYCLES and self.launch_cycles is not None:
            return self.launch_cycles
        return self.launch_medians_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSession:
    """One accepted session."""

    chip: str | None
    method: int
    power_limit_w: float | None
    environment: Environment
    provenance: Provenance
    suite_name: str
    suite_sha256: str | None
    cases: Mapping[str, SessionCase]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedMargin:
    """A margin that ``calibrate`` measured for a case."""

    relative: float
    sessions: int
    same_chip: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The sessions of one GPU identity; ``gpu`` holds identity fields only (no chip, no clocks)."""

    gpu: Gpu
    sessions: tuple[BaselineSession, ...]
    margins: Mapping[str, CalibratedMargin] = field(default_factory=dict)
