"""A commit laid out beside the working tree, for as long as it is measured; nothing of it stays behind."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perfgate.errors import ConfigurationError, OutputError
from perfgate.storage.git import Repository, run_git

_PREFIX = "perfgate-base-"
_LOCK = ".lock"
_SUBMODULE_MODE = "160000"
# Writing a large tree onto a slow disk, or Git LFS fetching what it lacks.
_CHECKOUT_TIMEOUT_S = 600.0


@contextlib.contextmanager
def laid_out_commit(repository: Repository, commit: str) -> Iterator[Path]:
    """Lay a commit out as a worktree of its own in the temporary folder; gone on every way out.

    Submodules come from what the working tree has of them; nothing is fetched but by Git LFS.

    Raises:
        ConfigurationError: git cannot lay it out, or a submodule's commit is not here.
        OutputError: there is no temporary folder.
    """
    _remove_stale(repository)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    except OSError as error:
        raise OutputError(f"no temporary folder for the base: {error}", hint="free space, or set TMPDIR") from error
    places = [repository.top]
    try:
        with _locked(folder / _LOCK):
            # The same last name as the original's: some builds put it into their outputs.
            tree = folder / repository.top.name
            _add(repository.top, tree, commit)
            places += _add_submodules(repository.top, tree, commit)
            yield tree
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for place in places:
            with contextlib.suppress(ConfigurationError):
                run_git(place, ("worktree", "prune"))


def _add(top: Path, tree: Path, commit: str) -> None:
    finished = run_git(
        top, ("worktree", "add", "--quiet", "--force", "--detach", str(tree), commit), timeout_s=_CHECKOUT_TIMEOUT_S
    )
    if finished.returncode != 0:
        told = finished.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigurationError(
            f"git cannot lay out the base {commit[:12]}: {' '.join(told[-3:]) or 'it says nothing'}",
            hint="check out with fetch-depth: 0 and without a filter; Git LFS must be installed where it is used",
        )


def _add_submodules(top: Path, tree: Path, commit: str) -> list[Path]:
    """Lay out the submodules of a commit, and theirs; return the repositories that they came from.

    One that the working tree has not got either stays empty: both sides lack it.
    """
    places: list[Path] = []
    listed = run_git(top, ("ls-tree", "-r", "-z", "--full-tree", commit)).stdout.decode(errors="surrogateescape")
    for line in listed.split("\0"):
        head, _, path = line.partition("\t")
        if not head.startswith(_SUBMODULE_MODE):
            continue
        source, wanted = top / path, head.split()[2]
        if not (source / ".git").exists():
            continue
        if run_git(source, ("cat-file", "-e", f"{wanted}^{{commit}}")).returncode != 0:
            raise ConfigurationError(
                f"the base needs {wanted[:12]} of the submodule {path}, which is not here",
                hint=f"git -C {path} fetch origin {wanted}",
            )
        target = tree / path
        with contextlib.suppress(OSError):
            target.rmdir()  # git leaves an empty folder in its place
        _add(source, target, wanted)
        places += [source, *_add_submodules(source, target, wanted)]
    return places


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process, whatever it ends of."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_stale(repository: Repository) -> None:
    """Remove what a killed perfgate left: folders of ours whose lock nobody holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lock = folder / _LOCK
        if not lock.is_file() or lock.stat().st_uid != os.getuid():
            continue
        with contextlib.suppress(OSError), lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    run_git(repository.top, ("worktree", "prune"))
