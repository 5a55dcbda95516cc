"""A release: tag, package and changelog agree; nothing is published before everything was tested."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfgate.shims import tomllib
from scripts.release_notes import release_notes
from tests.action_harness import ROOT

RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
PROJECT = '[project]\nname = "x"\nversion = "1.2.3"\n'
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-12-01

### Added

- One.

## [1.2.2] - 2026-11-01

- Two.
"""


def test_notes__are_the_section_of_the_version() -> None:
    assert release_notes("v1.2.3", PROJECT, CHANGELOG) == "### Added\n\n- One.\n"


@pytest.mark.parametrize(
    ("tag", "project", "changelog", "reason"),
    [
        ("1.2.3", PROJECT, CHANGELOG, "no tag of a release"),
        ("v1.2.3rc1", PROJECT, CHANGELOG, "no tag of a release"),
        ("v1.2.4", PROJECT, CHANGELOG, "pyproject.toml says version 1.2.3, the tag 1.2.4"),
        ("v1.2.3", '[project]\ndynamic = ["version"]\n', CHANGELOG, "says version nothing"),
        ("v1.2.3", PROJECT, CHANGELOG.replace("1.2.3", "1.2.30"), "no section"),
        ("v1.2.3", PROJECT, CHANGELOG.replace("### Added\n\n- One.\n", ""), "no section"),
    ],
)
def test_notes__refuse_what_does_not_agree(tag: str, project: str, changelog: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        release_notes(tag, project, changelog)


def test_script__exits_1_and_says_why() -> None:
    ended = subprocess.run(
        [sys.executable, str(ROOT / "scripts/release_notes.py"), "v99.0.0"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "the tag 99.0.0" in ended.stderr


def test_version__is_static() -> None:
    """The runner's copy of an action has no .git to derive a version from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project.get("dynamic", [])
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])


def needed(job: str) -> set[str]:
    """Everything that must have passed before a job, however indirectly."""
    direct = RELEASE["jobs"][job].get("needs", [])
    names = {direct} if isinstance(direct, str) else set(direct)
    return names.union(*(needed(name) for name in names)) if names else set()


def test_workflow__publishes_after_tests_on_cpu_and_gpu_and_with_no_more_rights_than_it_needs() -> None:
    assert RELEASE[True]["push"]["tags"] == ["v[0-9]+.[0-9]+.[0-9]+"]  # YAML 1.1 reads the key "on" as true
    assert RELEASE["permissions"] == {}
    assert needed("publish") == {"version", "test", "gpu", "build"}
    assert needed("release") == needed("publish") | {"publish"}
    rights = {name: job["permissions"] for name, job in RELEASE["jobs"].items()}
    assert rights["publish"] == {"id-token": "write"}
    assert rights["release"] == {"contents": "write"}
    assert all(one == {"contents": "read"} for name, one in rights.items() if name not in ("publish", "release"))
    for name in ("ci", "gpu"):
        called = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
        assert "workflow_call" in called[True]


GH = """#!/usr/bin/env bash
echo "$@" >> "$LOG"
if [[ "$*" == *matching-refs* ]]; then printf 'refs/tags/%s\\n' $TAGS; fi
if [[ "$*" == *PATCH* ]] && [ "$HAS_MAJOR" = no ]; then exit 1; fi
"""


@pytest.mark.parametrize(
    ("tag", "tags", "has_major", "done"),
    [
        ("v1.10.0", "v1.2.0 v1.9.3 v1.10.0", "yes", ["PATCH"]),
        ("v1.9.4", "v1.9.3 v1.9.4 v1.10.0", "yes", []),
        ("v2.0.0", "v2.0.0", "no", ["PATCH", "POST"]),
    ],
)
def test_tag_of_the_major_version__moves_forward_only(
    tmp_path: Path, tag: str, tags: str, has_major: str, done: list[str]
) -> None:
    (step,) = [one for one in RELEASE["jobs"]["release"]["steps"] if "Move" in one.get("name", "")]
    (tmp_path / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    log = tmp_path / "log"
    given = {"LOG": str(log), "TAGS": tags, "HAS_MAJOR": has_major, "GITHUB_REF_NAME": tag, "GITHUB_SHA": "c" * 40}
    environment = os.environ | given | {"GH_REPO": "org/perfgate", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], env=environment, check=True)
    calls = log.read_text(encoding="utf-8").splitlines()
    assert [method for call in calls for method in ("PATCH", "POST") if method in call] == done
    assert all(f"sha={'c' * 40}" in call for call in calls if "-X" in call)


def test_code_owners__of_the_example_cover_what_a_change_could_loosen() -> None:
    lines = (ROOT / "examples/CODEOWNERS").read_text(encoding="utf-8").splitlines()
    owned = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert {"/baselines/", "/perfgate.toml", "/.github/CODEOWNERS"} <= owned
    assert all(len(line.split()) > 1 for line in lines if line.startswith("/"))
