"""A baseline: accepted sessions for one GPU identity."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.plan import CasePlan
from perfgate.core.run import are_times


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
        settled: most launches had warmed up before they measured.
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
    settled: bool = True

    def __post_init__(self) -> None:
        for name in ("launch_medians_s", "launch_cycles"):
            values = getattr(self, name)
            if values is not None and not (values and are_times(values)):
                message = f"{name} must be finite and positive, one a launch"
                raise ValueError(message)

    def statistics(self) -> tuple[float, ...]:
        """Return the launches' statistics in the unit that the case is judged in."""
        if self.unit is Unit.CYCLES and self.launch_cycles is not None:
            return self.launch_cycles
        return self.launch_medians_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSession:
    """One accepted session.

    Attributes:
        refreshed: by case id, where a row came from that was measured again after the session.
    """

    chip: str | None
    method: int
    power_limit_w: float | None
    environment: Environment
    provenance: Provenance
    suite_name: str
    suite_sha256: str | None
    cases: Mapping[str, SessionCase]
    refreshed: Mapping[str, Provenance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedMargin:
    """A margin that ``calibrate`` measured for a case.

    Attributes:
        relative: the margin, as a relative change.
        sessions: sessions (of one chip) or chips that it was learned from.
        same_chip: it holds against sessions of one chip; else between chips.
        chip: the chip that it was learned on; None where it holds for any.
    """

    relative: float
    sessions: int
    same_chip: bool
    chip: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.relative) and self.relative > 0):
            message = "a margin must be a positive number"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The sessions of one GPU identity, in the order of time.

    Attributes:
        gpu: identity, and the attributes that its physics are checked by; no chip, no power limit.
        sessions: the first one of a chip stays as anchor against slow creep.
        margins: by case id, where calibrated.
    """

    gpu: Gpu
    sessions: tuple[BaselineSession, ...]
    margins: Mapping[str, CalibratedMargin] = field(default_factory=dict)
    extensions: Mapping[str, object] = field(default_factory=dict)
