"""The quick check against jsonschema: the same answer for every value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from perfgate.storage.documents import render_baseline_json, render_run_json
from perfgate.storage.fit import fit
from perfgate.storage.schema import published_schema
from tests.factories import make_baseline, make_run

KINDS = ("run", "baseline", "report", "policy")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text("abc019=[]. ", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([0.0, 0.5, 1.0, 2.5, -1.5]))
LEAVES = st.one_of(
    st.just({}),
    st.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"]).map(
        lambda one: {"type": one}
    ),
    st.lists(st.sampled_from(["string", "null", "number"]), min_size=1, unique=True).map(lambda names: {"type": names}),
    st.lists(st.sampled_from(["a", "b", "ab", None]), min_size=1, unique=True).map(lambda some: {"enum": some}),
    st.sampled_from(["a", "b"]).map(lambda one: {"const": one}),
    st.sampled_from(["^a", "b$", "^[0-9]+$", "a.c"]).map(lambda one: {"pattern": one}),
    st.integers(0, 3).map(lambda most: {"maxLength": most}),
    st.builds(
        lambda name, bound: {name: bound},
        st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
        NUMBERS,
    ),
    st.just({"$ref": "#/$defs/shared"}),
    st.just({"$ref": "#/$defs/shared", "type": "string", "description": "siblings count"}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=2),
                "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
                "additionalProperties": st.booleans() | inner,
                "propertyNames": st.just({"pattern": "^a"}),
                "items": inner,
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(0, 2),
            },
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}),
    ),
    max_leaves=5,
)


@given(schema=SCHEMAS, shared=LEAVES.filter(lambda one: "$ref" not in one), value=JSON)
def test_fit__answers_as_jsonschema_does(schema: dict[str, Any], shared: dict[str, Any], value: Any) -> None:
    whole = {"$defs": {"shared": shared}, **schema}
    assert fit(whole)(value) is Draft202012Validator(whole).is_valid(value)


@pytest.mark.parametrize("kind", KINDS)
def test_fit__knows_every_keyword_of_the_published_schemas(kind: str) -> None:
    check = fit(published_schema(kind))
    assert not check([])
    assert check({}) is Draft202012Validator(published_schema(kind)).is_valid({})


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, item in inner for path in paths(item, (*here, key)))]


RUN = json.loads(render_run_json(make_run({"launch.gap": [1e-6, 2e-6]})))
BASELINE = json.loads(render_baseline_json(make_baseline()))


@given(data=st.data(), kind=st.sampled_from(["run", "baseline"]))
def test_fit__judges_a_spoiled_document_as_jsonschema_does(data: st.DataObject, kind: str) -> None:
    document = json.loads(json.dumps(RUN if kind == "run" else BASELINE))
    *above, last = data.draw(st.sampled_from([path for path in paths(document) if path]))
    place = document
    for key in above:
        place = place[key]
    if data.draw(st.booleans()) and isinstance(place, dict):
        del place[last]
    else:
        place[last] = data.draw(JSON)
    schema = published_schema(kind)
    assert fit(schema)(document) is Draft202012Validator(schema).is_valid(document)


@pytest.mark.parametrize(
    "schema", [{"oneOf": []}, {"type": "date"}, {"enum": [1]}, {"properties": {"a": {"format": "date"}}}]
)
def test_fit__refuses_what_it_does_not_know(schema: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        fit(schema)
