"""The policy file: perfgate.toml, or the table [tool.perfgate] of pyproject.toml.

Keys are the names of ``core.policy.Policy``. Relative values are texts with a percent sign: a bare
0.05 or 5 could mean the other.
"""

import dataclasses
import datetime as dt
import difflib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.policy import Policy, halved_stages
from perfgate.core.units import parse_positive_percent
from perfgate.errors import ConfigurationError, DocumentError
from perfgate.shims import tomllib
from perfgate.storage.files import read_bytes
from perfgate.storage.json_text import refuse_unfit, shown
from perfgate.storage.schema import refuse_invalid

POLICY_NAME = "perfgate.toml"
PROJECT_NAME = "pyproject.toml"
# A thousand accepted slowdowns with reasons are 200 kB; a pyproject.toml holds other tools' tables too.
MAX_BYTES = 10**6
# A number whose name ends in a unit is in that unit; any other float of a policy is relative.
_UNIT_SUFFIXES = ("_s", "_c", "_w", "_hz", "_bytes")


def read_policy(path: Path | None, cwd: Path) -> Policy:
    """Read the policy of ``path``, or else of perfgate.toml or pyproject.toml in ``cwd``; the defaults without one.

    Raises:
        ConfigurationError: it cannot be read, two files define one, a key is unknown, or a value is wrong.
    """
    if path is not None:
        return parse_policy(_read(path), str(path), is_project=path.name == PROJECT_NAME)
    own, project = cwd / POLICY_NAME, cwd / PROJECT_NAME
    project_text = _read(project) if project.is_file() else b""
    if not own.is_file():
        return parse_policy(project_text, str(project), is_project=True)
    # Parsed only when it may matter: another tool's broken pyproject.toml is not ours to report.
    if b"perfgate" in project_text and _tool_table(_toml(project_text, str(project))):
        message = f"both {own} and [tool.perfgate] of {project} define a policy"
        raise ConfigurationError(message, hint="keep one of them")
    return parse_policy(_read(own), str(own))


def has_policy(folder: Path) -> bool:
    """Tell whether a folder holds a policy, where ``read_policy`` looks; raises like it."""
    project = folder / PROJECT_NAME
    if (folder / POLICY_NAME).is_file():
        return True
    text = _read(project) if project.is_file() else b""
    return b"perfgate" in text and bool(_tool_table(_toml(text, str(project))))


def parse_policy(text: bytes | str, source: str, *, is_project: bool = False) -> Policy:
    """Parse the text of perfgate.toml, or with ``is_project`` of a pyproject.toml; raises like ``read_policy``."""
    document = _toml(text, source)
    table = _tool_table(document) if is_project else document
    values = _without_dates(table)
    _refuse_unknown(Policy, values, source)
    _refuse_bare_numbers(Policy, values, source)
    try:
        refuse_unfit(values, source)
        refuse_invalid(values, "policy", source)
        policy = decode(Policy, _relative(Policy, _with_stages(values), ""))
        # The file's schema knows percentages as texts only; the report's knows their range.
        refuse_invalid(encode(policy), "report", source, definition="Policy")
    except DocumentError as error:
        raise _wrong(source, error.pointer, error.reason, error.hint) from None
    except CodecError as error:
        raise _wrong(source, error.pointer, error.reason) from None
    if list(policy.stages) != sorted({*policy.stages, policy.launches}) or policy.stages[-1] != policy.launches:
        message = f"{list(policy.stages)} must ascend and end with the number of launches, {policy.launches}"
        raise _wrong(source, "/stages", message, "leave out one of the two keys")
    return policy


def is_percentage(hint: Any, name: str) -> bool:
    """Tell whether a policy's value of this type and name is written as a percentage."""
    return hint is float and not name.endswith(_UNIT_SUFFIXES)


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES)
    except DocumentError as error:
        raise ConfigurationError(f"the policy {path} {error.reason}", hint="check --policy") from None


def _toml(text: bytes | str, source: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"the policy {source} is larger than {MAX_BYTES} bytes")
    try:
        document: dict[str, Any] = tomllib.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the policy {source} is not TOML: {error}") from None
    return document


def _tool_table(document: dict[str, Any]) -> Any:
    tool = document.get("tool", {})
    return tool.get("perfgate", {}) if isinstance(tool, dict) else {}


def _without_dates(value: Any) -> Any:
    """TOML has dates of its own: ``expires = 2027-01-31`` needs no quotes."""
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_dates(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date | dt.time) else value


def _with_stages(values: dict[str, Any]) -> dict[str, Any]:
    """Fill in launches from stages or stages from launches where only one is given."""
    if "launches" in values and "stages" not in values:
        return values | {"stages": list(halved_stages(values["launches"]))}
    if "stages" in values and "launches" not in values:
        return values | {"launches": values["stages"][-1]}
    return values


def _parts(kind: Any, value: Any, pointer: str) -> Iterable[tuple[Any, str, Any, str]]:
    """Yield type, name, value and pointer of everything directly inside a value of the policy."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
        hints = typing.get_type_hints(kind)
        for name, item in value.items():
            if name in hints:
                yield _known(hints[name]), name, item, f"{pointer}/{name}"
        return
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield arguments[0], "", item, f"{pointer}/{index}"
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        for name, item in value.items():
            yield arguments[1], "", item, f"{pointer}/{name}"


def _known(hint: Any) -> Any:
    """Return X of ``X | None``: TOML has no null."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(one for one in typing.get_args(hint) if one is not types.NoneType)
    return hint


def _refuse_unknown(kind: Any, value: Any, source: str, pointer: str = "") -> None:
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        known = [field.name for field in dataclasses.fields(kind)]
        for name in value:
            if name not in known:
                near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise _wrong(source, pointer, f"unknown key {shown(name)}", hint)
    for inner, _, item, place in _parts(kind, value, pointer):
        _refuse_unknown(inner, item, source, place)


def _refuse_bare_numbers(kind: Any, value: Any, source: str, pointer: str = "") -> None:
    for inner, name, item, place in _parts(kind, value, pointer):
        if is_percentage(inner, name):
            if not isinstance(item, str):
                message = f"{shown(item)} is not a percentage: write it as text with a percent sign"
                raise _wrong(source, place, message, 'for example "0.5%"')
            try:
                parse_positive_percent(item)
            except ValueError as error:
                raise _wrong(source, place, str(error)) from None
        else:
            _refuse_bare_numbers(inner, item, source, place)


def _relative(kind: Any, value: Any, name: str) -> Any:
    """Return the value with its percentages as relative values."""
    if is_percentage(kind, name):
        return parse_positive_percent(value)
    converted = [_relative(inner, item, part) for inner, part, item, _ in _parts(kind, value, "")]
    if isinstance(value, dict):
        return dict(zip(value, converted, strict=True))
    return converted if isinstance(value, list) else value


def _wrong(source: str, pointer: str, message: str, hint: str = "") -> ConfigurationError:
    key = pointer.strip("/").replace("/", ".")
    place = f"the policy {source}, key {key}" if key else f"the policy {source}"
    return ConfigurationError(f"{place}: {message}", hint=hint)
