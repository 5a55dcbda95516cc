"""The base of a change: which commit it is, and its own copy of baseline and policy.

What a change is judged by must not be the change's to edit: baseline and policy are read from git
objects of the base. Where they cannot be read there is no verdict; the change's copy is never used.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfgate.core.policy import Policy
from perfgate.errors import ConfigurationError
from perfgate.github.event import Event, EventKind, PullRequest
from perfgate.shims import assert_never
from perfgate.storage.baselines import list_baselines
from perfgate.storage.formats import BASELINE
from perfgate.storage.git import Repository, open_repository
from perfgate.storage.policy import MAX_BYTES, POLICY_NAME, PROJECT_NAME, read_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A commit whose baseline and policy are used, and why it is this one."""

    repository: Repository
    commit: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where baseline and policy are, as a person names them.

    Attributes:
        working: folder that relative paths start from.
        baseline: file or folder of baselines; None for the folder ``baselines``.
        policy: file of the policy; None looks where ``read_policy`` does.
        suites: files of own suites.
    """

    working: Path
    baseline: Path | None
    policy: Path | None
    suites: tuple[Path, ...] = ()

    @property
    def baselines(self) -> Path:
        """File or folder of baselines."""
        return self.baseline or Path("baselines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A commit's copy of baseline and policy, laid out as files.

    Attributes:
        baseline: file or folder of its baselines; it may not exist.
        policy, working: what ``read_policy`` takes.
        is_versioned: False where the baselines lie outside the repository, where no change reaches them.
    """

    baseline: Path
    policy: Path | None
    working: Path
    is_versioned: bool

    def effective_policy(self) -> Policy:
        """Return the policy of this commit; raises like ``read_policy``."""
        return read_policy(self.policy, self.working)

    def has_baseline(self) -> bool:
        """Tell whether there is any baseline; raises like ``list_baselines``."""
        return self.baseline.is_file() or bool(list_baselines(self.baseline))


def base_of_ref(folder: Path, revision: str) -> Base:
    """Return the base that a person named.

    Raises:
        ConfigurationError: there is no such commit here.
    """
    repository = open_repository(folder)
    commit = repository.commit_id(revision)
    if commit is None:
        raise ConfigurationError(f"--base-ref {revision!r} names no commit here", hint="fetch it, or correct the name")
    return Base(repository=repository, commit=commit, reason=f"as named: {revision}")


def base_of_branch(folder: Path, pull: PullRequest, address: str, token: str | None) -> Base:
    """Return the newest commit of the branch that a pull request is for, fetched from an address.

    Raises:
        ConfigurationError: it cannot be fetched.
    """
    repository = open_repository(folder)
    commit = repository.fetched(address, pull.base_ref, token)
    return Base(repository=repository, commit=commit, reason=f"the newest commit of {pull.base_ref}")


def base_of_pull(folder: Path, pull: PullRequest, address: str, token: str | None) -> tuple[Base, str | None]:
    """Return the base of a pull request that is not checked out, and the commit that merges it.

    GitHub's own merge commit, where it is of this head, says both; else the branch's newest commit, and no merge.

    Raises:
        ConfigurationError: nothing can be fetched.
    """
    repository = open_repository(folder)
    with contextlib.suppress(ConfigurationError):
        merge = repository.fetched(address, f"refs/pull/{pull.number}/merge", token, depth=2)
        parent, head = repository.commit_id(f"{merge}^1"), repository.commit_id(f"{merge}^2")
        if parent is not None and head == pull.head_sha:
            return Base(repository=repository, commit=parent, reason="what the pull request is merged into"), merge
    return base_of_branch(folder, pull, address, token), None


def base_of_event(folder: Path, event: Event, address: str, token: str | None = None) -> Base:
    """Return the base of what an event is about.

    Args:
        folder: in the checked-out repository.
        event: what started the workflow.
        address: of the repository that the workflow runs in, to fetch a missing base from.
        token: authorises fetching; None fetches with what the checkout left.

    Raises:
        ConfigurationError: it cannot be told or fetched.
    """
    repository = open_repository(folder)
    head = repository.commit_id("HEAD")
    if head is None:
        raise ConfigurationError(f"{repository.top} has no commit checked out", hint="run actions/checkout first")

    def of_commit(commit: str, reason: str) -> Base:
        here = repository.commit_id(commit) or repository.fetched(address, commit, token)
        return Base(repository=repository, commit=here, reason=reason)

    match event.kind:
        case EventKind.PULL_REQUEST if event.pull is not None:
            # With the head itself checked out, its first parent is the pull request's own commit.
            parent, merged = repository.commit_id("HEAD^1"), repository.commit_id("HEAD^2")
            if parent is not None and merged == event.pull.head_sha:
                return of_commit(parent, "what the pull request is merged into")
            return base_of_branch(folder, event.pull, address, token)
        case EventKind.MERGE_GROUP if event.merge_base_sha is not None:
            return of_commit(event.merge_base_sha, "what the merge group is merged into")
        case EventKind.PUSH if event.before_sha is not None:
            return of_commit(event.before_sha, "what the branch was before the push")
        case EventKind.PUSH | EventKind.OTHER:
            return of_commit(head, "the commit that is checked out")
        case (
            EventKind.PULL_REQUEST
            | EventKind.PULL_REQUEST_TARGET
            | EventKind.MERGE_GROUP
            | EventKind.WORKFLOW_RUN
            | EventKind.ISSUE_COMMENT
        ):
            # What is checked out may be a change: its own copy must not count.
            raise ConfigurationError(f"the event {event.name} does not say what it is based on", hint="set base-ref")
        case _:
            assert_never(event.kind)


@contextlib.contextmanager
def laid_out(base: Base, places: Places) -> Iterator[Layout]:
    """Lay a commit's baselines and policy out as files, for as long as the context lasts.

    Raises:
        ConfigurationError: git objects cannot be read.
        DocumentError: what should be a file is a link, or too large.
    """
    top, start = Path(os.path.realpath(base.repository.top)), Path(os.path.realpath(places.working))
    with tempfile.TemporaryDirectory(prefix="perfgate-base-") as name:
        folder = Path(name) / base.commit[:12]

        def laid(path: Path, max_bytes: int) -> Path | None:
            """Write the commit's copy of a file or folder; None for one outside the repository."""
            place = _place_in(top, start, path)
            if place is None:
                return None
            for file in base.repository.files(base.commit, place):
                # Of a folder only the documents: nobody reads the rest.
                if file.path == place or file.path.name.endswith((".json", ".json.gz")):
                    target = folder / file.path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(base.repository.content(file, max_bytes))
            return folder / place

        baseline = laid(places.baselines, BASELINE.max_bytes)
        policies = [laid(Path(own), MAX_BYTES) for own in (POLICY_NAME, PROJECT_NAME)]
        working = policies[0].parent if policies[0] else folder
        working.mkdir(parents=True, exist_ok=True)
        policy = laid(places.policy, MAX_BYTES) or places.policy if places.policy is not None else None
        yield Layout(
            baseline=baseline or places.baselines, policy=policy, working=working, is_versioned=baseline is not None
        )


def file_id(base: Base, commit: str, places: Places, path: Path) -> str | None:
    """Return the object that a commit of the base's repository holds at a path; None where it holds no file there."""
    top, start = Path(os.path.realpath(base.repository.top)), Path(os.path.realpath(places.working))
    place = _place_in(top, start, path)
    files = () if place is None else base.repository.files(commit, place)
    return next((file.object_id for file in files if file.path == place), None)


def _place_in(top: Path, start: Path, path: Path) -> PurePosixPath | None:
    """Return where a path lies in the repository, by its name alone: the change may have put links in its way."""
    absolute = Path(os.path.normpath(start / path))
    return PurePosixPath(absolute.relative_to(top).as_posix()) if absolute.is_relative_to(top) else None
