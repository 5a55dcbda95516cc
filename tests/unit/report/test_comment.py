from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfgate.core.policy import Policy
from perfgate.core.verdict import CheckVerdict
from perfgate.report.comment import render_comment, render_failure, render_headline, worst
from perfgate.report.policy_markdown import render_policy_change_markdown
from tests.golden.reports import REPORTS

ALL = tuple(make() if callable(make) else make for make in REPORTS.values())


@pytest.mark.parametrize("limit_bytes", [2000, 4000, 12_000, 59_000])
@pytest.mark.parametrize("count", [1, 2, len(ALL)])
def test_render_comment__is_never_above_its_size(limit_bytes: int, count: int) -> None:
    text = render_comment(
        ALL[:count], limit_bytes=limit_bytes, notices=("An edit.",), details="🚀" * 500, run_url="https://ci.example/1"
    )
    assert len(text.encode()) <= limit_bytes
    assert text.startswith("### perfgate: ")


def test_render_comment__details_give_way_to_the_report() -> None:
    text = render_comment(ALL[:1], limit_bytes=10_000, details="x" * 9000)
    assert "xxx" not in text
    assert "in the job summary" in text


def test_render_comment__several_begin_with_the_worst() -> None:
    passed = replace(ALL[0], verdict=CheckVerdict.PASSED, exit_code=0)
    regressed = replace(ALL[0], verdict=CheckVerdict.REGRESSED, exit_code=1)
    text = render_comment((passed, regressed))
    assert text.startswith("### perfgate: regressed in 1 of 2 checks")
    assert text.index("| regressed |") < text.index("| passed |")


def test_worst__a_regression_outweighs_everything() -> None:
    reports = [replace(ALL[0], verdict=verdict) for verdict in CheckVerdict]
    assert worst(reports) is CheckVerdict.REGRESSED
    assert render_headline([replace(ALL[0], verdict=CheckVerdict.PASSED)] * 3) == "passed in all 3 checks"


@given(message=st.text(max_size=200), hint=st.text(max_size=200))
@settings(max_examples=50)
def test_render_failure__shows_messages_as_text(message: str, hint: str) -> None:
    text = render_failure(f"<b>@octo {message}", hint)
    assert "<b>" not in text
    assert "@octo" not in text


def test_render_policy_change__shows_what_differs() -> None:
    assert render_policy_change_markdown(Policy(), Policy()) == ""
    text = render_policy_change_markdown(Policy(), Policy(alpha=0.05, missing_fails=False))
    assert text.splitlines()[2:] == ["| alpha | 0.01 | 0.05 |", "| missing fails | yes | no |"]


def test_render_policy_change__shows_a_setting_that_goes() -> None:
    text = render_policy_change_markdown(Policy(suites=("full",)), Policy())
    assert text.splitlines()[2:] == ["| suites | full | none |"]
