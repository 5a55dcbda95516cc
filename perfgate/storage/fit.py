"""Whether a value fits a schema, as a yes or no: what jsonschema says, eight times as fast.

A schema is turned into functions once. A document that fits never needs jsonschema, whose import alone
takes 0.1 s; what does not fit goes through jsonschema, which names the place. Only the keywords of
perfgate's own schemas are known.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]

_SILENT = {"$schema", "$id", "$defs", "title", "description"}


def fit(schema: Mapping[str, Any]) -> Check:
    """Return the function that tells whether a JSON value fits a schema.

    Raises:
        NotImplementedError: the schema has a keyword or a type that is not known here.
    """
    definitions: dict[str, Check] = {}
    for name, definition in schema.get("$defs", {}).items():
        definitions[name] = _check(definition, definitions)
    return _check(schema, definitions)


def _check(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    """Join the checks of a schema's keywords; siblings of ``$ref`` count too."""
    checks: list[Check] = []
    known = set(_SILENT)
    for keywords, make in _MAKERS:
        if keywords & schema.keys():
            checks.append(make(schema, definitions))
            known |= keywords
    unknown = schema.keys() - known
    if unknown:
        raise NotImplementedError(f"schema keyword {min(unknown)!r}")
    if len(checks) == 1:
        return checks[0]
    together = tuple(checks)
    return lambda value: all(check(value) for check in together)


def _type(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    del definitions
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not set(names) <= _TYPES.keys():
        raise NotImplementedError(f"schema type {names}")
    if len(names) == 1:
        return _TYPES[names[0]]
    checks = tuple(_TYPES[name] for name in names)
    return lambda value: any(check(value) for check in checks)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Check] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
}


def _reference(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    name = schema["$ref"].removeprefix("#/$defs/")

    def check(value: Any) -> bool:
        # Looked up only now: definitions refer to each other.
        return definitions[name](value)

    return check


def _any_of(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    checks = tuple(_check(one, definitions) for one in schema["anyOf"])
    return lambda value: any(check(value) for check in checks)


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    properties = {name: _check(one, definitions) for name, one in schema.get("properties", {}).items()}
    required = tuple(schema.get("required", ()))
    names = _check(schema.get("propertyNames", {}), definitions)
    more = schema.get("additionalProperties", True)
    other = _check(more, definitions) if isinstance(more, Mapping) else (lambda _: bool(more))
    has_names = "propertyNames" in schema

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if has_names and not all(map(names, value)):
            return False
        for name, item in value.items():
            if not properties.get(name, other)(item):
                return False
        return all(name in value for name in required)

    return check


def _array(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    item = _check(schema.get("items", {}), definitions)
    has_items = "items" in schema
    least, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))

    def check(value: Any) -> bool:
        if not isinstance(value, list):
            return True
        return least <= len(value) <= most and (not has_items or all(map(item, value)))

    return check


def _text(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    del definitions
    search = re.compile(schema.get("pattern", "")).search
    most = schema.get("maxLength", float("inf"))
    return lambda value: not isinstance(value, str) or (len(value) <= most and search(value) is not None)


def _range(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    del definitions
    least, most = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    above, below = schema.get("exclusiveMinimum", float("-inf")), schema.get("exclusiveMaximum", float("inf"))
    return lambda value: not _is_number(value) or (least <= value <= most and above < value < below)


def _choice(schema: Mapping[str, Any], definitions: Mapping[str, Check]) -> Check:
    del definitions
    choices = frozenset([schema["const"]] if "const" in schema else schema["enum"])
    if not all(isinstance(one, str) or one is None for one in choices):
        raise NotImplementedError("schema choice that is not a text")
    return lambda value: (isinstance(value, str) or value is None) and value in choices


_MAKERS: tuple[tuple[set[str], Callable[[Mapping[str, Any], Mapping[str, Check]], Check]], ...] = (
    ({"type"}, _type),
    ({"$ref"}, _reference),
    ({"const", "enum"}, _choice),
    ({"pattern", "maxLength"}, _text),
    ({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}, _range),
    ({"properties", "required", "additionalProperties", "propertyNames"}, _object),
    ({"items", "minItems", "maxItems"}, _array),
    ({"anyOf"}, _any_of),
)
