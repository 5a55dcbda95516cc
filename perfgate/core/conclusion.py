"""From the verdicts of cases to the check's: verdict, accepted slowdowns, exit code, one sentence, next step."""

import datetime as dt
import shlex
from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.caveat import Caveat
from perfgate.core.gpu import Difference
from perfgate.core.margin import is_supported
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import CaseResult, Report
from perfgate.core.selection import is_match
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict, CheckVerdict, exit_code
from perfgate.errors import ConfigurationError, ExitCode
from perfgate.shims import assert_never

# Fields of the identity that are the same device in another state, in words.
_IDENTITY_WORDS = {
    "board_part_number": "board",
    "ecc_enabled": "ECC state",
    "mig_profile": "MIG profile",
    "pci_subsystem_id": "PCI subsystem",
    "pci_device_id": "PCI device",
    "memory_bytes": "memory size",
    "l2_bytes": "L2 size",
    "sm_count": "SM count",
}
# Fields of the environment that times may follow, in words: what a policy may want a new baseline for.
_ENVIRONMENT_WORDS = {
    "driver_version": "driver",
    "cuda_toolkit_version": "CUDA toolkit",
    "compiler": "compiler",
    "vbios_version": "VBIOS",
    "clock_policy": "clock policy",
}
_NAMED = 3  # ids that a sentence names before it says "and n more"


def concluded(report: Report, *, wrong_output: Sequence[str] = ()) -> Report:
    """Return the report with its verdict, accepted slowdowns, exit code, sentence and next step.

    Args:
        report: with the results of all cases; what is filled here is replaced.
        wrong_output: cases whose output is wrong, which beats any time.

    Raises:
        ConfigurationError: the date of an accepted slowdown is no date.
    """
    cases, doubts, has_expired = _with_acceptances(report.cases, report.policy, report.created_utc[:10])
    verdict = _verdict(report, cases)
    open_cases = tuple(case for case in cases if case.accepted is None)
    everything_is_accepted = len(open_cases) < len(cases) and not _family(open_cases)
    left = CheckVerdict.PASSED if everything_is_accepted else _verdict(report, open_cases)
    code = exit_code(
        left, suspected_fails=report.policy.suspected_fails, inconclusive_fails=report.policy.inconclusive_fails
    )
    if code is ExitCode.PASSED and has_expired:
        code = ExitCode.USAGE
    if wrong_output:
        code = ExitCode.WRONG_OUTPUT
    known = {caveat.code for caveat in doubts}
    report = replace(
        report,
        cases=cases,
        verdict=verdict,
        exit_code=int(code),
        caveats=(*(one for one in report.caveats if one.code not in known), *doubts),
    )
    summary, step = _summary(report), _next_step(report)
    if wrong_output:
        summary = f"The output of {_names(wrong_output)} is wrong: times mean nothing until it is right."
        step = "Correct the kernel; no time of it is judged before."
    elif has_expired and code is ExitCode.USAGE:
        step = "Remove the expired entry from the policy's accepted slowdowns, or renew it."
    return replace(report, summary=summary, next_step=step)


def _verdict(report: Report, cases: Sequence[CaseResult]) -> CheckVerdict:
    if report.baseline is None:
        return CheckVerdict.NO_BASELINE
    if report.identity_differences:
        return CheckVerdict.NOT_COMPARABLE
    if _refused_environment(report):
        return CheckVerdict.NOT_COMPARABLE
    return check_verdict(cases, report.policy)


def _refused_environment(report: Report) -> tuple[Difference, ...]:
    """Return how the environment differs from the baseline's, where the policy wants a baseline of its own for it."""
    if not report.policy.environment_change_fails:
        return ()
    return tuple(one for one in report.environment_differences if one.field in _ENVIRONMENT_WORDS)


def check_verdict(cases: Sequence[CaseResult], policy: Policy) -> CheckVerdict:
    """Join the verdicts of the gated cases; nothing to judge is never a pass."""
    gated = _family(cases)
    found = {case.verdict for case in gated}
    failed = {CaseVerdict.INVALID} | ({CaseVerdict.MISSING} if policy.missing_fails else set())
    if CaseVerdict.REGRESSED in found:
        return CheckVerdict.REGRESSED
    if found & failed:
        return CheckVerdict.INVALID
    if CaseVerdict.NOT_COMPARABLE in found:
        return CheckVerdict.NOT_COMPARABLE
    if not found - {CaseVerdict.NEW, CaseVerdict.MISSING}:
        if any(case.margin is not None and not is_supported(case.margin) for case in cases):
            return CheckVerdict.INCONCLUSIVE  # what was to be judged is too noisy to be
        return CheckVerdict.NO_BASELINE if CaseVerdict.NEW in found else CheckVerdict.INVALID
    if CaseVerdict.SUSPECTED in found:
        return CheckVerdict.SUSPECTED
    if CaseVerdict.INCONCLUSIVE in found:
        return CheckVerdict.INCONCLUSIVE
    return CheckVerdict.PASSED


def _family(cases: Sequence[CaseResult]) -> list[CaseResult]:
    return [case for case in cases if case.gated and case.verdict is not CaseVerdict.NOT_GATED]


def _with_acceptances(
    cases: tuple[CaseResult, ...], policy: Policy, today: str
) -> tuple[tuple[CaseResult, ...], tuple[Caveat, ...], bool]:
    """Return the cases with what the policy accepts, the doubts about its entries, and whether one has expired."""
    valid, doubts = [], []
    has_expired = False
    for entry in policy.accept:
        if _has_expired(entry, today):
            has_expired = True
            doubts.append(
                Caveat(
                    code="acceptance-expired",
                    message=f"the accepted slowdown of {entry.case} expired on {entry.expires}: it fails the check",
                    remedy="remove the entry from the policy, or renew it with a reason",
                )
            )
        else:
            valid.append(entry)
    used: set[int] = set()
    results = []
    for case in cases:
        fitting = [index for index, entry in enumerate(valid) if is_match(case.id, entry.case)]
        is_slower = case.gated and case.verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED)
        if not fitting or not is_slower or case.change is None:
            results.append(case)
            continue
        used.update(fitting)
        covering = next((valid[index] for index in fitting if case.change.value <= valid[index].limit), None)
        results.append(_exceeding(case, valid[fitting[0]]) if covering is None else _accepting(case, covering))
    doubts += [
        Caveat(
            code="acceptance-unused",
            message=f"the accepted slowdown of {entry.case} is not needed: no case that it means is slower",
            remedy="remove the entry from the policy",
        )
        for index, entry in enumerate(valid)
        if index not in used
    ]
    return tuple(results), tuple(doubts), has_expired


def _has_expired(entry: Acceptance, today: str) -> bool:
    if entry.expires is None:
        return False
    try:
        return dt.date.fromisoformat(today) > dt.date.fromisoformat(entry.expires)
    except ValueError as error:
        message = f"the accepted slowdown of {entry.case} expires on {entry.expires!r}, which is no date"
        raise ConfigurationError(message, hint="Write it as YYYY-MM-DD.") from error


def _accepting(case: CaseResult, entry: Acceptance) -> CaseResult:
    link = f" ({entry.link})" if entry.link else ""
    return replace(case, accepted=f"{entry.reason}{link}, up to {percent_text(entry.limit, signed=True)}")


def _exceeding(case: CaseResult, entry: Acceptance) -> CaseResult:
    doubt = Caveat(
        code="acceptance-exceeded",
        message=f"slower than the {percent_text(entry.limit, signed=True)} that the policy accepts: {entry.reason}",
    )
    return replace(case, caveats=(*case.caveats, doubt))


def _names(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_NAMED])
    return shown if len(ids) <= _NAMED else f"{shown} and {len(ids) - _NAMED} more"


def _count(cases: Sequence[CaseResult], verdict: CaseVerdict) -> list[CaseResult]:
    return [case for case in cases if case.verdict is verdict]


def _changed(cases: Sequence[CaseResult]) -> str:
    return _names(
        [
            case.id + (f" by {percent_text(case.change.value, signed=True)}" if case.change is not None else "")
            for case in cases
        ]
    )


def _are(count: int) -> str:
    return "1 case is" if count == 1 else f"{count} cases are"


def _tally(family: Sequence[CaseResult], *, without: CaseVerdict | None = None) -> str:
    """Count the verdicts of a family in words: "12 unchanged, 1 improved"."""
    counts = [
        f"{len(found)} {verdict.value}"
        for verdict in CaseVerdict
        if verdict is not without and (found := _count(family, verdict))
    ]
    return ", ".join(counts)


def _summary(report: Report) -> str:
    family = _family(report.cases)
    match report.verdict:
        case CheckVerdict.PASSED:
            return f"{_are(len(family))} judged and none is slower beyond its margin: {_tally(family)}."
        case CheckVerdict.REGRESSED:
            slower = _count(family, CaseVerdict.REGRESSED)
            of = f"{len(slower)} of {len(family)} cases {'is' if len(slower) == 1 else 'are'}"
            confirmed = ", confirmed by fresh launches" if all(case.confirmed for case in slower) else ""
            accepted = ", accepted by the policy" if all(case.accepted for case in slower) else ""
            rest = _tally(family, without=CaseVerdict.REGRESSED)
            tail = f" {rest[0].upper()}{rest[1:]}." if rest else ""
            return f"{of} slower beyond the margin{confirmed}{accepted}: {_changed(slower)}.{tail}"
        case CheckVerdict.SUSPECTED:
            found = _count(family, CaseVerdict.SUSPECTED)
            return f"{_are(len(found))} probably slower beyond the margin, but that is not proven: {_changed(found)}."
        case CheckVerdict.INCONCLUSIVE:
            found = _count(family, CaseVerdict.INCONCLUSIVE)
            if not found:
                return "No case can be judged: sessions of unchanged code differ by more than a gate may allow."
            return f"{_are(len(found))} neither proven slower nor proven unchanged: {_changed(found)}."
        case CheckVerdict.INVALID:
            return _invalid_summary(report, family)
        case CheckVerdict.NOT_COMPARABLE:
            if any(one.field == "name" for one in report.identity_differences):
                (other,) = {one.baseline for one in report.identity_differences if one.field == "name"}
                return f"This GPU is a {report.gpu.name}, the baseline's a {other}: their times are not comparable."
            if report.identity_differences:
                fields = "; ".join(
                    f"{one.field} is {one.candidate} here, {one.baseline} there" for one in report.identity_differences
                )
                return f"This GPU is not comparable with the baseline's: {fields}."
            if changed := _refused_environment(report):
                parts = ", ".join(
                    f"{_ENVIRONMENT_WORDS[one.field]} {one.candidate} here, {one.baseline} there" for one in changed
                )
                return f"The environment is not the baseline's, and the policy wants it to be: {parts}."
            found = _count(family, CaseVerdict.NOT_COMPARABLE)
            return f"{_are(len(found))} not comparable with the baseline: {_reasons(found)}."
        case CheckVerdict.NO_BASELINE:
            return f"No baseline for this GPU ({report.gpu.name}): nothing to compare with."
        case _:
            assert_never(report.verdict)


def _invalid_summary(report: Report, family: Sequence[CaseResult]) -> str:
    missing = _count(family, CaseVerdict.MISSING) if report.policy.missing_fails else []
    invalid = _count(family, CaseVerdict.INVALID)
    parts = []
    if invalid:
        parts.append(f"the measurement of {_are(len(invalid)).removesuffix(' is').removesuffix(' are')} is invalid")
        parts[-1] += f": {_reasons(invalid)}"
    if missing:
        parts.append(f"{_are(len(missing))} missing: {_reasons(missing)}")
    text = "; ".join(parts) or "no gated case was measured: nothing was judged"
    return f"{text[0].upper()}{text[1:]}."


def _reasons(cases: Sequence[CaseResult]) -> str:
    return _names([f"{case.id} ({case.reason})" if case.reason else case.id for case in cases])


def _next_step(report: Report) -> str:
    match report.verdict:
        case CheckVerdict.PASSED | CheckVerdict.INCONCLUSIVE:
            return ""
        case CheckVerdict.REGRESSED:
            return _regressed_step(report)
        case CheckVerdict.SUSPECTED:
            return "Measure again; more launches (--launches) decide what these could not."
        case CheckVerdict.INVALID:
            return "Look at the reasons named, then measure again."
        case CheckVerdict.NOT_COMPARABLE | CheckVerdict.NO_BASELINE:
            return recording_step(report)
        case _:
            assert_never(report.verdict)


def recording_step(report: Report, options: Sequence[str] = ()) -> str:
    """Return the command that records what is missing, with the reason filled in as far as it is known.

    ``options`` are those of the check that an update shares, e.g. ``("--baseline", "gpus")``.
    """
    command = shlex.join(("perfgate", "baseline", "update", *options, "--reason", _recording_reason(report)))
    return f"Record a baseline on this GPU: {command}"


def _recording_reason(report: Report) -> str:
    changed = {one.field: one.candidate for one in report.identity_differences}
    if not changed and (environment := _refused_environment(report)):
        return ", ".join(f"another {_ENVIRONMENT_WORDS[one.field]}: {one.candidate}" for one in environment)
    if "name" in changed or not changed:
        reasons = (case.reason or "" for case in _count(_family(report.cases), CaseVerdict.NOT_COMPARABLE))
        moved = [reason.partition(" differs: ") for reason in reasons if not changed]
        names = dict.fromkeys(f"another {name}" for name, differs, _ in moved if differs)
        return ", ".join(names) or f"first session of {report.gpu.name}"
    return ", ".join(f"another {_IDENTITY_WORDS.get(field, field)}: {value}" for field, value in changed.items())


def _regressed_step(report: Report) -> str:
    slower = _count(_family(report.cases), CaseVerdict.REGRESSED)
    if all(case.accepted for case in slower):
        return "Accept a new baseline session after the merge, and remove the entries from the policy."
    blamed = [cause for case in slower if not case.accepted for cause in (*case.causes, *report.causes)]
    if not blamed:
        return "Find the change that made it slower, or accept it with a reason in the policy."
    who = {"author": "The author of the change", "maintainer": "A maintainer", "runner-owner": "The runner's owner"}
    first = blamed[0]
    return f"{who.get(first.who, first.who)} acts: {first.message}. To accept the slowdown, enter it in the policy."
