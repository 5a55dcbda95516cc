"""A policy means what it says, or it is refused with the key and what to write instead."""

import contextlib
import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfgate.core.policy import Acceptance, Policy
from perfgate.errors import ConfigurationError, ExitCode
from perfgate.storage.policy import parse_policy, read_policy

DOCUMENTATION = Path(__file__).resolve().parents[3] / "docs" / "policy.md"


def test_read_policy__is_the_default_without_a_file(tmp_path: Path) -> None:
    assert read_policy(None, tmp_path) == Policy()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    assert read_policy(None, tmp_path) == Policy()


def test_read_policy__reads_either_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nalpha = "2%"\n[tool.perfgate.margins]\n"*" = "3%"\n')
    assert read_policy(None, tmp_path) == Policy(alpha=0.02, margins={"*": 0.03})
    assert read_policy(tmp_path / "pyproject.toml", Path("/")) == Policy(alpha=0.02, margins={"*": 0.03})
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "perfgate.toml").write_text('alpha = "3%"')
    assert read_policy(None, tmp_path).alpha == 0.03
    (tmp_path / "strict.toml").write_text('alpha = "0.1%"')
    assert read_policy(tmp_path / "strict.toml", tmp_path).alpha == 0.001


def test_read_policy__refuses_two_policies(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nalpha = "2%"\n')
    (tmp_path / "perfgate.toml").write_text('alpha = "3%"')
    with pytest.raises(ConfigurationError, match="both"):
        read_policy(None, tmp_path)


def test_read_policy__does_not_mind_a_project_that_only_mentions_perfgate(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["perfgate"]\n')
    (tmp_path / "perfgate.toml").write_text("launches = 8")
    assert read_policy(None, tmp_path).launches == 8


def test_read_policy__names_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"policy .*absent\.toml does not exist") as caught:
        read_policy(tmp_path / "absent.toml", tmp_path)
    assert caught.value.exit_code is ExitCode.USAGE
    with pytest.raises(ConfigurationError, match="is a directory"):
        read_policy(tmp_path, tmp_path)


REFUSED = {
    'alpha = "5"': "key alpha: '5' is not a percentage",
    'alpha = "0.05"': "not a percentage",
    "alpha = 5": "key alpha: 5 is not a percentage",
    "alpha = 0.05": "key alpha: 0.05 is not a percentage",
    "alpha = true": "True is not a percentage",
    'alpha = "150abc%"': "not a percentage",
    'alpha = "-5%"': "greater than zero",
    'alpha = "0%"': "greater than zero",
    'alpha = "%"': "not a percentage",
    'alpha = ""': "not a percentage",
    'alpha = "nan%"': "not a percentage",
    'alpha = "inf%"': "not a percentage",
    'alpha = "1_0%"': "not a percentage",
    'alpha = "1e0%"': "not a percentage",
    'alpha = "100%"': "key alpha: 1.0 must be below 1",
    '[margins]\n"gemm.*" = 0.05': "key margins.gemm.*: 0.05 is not a percentage",
    'margins = "5%"': "expected object",
    '[[accept]]\ncase = "x"\nreason = "r"\nlimit = 0.1': "key accept.0.limit: 0.1 is not a percentage",
    '[[accept]]\ncase = "x"\nlimit = "1%"': "'reason' is missing",
    '[[accept]]\ncase = "x"\nlimit = "1%"\nreason = "r"\nexpires = "soon"': "key accept.0.expires",
    'accept = ["x"]': "expected object",
    "alpa = 1": "unknown key 'alpa'",
    '[[accept]]\ncases = "x"': "key accept.0: unknown key 'cases'",
    "launches = 0": "at least 1",
    "launches = 2.5": "expected integer",
    'launches = "6"': "expected integer",
    "launches = true": "expected integer",
    "stages = []": "non-empty",
    "stages = [6, 3]": "must ascend",
    "stages = [3, 3, 6]": "must ascend",
    "stages = [3, 8]\nlaunches = 6": "end with the number of launches, 6",
    "confirmation_pause_s = -1": "at least 0",
    "confirmation_pause_s = inf": "not a finite number",
    "confirmation_pause_s = nan": "not a finite number",
    'suspected_fails = "no"': "expected boolean",
    "launches = 99999999999999999999": "launches",
    "alpha =": "is not TOML",
    "\x00": "is not TOML",
}


@pytest.mark.parametrize("text", REFUSED)
def test_parse_policy__refuses(text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(REFUSED[text])) as caught:
        parse_policy(text, "perfgate.toml")
    assert "the policy perfgate.toml" in str(caught.value)


def test_parse_policy__names_the_key_that_the_code_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfgate.storage.policy.refuse_invalid", lambda *_, **__: None)
    with pytest.raises(ConfigurationError, match="key launches: expected int, found text"):
        parse_policy('launches = "six"\nstages = [1]', "perfgate.toml")


def test_parse_policy__suggests_the_key_that_was_meant() -> None:
    for wrong, meant in (("alpa", "alpha"), ("margin-floor", "margin_floor"), ("Launches", "launches")):
        with pytest.raises(ConfigurationError) as caught:
            parse_policy(f"{wrong} = 1", "perfgate.toml")
        assert caught.value.hint == f"did you mean '{meant}'?"
    with pytest.raises(ConfigurationError) as caught:
        parse_policy("zzz = 1", "perfgate.toml")
    assert "known keys: alpha" in caught.value.hint


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * 2 * 10**6, b"a=" + b"[" * 10000], ids=["UTF-16", "large", "deep"])
def test_parse_policy__refuses_bytes_that_are_no_policy(data: bytes) -> None:
    with pytest.raises(ConfigurationError):
        parse_policy(data, "perfgate.toml")


@settings(deadline=None)
@given(st.text(max_size=40))
def test_parse_policy__raises_nothing_else(text: str) -> None:
    for candidate in (text, f"alpha = {text}", f'alpha = "{text}"'):
        with contextlib.suppress(ConfigurationError):
            parse_policy(candidate, "perfgate.toml")


def test_parse_policy__keeps_the_order_of_margins_since_the_last_match_wins() -> None:
    policy = parse_policy('[margins]\n"z*" = "1%"\n"a*" = "2 %"\n', "perfgate.toml")
    assert list(policy.margins.items()) == [("z*", 0.01), ("a*", 0.02)]


def test_parse_policy__derives_stages_and_launches_from_each_other() -> None:
    assert parse_policy("launches = 10", "p").stages == (5, 10)
    assert parse_policy("launches = 1", "p").stages == (1,)
    assert parse_policy("stages = [4, 8, 12]", "p").launches == 12


def test_documentation__explains_every_key_with_its_default() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))
    assert explained == {field.name for kind in (Policy, Acceptance) for field in dataclasses.fields(kind)}


def test_documentation__shows_an_example_of_every_key_with_the_defaults() -> None:
    example = re.search(r"```toml\n(.*?)```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    policy = parse_policy(example[1], "docs/policy.md")
    for field in dataclasses.fields(Policy):
        assert re.search(rf"^(\[+)?{field.name}\b", example[1], re.MULTILINE), field.name
    assert dataclasses.replace(policy, margins={}, accept=()) == Policy()
    assert policy.margins
    assert policy.accept[0].expires == "2027-06-30"
