"""The two sides of ``--against REF``: the base laid out beside the change, both built, and whose policy counts."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.caveat import Caveat
from perfgate.core.policy import Policy
from perfgate.errors import ConfigurationError
from perfgate.measure.order import Side
from perfgate.storage.git import Repository, open_repository, run_git
from perfgate.storage.policy import has_policy, read_policy
from perfgate.storage.worktree import laid_out_commit
from perfgate.workflow.building import build_side
from perfgate.workflow.cases import SideFolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A working tree and its base, laid out.

    Attributes:
        repository: of both.
        revision: of the base, as it was asked for.
        commit: that it names.
        working: folder where the change is worked on.
        tree: top of the base's worktree.
    """

    repository: Repository
    revision: str
    commit: str
    working: Path
    tree: Path

    @property
    def top(self) -> Path:
        """Top of the working tree."""
        return self.repository.top.resolve()

    @property
    def folder(self) -> Path:
        """What the working folder is in the base; its top where it has no such folder."""
        place = self.in_base(self.working)
        return place if place.is_dir() else self.tree

    @property
    def side(self) -> SideFolders:
        """The base, for a launch."""
        return SideFolders(folder=str(self.folder), forbidden=str(self.top))

    def in_base(self, path: Path) -> Path:
        """Return the base's own copy of a path, which may not exist.

        Raises:
            ValueError: it lies outside of the repository.
        """
        return self.tree / path.resolve().relative_to(self.top)

    def name(self, *, is_measured: bool) -> str:
        """Name the base for people."""
        short = self.commit[:12]
        named = f"base {short}" if self.commit.startswith(self.revision) else f"base {self.revision} ({short})"
        return f"{named}, measured in turn" if is_measured else named

    def shown(self, message: str) -> str:
        """Return a message as documents may hold it: with places relative to the repository."""
        for place in (self.tree, self.top, self.repository.top, self.tree.resolve()):
            message = message.replace(f"{place}/", "")
        return message

    def is_same_tree(self) -> bool:
        """Whether the working tree is the base: the same tree, and nothing changed or added."""
        head = self.repository.commit_id("HEAD")
        if head is None or self.repository.tree_id(head) != self.repository.tree_id(self.commit):
            return False
        status = run_git(self.repository.top, ("status", "--porcelain", "-z", "--untracked-files=normal"))
        changed = status.stdout.decode(errors="surrogateescape").split("\0")
        # What Python leaves beside a suite that it has loaded changes nothing.
        return status.returncode == 0 and not any(
            one and not (one.startswith("?? ") and "__pycache__" in one[3:].split("/")) for one in changed
        )

    def policy(self, named: Path | None) -> Policy:
        """Return the base's policy where it has one, so that a change cannot loosen its own gate; else the change's.

        Args:
            named: file of the policy; None looks where ``read_policy`` does.
        """
        if named is None:
            return read_policy(None, self.folder if has_policy(self.folder) else self.working)
        place = self.working / named
        if place.resolve().is_relative_to(self.top) and self.in_base(place).is_file():
            place = self.in_base(place)
        return read_policy(place, self.working)

    def build(self, command: str) -> None:
        """Build both sides, each in its own folder; raises like ``build_side``."""
        for side, place in ((Side.BASE, self.folder), (Side.HEAD, self.working)):
            build_side(command, place, side)

    def suites(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Caveat, ...]]:
        """Return the base's own copies of suites, and notices of those that it lacks.

        Raises:
            ConfigurationError: a suite lies outside of the repository.
        """
        found, notices = [], []
        for name in names:
            path = Path(name).resolve()
            if not path.is_relative_to(self.top):
                raise ConfigurationError(
                    f"the suite {name} lies outside of the repository {self.top}: there is no base of it",
                    hint="keep it in the repository, or compare with a stored baseline",
                )
            place = self.in_base(path)
            if place.is_file():
                found.append(str(place))
            else:
                message = f"the base has no {path.relative_to(self.top)}: its cases are new and cannot be compared"
                notices.append(Caveat(code="suite-is-new", message=message))
        return tuple(found), tuple(notices)


@contextlib.contextmanager
def laid_out_base(working: Path, revision: str) -> Iterator[Ground]:
    """Lay a revision out beside a working folder, for as long as the context lasts.

    Raises:
        ConfigurationError: there is no repository or no such commit here, or git cannot lay it out.
        OutputError: there is no temporary folder.
    """
    repository = open_repository(working)
    commit = repository.commit_id(revision)
    if commit is None:
        raise ConfigurationError(
            f"{revision!r} names no commit here: there is nothing to compare with",
            hint="fetch it (actions/checkout with fetch-depth: 0), or correct the name",
        )
    with laid_out_commit(repository, commit) as tree:
        if tree.resolve().is_relative_to(repository.top.resolve()):
            raise ConfigurationError(f"the temporary folder {tree.parent} lies in the repository", hint="set TMPDIR")
        yield Ground(repository=repository, revision=revision, commit=commit, working=working, tree=tree)
