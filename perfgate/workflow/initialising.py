"""``perfgate init``: a policy, an example suite and a workflow, into a repository that has none of them yet."""

import re
from dataclasses import dataclass
from pathlib import Path

from perfgate.errors import OutputError
from perfgate.resources import data_folder
from perfgate.storage.files import write_text
from perfgate.storage.git import Repository, open_repository, run_git
from perfgate.storage.policy import POLICY_NAME, has_policy

# Template, and where it goes.
_FILES = (
    ("perfgate.toml", POLICY_NAME),
    ("suite.py", "benchmarks/suite.py"),
    ("axpy.cu", "benchmarks/axpy.cu"),
    ("perfgate.yml", ".github/workflows/perfgate.yml"),
)
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')
_MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What was written into a repository.

    Attributes:
        top: its folder.
        written, kept: files, relative to it; those that existed are kept as they are.
        kernels: ``file: function`` of kernels that a suite could name.
        base: what to compare a change with.
    """

    top: Path
    written: tuple[str, ...]
    kept: tuple[str, ...]
    kernels: tuple[str, ...]
    base: str


def initialised(folder: Path) -> Initialised:
    """Write what is missing into the repository that a folder is part of; nothing is overwritten.

    Raises:
        ConfigurationError: it is in no git repository, or its policy cannot be read.
        OutputError: a file cannot be written.
    """
    repository = open_repository(folder)
    written, kept = [], []
    has_suite = (repository.top / "benchmarks/suite.py").exists()
    for template, name in _FILES:
        target = repository.top / name
        is_there = target.exists() or target.is_symlink()
        if is_there or (name == POLICY_NAME and has_policy(repository.top)) or (template == "axpy.cu" and has_suite):
            kept += [name] if is_there else []
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{name} cannot be written: {error.strerror}", hint="move what is in its way") from error
        write_text(target, (data_folder() / "templates" / template).read_text(encoding="utf-8"))
        written.append(name)
    return Initialised(
        top=repository.top,
        written=tuple(written),
        kept=tuple(kept),
        kernels=_kernels(repository, frozenset(written)),
        base=_base(repository),
    )


def _kernels(repository: Repository, own: frozenset[str]) -> tuple[str, ...]:
    """Return the kernels of the repository that a case can name: those with C linkage."""
    listed = run_git(repository.top, ("ls-files", "-z"))
    found = []
    for name in listed.stdout.decode(errors="surrogateescape").split("\0"):
        path = repository.top / name
        if name.endswith(".cu") and name not in own and path.is_file() and path.stat().st_size < _MOST_BYTES:
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{name}: {function}" for function in _KERNEL.findall(text)]
    return tuple(found)


def _base(repository: Repository) -> str:
    """Return the default branch of the remote where it is known, else what was committed last."""
    head = run_git(repository.top, ("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"))
    return head.stdout.decode(errors="replace").strip() or "HEAD"
