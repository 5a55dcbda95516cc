"""What ``doctor`` found: one thing that works here, partly works or does not, and what to do about it."""

from dataclasses import dataclass

from perfgate.errors import ExitCode
from perfgate.shims import StrEnum


class Condition(StrEnum):
    """How well something works."""

    WORKS = "works"
    LIMITED = "limited"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what was looked at.
        condition: how well it works.
        result: what was found.
        consequence: what perfgate cannot do for it; empty when it works.
        remedy: the command or setting that mends it; empty where nothing does.
    """

    name: str
    condition: Condition
    result: str
    consequence: str = ""
    remedy: str = ""


def exit_code(findings: tuple[Finding, ...]) -> ExitCode:
    """Return the exit code of a diagnosis: only what keeps a check from running fails it."""
    broken = any(finding.condition is Condition.BROKEN for finding in findings)
    return ExitCode.DEVICE if broken else ExitCode.PASSED
