"""What started a workflow: the event's name and payload, and where this repository's GitHub is.

Payloads differ by event and fields can be null (the repository of a deleted fork): what is missing
is None here, and only a payload that contradicts its event is an error.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# GitHub sends at most 25 MB.
_MAX_PAYLOAD_BYTES = 32 * 10**6


class EventKind(StrEnum):
    """The events that mean something of their own to perfgate; any other is OTHER."""

    PULL_REQUEST = "pull_request"  # reviews of one too: they run on the same merge
    PULL_REQUEST_TARGET = "pull_request_target"
    PUSH = "push"
    MERGE_GROUP = "merge_group"
    WORKFLOW_RUN = "workflow_run"
    ISSUE_COMMENT = "issue_comment"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request, as far as perfgate needs it.

    Attributes:
        number: its number.
        head_sha: its newest commit.
        head_repository: "owner/name" that the change comes from; None when that was deleted.
        base_ref: name of the branch that it wants to change.
    """

    number: int
    head_sha: str
    head_repository: str | None
    base_ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """The run that a ``workflow_run`` event tells of; everything in it is the other run's claim but ids and head."""

    id: int
    attempt: int
    event: str
    conclusion: str
    head_sha: str
    head_branch: str
    head_repository: str | None
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What started this workflow.

    Attributes:
        name: as GitHub names it.
        kind: what it means here.
        repository: "owner/name" of the repository that the workflow runs in.
        pull: of pull_request events.
        before_sha: of a push, the commit that the branch pointed to; None for a new branch.
        merge_base_sha: of a merge group, the commit that it is merged into.
        workflow_run: of workflow_run events.
    """

    name: str
    kind: EventKind
    repository: str
    pull: PullRequest | None = None
    before_sha: str | None = None
    merge_base_sha: str | None = None
    workflow_run: WorkflowRun | None = None

    @property
    def is_from_fork(self) -> bool:
        """Whether the change comes, or may come, from another repository; a deleted one is another."""
        if self.workflow_run is not None:
            return self.workflow_run.head_repository != self.repository
        if self.pull is not None:
            return self.pull.head_repository != self.repository
        # Whatever a comment made somebody check out: the event does not say.
        return self.kind is EventKind.ISSUE_COMMENT


def read_event(environment: Mapping[str, str]) -> Event:
    """Read the event of this workflow run from what the runner provides.

    Raises:
        ConfigurationError: this is no GitHub workflow, or the payload contradicts its event.
    """
    name, path = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_EVENT_PATH", "")
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not (name and path and repository):
        raise ConfigurationError(
            "this is no GitHub workflow: GITHUB_EVENT_NAME, GITHUB_EVENT_PATH or GITHUB_REPOSITORY is not set",
            hint="elsewhere, use `perfgate check`",
        )
    try:
        with Path(path).open("rb") as stream:
            payload = json.loads(stream.read(_MAX_PAYLOAD_BYTES))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the event payload {path} cannot be read: {error}") from None
    if not isinstance(payload, dict):
        raise ConfigurationError(f"the event payload {path} is no JSON object")
    return parse_event(name, payload, repository)


def parse_event(name: str, payload: Mapping[str, Any], repository: str) -> Event:
    """Parse an event's payload.

    Raises:
        ConfigurationError: a field that the event must have is missing or malformed.
    """
    kind = EventKind(name) if name in tuple(EventKind) else EventKind.OTHER
    if kind is EventKind.OTHER and "pull_request" in payload:
        kind = EventKind.PULL_REQUEST
    try:
        match kind:
            case EventKind.PULL_REQUEST | EventKind.PULL_REQUEST_TARGET:
                return Event(name=name, kind=kind, repository=repository, pull=parse_pull(payload["pull_request"]))
            case EventKind.PUSH:
                before = _sha(payload["before"])
                return Event(
                    name=name, kind=kind, repository=repository, before_sha=before if before.strip("0") else None
                )
            case EventKind.MERGE_GROUP:
                base = _sha(payload["merge_group"]["base_sha"])
                return Event(name=name, kind=kind, repository=repository, merge_base_sha=base)
            case EventKind.WORKFLOW_RUN:
                run = _workflow_run(payload["workflow_run"])
                return Event(name=name, kind=kind, repository=repository, workflow_run=run)
            case _:
                return Event(name=name, kind=kind, repository=repository)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"the payload of the event {name!r} is not GitHub's: {error!r}") from None


def parse_pull(value: Mapping[str, Any]) -> PullRequest:
    """Parse a pull request of the API or of an event; raises KeyError, TypeError or ValueError where it is none."""
    return PullRequest(
        number=_positive(value["number"]),
        head_sha=_sha(value["head"]["sha"]),
        head_repository=_full_name(value["head"].get("repo")),
        base_ref=str(value["base"]["ref"]),
    )


def _workflow_run(value: Mapping[str, Any]) -> WorkflowRun:
    return WorkflowRun(
        id=_positive(value["id"]),
        attempt=_positive(value.get("run_attempt") or 1),
        event=str(value["event"]),
        conclusion=str(value.get("conclusion") or ""),
        head_sha=_sha(value["head_sha"]),
        head_branch=str(value.get("head_branch") or ""),
        head_repository=_full_name(value.get("head_repository")),
        url=str(value.get("html_url") or ""),
    )


def _full_name(repository: Mapping[str, Any] | None) -> str | None:
    return None if repository is None else str(repository["full_name"])


def _sha(value: object) -> str:
    if not isinstance(value, str) or not _SHA.fullmatch(value):
        message = f"{value!r} is no commit id"
        raise ValueError(message)
    return value


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = f"{value!r} is no id"
        raise ValueError(message)
    return value
