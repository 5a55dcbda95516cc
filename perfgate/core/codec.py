"""Dataclasses to JSON values and back, by their type hints: one codec for documents and messages.

Field names in JSON are the field names in code. Strict on reading: unknown keys, wrong types and
missing required fields are errors with a JSON pointer. Hot path: a tuple of floats is converted in
one pass and checked by the dataclass that holds it.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")


class CodecError(ValueError):
    """A JSON value that does not fit its type, with the JSON pointer of the place."""

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.reason = message


def encode(value: Any, *, sorted_maps: bool = False) -> Any:
    """Turn dataclasses, enums, tuples and mappings into JSON values; numbers and text stay.

    Fields keep the order of their class. Mappings keep theirs, or with ``sorted_maps`` are sorted by
    key, so that equal values encode to equal text.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: encode(getattr(value, field.name), sorted_maps=sorted_maps)
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        keys = sorted(value, key=str) if sorted_maps else value
        return {str(key): encode(value[key], sorted_maps=sorted_maps) for key in keys}
    if isinstance(value, tuple | list):
        if set(map(type, value)) == {float}:
            return list(value)
        return [encode(item, sorted_maps=sorted_maps) for item in value]
    return value


def decode(kind: type[T], value: Any, pointer: str = "") -> T:
    """Turn a JSON value into ``kind``.

    Raises:
        CodecError: the value does not fit; names the place.
    """
    return typing.cast("T", _decoder(typing.cast("Hashable", kind))(value, pointer))


_Decoder = Callable[[Any, str], Any]


@functools.cache
def _decoder(kind: Any) -> _Decoder:
    """Return what decodes a type; found once, since a run holds thousands of values of the same few types."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        # Only ``X | None`` occurs.
        inner = next(one for one in typing.get_args(kind) if one is not types.NoneType)
        return functools.partial(_decode_optional, _decoder(inner))
    if origin is tuple:
        item = typing.get_args(kind)[0]
        return functools.partial(_decode_tuple, _decoder(item), item is float)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return functools.partial(_decode_mapping, _decoder(typing.get_args(kind)[1]))
    if kind is Any or kind is object:
        return lambda value, _: value
    if dataclasses.is_dataclass(kind):
        return functools.partial(_decode_dataclass, typing.cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return functools.partial(_decode_enum, kind)
    return functools.partial(_decode_scalar, kind)


def _decode_optional(inner: _Decoder, value: Any, pointer: str) -> Any:
    return None if value is None else inner(value, pointer)


def _decode_tuple(item: _Decoder, is_floats: bool, value: Any, pointer: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise CodecError(pointer, f"expected an array, found {_named(value)}")
    if is_floats and set(map(type, value)) == {float}:
        return tuple(value)
    return tuple(item(one, f"{pointer}/{index}") for index, one in enumerate(value))


def _decode_mapping(item: _Decoder, value: Any, pointer: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CodecError(pointer, f"expected an object, found {_named(value)}")
    return {key: item(one, f"{pointer}/{_escaped(key)}") for key, one in value.items()}


@functools.cache
def _fields(kind: type) -> tuple[dict[str, _Decoder], tuple[str, ...]]:
    """Return the decoders of a dataclass's fields, and the names of those that must be there."""
    required = tuple(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    return {name: _decoder(hint) for name, hint in typing.get_type_hints(kind).items()}, required


def _decode_dataclass(kind: type, value: Any, pointer: str) -> Any:
    if not isinstance(value, dict):
        raise CodecError(pointer, f"expected an object, found {_named(value)}")
    decoders, required = _fields(kind)
    if not value.keys() <= decoders.keys():
        raise CodecError(f"{pointer}/{_escaped(min(value.keys() - decoders.keys()))}", "unknown field")
    for name in required:
        if name not in value:
            raise CodecError(pointer, f"{name!r} is missing")
    arguments = {name: decoders[name](one, f"{pointer}/{name}") for name, one in value.items()}
    try:
        return kind(**arguments)
    except ValueError as error:
        raise CodecError(pointer, str(error)) from error


def _decode_enum(kind: type[Enum], value: Any, pointer: str) -> Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise CodecError(pointer, f"{value!r} is none of {known}") from None


def _decode_scalar(kind: Any, value: Any, pointer: str) -> Any:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind in (str, bool) and isinstance(value, kind):
        return value
    raise CodecError(pointer, f"expected {getattr(kind, '__name__', kind)}, found {_named(value)}")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _named(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), f"the number {value!r}")
