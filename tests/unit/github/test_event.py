import json
from pathlib import Path
from typing import Any

import pytest

from perfgate.errors import ConfigurationError
from perfgate.github.event import EventKind, parse_event, read_event

HEAD, BASE, ZEROS = "a" * 40, "b" * 40, "0" * 40


def pull_payload(repo: dict[str, Any] | None) -> dict[str, Any]:
    return {"pull_request": {"number": 7, "head": {"sha": HEAD, "repo": repo}, "base": {"ref": "main"}}}


def test_parse_event__pull_request_of_the_repository_is_no_fork() -> None:
    event = parse_event("pull_request", pull_payload({"full_name": "octo/kernels"}), "octo/kernels")
    assert event.pull is not None
    assert (event.pull.number, event.pull.head_sha, event.pull.base_ref) == (7, HEAD, "main")
    assert not event.is_from_fork


@pytest.mark.parametrize("repo", [{"full_name": "mallory/kernels"}, None], ids=["fork", "deleted fork"])
def test_parse_event__another_repository_or_a_deleted_one_is_a_fork(repo: dict[str, Any] | None) -> None:
    assert parse_event("pull_request", pull_payload(repo), "octo/kernels").is_from_fork


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch", "repository_dispatch", "release", "other"])
def test_parse_event__events_without_a_pull_request_have_none(name: str) -> None:
    event = parse_event(name, {}, "octo/kernels")
    assert (event.kind, event.pull, event.is_from_fork) == (EventKind.OTHER, None, False)


@pytest.mark.parametrize("name", ["pull_request_review", "pull_request_review_comment", "pull_request_new_kind"])
def test_parse_event__whatever_is_about_a_pull_request_is_treated_as_one(name: str) -> None:
    event = parse_event(name, pull_payload({"full_name": "mallory/kernels"}), "octo/kernels")
    assert (event.kind, event.is_from_fork) == (EventKind.PULL_REQUEST, True)


def test_parse_event__a_comment_may_be_about_a_fork() -> None:
    assert parse_event("issue_comment", {"issue": {"number": 7}}, "octo/kernels").is_from_fork


@pytest.mark.parametrize(("repo", "expected"), [("octo/kernels", False), ("mallory/kernels", True)])
def test_parse_event__a_workflow_run_is_of_a_fork_where_its_head_is(repo: str, expected: bool) -> None:
    run = {"id": 5, "event": "pull_request", "head_sha": HEAD, "head_repository": {"full_name": repo}}
    assert parse_event("workflow_run", {"workflow_run": run}, "octo/kernels").is_from_fork is expected


def test_parse_event__push_knows_the_commit_before_unless_the_branch_is_new() -> None:
    assert parse_event("push", {"before": BASE}, "octo/kernels").before_sha == BASE
    assert parse_event("push", {"before": ZEROS}, "octo/kernels").before_sha is None


def test_parse_event__merge_group_knows_its_base() -> None:
    assert parse_event("merge_group", {"merge_group": {"base_sha": BASE}}, "o/k").merge_base_sha == BASE


def test_parse_event__workflow_run_of_a_deleted_fork_has_no_repository() -> None:
    run = {"id": 5, "run_attempt": 2, "event": "pull_request", "conclusion": None, "head_sha": HEAD}
    event = parse_event("workflow_run", {"workflow_run": {**run, "head_repository": None}}, "o/k")
    assert event.workflow_run is not None
    assert (event.workflow_run.attempt, event.workflow_run.head_repository) == (2, None)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("pull_request", {}),
        ("pull_request", {"pull_request": {"number": "7", "head": {"sha": HEAD}, "base": {"ref": "main"}}}),
        ("pull_request", {"pull_request": {"number": True, "head": {"sha": HEAD}, "base": {"ref": "main"}}}),
        ("pull_request", {"pull_request": {"number": 7, "head": {"sha": "--upload-pack=x"}, "base": {"ref": "main"}}}),
        ("push", {"before": "HEAD"}),
        ("merge_group", {"merge_group": None}),
        ("workflow_run", {"workflow_run": []}),
    ],
)
def test_parse_event__a_payload_that_is_not_githubs_is_refused(name: str, payload: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="not GitHub's"):
        parse_event(name, payload, "octo/kernels")


def test_read_event__says_what_is_missing_outside_a_workflow(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no GitHub workflow"):
        read_event({})
    path = tmp_path / "event.json"
    path.write_text("[1]", encoding="utf-8")
    environment = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(path), "GITHUB_REPOSITORY": "o/k"}
    with pytest.raises(ConfigurationError, match="no JSON object"):
        read_event(environment)
    path.write_text(json.dumps({"before": BASE}), encoding="utf-8")
    assert read_event(environment).before_sha == BASE
