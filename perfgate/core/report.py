"""The result of a check: everything that a renderer may show, and nothing else.

``core.gate`` makes it, ``storage`` writes it, ``report`` renders it. A renderer reads only this.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.caveat import Caveat
from perfgate.core.gpu import Difference, Environment, Gpu
from perfgate.core.policy import Policy
from perfgate.core.roofs import Roofs
from perfgate.core.run import Injection
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.shims import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its interval at ``confidence``; low and high are None where there is none."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


class MarginSource(StrEnum):
    """Where a case's margin came from."""

    POLICY = "policy"
    SAME_CHIP_DEFAULT = "same-chip-default"
    SAME_CHIP_CALIBRATED = "same-chip-calibrated"
    CROSS_CHIP_DEFAULT = "cross-chip-default"
    CROSS_CHIP_CALIBRATED = "cross-chip-calibrated"
    SAME_SESSION = "same-session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The relative change that counts as slower, and why it is this one.

    Attributes:
        relative: e.g. 0.005.
        source: rule that gave it.
        sessions: baseline sessions (of this chip) or chips that it was learned from.
        session_term: relative half-width by which sessions of unchanged code may differ (95 %).
        session_spread: standard deviation between sessions that was assumed or learned.
        bound: what the sessions ask for, before it was clipped; None where there was one only.
    """

    relative: float
    source: MarginSource
    sessions: int = 0
    session_term: float = 0.0
    session_spread: float = 0.0
    bound: float | None = None


class Bound(StrEnum):
    """Which term of the time model is the largest."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePosition:
    """Where a case sits on the roofline of its own run.

    Attributes:
        bandwidth_bytes_per_s, rate_flop_per_s: achieved by the declared work; None without bytes / FLOP.
        intensity_flop_per_byte: of the declared work.
        roof: name of the roof that bounds it, e.g. ``"DRAM"``, ``"FP32"``.
        of_measured, of_theoretical: fraction of that roof; None where it is unknown.
    """

    bandwidth_bytes_per_s: float | None = None
    rate_flop_per_s: float | None = None
    intensity_flop_per_byte: float | None = None
    bound: Bound | None = None
    roof: str | None = None
    of_measured: float | None = None
    of_theoretical: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something seen beside a change that may explain it; never changes a verdict.

    Attributes:
        code: e.g. ``"source-changed"``, ``"driver-changed"``, ``"clock-lower"``, ``"hardware-finding"``.
        message: a sentence.
        who: who acts: ``"author"``, ``"maintainer"``, ``"runner-owner"``.
    """

    code: str
    message: str
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The judgement of one case.

    Attributes:
        baseline, candidate: medians in ``unit`` (seconds or cycles per execution).
        baseline_s, candidate_s: the same in seconds, whatever the unit of judgement.
        change: relative change (candidate / baseline - 1; positive is slower), this session against these.
        change_widened: the same interval widened by the margin's session term.
        p_slower: p-value of "slower by more than the margin", before correction; p_adjusted after Holm.
        p_equivalent: larger of the two one-sided p-values of "within the margin".
        significant: the change is beyond the margin by more than chance allows.
        relevant: the estimate is beyond the margin.
        reason: why there is no verdict, for not-comparable, missing, invalid and inconclusive.
    """

    id: str
    family: str
    verdict: CaseVerdict
    unit: Unit = Unit.SECONDS
    timing: Timing = Timing.EVENTS
    gated: bool = True
    work: Work | None = None
    baseline: Estimate | None = None
    candidate: Estimate | None = None
    baseline_s: float | None = None
    candidate_s: float | None = None
    change: Estimate | None = None
    change_widened: Estimate | None = None
    margin: Margin | None = None
    p_slower: float | None = None
    p_adjusted: float | None = None
    p_equivalent: float | None = None
    significant: bool = False
    relevant: bool = False
    baseline_launches: int = 0
    candidate_launches: int = 0
    confirmed: bool | None = None
    first_change: Estimate | None = None
    accepted: str | None = None
    reason: str | None = None
    roofline: RooflinePosition | None = None
    causes: tuple[Cause, ...] = ()
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineUsed:
    """Which baseline sessions a check was judged against.

    Attributes:
        base_commit: commit that was measured in the same session; None for a stored baseline.
    """

    source: str
    sessions: int
    sessions_of_chip: int
    newest_utc: str | None
    environment: Environment | None = None
    base_commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a check.

    Attributes:
        roofs: what the candidate's GPU allows, measured in its own run; ``core.roofline`` fills it in
            together with the position of each case.
    """

    created_utc: str
    perfgate_version: str
    verdict: CheckVerdict
    exit_code: int
    summary: str
    gpu: Gpu
    environment: Environment
    device_kind: str
    policy: Policy
    cases: tuple[CaseResult, ...]
    baseline: BaselineUsed | None = None
    identity_differences: tuple[Difference, ...] = ()
    environment_differences: tuple[Difference, ...] = ()
    causes: tuple[Cause, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    injected: tuple[Injection, ...] = ()
    roofs: Roofs | None = None
    launches: int = 0
    looks: int = 1
    measured_s: float | None = None
    sm_clock_hz: float | None = None
    temperature_c: float | None = None
    next_step: str = ""
    extensions: Mapping[str, object] = field(default_factory=dict)
