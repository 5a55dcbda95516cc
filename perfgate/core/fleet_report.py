"""What judging a fleet comes to: a document for people, pages and node exporters. No judging here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.fleet import Seat
from perfgate.core.gpu import Gpu
from perfgate.core.report import Cause
from perfgate.errors import ExitCode
from perfgate.shims import StrEnum


class Standing(StrEnum):
    """What is concluded about one GPU."""

    SLOW = "slow"
    INVALID = "invalid"
    MISSING = "missing"
    UNJUDGED = "unjudged"
    HEALTHY = "healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCase:
    """A case in which a GPU is slow.

    Attributes:
        against: ``"peers"``, ``"baseline"``, or the finding that its group shares.
        change: relative to the median of its peers, or to its baseline; positive is slower.
        p_value: corrected for all cases and GPUs; None against a baseline.
    """

    id: str
    against: str
    change: float
    margin: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """What is concluded about one seat.

    Attributes:
        identity: index into the identities of the report; None for a missing GPU.
        changes: relative to the median of its peers, by case.
        values_s: median time [s] by case.
        reasons: why it is invalid, missing or unjudged.
        injected: what was rehearsed on it.
    """

    seat: Seat
    standing: Standing
    identity: int | None = None
    chip: str | None = None
    slow: tuple[SlowCase, ...] = ()
    reasons: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    changes: Mapping[str, float] = field(default_factory=dict)
    values_s: Mapping[str, float] = field(default_factory=dict)
    baseline_verdict: str | None = None
    injected: tuple[str, ...] = ()

    @property
    def worst(self) -> float:
        """The largest change among its slow cases; 0 without any."""
        return max((one.change for one in self.slow), default=0.0)


class FindingCode(StrEnum):
    """What kind of thing was found about more than one GPU, or about what a GPU is."""

    SLOW_GROUP = "slow-group"
    OTHER_BOARD = "other-board"
    OTHER_VERSION = "other-version"
    NODE_MISSING = "node-missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFinding:
    """Something about a group of GPUs.

    Attributes:
        attribute, value: what the group shares, e.g. ``"node"`` and its name.
        seats: how many GPUs.
        cases: slow cases; change the median of their changes.
    """

    code: FindingCode
    message: str
    attribute: str
    value: str
    seats: int
    cases: tuple[str, ...] = ()
    change: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCase:
    """One case over the GPUs of one identity.

    Attributes:
        identity: index into the identities of the report.
        gpus: how many measured it.
        median_s: median over GPUs [s].
        spread: robust relative standard deviation between GPUs: 1.4826 x MAD of the logarithms.
        margin: how much slower than its peers a GPU has to be.
        slow: how many are.
    """

    id: str
    identity: int
    gpus: int
    median_s: float
    spread: float
    margin: float
    gated: bool
    slow: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The document that judging a fleet writes. Nodes are named as the seats name them.

    Attributes:
        identities: boards that were met, without chips.
        members: worst first.
        tests: cases x GPUs that the error rate was divided by.
    """

    created_utc: str
    perfgate_version: str
    alpha: float
    tests: int
    identities: tuple[Gpu, ...]
    members: tuple[FleetMember, ...]
    cases: tuple[FleetCase, ...]
    findings: tuple[FleetFinding, ...]
    concurrency: str | None = None
    exit_code: int = 0

    def count(self, standing: Standing) -> int:
        """How many GPUs have a standing."""
        return sum(one.standing is standing for one in self.members)


def fleet_exit_code(members: tuple[FleetMember, ...], *, wrong_outputs: bool) -> ExitCode:
    """Return the exit code: slow goes before wrong, wrong before undecided, undecided before not comparable."""
    standings = {one.standing for one in members}
    if Standing.SLOW in standings:
        return ExitCode.REGRESSED
    if wrong_outputs:
        return ExitCode.WRONG_OUTPUT
    if standings & {Standing.INVALID, Standing.MISSING}:
        return ExitCode.UNDECIDED
    if Standing.UNJUDGED in standings or not members:
        return ExitCode.NO_BASELINE
    return ExitCode.PASSED


def rank(member: FleetMember) -> tuple[int, float, str, int]:
    """Return by what the members of a report are sorted: worst first."""
    return tuple(Standing).index(member.standing), -member.worst, member.seat.node, member.seat.gpu


def seats_named(members: tuple[FleetMember, ...], *standings: Standing) -> tuple[Seat, ...]:
    """Return the seats with one of some standings, in the order of the report."""
    return tuple(one.seat for one in members if one.standing in standings)
