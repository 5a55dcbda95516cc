"""The published schemas, loaded once and applied to every document that is read or written."""

import copy
import functools
import itertools
import json
from typing import Any

from perfgate.errors import DocumentError
from perfgate.resources import resource_folder
from perfgate.storage.fit import Check, fit
from perfgate.storage.json_text import pointer_part, shown

_MAX_ERRORS = 100
_TIMES = {"Block": ("times_s",), "SessionCase": ("launch_medians_s", "launch_cycles")}


def published_schema(kind: str) -> dict[str, Any]:
    """Return schemas/KIND.schema.json whole."""
    path = resource_folder("schemas") / f"{kind}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def refuse_invalid(value: Any, kind: str, source: str, definition: str = "") -> None:
    """Refuse a JSON value that does not fit the schema of its kind, or one ``definition`` within it.

    Raises:
        DocumentError: with the place of the most telling mismatch.
    """
    if _fit(kind, definition)(value):
        return
    from jsonschema.exceptions import best_match

    # The first few say enough: a hostile document has one for each of its items.
    error = best_match(itertools.islice(_validator(kind, definition).iter_errors(value), _MAX_ERRORS))
    if error is None:
        return
    pointer = "".join(f"/{pointer_part(str(part))}" for part in error.absolute_path)
    raise DocumentError(source, _sentence(error), pointer=pointer)


@functools.cache
def _validator(kind: str, definition: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_schema(kind, definition))


@functools.cache
def _fit(kind: str, definition: str) -> Check:
    return fit(_schema(kind, definition))


@functools.cache
def _schema(kind: str, definition: str) -> dict[str, Any]:
    """Return a published schema as documents are checked by it."""
    schema = copy.deepcopy(published_schema(kind))
    # Times are checked by their classes, all at once: 144,000 of them one by one take 0.8 s here.
    for name, fields in _TIMES.items():
        for field in fields if name in schema.get("$defs", {}) else ():
            del schema["$defs"][name]["properties"][field]["items"]
    if definition:
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    return schema


def _sentence(error: Any) -> str:
    """Say what is wrong without repeating more of the document than fits a line."""
    match error.validator:
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = sorted(set(error.instance) - set(known))
            return f"unknown field {shown(unknown[0])}"
        case "required":
            missing = next(name for name in error.validator_value if name not in error.instance)
            return f"{missing!r} is missing"
        case "enum":
            return f"{shown(error.instance)} is none of {', '.join(map(str, error.validator_value))}"
        case "type":
            kinds = error.validator_value
            wanted = kinds if isinstance(kinds, str) else " or ".join(kinds)
            return f"expected {wanted}, found {_named(error.instance)}"
        case "maxItems":
            return f"has {len(error.instance)} items, at most {error.validator_value} may be"
        case "pattern":
            return f"{shown(error.instance)} does not have the form {error.validator_value}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            words = {"minimum": "at least", "maximum": "at most"}
            word = words.get(error.validator, "above" if error.validator == "exclusiveMinimum" else "below")
            return f"{shown(error.instance)} must be {word} {error.validator_value}"
        case _:
            return shown(error.message, limit=160)


def _named(value: object) -> str:
    names = {dict: "an object", list: "an array", bool: "true or false", type(None): "null"}
    return names.get(type(value), shown(value))
