"""Write schemas/*.schema.json from the dataclasses of perfgate.core: `make schemas`.

Structure comes from the type hints, descriptions from the ``Attributes:`` of the docstrings, ranges
from the units in the names; what those cannot say stands in the tables below. A test fails when the
published schemas are out of step.
"""

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from perfgate.core.case import CASE_ID
from perfgate.core.policy import Policy
from perfgate.storage.formats import FORMATS, Format
from perfgate.storage.json_text import MAX_NAME_CHARACTERS
from perfgate.storage.policy import is_percentage

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"

TITLES = {
    "run": "What one session measured",
    "baseline": "The accepted sessions of one GPU identity",
    "report": "The result of a check",
    "fleet": "The result of judging many GPUs",
    "policy": "What a team decides: perfgate.toml, or [tool.perfgate] of pyproject.toml",
}

# Maps whose keys are case ids; all other maps have free names.
BY_CASE = {
    "Run.cases", "Run.absent", "Launch.cases", "Launch.failures", "Injection.effective", "BaselineSession.cases",
    "BaselineSession.refreshed", "Baseline.margins", "FleetMember.changes", "FleetMember.values_s",
}  # fmt: skip

POSITIVE = {"exclusiveMinimum": 0}
NOT_NEGATIVE = {"minimum": 0}
PROBABILITY = {"minimum": 0, "maximum": 1}
UTC = {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$"}
SHA256 = {"pattern": "^[0-9a-f]{64}$"}
# A launch takes a minute: a thousand are a day.
LAUNCHES = {"minimum": 1, "maximum": 1000}
# "5%" or "0.5 %": strictly what perfgate.core.units.parse_positive_percent takes, but for zero.
PERCENT = {"type": "string", "pattern": "^ *\\+?[0-9]*\\.?[0-9]+ *% *$"}

# By the end of a name. The first that fits holds.
RANGES_BY_SUFFIX: tuple[tuple[str, dict[str, Any]], ...] = (
    ("times_s", POSITIVE), ("medians_s", POSITIVE), ("launch_cycles", POSITIVE), ("baseline_s", POSITIVE),
    ("candidate_s", POSITIVE), ("_utc", UTC), ("_sha256", SHA256), ("_s", NOT_NEGATIVE), ("_j", NOT_NEGATIVE),
    ("_w", NOT_NEGATIVE), ("_hz", NOT_NEGATIVE), ("_bytes", NOT_NEGATIVE), ("_flop", NOT_NEGATIVE),
    ("_per_s", NOT_NEGATIVE), ("_per_byte", NOT_NEGATIVE), ("_bits", POSITIVE), ("_count", POSITIVE),
)  # fmt: skip

# By class and field, where the name does not tell.
RANGES: Mapping[str, dict[str, Any]] = {
    "CasePlan.executions_per_sample": {"minimum": 1},
    "CasePlan.samples_per_block": {"minimum": 1},
    "CasePlan.blocks": {"minimum": 1},
    "Block.executions_per_sample": {"minimum": 1},
    "CaseInfo.version": {"minimum": 1},
    "SessionCase.version": {"minimum": 1},
    "Run.method": {"minimum": 1},
    "BaselineSession.method": {"minimum": 1},
    "CaseResult.id": {"pattern": f"^{CASE_ID.pattern}$", "maxLength": MAX_NAME_CHARACTERS},
    "Gpu.compute_capability": {"pattern": "^[0-9]+\\.[0-9]+$"},
    "CalibratedMargin.relative": POSITIVE,
    "Margin.relative": POSITIVE,
    "Estimate.confidence": PROBABILITY,
    "CaseResult.p_slower": PROBABILITY,
    "CaseResult.p_adjusted": PROBABILITY,
    "CaseResult.p_equivalent": PROBABILITY,
    "SlowCase.id": {"pattern": f"^{CASE_ID.pattern}$", "maxLength": MAX_NAME_CHARACTERS},
    "SlowCase.p_value": PROBABILITY,
    "FleetCase.id": {"pattern": f"^{CASE_ID.pattern}$", "maxLength": MAX_NAME_CHARACTERS},
    "FleetReport.alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "Policy.alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "Policy.equivalence_alpha": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "Policy.stages": LAUNCHES,
    "Policy.launches": LAUNCHES,
    "Policy.baseline_launches": LAUNCHES,
    "Acceptance.expires": {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
}
# All other integers are counts.
SIGNED_INTEGERS = {"Run.seed"}

LENGTHS: Mapping[str, dict[str, Any]] = {
    "SessionCase.launch_medians_s": {"minItems": 1, "maxItems": LAUNCHES["maximum"]},
    "SessionCase.launch_cycles": {"maxItems": LAUNCHES["maximum"]},
    "Baseline.sessions": {"minItems": 1},
    "Policy.stages": {"minItems": 1},
}

DESCRIPTIONS: Mapping[str, str] = {
    "CaseLaunch.warm_up_s": "Time that the case ran before it was measured.",
    "CaseLaunch.energy_j": "Energy that the GPU took over the case's blocks.",
    "CaseLaunch.memory_clock_hz": "Memory clock over the case.",
    "CaseLaunch.temperature_c": "Temperature of the GPU during the case.",
    "CaseLaunch.power_w": "Mean power over the case.",
    "CaseLaunch.verification_error": "Largest relative error of the output.",
    "Launch.event_floor_s": "Time that an event pair around nothing reads.",
    "Run.created_utc": "When the session began, ISO 8601, UTC.",
    "Run.device_kind": "cuda, or recorded for a rehearsal without a GPU.",
    "Run.method": "Version of the way times are taken; another is not comparable.",
    "Run.suite_sha256": "Hash over the suite's cases and sources.",
    "Run.injected": "Rehearsed slowdowns and faults; empty for a real measurement.",
    "Run.seed": "Seed of the orders of cases, and of the recorded device.",
    "Run.absent": "Cases that this GPU cannot run, and why.",
    "Run.health_before": "State of the GPU before the first launch.",
    "Run.health_after": "State of the GPU after the last launch.",
    "CaseInfo.version": "Raised with every change of kernel, size or data; another is not comparable.",
    "CaseInfo.source_sha256": "Hash of the kernel's sources.",
    "CaseInfo.code_sha256": "Hash of the compiled code.",
    "BaselineSession.chip": "Tells chips apart without revealing the UUID.",
    "BaselineSession.power_limit_w": "Enforced power limit; does not survive a reboot.",
    "CalibratedMargin.relative": "Relative change that counts as slower.",
    "CalibratedMargin.sessions": "Sessions that it was learned from.",
    "CalibratedMargin.same_chip": "Learned from sessions of one chip, not over chips.",
    "Provenance.runner": "Label of the runner.",
    "Provenance.actor": "Who accepted it; only when given.",
    "Provenance.forced": "What was overridden, in a sentence.",
    "Provenance.recorded_utc": "When it was measured, ISO 8601, UTC.",
}

_ATTRIBUTE = re.compile(r"^    ([a-z][a-z0-9_, ]*): (.+)$")


def document_schema(document: Format[Any]) -> dict[str, Any]:
    """Return the schema of one kind of document."""
    definitions: dict[str, Any] = {}
    body = _object(document.content, definitions)
    body["properties"] = {"format": {"const": document.tag}} | body["properties"]
    body["required"] = ["format", *body["required"]]
    return _head(document.name, document.version) | body | {"$defs": definitions}


def policy_schema() -> dict[str, Any]:
    """Return the schema of the policy file: like the policy in code, but percentages are texts with a % sign."""
    definitions: dict[str, Any] = {}
    body = _object(Policy, definitions, in_file=True)
    return _head("policy", 1) | body | {"$defs": definitions}


def _head(name: str, version: int) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:perfgate:schema:{name}:{version}",
        "title": TITLES[name],
    }


def _object(kind: type, definitions: dict[str, Any], *, in_file: bool = False) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    described = _described(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        place = f"{kind.__name__}.{field.name}"
        schema = _value(hints[field.name], place, definitions, in_file=in_file)
        if text := DESCRIPTIONS.get(place, described.get(field.name)):
            schema = {"description": text} | schema
        properties[field.name] = schema
    required = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    description = (kind.__doc__ or "").strip().split("\n")[0]
    return {
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def _described(kind: type) -> dict[str, str]:
    """Read the ``Attributes:`` of a docstring; ``a, b: text`` describes both."""
    found: dict[str, str] = {}
    names: list[str] = []
    # Python 3.13 compiles docstrings without their indentation, older ones with it.
    _, _, section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    for line in section.splitlines():
        if match := _ATTRIBUTE.match(line):
            names = [name.strip() for name in match[1].split(",")]
            found |= dict.fromkeys(names, match[2])
        elif line.strip():
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: (text[0].upper() + text[1:]).replace("``", "") for name, text in found.items()}


def _value(hint: Any, place: str, definitions: dict[str, Any], *, in_file: bool) -> dict[str, Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        inner = next(one for one in typing.get_args(hint) if one is not types.NoneType)
        return _nullable(_value(inner, place, definitions, in_file=in_file))
    if origin is tuple:
        item = _value(typing.get_args(hint)[0], place, definitions, in_file=in_file)
        return {"type": "array", "items": item} | LENGTHS.get(place, {})
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _map(typing.get_args(hint)[1], place, definitions, in_file=in_file)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # its place, before those that it refers to
            definitions[hint.__name__] = _object(hint, definitions, in_file=in_file)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if in_file and is_percentage(hint, place.rpartition(".")[2]):
        return dict(PERCENT)
    return _scalar(hint, place)


def _map(item: Any, place: str, definitions: dict[str, Any], *, in_file: bool) -> dict[str, Any]:
    if item is object:
        return {"type": "object"}
    names: dict[str, Any] = {"maxLength": MAX_NAME_CHARACTERS}
    if place in BY_CASE:
        names["pattern"] = f"^{CASE_ID.pattern}$"
    return {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": _value(item, place, definitions, in_file=in_file),
    }


def _scalar(hint: Any, place: str) -> dict[str, Any]:
    names = {str: "string", bool: "boolean", int: "integer", float: "number"}
    schema: dict[str, Any] = {"type": names[hint]}
    if hint is bool:
        return schema
    suffixed = (limits for suffix, limits in RANGES_BY_SUFFIX if place.endswith(suffix))
    limits = RANGES.get(place) or next(suffixed, {})
    if hint is int:
        limits = limits or ({} if place in SIGNED_INTEGERS else NOT_NEGATIVE)
    return schema | limits


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {"anyOf": [schema, {"type": "null"}]}


def all_schemas() -> dict[str, str]:
    """Return the text of every published schema by file name."""
    schemas = {name: document_schema(document) for name, document in FORMATS.items()} | {"policy": policy_schema()}
    return {
        f"{name}.schema.json": json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
        for name, schema in schemas.items()
    }


if __name__ == "__main__":
    for file_name, text in all_schemas().items():
        (SCHEMAS / file_name).write_text(text, encoding="utf-8")
