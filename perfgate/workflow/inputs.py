"""The inputs of the action, from the environment that action.yml fills: strictly parsed, all at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from perfgate.core.verdict import CheckVerdict
from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum

T = TypeVar("T")
AUTOMATIC, NONE = "auto", "none"
_MAX_NAME_CHARACTERS = 100


class Mode(StrEnum):
    """What the action does."""

    CHECK = "check"
    COMMENT = "comment"
    UPDATE_BASELINE = "update-baseline"


class Wish(StrEnum):
    """Whether something is posted."""

    ALWAYS = "always"
    FAILURE = "failure"  # a new comment only where the check fails; a comment that stands is kept up to date
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of the action; docs/action.md describes each.

    Attributes:
        suites: names or files; none leaves them to the base's policy.
        against: ``auto``: own suites are compared with the base of a pull request; ``none``, or a revision.
        fail_on: verdicts that fail the job; None leaves it to the policy, empty is "report only".
        check_run: None leaves it to the mode.
        lock_clocks: None leaves the clock alone; 0 locks it at a default, else at so many MHz.
        run: file or folder of run documents that another job measured.
    """

    mode: Mode
    name: str
    suites: tuple[str, ...]
    cases: tuple[str, ...]
    baseline: Path | None
    against: str
    base_ref: str
    policy: Path | None
    device: str
    launches: int | None
    comment: Wish
    check_run: bool | None
    fail_on: frozenset[CheckVerdict] | None
    allow_forks: bool
    lock_clocks: int | None
    output: Path
    working_directory: Path
    run: Path | None
    reason: str


def parse_inputs(environment: Mapping[str, str]) -> Inputs:
    """Parse the inputs; an empty one has its default.

    Raises:
        ConfigurationError: an input has a value that it cannot have; names it and says which it can.
    """

    def text(name: str, default: str = "") -> str:
        return environment.get(f"PERFGATE_{name.upper().replace('-', '_')}", "").strip() or default

    def parsed(name: str, parse: Callable[[str], T], allowed: str, default: str = "") -> T:
        value = text(name, default)
        try:
            return parse(value)
        except ValueError:
            raise ConfigurationError(f"input {name}: {value!r} is not {allowed}", hint="see docs/action.md") from None

    wishes = ", ".join(Wish)
    verdicts = ", ".join(CheckVerdict)
    return Inputs(
        mode=parsed("mode", Mode, f"one of {', '.join(Mode)}", "check"),
        name=parsed("name", _name, f"a line of at most {_MAX_NAME_CHARACTERS} characters", "perfgate"),
        suites=tuple(text("suite").split()),
        cases=tuple(text("case").split()),
        baseline=parsed("baseline", _path, "a path"),
        against=text("against", AUTOMATIC),
        base_ref=text("base-ref"),
        policy=parsed("policy", _path, "a path"),
        device=text("device", "auto"),
        launches=parsed("launches", _launches, "a number from 1 to 1000"),
        comment=parsed("comment", _wish, f"one of {wishes}", "always"),
        check_run=parsed("check-run", _switch, "auto, true or false", "auto"),
        fail_on=parsed("fail-on", _verdicts, f"policy, none, or a list of {verdicts}", "policy"),
        allow_forks=parsed("allow-forks", _boolean, "true or false", "false"),
        lock_clocks=parsed("lock-clocks", _clock, "false, true or a clock in MHz", "false"),
        output=Path(text("output", "perfgate-results")),
        working_directory=Path(text("working-directory", ".")),
        run=parsed("run", _path, "a path"),
        reason=text("reason"),
    )


def _name(value: str) -> str:
    if len(value) > _MAX_NAME_CHARACTERS or not value.isprintable():
        raise ValueError
    return value


def _path(value: str) -> Path | None:
    if "\0" in value:
        raise ValueError
    return Path(value) if value else None


def _launches(value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and 1 <= int(value) <= 1000):
        raise ValueError
    return int(value)


def _boolean(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError
    return value == "true"


def _switch(value: str) -> bool | None:
    return None if value == "auto" else _boolean(value)


def _wish(value: str) -> Wish:
    return Wish({"true": "always", "false": "never"}.get(value, value))


def _verdicts(value: str) -> frozenset[CheckVerdict] | None:
    if value == "policy":
        return None
    if value == "none":
        return frozenset()
    return frozenset(CheckVerdict(part) for part in value.replace(",", " ").split())


def _clock(value: str) -> int | None:
    if value in ("true", "false"):
        return 0 if value == "true" else None
    if not (value.isascii() and value.isdecimal() and 1 <= int(value) <= 100_000):
        raise ValueError
    return int(value)
