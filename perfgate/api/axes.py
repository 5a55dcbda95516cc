"""Axes: one case at every combination of their values, with the values in its id."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfgate.core.case import CASE_ID
from perfgate.errors import ConfigurationError

_VALUE = re.compile(r"[A-Za-z0-9_.+-]+")


def axes(**values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of some axes, the last one fastest: ``axes(n=(1, 2), dtype=("fp32",))``."""
    for combination in itertools.product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def case_id(name: str, point: Mapping[str, Any]) -> str:
    """Return the id of a case at some values of its axes: ``"scan.exclusive[n=1048576,dtype=fp32]"``.

    Raises:
        ConfigurationError: the id would be none; says what is wrong with it.
    """
    parts = [f"{axis}={_value_text(name, axis, value)}" for axis, value in point.items()]
    text = f"{name}[{','.join(parts)}]" if parts else name
    if not CASE_ID.fullmatch(text):
        raise ConfigurationError(
            f"{text!r} is no id of a case",
            hint="write family.name in lower case, e.g. scan.exclusive; axes come in through axes=",
        )
    return text


def _value_text(name: str, axis: str, value: Any) -> str:
    match value:
        case bool():
            text = "true" if value else "false"
        case tuple() | list():
            text = "x".join(str(one) for one in value)
        case _:
            text = str(value)
    if not _VALUE.fullmatch(text):
        raise ConfigurationError(
            f"{name}: axis {axis} has the value {text!r}, which cannot stand in an id",
            hint="use letters, digits and _ . + -",
        )
    return text
