from pathlib import Path

import pytest

from perfgate.core.verdict import CheckVerdict
from perfgate.errors import ConfigurationError
from perfgate.workflow.inputs import Mode, Wish, parse_inputs


def test_parse_inputs__empty_ones_have_their_defaults() -> None:
    inputs = parse_inputs({"PERFGATE_MODE": "", "PERFGATE_OUTPUT": "  "})
    assert (inputs.mode, inputs.name, inputs.device) == (Mode.CHECK, "perfgate", "auto")
    assert (inputs.baseline, inputs.policy, inputs.run, inputs.launches) == (None, None, None, None)
    assert (inputs.fail_on, inputs.check_run, inputs.allow_forks) == (None, None, False)
    assert inputs.output == Path("perfgate-results")


def test_parse_inputs__cases_are_split_at_spaces_and_lines() -> None:
    inputs = parse_inputs({"PERFGATE_CASE": " bandwidth.* \n gemm.bf16[m=1,n=2]\n"})
    assert inputs.cases == ("bandwidth.*", "gemm.bf16[m=1,n=2]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("policy", None),
        ("none", frozenset()),
        ("regressed", {CheckVerdict.REGRESSED}),
        ("regressed, not-comparable", {CheckVerdict.REGRESSED, CheckVerdict.NOT_COMPARABLE}),
        ("regressed\ninvalid", {CheckVerdict.REGRESSED, CheckVerdict.INVALID}),
    ],
)
def test_parse_inputs__fail_on(text: str, expected: object) -> None:
    assert parse_inputs({"PERFGATE_FAIL_ON": text}).fail_on == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", Wish.ALWAYS), ("false", Wish.NEVER), ("failure", Wish.FAILURE), ("never", Wish.NEVER)],
)
def test_parse_inputs__comment_takes_booleans_too(text: str, expected: Wish) -> None:
    assert parse_inputs({"PERFGATE_COMMENT": text}).comment is expected


@pytest.mark.parametrize(("text", "expected"), [("false", None), ("true", 0), ("1200", 1200)])
def test_parse_inputs__lock_clocks(text: str, expected: int | None) -> None:
    assert parse_inputs({"PERFGATE_LOCK_CLOCKS": text}).lock_clocks == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODE", "Check"),
        ("LAUNCHES", "-1"),
        ("LAUNCHES", "1e3"),
        ("LAUNCHES", "٣"),
        ("LAUNCHES", "1001"),
        ("FAIL_ON", "error"),
        ("FAIL_ON", "none,regressed"),
        ("ALLOW_FORKS", "True"),
        ("ALLOW_FORKS", "1"),
        ("CHECK_RUN", "always"),
        ("COMMENT", "on"),
        ("LOCK_CLOCKS", "0"),
        ("LOCK_CLOCKS", "1.2 GHz"),
        ("NAME", "a\nb"),
        ("NAME", "x" * 101),
        ("BASELINE", "a\0b"),
    ],
)
def test_parse_inputs__a_value_that_cannot_be_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_inputs({f"PERFGATE_{name}": value})
    assert f"input {name.lower().replace('_', '-')}:" in caught.value.message
