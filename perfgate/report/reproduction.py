"""The command that repeats a check: of the cases that failed, else of all."""

import shlex

from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict
from perfgate.report.escape import printable

# More cases, or longer names, make a command that nobody reads.
_MOST_CASES = 20
_LONGEST_NAME = 120
_FAILING = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED, CaseVerdict.INVALID, CaseVerdict.MISSING)


def reproduction_command(report: Report) -> str:
    """Return the command line, quoted for a shell, on one line."""
    words = ["perfgate", "check"]
    base = report.baseline.base_commit if report.baseline is not None else None
    if base is not None:
        words += ["--against", base[:12], *(word for name in report.policy.suites for word in ("--suite", name))]
    if report.device_kind != "cuda":
        words += ["--device", report.device_kind]
    failing = [one.id for verdict in _FAILING for one in report.cases if one.verdict is verdict]
    for case_id in [one for one in failing if len(one) <= _LONGEST_NAME][:_MOST_CASES]:
        words += ["--case", case_id]
    for injection in report.injected:
        words += ["--inject", f"{injection.pattern}={injection.requested}"]
    return " ".join(shlex.quote(printable(word)) for word in words)
