"""Bytes to JSON values and back, strictly: bounded, UTF-8, finite, without duplicates.

Whatever is wrong with the input, the only exception that leaves is DocumentError.
"""

import gzip
import io
import json
import math
import re
import zlib
from typing import Any

from perfgate.core.canonical import json_line
from perfgate.errors import DocumentError
from perfgate.storage.files import too_large

# perfgate's own documents nest 9 deep; the rest is room for `extensions`.
MAX_DEPTH = 32
# The longest built-in case id has 50 characters; ids travel into check names, anchors and table cells.
MAX_NAME_CHARACTERS = 200
# Integers are bytes, FLOP and counts: 64 bits hold 9.2e18, the largest built-in case does 1e13.
MAX_INTEGER = 2**63 - 1
# A byte of JSON can cost a hundred of memory ("[],[],..."): containers and items are counted before they are made.
# 100 cases in 30 launches of 20 blocks are 130,000 containers; 64 MB of samples are 3 million items.
MAX_CONTAINERS = 500_000
MAX_ITEMS = 4_000_000
# Of one object or array; samples are exempt, for they are checked all at once.
MAX_MEMBERS = 10_000

_GZIP_MAGIC = b"\x1f\x8b"
# C0 and C1 control characters but tab and line feed: terminals obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse_json(data: bytes | str, source: str, max_bytes: int) -> Any:
    """Parse a JSON text, gzipped or not, that is at most ``max_bytes`` long when unpacked.

    Raises:
        DocumentError: too large, damaged, not UTF-8, not JSON, or JSON that means different things to
            different readers: NaN, duplicate keys, lone surrogates, integers beyond 64 bits, floats beyond
            a double, nesting beyond MAX_DEPTH, control characters.
    """
    text = data if isinstance(data, str) else _decoded(data, source, max_bytes)
    if len(text) > max_bytes:
        raise too_large(source, max_bytes)
    if text.count("[") + text.count("{") > MAX_CONTAINERS or text.count(",") > MAX_ITEMS:
        message = f"holds more than {MAX_CONTAINERS} arrays and objects, or more than {MAX_ITEMS} items"
        raise DocumentError(source, message)
    try:
        value = json.loads(
            text, parse_constant=_refused_constant, parse_int=_bounded_integer, object_pairs_hook=_distinct
        )
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise DocumentError(source, message, hint="the file may be truncated or edited by hand") from None
    except RecursionError:
        raise DocumentError(source, f"nests deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise DocumentError(source, str(error)) from None
    refuse_unfit(value, source)
    return value


def _decoded(data: bytes, source: str, max_bytes: int) -> str:
    if data.startswith(_GZIP_MAGIC):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                data = stream.read(max_bytes + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DocumentError(source, f"is a damaged gzip file: {error}") from None
    if len(data) > max_bytes:
        raise too_large(source, max_bytes)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(source, f"is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}") from None


def _refused_constant(name: str) -> None:
    message = f"holds {name}, which is not JSON"
    raise ValueError(message)


def _bounded_integer(text: str) -> int:
    # Digits are counted first: converting a million of them takes quadratic time.
    if len(text) < len(str(MAX_INTEGER)):
        return int(text)
    if len(text) > len(str(MAX_INTEGER)) + 1 or abs(int(text)) > MAX_INTEGER:
        message = f"holds an integer beyond 64 bits: {text[:24]}..."
        raise ValueError(message)
    return int(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        message = f"has the key {shown(doubled)} twice in one object"
        raise ValueError(message)
    return found


# A place in a document: the place around it and the key or index there; None for the document itself. It becomes
# a pointer only where something is wrong: a document has one for each of its values.
_Place = tuple[Any, str | int] | None


def refuse_unfit(value: Any, source: str) -> None:
    """Refuse a JSON value with a number or a text that does not belong into a document.

    Raises:
        DocumentError: with the place.
    """
    _refuse_unfit(value, source, None, 0)


def _refuse_unfit(value: Any, source: str, place: _Place, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise DocumentError(source, f"nests deeper than {MAX_DEPTH} levels", pointer=_pointer(place))
    if isinstance(value, dict):
        _refuse_crowd(value, source, place)
        for key, item in value.items():
            if problem := _name_problem(key):
                raise DocumentError(source, f"a name {problem}: {shown(key)}", pointer=_pointer(place))
            _refuse_unfit(item, source, (place, key), depth + 1)
    elif isinstance(value, list):
        # Samples: one pass in C, and the slow way only to name the place.
        if set(map(type, value)) == {float} and all(map(math.isfinite, value)):
            return
        _refuse_crowd(value, source, place)
        for index, item in enumerate(value):
            _refuse_unfit(item, source, (place, index), depth + 1)
    elif isinstance(value, str):
        if problem := _text_problem(value):
            raise DocumentError(source, f"a text {problem}: {shown(value)}", pointer=_pointer(place))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise DocumentError(source, f"{value} is not a finite number", pointer=_pointer(place))
    elif not (value is None or isinstance(value, bool | int)):
        raise DocumentError(source, f"a {type(value).__name__} is not a JSON value", pointer=_pointer(place))


def _pointer(place: _Place) -> str:
    if place is None:
        return ""
    around, key = place
    return f"{_pointer(around)}/{pointer_part(str(key))}"


def _refuse_crowd(value: Any, source: str, place: _Place) -> None:
    if len(value) > MAX_MEMBERS:
        message = f"has {len(value)} members; an object or array that is not of samples has at most {MAX_MEMBERS}"
        raise DocumentError(source, message, pointer=_pointer(place))


def _text_problem(text: str) -> str:
    if _SURROGATE.search(text):
        return "holds half a surrogate pair"
    if _CONTROL.search(text):
        return "holds control characters"
    return ""


def _name_problem(name: str) -> str:
    if len(name) > MAX_NAME_CHARACTERS:
        return f"is longer than {MAX_NAME_CHARACTERS} characters"
    # Not only what terminals obey: also the marks that reorder or hide text on a reader's screen.
    return "" if name.isprintable() else "holds characters that cannot be printed"


def pointer_part(key: str) -> str:
    """Escape a key for a JSON pointer (RFC 6901); what a terminal would obey is replaced."""
    return printable(key[:MAX_NAME_CHARACTERS]).replace("~", "~0").replace("/", "~1")


def shown(value: object, limit: int = 60) -> str:
    """Render a value of a document for a message: quoted, printable, at most ``limit`` characters."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def printable(text: str) -> str:
    """Replace what a document may not hold, and what cannot be printed, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("\ufffd", text))


def render_json(value: Any, expanded_levels: int) -> str:
    """Render a JSON value: containers of the outer levels one item a line, deeper ones on one line.

    ``expanded_levels`` decides what a line of a review is; the text ends with a line feed.
    """
    return _laid_out(value, expanded_levels, "\n") + "\n"


def _laid_out(value: Any, levels: int, line: str) -> str:
    if levels == 0 or not value or not isinstance(value, dict | list):
        return json_line(value)
    inner = line + " "
    if isinstance(value, dict):
        items = [f"{json_line(key)}: {_laid_out(item, levels - 1, inner)}" for key, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + line + "}"
    return "[" + inner + f",{inner}".join(_laid_out(item, levels - 1, inner) for item in value) + line + "]"
