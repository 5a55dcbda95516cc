"""Sizes and times as people write them on a command line: ``4096``, ``1GiB``, ``100MB``, ``1.5ms``."""

import re
from fractions import Fraction

import click

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
_FACTORS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|ms|us|µs|ns)")
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def parse_size(text: str) -> int:
    """Parse a whole number with an optional prefix: k, M, G, T are decimal, Ki, Mi, Gi, Ti binary; ``B`` may follow.

    Raises:
        ValueError: with what is wrong and an example.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        message = f"{text!r} is not a size: write a whole number, or one with a prefix, e.g. 4096, 100MB or 1GiB"
        raise ValueError(message)
    number, factor = found.group(1), _FACTORS.get(found.group(2) or "", 1)
    exact = Fraction(number) * factor
    if exact.denominator != 1:
        message = f"{text!r} is not a whole number"
        raise ValueError(message)
    return exact.numerator


def parse_time_s(text: str) -> float:
    """Parse a positive time with its unit: ``"1ms"``, ``"143.2 us"``.

    Raises:
        ValueError: with what is wrong and an example; a bare number could be any unit and is refused.
    """
    found = _TIME.fullmatch(text.strip())
    value = float(found.group(1)) * _TIMES[found.group(2)] if found else 0.0
    if value <= 0:
        message = f"{text!r} is not a time: write a positive number with its unit, e.g. 1ms or 143.2us"
        raise ValueError(message)
    return value


class Size(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A size on the command line."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse text; a default is a number already."""
        if isinstance(value, int):
            return value
        try:
            return parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Time(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A time on the command line."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse text."""
        try:
            return parse_time_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
