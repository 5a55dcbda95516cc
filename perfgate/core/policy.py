"""What a team decides: error rate, launches, stages, margins, and what fails a check.

Every threshold of the judging lives here, with its default and the reason; the effective policy is
part of every report.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginDefaults:
    """Default margins of one family, as relative changes.

    Attributes:
        same_chip: against sessions of the chip under judgement.
        cross_chip: against other chips of the identity.
        is_narrowed: whether sessions of other chips that agree narrow it. Not where chips or their hosts are of kinds,
            each alike within: any number of one kind tells nothing of the next.
    """

    same_chip: float
    cross_chip: float
    is_narrowed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """An intended slowdown: the verdict stays, the exit code passes.

    Attributes:
        case: glob over case ids.
        limit: largest relative change accepted.
        reason: why.
        link: where it was decided.
        expires: ISO date after which the entry fails the check.
    """

    case: str
    limit: float
    reason: str
    link: str | None = None
    expires: str | None = None


# Families not named here take the values of "default". Reasons: docs/statistics.md, "The margin".
MARGIN_DEFAULTS: Mapping[str, MarginDefaults] = {
    "bandwidth": MarginDefaults(same_chip=0.005, cross_chip=0.01),
    # Where pages lie decides how far the L2 is: two processes on one H200 differed by 0.8 %.
    "bandwidth.l2_read": MarginDefaults(same_chip=0.02, cross_chip=0.03),
    # 0.2 % between processes; another chip is often in another host, whose link and memory no identity names.
    # On five machines 64 MiB took 1212 µs within 0.1 %, on a sixth 1219 to 1375: those that agree teach nothing of it.
    "bandwidth.h2d": MarginDefaults(same_chip=0.01, cross_chip=0.05, is_narrowed=False),
    "bandwidth.d2h": MarginDefaults(same_chip=0.01, cross_chip=0.05, is_narrowed=False),
    "gemm": MarginDefaults(same_chip=0.01, cross_chip=0.01),
    # Few rows read the weights once: 0.3 to 0.8 % between processes of one H200, 0.4 % between chips.
    "gemm.bf16[m=": MarginDefaults(same_chip=0.01, cross_chip=0.02),
    # Chips of one H200 board, each with 0.04 % between launches, are of two kinds, 7 % apart: docs/adr/0001.
    "launch.graph_node": MarginDefaults(same_chip=0.01, cross_chip=0.15, is_narrowed=False),
    "launch.gap": MarginDefaults(same_chip=0.10, cross_chip=0.20),
    "default": MarginDefaults(same_chip=0.01, cross_chip=0.02),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The effective policy of a check.

    Attributes:
        alpha: probability that a check of unchanged code fails by chance.
        equivalence_alpha: error rate, a case, of "unchanged".
        launches: fresh processes of a check.
        stages: launches after which the data is looked at; the last equals ``launches``.
        baseline_launches: least number of launches of a baseline session.
        confirmation_pause_s: idle time before a regression is measured again.
        margins: policy's own margins by glob over case ids; the last match wins.
        margin_floor: no margin below it, whatever the calibration says.
        accept: intended slowdowns.
        suspected_fails, inconclusive_fails, missing_fails: whether these verdicts fail the check.
        environment_change_fails: whether sessions of another driver, toolkit, compiler, VBIOS or clock policy
            are no baseline; else the cases are judged and the difference is reported.
        gate_host_timed: judge host-timed cases too (only where calibration finds them stable).
        suites: what is measured where no ``--suite`` is given: a built-in suite by name, own ones by path.
        build: command that builds each side of ``check --against`` before it is measured; "" for none.
    """

    alpha: float = 0.01
    equivalence_alpha: float = 0.05
    launches: int = 6
    stages: tuple[int, ...] = (3, 6)
    baseline_launches: int = 12
    confirmation_pause_s: float = 60.0
    margins: Mapping[str, float] = field(default_factory=dict)
    margin_floor: float = 0.003
    accept: tuple[Acceptance, ...] = ()
    suspected_fails: bool = True
    inconclusive_fails: bool = False
    missing_fails: bool = True
    environment_change_fails: bool = False
    gate_host_timed: bool = False
    suites: tuple[str, ...] = ()
    build: str = ""


def halved_stages(launches: int) -> tuple[int, ...]:
    """Return the stages of a number of launches where none are given: one look half way, one at the end."""
    return (launches // 2, launches) if launches > 1 else (launches,)
