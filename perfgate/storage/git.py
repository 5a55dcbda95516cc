"""Documents as a commit holds them, read from git's objects and never from the work tree.

A pull request must not loosen its own gate: its baseline and policy are those of the base. Git is
asked for objects only: no hook, filter or file of the work tree has a say.
"""

import posixpath
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfgate.core.gpu import Gpu
from perfgate.core.policy import Policy
from perfgate.errors import ConfigurationError, DocumentError
from perfgate.storage.baselines import BaselineSearch, StoredBaseline, is_baseline_name, nearest_baseline
from perfgate.storage.documents import parse_baseline
from perfgate.storage.formats import BASELINE
from perfgate.storage.policy import MAX_BYTES, POLICY_NAME, PROJECT_NAME, chosen_policy, parse_policy

# Reading a few objects takes milliseconds; a partial clone may have to fetch them first.
_TIMEOUT_S = 120.0
_REGULAR_MODES = ("100644", "100755")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A file of a commit: its path relative to the folder that git runs in."""

    path: PurePosixPath
    mode: str
    object_id: str
    size_bytes: int


def commit_at(folder: Path, ref: str) -> str:
    """Return the hash of the commit that ``ref`` names in the repository around ``folder``.

    Raises:
        ConfigurationError: there is no repository, no such commit, or no git.
    """
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found is None or not found.strip():
        hint = "fetch it first: actions/checkout takes fetch-depth, git takes `git fetch origin BRANCH`"
        raise ConfigurationError(f"{ref!r} names no commit of the repository in {folder}", hint=hint)
    return found.decode("ascii").strip()


def find_baseline_at(folder: Path, ref: str, path: PurePosixPath, gpu: Gpu) -> BaselineSearch:
    """Look for a GPU's baseline as a commit has it; ``path``, a file or a folder, is relative to ``folder``.

    Raises:
        ConfigurationError: the commit cannot be read, or ``path`` leads out of the repository.
        DocumentError: a baseline of the commit is broken, a symbolic link, or a second one of this GPU.
    """
    commit = commit_at(folder, ref)
    found = []
    for entry in _entries(folder, commit, path):
        if entry.path == path or is_baseline_name(entry.path.name):
            source = f"{commit[:12]}:{entry.path}"
            data = _content(folder, entry, source, BASELINE.max_bytes)
            found.append(StoredBaseline(path=Path(entry.path), baseline=parse_baseline(data, source)))
    return nearest_baseline(found, gpu, Path(path))


def read_policy_at(folder: Path, ref: str, path: PurePosixPath | None = None) -> Policy:
    """Read the policy as a commit has it: of ``path``, else of perfgate.toml or pyproject.toml of ``folder``.

    Raises:
        ConfigurationError: the commit or the policy cannot be read.
    """
    commit = commit_at(folder, ref)
    if path is not None:
        data = _policy_text(folder, commit, path)
        if data is None:
            raise ConfigurationError(f"{commit[:12]} has no policy {path}", hint="check the policy's name")
        return parse_policy(data, f"{commit[:12]}:{path}", is_project=path.name == PROJECT_NAME)
    return chosen_policy(
        _policy_text(folder, commit, PurePosixPath(POLICY_NAME)),
        _policy_text(folder, commit, PurePosixPath(PROJECT_NAME)),
        place=f"{commit[:12]}:",
    )


def _policy_text(folder: Path, commit: str, path: PurePosixPath) -> bytes | None:
    entry = next((entry for entry in _entries(folder, commit, path) if entry.path == path), None)
    if entry is None:
        return None
    source = f"{commit[:12]}:{path}"
    try:
        return _content(folder, entry, source, MAX_BYTES)
    except DocumentError as error:
        raise ConfigurationError(f"the policy {source} {error.reason}", hint=error.hint) from None


def _entries(folder: Path, commit: str, path: PurePosixPath) -> list[_Entry]:
    """List the file at a path of a commit, or the files directly in the folder there; empty where nothing is."""
    plain = posixpath.normpath(str(path))
    if path.is_absolute() or plain.startswith(".."):
        raise ConfigurationError(f"{path} is not inside the repository in {folder}", hint="name a relative path")
    found = _listed(folder, commit, plain)
    # A folder named without a slash lists itself; with one, what it holds.
    if not found and _git(folder, "cat-file", "-e", f"{commit}:./{plain}") is not None:
        found = _listed(folder, commit, f"{plain}/")
    return found


def _listed(folder: Path, commit: str, path: str) -> list[_Entry]:
    listing = _git(folder, "ls-tree", "-z", "-l", commit, "--", f"./{path}")
    if listing is None:
        raise ConfigurationError(f"git cannot list {path} of {commit[:12]}", hint="fetch the commit with its files")
    found = []
    for line in listing.split(b"\0")[:-1]:
        facts, _, name = line.partition(b"\t")
        mode, kind, object_id, size = facts.decode("ascii").split()
        if kind == "blob":
            own = PurePosixPath(name.decode("utf-8", "surrogateescape"))
            found.append(_Entry(path=own, mode=mode, object_id=object_id, size_bytes=int(size)))
    return found


def _content(folder: Path, entry: _Entry, source: str, max_bytes: int) -> bytes:
    if entry.mode not in _REGULAR_MODES:
        raise DocumentError(source, "is a symbolic link", hint="commit the file itself")
    if entry.size_bytes > max_bytes:
        raise DocumentError(source, f"is larger than {max_bytes} bytes")
    content = _git(folder, "cat-file", "blob", entry.object_id)
    if content is None:
        raise DocumentError(source, "cannot be read from git", hint="fetch the commit with its files")
    return content


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Return what git prints; None when it refuses.

    A runner's workspace often belongs to another user than its jobs; that it is the one meant is
    said for this call only.
    """
    command = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "--literal-pathspecs", *arguments]
    try:
        finished = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        missing = "git is not installed" if error.filename == "git" else f"{folder} does not exist"
        raise ConfigurationError(f"the base cannot be read: {missing}", hint="install git") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"the base cannot be read: {error}", hint="check the repository") from None
    return finished.stdout if finished.returncode == 0 else None
