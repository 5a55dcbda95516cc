"""The canonical text of a value: what documents are written in and sessions are told apart by."""

import hashlib
import json
from typing import Any

from perfgate.core.codec import encode

# Launch medians repeat to 6e-5 at best; a sixth digit is below every margin, a seventh would only bloat reviews.
BASELINE_DIGITS = 6


def significant(value: Any, digits: int = BASELINE_DIGITS) -> Any:
    """Return a JSON value with every float rounded to ``digits`` significant digits; idempotent."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: significant(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [significant(item, digits) for item in value]
    return value


def json_line(value: Any) -> str:
    """Render a JSON value on one line.

    Raises:
        ValueError: the value holds NaN or Infinity, which JSON does not know.
        TypeError: the value holds what JSON does not know at all.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def content_sha256(value: Any) -> str:
    """Return the hash of a value as a baseline would store it: the same before writing and after reading."""
    return hashlib.sha256(json_line(significant(encode(value, sorted_maps=True))).encode()).hexdigest()
