"""Scaling for people: the only place where base units become milliseconds, TB/s and percent."""

import math

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def _digits(value: float, significant: int = 4) -> str:
    if value == 0:
        return "0"
    before = math.floor(math.log10(abs(value))) + 1
    return f"{value:.{max(0, significant - before)}f}"


def time_text(time_s: float) -> str:
    """Render seconds with a fitting unit and four significant digits: ``"2.034 ms"``."""
    factor, unit = next(((factor, unit) for factor, unit in _TIMES if abs(time_s) >= factor), _TIMES[-1])
    return f"{_digits(time_s / factor)} {unit}"


def rate_text(rate_per_s: float, unit: str) -> str:
    """Render a rate with a decimal prefix and three significant digits: ``"4.22 TB/s"``."""
    factor, prefix = next(((factor, prefix) for factor, prefix in _PREFIXES if abs(rate_per_s) >= factor), (1.0, ""))
    return f"{_digits(rate_per_s / factor, 3)} {prefix}{unit}/s"


def bytes_text(size_bytes: int) -> str:
    """Render a size in binary units, exact where it can be: ``"4 GiB"``."""
    factor, unit = next(((factor, unit) for factor, unit in _BINARY if size_bytes >= factor), (1, "B"))
    value = size_bytes / factor
    return f"{value:.0f} {unit}" if value == int(value) else f"{value:.1f} {unit}"


def clock_text(clock_hz: float) -> str:
    """Render a clock: ``"1.98 GHz"``."""
    return f"{clock_hz / 1e9:.2f} GHz"


def percent_text(relative: float, *, signed: bool = False, decimals: int = 2) -> str:
    """Render a relative value as percent: ``"+3.40 %"``; never ``"-0.00 %"``."""
    value = round(relative * 100, decimals)
    value = 0.0 if value == 0 else value
    return f"{value:+.{decimals}f} %" if signed else f"{value:.{decimals}f} %"


def parse_percent(text: str) -> float:
    """Parse ``"3%"``, ``"+0.5 %"`` or ``"-2%"`` into a relative value.

    Only the form with a percent sign is a percentage: ``"5"`` and ``"0.05"`` are refused, since
    either could mean the other.

    Raises:
        ValueError: with what is wrong and an example.
    """
    stripped = text.strip()
    number = stripped.removesuffix("%").strip()
    if not stripped.endswith("%"):
        message = f"{text!r} is not a percentage: write it with a percent sign, e.g. 0.5%"
        raise ValueError(message)
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in number or "e" in number.lower():
        message = f"{text!r} is not a percentage: expected a number before the percent sign, e.g. 0.5%"
        raise ValueError(message)
    return value / 100


def parse_positive_percent(text: str) -> float:
    """Parse a percentage that must be greater than zero, such as a margin.

    Raises:
        ValueError: see ``parse_percent``; also for zero and negative values.
    """
    value = parse_percent(text)
    if value <= 0:
        message = f"{text!r}: expected a percentage greater than zero"
        raise ValueError(message)
    return value
