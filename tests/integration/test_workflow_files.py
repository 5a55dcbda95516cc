"""action.yml, the examples and what the documentation says of them fit each other, and the linters' rules."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfgate.workflow.inputs import parse_inputs
from tests.action_harness import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples/workflows").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCRIPT = ROOT / "scripts/action_setup.sh"


def uses_of(path: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    steps = [step for job in document["jobs"].values() for step in job.get("steps", [])]
    return [step for step in steps if step.get("uses", "").startswith(("org/perfgate", "./"))]


def test_action__is_composite_and_its_steps_pass_arguments_only() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert "uses" not in step
        assert step["shell"] == "bash"
        assert step["id"]
        assert "${{" not in step["run"]
        assert "\n" not in step["run"].strip()


def test_action__only_the_publishing_step_gets_the_token() -> None:
    holders = [step["id"] for step in ACTION["runs"]["steps"] if "github-token" in str(step["env"])]
    assert holders == ["publish"]


def test_action__both_steps_get_every_input() -> None:
    measure, publish = (step["env"] for step in ACTION["runs"]["steps"][1:])
    passed = {f"inputs.{name}" for name in ACTION["inputs"]} - {"inputs.github-token", "inputs.python"}
    for given in (measure, publish):
        assert passed <= {value.removeprefix("${{ ").removesuffix(" }}") for value in given.values()}
        for name, value in given.items():
            if "inputs." in value and "token" not in value:
                assert name == "PERFGATE_" + value[11:-3].upper().replace("-", "_")


def test_action__its_defaults_are_those_of_the_code() -> None:
    given = {
        f"PERFGATE_{name.upper().replace('-', '_')}": str(one.get("default", ""))
        for name, one in ACTION["inputs"].items()
    }
    assert parse_inputs(given) == parse_inputs({})


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_docs__describe_each_input_and_output(kind: str) -> None:
    text = (ROOT / "docs/action.md").read_text(encoding="utf-8")
    section = text.partition(f"## {kind.capitalize()}")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(rows))) == sorted(ACTION[kind])


@pytest.mark.parametrize("path", [*EXAMPLES, *WORKFLOWS], ids=lambda path: path.name)
def test_workflows__give_the_action_inputs_that_it_has(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "permissions" in document
    for step in uses_of(path):
        given = step.get("with", {})
        assert set(given) <= set(ACTION["inputs"])
        plain = {name: str(value) for name, value in given.items() if "${{" not in str(value)}
        parse_inputs({f"PERFGATE_{name.upper().replace('-', '_')}": value for name, value in plain.items()})


def test_examples__no_job_with_write_rights_checks_out_a_change() -> None:
    for path in EXAMPLES:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for job in document["jobs"].values():
            rights = job.get("permissions", document["permissions"])
            if "gpu" in str(job["runs-on"]):
                assert "write" not in rights.values(), path.name
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout"):
                    assert "ref" not in step.get("with", {}), path.name
                    assert step["with"]["persist-credentials"] is False, path.name


def test_links__of_the_documentation_lead_somewhere() -> None:
    for name in ("action.md", "security.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


@pytest.mark.parametrize(
    ("schema", "paths"),
    [("vendor.github-actions", [ROOT / "action.yml"]), ("vendor.github-workflows", [*EXAMPLES, *WORKFLOWS])],
)
def test_lint__schema(schema: str, paths: list[Path]) -> None:
    _passes(_tool("check-jsonschema"), "--builtin-schema", schema, *map(str, paths))


def test_lint__zizmor() -> None:
    paths = [ROOT / "action.yml", *EXAMPLES, *WORKFLOWS]
    arguments = ("--quiet", "--offline", "--config", str(ROOT / ".github/zizmor.yml"), "--min-severity", "medium")
    _passes(_tool("zizmor"), *arguments, *map(str, paths))


def test_lint__shellcheck() -> None:
    scripts = [*(ROOT / "scripts").glob("*.sh"), ROOT / ".ci/run"]
    _passes(_tool("shellcheck"), "--severity=style", *map(str, scripts))


def _tool(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (apt install {name}, or pip install {name})")
    return found


def _passes(*command: str) -> None:
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stdout + finished.stderr
