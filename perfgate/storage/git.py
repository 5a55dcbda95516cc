"""Files as git recorded them: read from a commit's objects, whatever the working tree holds.

Every call trusts the repository of its folder for itself only (``safe.directory``; containers run as
another user than the one who checked out) and runs no hook, pager, prompt or file monitor of it.
"""

import base64
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from perfgate.errors import ConfigurationError, DocumentError

_TIMEOUT_S = 60.0
_FETCH_TIMEOUT_S = 300.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A folder of baselines holds a file a GPU model; this many would be another folder.
_MAX_FILES = 1000
_FILE_MODES = ("100644", "100755")
_SETTINGS = (("safe.directory", "*"), ("core.fsmonitor", "false"), ("core.hooksPath", os.devnull))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a commit: its path in the repository, its object and its size."""

    path: PurePosixPath
    object_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository with a working tree.

    Attributes:
        top: folder of the working tree.
    """

    top: Path

    def commit_id(self, revision: str) -> str | None:
        """Return the commit that a revision names; None when there is none here."""
        found = self._read("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return found.decode().strip() if found else None

    def tree_id(self, commit: str) -> str | None:
        """Return the tree of a commit; None when it is not here."""
        found = self._read("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{tree}}")
        return found.decode().strip() if found else None

    def fetched(self, address: str, revision: str, token: str | None = None, *, depth: int = 1) -> str:
        """Fetch a commit from an address and return its id.

        Args:
            address: of the repository; ``origin`` could be the fork that a change comes from.
            revision: name of a branch, a whole reference (``refs/...``), or a commit id.
            depth: how many commits of its history, itself included.
            token: authorises it; travels in the environment, never on a command line. Without one git uses
                what the checkout left.

        Raises:
            ConfigurationError: it cannot be fetched.
        """
        is_whole = revision.startswith("refs/") or _COMMIT.fullmatch(revision)
        wanted = revision if is_whole else f"refs/heads/{revision}"
        # A destination of its own: FETCH_HEAD is whatever was fetched last by anybody.
        kept = "refs/perfgate/base"
        bounds = ("--quiet", "--no-tags", f"--depth={depth}", "--no-recurse-submodules", "--end-of-options")
        settings = () if token is None else _authorization(address, token)
        finished = run_git(
            self.top, ("fetch", *bounds, address, f"+{wanted}:{kept}"), settings=settings, timeout_s=_FETCH_TIMEOUT_S
        )
        commit = self.commit_id(kept) if finished.returncode == 0 else None
        if commit is None:
            told = finished.stderr.decode(errors="replace").strip().splitlines()
            raise ConfigurationError(
                f"the base {revision} cannot be fetched: {told[-1] if told else 'git says nothing'}",
                hint="check out with fetch-depth: 2 (or 0), or let the checkout keep its credentials",
            )
        return commit

    def files(self, commit: str, place: PurePosixPath) -> tuple[StoredFile, ...]:
        """Return the file ``place``, or the files directly inside the folder ``place``, of a commit.

        Raises:
            DocumentError: one of them is a symbolic link, or they are too many.
            ConfigurationError: the commit's objects cannot be read.
        """
        listed = self._listed(commit, str(place))
        if len(listed) == 1 and listed[0][1] == "tree":
            listed = self._listed(commit, f"{place}/") if str(place) != "." else self._listed(commit, ".")
        files = []
        for mode, kind, object_id, size, path in listed:
            if kind == "tree":
                continue
            if mode not in _FILE_MODES:
                raise DocumentError(f"{commit[:12]}:{path}", "is a symbolic link or a submodule, not a file")
            if not size.isdecimal():  # git says BAD
                raise _missing(path, object_id)
            files.append(StoredFile(path=PurePosixPath(path), object_id=object_id, size_bytes=int(size)))
        if len(files) > _MAX_FILES:
            raise DocumentError(f"{commit[:12]}:{place}", f"holds more than {_MAX_FILES} files")
        return tuple(files)

    def content(self, file: StoredFile, max_bytes: int) -> bytes:
        """Return the content of a file.

        Raises:
            DocumentError: it is larger than ``max_bytes``.
            ConfigurationError: the object cannot be read.
        """
        if file.size_bytes > max_bytes:
            raise DocumentError(str(file.path), f"has {file.size_bytes} bytes, more than {max_bytes}")
        found = self._read("cat-file", "blob", file.object_id)
        if found is None:
            raise _missing(str(file.path), file.object_id)
        return found

    def _listed(self, commit: str, place: str) -> list[tuple[str, str, str, str, str]]:
        found = self._read("ls-tree", "-z", "-l", "--full-tree", commit, "--", *(() if place == "." else (place,)))
        if found is None:
            raise ConfigurationError(f"git cannot read the commit {commit[:12]}", hint="check out with fetch-depth: 2")
        rows = []
        for line in found.decode("utf-8", errors="surrogateescape").split("\0"):
            if line:
                head, _, path = line.partition("\t")
                mode, kind, object_id, size = head.split()
                rows.append((mode, kind, object_id, size, path))
        return rows

    def _read(self, *arguments: str) -> bytes | None:
        finished = run_git(self.top, arguments)
        return finished.stdout if finished.returncode == 0 else None


def _missing(path: str, object_id: str) -> ConfigurationError:
    message = f"git cannot read {path} ({object_id[:12]}): the commit came without it"
    return ConfigurationError(message, hint="check out without a filter, and with fetch-depth: 2")


def open_repository(folder: Path) -> Repository:
    """Open the repository that a folder is part of.

    Raises:
        ConfigurationError: it is in none, or git is not installed.
    """
    finished = run_git(folder, ("rev-parse", "--show-toplevel"))
    if finished.returncode != 0:
        raise ConfigurationError(
            f"{folder} is in no git repository: {finished.stderr.decode(errors='replace').strip()}",
            hint="check the repository out first (actions/checkout with fetch-depth: 2)",
        )
    return Repository(top=Path(os.fsdecode(finished.stdout.removesuffix(b"\n"))))


def run_git(
    folder: Path,
    arguments: Sequence[str],
    *,
    settings: Sequence[tuple[str, str]] = (),
    timeout_s: float = _TIMEOUT_S,
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in a folder, with settings of this call only.

    Raises:
        ConfigurationError: git is not installed, the folder does not exist, or it took too long.
    """
    command = ["git", "--no-pager", "--literal-pathspecs", *arguments]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=_environment((*_SETTINGS, *settings)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"git {arguments[0]} took longer than {timeout_s:.0f} s") from None
    except OSError as error:
        raise ConfigurationError(f"git cannot be run in {folder}: {error.strerror}", hint="install git") from None


def _authorization(address: str, token: str) -> tuple[tuple[str, str], ...]:
    """Settings that send a token as GitHub wants it from git; an empty value drops the checkout's own header."""
    parts = urlsplit(address)
    key = f"http.{parts.scheme}://{parts.netloc}/.extraheader"
    code = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return ((key, ""), (key, f"AUTHORIZATION: basic {code}"))


def _environment(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """This process's environment, with settings for this call and without what would lead git elsewhere."""
    led = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
    environment = {name: value for name, value in os.environ.items() if name not in led}
    given = environment.get("GIT_CONFIG_COUNT", "0")
    count = int(given) if given.isdecimal() else 0
    for number, (name, value) in enumerate(settings, start=count):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environment | {
        "GIT_CONFIG_COUNT": str(count + len(settings)),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
