"""JUnit XML: what counts as failed, and whether readers of junit-10.xsd take it."""

import functools
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from lxml import etree

from perfgate.core.policy import Policy
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report.junit import Outcome, outcome, render_junit
from tests.golden.reports import REGRESSED_GEMM, REPORTS, UNCHANGED, hostile, make_report, passed, regressed

# Of Jenkins' xUnit plugin; MIT, as pytest's source carries it.
SCHEMA = Path(__file__).parents[2] / "data" / "junit-10.xsd"


@functools.cache
def schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMA))


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text.encode())


@pytest.mark.parametrize("situation", REPORTS)
def test_render_junit__is_valid_by_the_schema_of_jenkins(situation: str) -> None:
    schema().assertValid(etree.fromstring(render_junit(REPORTS[situation]()).encode()))


def test_schema__refuses_what_jenkins_would() -> None:
    text = render_junit(passed())
    for broken in (
        text.replace(' name="check"', ""),
        text.replace("<testcase ", '<testcase owner="nobody" ', 1),
        text.replace("<properties>", "<settings>").replace("</properties>", "</settings>"),
    ):
        assert broken != text
        assert not schema().validate(etree.fromstring(broken.encode()))


@pytest.mark.parametrize("situation", REPORTS)
def test_render_junit__counts_what_it_holds(situation: str) -> None:
    report = REPORTS[situation]()
    root = parsed(render_junit(report))
    suite = root[0]
    assert int(suite.attrib["tests"]) == len(report.cases) + 1 == len(suite.findall("testcase"))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[attribute]) == len(suite.findall(f"testcase/{tag}"))
    assert (root.attrib["failures"], root.attrib["errors"]) == (suite.attrib["failures"], suite.attrib["errors"])


@pytest.mark.parametrize("situation", REPORTS)
def test_render_junit__fails_exactly_when_the_check_does(situation: str) -> None:
    report = REPORTS[situation]()
    suite = parsed(render_junit(report))[0]
    assert (int(suite.attrib["failures"]) + int(suite.attrib["errors"]) > 0) == (report.exit_code != 0)


POLICY = Policy()


@pytest.mark.parametrize(
    ("verdict", "policy", "expected"),
    [
        (CaseVerdict.UNCHANGED, POLICY, "passed"),
        (CaseVerdict.IMPROVED, POLICY, "passed"),
        (CaseVerdict.REGRESSED, POLICY, "failure"),
        (CaseVerdict.SUSPECTED, POLICY, "failure"),
        (CaseVerdict.SUSPECTED, Policy(suspected_fails=False), "skipped"),
        (CaseVerdict.INCONCLUSIVE, POLICY, "skipped"),
        (CaseVerdict.INCONCLUSIVE, Policy(inconclusive_fails=True), "failure"),
        (CaseVerdict.MISSING, POLICY, "error"),
        (CaseVerdict.MISSING, Policy(missing_fails=False), "skipped"),
        (CaseVerdict.INVALID, POLICY, "error"),
        (CaseVerdict.NOT_COMPARABLE, POLICY, "error"),
        (CaseVerdict.NEW, POLICY, "skipped"),
        (CaseVerdict.NOT_GATED, POLICY, "skipped"),
    ],
)
def test_outcome__follows_verdict_and_policy(verdict: CaseVerdict, policy: Policy, expected: Outcome) -> None:
    report = replace(passed(), policy=policy)
    assert outcome(replace(UNCHANGED[0], verdict=verdict), report) == expected


@pytest.mark.parametrize("change", [{"gated": False}, {"accepted": "agreed"}])
def test_outcome__of_ungated_and_accepted_cases_is_no_failure(change: dict[str, object]) -> None:
    assert outcome(replace(REGRESSED_GEMM, **change), passed()) == "skipped"  # type: ignore[arg-type]


def test_render_junit__without_cases_is_no_empty_success() -> None:
    report = make_report((), CheckVerdict.INVALID, "Nothing was judged.", exit_code=8)
    check = parsed(render_junit(report)).find("testsuite/testcase")
    assert check is not None
    error = check.find("error")
    assert error is not None
    assert error.attrib == {"type": "invalid", "message": "Nothing was judged."}


def test_render_junit__a_check_that_regressed_with_no_case_to_show_is_a_failure() -> None:
    suite = parsed(render_junit(make_report((), CheckVerdict.REGRESSED, "", exit_code=1)))[0]
    assert suite.attrib["failures"] == "1"


def test_render_junit__tells_a_regression_in_its_message() -> None:
    failure = parsed(render_junit(regressed())).find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "regressed: +3.40 % (+3.20 to +3.60) margin 1.0 %"


def test_render_junit__writes_times_in_seconds_and_none_for_a_case_without_one() -> None:
    times = {
        test.attrib["name"]: test.get("time")
        for test in parsed(render_junit(REPORTS["hundred-cases"]())).iter("testcase")
    }
    assert times["gemm.bf16[n=4096]"] == "0.000194909"
    assert times["launch.gap"] is None
    assert times["check"] is None


def test_render_junit__says_recorded_and_injected() -> None:
    suite = parsed(render_junit(REPORTS["recorded-injected"]()))[0]
    assert suite.attrib["name"] == "perfgate RECORDED INJECTED"
    properties = {(one.attrib["name"], one.attrib["value"]) for one in suite.iter("property")}
    assert ("injected", "launch.gap hang") in properties


def test_render_junit__holds_any_text() -> None:
    name = "a\x00\x1b\ud800\ufffe<&>\"'"
    report = replace(hostile(), cases=(replace(hostile().cases[0], id=name),))
    tests = [test.attrib["name"] for test in parsed(render_junit(report)).iter("testcase")]
    assert tests[1] == r"a\x00\x1b\ud800\ufffe" + "<&>\"'"
