"""The verdicts of a case and of a check, and how the former join into the latter."""

from perfgate.errors import ExitCode
from perfgate.shims import StrEnum, assert_never


class CaseVerdict(StrEnum):
    """What is concluded about one case."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    SUSPECTED = "suspected"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    MISSING = "missing"
    NOT_COMPARABLE = "not-comparable"
    INVALID = "invalid"
    NOT_GATED = "not-gated"


class CheckVerdict(StrEnum):
    """What is concluded about a check."""

    PASSED = "passed"
    REGRESSED = "regressed"
    SUSPECTED = "suspected"
    INCONCLUSIVE = "inconclusive"
    NO_BASELINE = "no-baseline"
    NOT_COMPARABLE = "not-comparable"
    INVALID = "invalid"


def exit_code(verdict: CheckVerdict, *, suspected_fails: bool = True, inconclusive_fails: bool = False) -> ExitCode:
    """Return the exit code of a verdict (docs/cli.md)."""
    match verdict:
        case CheckVerdict.PASSED:
            return ExitCode.PASSED
        case CheckVerdict.REGRESSED:
            return ExitCode.REGRESSED
        case CheckVerdict.INVALID:
            return ExitCode.UNDECIDED
        case CheckVerdict.SUSPECTED:
            return ExitCode.UNDECIDED if suspected_fails else ExitCode.PASSED
        case CheckVerdict.INCONCLUSIVE:
            return ExitCode.UNDECIDED if inconclusive_fails else ExitCode.PASSED
        case CheckVerdict.NO_BASELINE | CheckVerdict.NOT_COMPARABLE:
            return ExitCode.NO_BASELINE
        case _:
            assert_never(verdict)
