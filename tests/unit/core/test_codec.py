from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.run import Launch
from perfgate.shims import StrEnum
from tests.factories import make_run


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    times_s: tuple[float, ...]
    colour: Colour = Colour.RED

    def __post_init__(self) -> None:
        if any(time <= 0 for time in self.times_s):
            message = "times must be positive"
            raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    name: str
    count: int
    share: float
    is_good: bool
    leaves: Mapping[str, Leaf] = field(default_factory=dict)
    branches: "tuple[Tree, ...]" = ()
    note: str | None = None
    anything: Mapping[str, object] = field(default_factory=dict)


GOOD: dict[str, Any] = {"name": "a", "count": 1, "share": 0.5, "is_good": True}
FINITE = st.floats(1e-9, 1e9)
LEAVES = st.builds(Leaf, times_s=st.lists(FINITE, max_size=4).map(tuple), colour=st.sampled_from(Colour))
TREES = st.recursive(
    st.builds(
        Tree,
        name=st.text(max_size=4),
        count=st.integers(),
        share=FINITE,
        is_good=st.booleans(),
        leaves=st.dictionaries(st.text(max_size=3), LEAVES, max_size=2),
        note=st.none() | st.text(max_size=3),
        anything=st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.lists(st.text(max_size=2))),
    ),
    lambda inner: st.builds(
        Tree,
        name=st.text(max_size=2),
        count=st.integers(),
        share=FINITE,
        is_good=st.booleans(),
        branches=st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=4,
)


@given(TREES)
def test_decode__gives_back_what_was_encoded(tree: Tree) -> None:
    assert decode(Tree, encode(tree)) == tree


def test_encode__sorts_maps_where_asked_and_fields_never() -> None:
    run = make_run({"b.case": [1e-3], "a.case": [1e-3]})
    assert list(encode(run)["cases"]) == ["b.case", "a.case"]
    assert list(encode(run, sorted_maps=True)["cases"]) == ["a.case", "b.case"]
    assert next(iter(encode(run, sorted_maps=True))) == "created_utc"


def test_decode__what_is_left_out_has_its_default() -> None:
    assert decode(Tree, GOOD) == Tree(name="a", count=1, share=0.5, is_good=True)


def test_decode__a_whole_number_is_a_float_where_one_is_wanted() -> None:
    share = decode(Tree, GOOD | {"share": 2}).share
    assert (share, type(share)) == (2.0, float)
    assert decode(Leaf, {"times_s": [1, 2.5]}).times_s == (1.0, 2.5)


@pytest.mark.parametrize(
    ("changes", "pointer", "message"),
    [
        ({"surprise": 1}, "/surprise", "unknown field"),
        ({"a/b~c": 1}, "/a~1b~0c", "unknown field"),
        ({"name": 1}, "/name", "expected str, found the number 1"),
        ({"count": 1.5}, "/count", "expected int, found the number 1.5"),
        ({"count": True}, "/count", "expected int, found true or false"),
        ({"share": True}, "/share", "expected float, found true or false"),
        ({"share": None}, "/share", "expected float, found null"),
        ({"share": "0.5"}, "/share", "expected float, found text"),
        ({"is_good": 1}, "/is_good", "expected bool, found the number 1"),
        ({"leaves": []}, "/leaves", "expected an object, found an array"),
        ({"leaves": {"x/y": 1}}, "/leaves/x~1y", "expected an object, found the number 1"),
        ({"leaves": {"x": {"times_s": {}}}}, "/leaves/x/times_s", "expected an array, found an object"),
        ({"leaves": {"x": {"times_s": [1.0, "2"]}}}, "/leaves/x/times_s/1", "expected float, found text"),
        ({"leaves": {"x": {"times_s": [-1.0]}}}, "/leaves/x", "times must be positive"),
        ({"leaves": {"x": {"times_s": [], "colour": "green"}}}, "/leaves/x/colour", "'green' is none of red, blue"),
        ({"branches": [GOOD, {}]}, "/branches/1", "'name' is missing"),
        ({"note": 7}, "/note", "expected str, found the number 7"),
    ],
)
def test_decode__names_the_place_and_what_is_wrong(changes: dict[str, Any], pointer: str, message: str) -> None:
    with pytest.raises(CodecError) as raised:
        decode(Tree, GOOD | changes)
    assert (raised.value.pointer, raised.value.reason) == (pointer, message)


@pytest.mark.parametrize("name", GOOD)
def test_decode__names_what_is_missing(name: str) -> None:
    with pytest.raises(CodecError, match=f"'{name}' is missing"):
        decode(Tree, {key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_decode__a_document_must_be_an_object(value: Any) -> None:
    with pytest.raises(CodecError, match="expected an object") as raised:
        decode(Launch, value)
    assert raised.value.pointer == ""
    assert str(raised.value).startswith("/: ")
