"""The published schemas say what the dataclasses of core say, and more: ranges and words."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from perfgate.core.codec import encode
from perfgate.core.policy import Policy
from perfgate.storage.documents import render_baseline_json, render_run_json
from perfgate.storage.schema import published_schema
from tests.factories import make_baseline, make_run

REPOSITORY = Path(__file__).resolve().parents[3]
KINDS = ("run", "baseline", "report", "policy")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("make_schemas", REPOSITORY / "scripts" / "make_schemas.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every schema of an object with fields, wherever it stands."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if "properties" in schema and schema.get("type") == "object" else []
    return own + [found for item in schema.values() for found in objects(item)]


def test_schemas__are_in_step_with_the_code(generator: ModuleType) -> None:
    published = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / "schemas").glob("*.json")}
    assert published == generator.all_schemas(), "run `make schemas`"


@pytest.mark.parametrize("kind", KINDS)
def test_schema__is_a_schema_with_a_neutral_name(kind: str) -> None:
    schema = published_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:perfgate:schema:{kind}:1"


@pytest.mark.parametrize("kind", KINDS)
def test_schema__closes_every_object_but_extensions(kind: str) -> None:
    for schema in objects(published_schema(kind)):
        assert schema["additionalProperties"] is False
        for name, field in schema["properties"].items():
            is_open = field.get("type") == "object" and "additionalProperties" not in field
            assert is_open == (name == "extensions")


@pytest.mark.parametrize("kind", KINDS)
def test_schema__describes_every_object(kind: str) -> None:
    for schema in objects(published_schema(kind)):
        assert schema["description"]
        assert not schema["description"].startswith(("Acceptance(", "dict("))


def test_published_schema__checks_every_sample_though_reading_does_it_faster() -> None:
    document = json.loads(render_run_json(make_run({"launch.gap": [1e-6]})))
    validator = jsonschema.Draft202012Validator(published_schema("run"))
    validator.validate(document)
    for wrong in (0, -1.0, "1", None):
        document["launches"][0]["cases"]["launch.gap"]["blocks"][0]["times_s"][0] = wrong
        assert not validator.is_valid(document)


def test_published_schema__takes_what_is_written() -> None:
    jsonschema.validate(json.loads(render_baseline_json(make_baseline())), published_schema("baseline"))


def test_report_schema__takes_the_default_policy() -> None:
    definition = {"$ref": "#/$defs/Policy", "$defs": published_schema("report")["$defs"]}
    jsonschema.Draft202012Validator(definition).validate(encode(Policy()))
