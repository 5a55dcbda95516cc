"""The check's verdict, accepted slowdowns, exit code and the sentence that people read."""

from typing import Any

import pytest

from perfgate.core.conclusion import check_verdict, concluded
from perfgate.core.gpu import Difference
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import BaselineUsed, CaseResult, Cause, Estimate, Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict, exit_code
from perfgate.errors import ConfigurationError, ExitCode
from tests.factories import ENVIRONMENT, H200

V = CaseVerdict
USED = BaselineUsed(source="h200.json", sessions=1, sessions_of_chip=1, newest_utc="2026-11-29T12:00:00Z")


def result(verdict: CaseVerdict, name: str = "a", change: float | None = 0.03, **fields: Any) -> CaseResult:
    estimate = None if change is None else Estimate(value=change)
    return CaseResult(id=f"bandwidth.{name}", family="bandwidth", verdict=verdict, change=estimate, **fields)


def report(*cases: CaseResult, policy: Policy | None = None, **fields: Any) -> Report:
    defaults: dict[str, Any] = {
        "created_utc": "2026-11-30T12:00:00Z",
        "perfgate_version": "0.1.0",
        "verdict": CheckVerdict.INVALID,
        "exit_code": 0,
        "summary": "",
        "gpu": H200,
        "environment": ENVIRONMENT,
        "device_kind": "cuda",
        "policy": policy or Policy(),
        "cases": cases,
        "baseline": USED,
    }
    return concluded(Report(**(defaults | fields)))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((V.REGRESSED, V.INVALID, V.NOT_COMPARABLE), CheckVerdict.REGRESSED),
        ((V.INVALID, V.NOT_COMPARABLE, V.SUSPECTED), CheckVerdict.INVALID),
        ((V.MISSING, V.NOT_COMPARABLE), CheckVerdict.INVALID),
        ((V.NOT_COMPARABLE, V.SUSPECTED), CheckVerdict.NOT_COMPARABLE),
        ((V.SUSPECTED, V.INCONCLUSIVE), CheckVerdict.SUSPECTED),
        ((V.INCONCLUSIVE, V.UNCHANGED), CheckVerdict.INCONCLUSIVE),
        ((V.UNCHANGED, V.IMPROVED, V.NEW, V.NOT_GATED), CheckVerdict.PASSED),
        ((V.NEW,), CheckVerdict.NO_BASELINE),
        ((V.NOT_GATED,), CheckVerdict.INVALID),
        ((), CheckVerdict.INVALID),
    ],
)
def test_check_verdict__the_gravest_wins(found: tuple[CaseVerdict, ...], expected: CheckVerdict) -> None:
    assert check_verdict([result(one) for one in found], Policy()) is expected


def test_check_verdict__missing_cases_may_be_let_pass_but_alone_they_are_nothing() -> None:
    lenient = Policy(missing_fails=False)
    assert check_verdict([result(V.MISSING), result(V.UNCHANGED)], lenient) is CheckVerdict.PASSED
    assert check_verdict([result(V.MISSING)], lenient) is CheckVerdict.INVALID


def test_check_verdict__cases_that_are_not_gated_do_not_count() -> None:
    cases = [result(V.UNCHANGED), result(V.INVALID, gated=False), result(V.NOT_COMPARABLE, gated=False)]
    assert check_verdict(cases, Policy()) is CheckVerdict.PASSED


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        (CheckVerdict.PASSED, 0),
        (CheckVerdict.REGRESSED, 1),
        (CheckVerdict.SUSPECTED, 8),
        (CheckVerdict.INVALID, 8),
        (CheckVerdict.INCONCLUSIVE, 0),
        (CheckVerdict.NO_BASELINE, 4),
        (CheckVerdict.NOT_COMPARABLE, 4),
    ],
)
def test_exit_code__of_each_verdict(verdict: CheckVerdict, code: int) -> None:
    assert exit_code(verdict) == code
    assert exit_code(CheckVerdict.INCONCLUSIVE, inconclusive_fails=True) == 8
    assert exit_code(CheckVerdict.SUSPECTED, suspected_fails=False) == 0


def test_concluded__an_accepted_slowdown_passes_and_keeps_its_verdict() -> None:
    policy = Policy(accept=(Acceptance(case="bandwidth.a", limit=0.05, reason="safer"),))
    found = report(result(V.REGRESSED), result(V.UNCHANGED, "b"), policy=policy)
    assert (found.verdict, found.exit_code) == (CheckVerdict.REGRESSED, 0)
    assert found.cases[0].accepted == "safer, up to +5.00 %"
    alone = report(result(V.REGRESSED), policy=policy)
    assert alone.exit_code == 0
    suspected = report(result(V.SUSPECTED), policy=policy)
    assert (suspected.verdict, suspected.exit_code) == (CheckVerdict.SUSPECTED, 0)


def test_concluded__accepting_one_case_does_not_excuse_another() -> None:
    policy = Policy(accept=(Acceptance(case="bandwidth.a", limit=0.05, reason="safer"),))
    assert report(result(V.REGRESSED), result(V.REGRESSED, "b"), policy=policy).exit_code == 1
    assert report(result(V.REGRESSED), result(V.SUSPECTED, "b"), policy=policy).exit_code == 8


def test_concluded__slower_than_accepted_fails_and_says_so() -> None:
    policy = Policy(accept=(Acceptance(case="bandwidth.*", limit=0.02, reason="safer"),))
    found = report(result(V.REGRESSED), policy=policy)
    assert found.exit_code == 1
    assert [caveat.code for caveat in found.cases[0].caveats] == ["acceptance-exceeded"]
    assert found.caveats == ()


def test_concluded__of_two_entries_the_one_that_covers_it_is_used() -> None:
    narrow, wide = (Acceptance(case="bandwidth.*", limit=limit, reason=f"up to {limit}") for limit in (0.01, 0.1))
    found = report(result(V.REGRESSED), policy=Policy(accept=(narrow, wide)))
    assert found.cases[0].accepted is not None
    assert "up to 0.1" in found.cases[0].accepted


def test_concluded__an_expired_entry_fails_the_check_even_when_nothing_is_slower() -> None:
    entry = Acceptance(case="bandwidth.a", limit=0.05, reason="safer", expires="2026-11-29")
    for cases, code in (((result(V.UNCHANGED),), ExitCode.USAGE), ((result(V.REGRESSED),), ExitCode.REGRESSED)):
        found = report(*cases, policy=Policy(accept=(entry,)))
        assert found.exit_code == code
        assert [caveat.code for caveat in found.caveats] == ["acceptance-expired"]
    assert "expired entry" in report(result(V.UNCHANGED), policy=Policy(accept=(entry,))).next_step
    today = Acceptance(case="bandwidth.a", limit=0.05, reason="safer", expires="2026-11-30")
    assert report(result(V.REGRESSED), policy=Policy(accept=(today,))).exit_code == 0


def test_concluded__an_unused_entry_warns() -> None:
    found = report(result(V.UNCHANGED), policy=Policy(accept=(Acceptance(case="gemm.*", limit=0.05, reason="safer"),)))
    assert found.exit_code == 0
    assert [caveat.code for caveat in found.caveats] == ["acceptance-unused"]


def test_concluded__again_does_not_repeat_its_doubts() -> None:
    policy = Policy(accept=(Acceptance(case="gemm.*", limit=0.05, reason="safer"),))
    assert len(concluded(report(result(V.UNCHANGED), policy=policy)).caveats) == 1


def test_concluded__a_date_that_is_none_is_a_configuration_error() -> None:
    entry = Acceptance(case="bandwidth.a", limit=0.05, reason="safer", expires="next week")
    with pytest.raises(ConfigurationError, match="which is no date"):
        report(result(V.UNCHANGED), policy=Policy(accept=(entry,)))


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ((result(V.UNCHANGED),), "1 case is judged and none is slower beyond its margin: 1 unchanged."),
        (
            (result(V.REGRESSED), result(V.UNCHANGED, "b"), result(V.INCONCLUSIVE, "c")),
            "1 of 3 cases is slower beyond the margin: bandwidth.a by +3.00 %. 1 unchanged, 1 inconclusive.",
        ),
        (
            tuple(result(V.REGRESSED, name, confirmed=True) for name in "abcd"),
            (
                "4 of 4 cases are slower beyond the margin, confirmed by fresh launches: "
                "bandwidth.a by +3.00 %, bandwidth.b by +3.00 %, bandwidth.c by +3.00 % and 1 more."
            ),
        ),
        (
            (result(V.SUSPECTED),),
            "1 case is probably slower beyond the margin, but that is not proven: bandwidth.a by +3.00 %.",
        ),
        (
            (result(V.INCONCLUSIVE), result(V.INCONCLUSIVE, "b")),
            "2 cases are neither proven slower nor proven unchanged: bandwidth.a by +3.00 %, bandwidth.b by +3.00 %.",
        ),
        (
            (result(V.INVALID, reason="hang"), result(V.MISSING, "b", change=None)),
            "The measurement of 1 case is invalid: bandwidth.a (hang); 1 case is missing: bandwidth.b.",
        ),
        (
            (result(V.NOT_COMPARABLE, reason="version differs"),),
            "1 case is not comparable with the baseline: bandwidth.a (version differs).",
        ),
    ],
)
def test_concluded__says_what_happened_in_a_sentence(cases: tuple[CaseResult, ...], sentence: str) -> None:
    assert report(*cases).summary == sentence


@pytest.mark.parametrize(
    ("who", "text"),
    [
        ("author", "The author of the change acts"),
        ("maintainer", "A maintainer acts"),
        ("runner-owner", "runner's owner"),
    ],
)
def test_concluded__says_who_acts_on_a_regression(who: str, text: str) -> None:
    cause = Cause(code="x", message="the kernel's source changed", who=who)
    assert text in report(result(V.REGRESSED, causes=(cause,))).next_step


def test_concluded__without_a_cause_the_change_is_looked_for() -> None:
    assert report(result(V.REGRESSED)).next_step.startswith("Find the change")


@pytest.mark.parametrize(
    ("verdict", "text"),
    [(V.SUSPECTED, "--launches"), (V.INVALID, "measure again"), (V.NOT_COMPARABLE, "perfgate baseline update")],
)
def test_concluded__every_failure_has_a_next_step(verdict: CaseVerdict, text: str) -> None:
    assert text in report(result(verdict)).next_step


def test_concluded__a_policy_may_want_a_baseline_of_the_same_environment() -> None:
    changed = (
        Difference(field="driver_version", baseline="580.159.04", candidate="590.10"),
        Difference(field="python_version", baseline="3.12.3", candidate="3.13.0"),
    )
    lenient = report(result(V.UNCHANGED), environment_differences=changed)
    strict = report(result(V.REGRESSED), environment_differences=changed, policy=Policy(environment_change_fails=True))
    assert (lenient.verdict, lenient.exit_code) == (CheckVerdict.PASSED, ExitCode.PASSED)
    assert (strict.verdict, strict.exit_code) == (CheckVerdict.NOT_COMPARABLE, ExitCode.NO_BASELINE)
    assert "driver 590.10 here, 580.159.04 there" in strict.summary
    assert "python" not in strict.summary
    assert "another driver: 590.10" in strict.next_step
    same = report(result(V.UNCHANGED), environment_differences=changed[1:], policy=strict.policy)
    assert same.verdict is CheckVerdict.PASSED
