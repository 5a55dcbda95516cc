"""A report as JUnit XML, in the form that Jenkins' xUnit plugin (junit-10.xsd), GitLab and most viewers read.

One test a case, and one for the check as a whole, so that a check without cases is not an empty success.
"""

from typing import Literal
from xml.etree import ElementTree as ET

from perfgate.core.report import CaseResult, Report
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import ExitCode
from perfgate.report import sentences
from perfgate.report.escape import printable
from perfgate.report.rows import row
from perfgate.shims import assert_never

Outcome = Literal["passed", "failure", "error", "skipped"]


def render_junit(report: Report) -> str:
    """Render a report as an XML document with a declaration, in UTF-8."""
    cases = [_case_test(result, report) for result in report.cases]
    is_told = any(test.find(tag) is not None for test in cases for tag in ("failure", "error"))
    tests = [_check_test(report, is_told=is_told), *cases]
    counts = {tag: str(sum(test.find(tag) is not None for test in tests)) for tag in ("failure", "error", "skipped")}
    totals = {"tests": str(len(tests)), "failures": counts["failure"], "errors": counts["error"]}
    badges = sentences.rehearsal(report.device_kind, report.injected)
    name = f"perfgate{''.join(f' {badge}' for badge, _ in badges)}"
    root = ET.Element("testsuites", _safe({"name": name, **totals}))
    suite = ET.SubElement(
        root,
        "testsuite",
        _safe({"name": name, **totals, "skipped": counts["skipped"], "timestamp": report.created_utc}),
    )
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(report):
        ET.SubElement(properties, "property", _safe({"name": key, "value": value}))
    suite.extend(tests)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def outcome(result: CaseResult, report: Report) -> Outcome:
    """Return what a case counts as: failure for slower, error for what could not be judged."""
    policy = report.policy
    if not result.gated or result.accepted:
        return "skipped"
    match result.verdict:
        case CaseVerdict.UNCHANGED | CaseVerdict.IMPROVED:
            return "passed"
        case CaseVerdict.REGRESSED:
            return "failure"
        case CaseVerdict.SUSPECTED:
            return "failure" if policy.suspected_fails else "skipped"
        case CaseVerdict.INCONCLUSIVE:
            return "failure" if policy.inconclusive_fails else "skipped"
        case CaseVerdict.MISSING:
            return "error" if policy.missing_fails else "skipped"
        case CaseVerdict.INVALID | CaseVerdict.NOT_COMPARABLE:
            return "error"
        case CaseVerdict.NEW | CaseVerdict.NOT_GATED:
            return "skipped"
        case _:
            assert_never(result.verdict)


def _safe(attributes: dict[str, str]) -> dict[str, str]:
    """XML 1.0 has no way to write control characters."""
    return {key: printable(value) for key, value in attributes.items()}


def _properties(report: Report) -> list[tuple[str, str]]:
    return [
        ("verdict", report.verdict),
        ("exit-code", str(report.exit_code)),
        ("gpu", sentences.gpu_text(report.gpu)),
        ("software", sentences.software_text(report.environment)),
        ("baseline", sentences.baseline_text(report.baseline)),
        ("device-kind", report.device_kind),
        *(("injected", sentences.injection_text(one)) for one in report.injected),
        ("perfgate-version", report.perfgate_version),
    ]


def _check_test(report: Report, *, is_told: bool) -> ET.Element:
    """The check as a whole; it fails by itself only where no case tells that it did."""
    test = ET.Element("testcase", _safe({"classname": "perfgate", "name": "check"}))
    if report.exit_code != ExitCode.PASSED and not is_told:
        tag = "failure" if report.exit_code == ExitCode.REGRESSED else "error"
        ET.SubElement(test, tag, _safe({"type": report.verdict, "message": report.summary}))
    lines = [
        sentences.headline(report),
        *(f"{badge}: {text}" for badge, text in sentences.rehearsal(report.device_kind, report.injected)),
    ]
    lines += [report.summary, report.next_step, *(one.sentence for one in report.caveats)]
    ET.SubElement(test, "system-out").text = "\n".join(printable(line) for line in lines if line)
    return test


def _case_test(result: CaseResult, report: Report) -> ET.Element:
    attributes = {"classname": f"perfgate.{result.family}", "name": result.id}
    if result.candidate_s is not None:
        attributes["time"] = f"{result.candidate_s:.9f}"
    test = ET.Element("testcase", _safe(attributes))
    texts = row(result)
    message = " ".join(
        filter(None, (f"{texts.verdict}:", texts.change_with_interval, texts.margin and f"margin {texts.margin}"))
    )
    kind = outcome(result, report)
    if kind != "passed":
        ET.SubElement(test, kind, _safe({"type": result.verdict, "message": message.removesuffix(":")}))
    lines = (message.removesuffix(":"), texts.time, texts.rate, texts.was, texts.confirmation, *texts.notes)
    ET.SubElement(test, "system-out").text = "\n".join(printable(line) for line in lines if line)
    return test
