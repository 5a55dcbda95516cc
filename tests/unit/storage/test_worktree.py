"""A commit laid out beside the working tree: whole, with its submodules, and gone on every way out."""

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.errors import ConfigurationError
from perfgate.storage.git import Repository, open_repository
from perfgate.storage.worktree import laid_out_commit
from tests.git_repository import git


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of this test alone, so that what is left behind is seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.glob("perfgate-base-*"))


def repository(folder: Path, files: dict[str, str]) -> Repository:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    committed(folder, files)
    return open_repository(folder)


def committed(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


def test_laid_out_commit__is_the_commit_and_not_the_working_tree(tmp_path: Path) -> None:
    one = repository(tmp_path / "project", {"a/kernel.cu": "old"})
    base = one.commit_id("HEAD")
    assert base is not None
    committed(one.top, {"a/kernel.cu": "new", "b": "added"})
    (one.top / "a" / "kernel.cu").write_text("dirty")
    with laid_out_commit(one, base) as tree:
        assert tree.name == "project"
        assert (tree / "a" / "kernel.cu").read_text() == "old"
        assert not (tree / "b").exists()
        assert len(git(one.top, "worktree", "list").splitlines()) == 2
    assert len(git(one.top, "worktree", "list").splitlines()) == 1
    assert (one.top / "a" / "kernel.cu").read_text() == "dirty"
    assert git(one.top, "branch", "--list").split() == ["*", "main"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_laid_out_commit__is_gone_whatever_ends_it(tmp_path: Path, error: type[BaseException]) -> None:
    one = repository(tmp_path / "project", {"a": "1"})
    commit = one.commit_id("HEAD")
    assert commit is not None

    def built_and_failed() -> None:
        with laid_out_commit(one, commit) as tree:
            (tree / "build").mkdir()
            (tree / "build" / "object.o").write_text("built")
            raise error

    with pytest.raises(error):
        built_and_failed()
    assert len(git(one.top, "worktree", "list").splitlines()) == 1


def test_laid_out_commit__twice_at_once_is_two_folders(tmp_path: Path) -> None:
    one = repository(tmp_path / "project", {"a": "1"})
    commit = one.commit_id("HEAD")
    assert commit is not None
    with laid_out_commit(one, commit) as first, laid_out_commit(one, commit) as second:
        assert first != second
        assert (first / "a").exists()
        assert (second / "a").exists()


def test_laid_out_commit__removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path, temporary: Path) -> None:
    one = repository(tmp_path / "project", {"a": "1"})
    commit = one.commit_id("HEAD")
    assert commit is not None
    for name in ("perfgate-base-dead", "perfgate-base-alive", "other-dead"):
        (temporary / name).mkdir()
        (temporary / name / ".lock").touch()
    with (temporary / "perfgate-base-alive" / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with laid_out_commit(one, commit):
            left = {path.name for path in temporary.iterdir()}
            assert "perfgate-base-dead" not in left
            assert {"perfgate-base-alive", "other-dead"} <= left
    with laid_out_commit(one, commit):
        pass
    assert not (temporary / "perfgate-base-alive").exists()


def test_laid_out_commit__runs_no_hook(tmp_path: Path) -> None:
    one = repository(tmp_path / "project", {"a": "1"})
    hook = one.top / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    commit = one.commit_id("HEAD")
    assert commit is not None
    with laid_out_commit(one, commit):
        pass
    assert not (tmp_path / "hooked").exists()


def test_laid_out_commit__brings_the_submodules_of_the_commit(tmp_path: Path) -> None:
    nested = repository(tmp_path / "nested", {"deep": "deep old"})
    library = repository(tmp_path / "library", {"kernel.cuh": "old"})
    _add_submodule(library.top, nested.top, "nested")
    one = repository(tmp_path / "project", {"a": "1"})
    _add_submodule(one.top, library.top, "third party/library")
    git(one.top, "-c", "protocol.file.allow=always", "submodule", "update", "--quiet", "--init", "--recursive")
    base = one.commit_id("HEAD")
    assert base is not None
    inside = one.top / "third party" / "library"
    committed(inside, {"kernel.cuh": "new"})
    committed(one.top, {})
    with laid_out_commit(one, base) as tree:
        assert (tree / "third party" / "library" / "kernel.cuh").read_text() == "old"
        assert (tree / "third party" / "library" / "nested" / "deep").read_text() == "deep old"
        assert (inside / "kernel.cuh").read_text() == "new"
    for place in (one.top, inside, inside / "nested"):
        assert len(git(place, "worktree", "list").splitlines()) == 1


def test_laid_out_commit__names_a_submodules_commit_that_is_not_here(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"kernel.cuh": "old"})
    one = repository(tmp_path / "project", {"a": "1"})
    _add_submodule(one.top, library.top, "library")
    missing = "1234567890" * 4
    git(one.top, "update-index", "--cacheinfo", f"160000,{missing},library")
    git(one.top, "commit", "--quiet", "--message", "bump")
    commit = one.commit_id("HEAD")
    assert commit is not None
    with (
        pytest.raises(ConfigurationError, match="needs 123456789012 of the submodule library"),
        laid_out_commit(one, commit),
    ):
        pass


def test_laid_out_commit__leaves_a_submodule_empty_that_nobody_has(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"kernel.cuh": "old"})
    origin = repository(tmp_path / "origin", {"a": "1"})
    _add_submodule(origin.top, library.top, "library")
    git(tmp_path, "clone", "--quiet", str(origin.top), "project")
    one = open_repository(tmp_path / "project")
    commit = one.commit_id("HEAD")
    assert commit is not None
    with laid_out_commit(one, commit) as tree:
        assert list((tree / "library").iterdir()) == []


def test_laid_out_commit__that_git_cannot_lay_out_says_why(tmp_path: Path) -> None:
    one = repository(tmp_path / "project", {"a": "1"})
    (one.top / ".gitattributes").write_text("* filter=gone\n")
    committed(one.top, {"b": "2"})
    git(one.top, "config", "filter.gone.smudge", "/no/such/program")
    git(one.top, "config", "filter.gone.required", "true")
    commit = one.commit_id("HEAD")
    assert commit is not None
    with pytest.raises(ConfigurationError, match="git cannot lay out the base"), laid_out_commit(one, commit):
        pass
    assert list(Path(tempfile.gettempdir()).iterdir()) == []


def _add_submodule(top: Path, source: Path, path: str) -> None:
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(source), path)
    git(top, "commit", "--quiet", "--message", "submodule")
