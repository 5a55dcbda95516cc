"""Files of a commit come from git's objects, whatever lies in the work tree."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from perfgate.errors import ConfigurationError, DocumentError
from perfgate.storage.git import Repository, open_repository

FOLDER = PurePosixPath("baselines")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def remove_object(folder: Path, revision: str) -> None:
    name = git(folder, "rev-parse", revision)
    (folder / ".git" / "objects" / name[:2] / name[2:]).unlink()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A base commit with a baseline, a change of it on top, and another in the work tree."""
    git(tmp_path, "init")
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "README.md").write_text("about")
    (tmp_path / "baselines" / "h200.json").write_text("base")
    git(tmp_path, "add", "baselines")
    git(tmp_path, "commit", "-m", "base")
    (tmp_path / "baselines" / "h200.json").write_text("change")
    git(tmp_path, "commit", "-am", "change")
    (tmp_path / "baselines" / "h200.json").write_text("work tree")
    return tmp_path


def content(repository: Repository, revision: str, place: str) -> dict[str, bytes]:
    commit = repository.commit_id(revision)
    assert commit is not None
    files = repository.files(commit, PurePosixPath(place))
    return {str(file.path): repository.content(file, 1000) for file in files}


@pytest.mark.parametrize("place", ["baselines", "baselines/h200.json"])
def test_files__are_those_of_the_commit_and_not_of_the_work_tree(folder: Path, place: str) -> None:
    for revision, expected in (("HEAD^", b"base"), ("HEAD", b"change")):
        found = content(open_repository(folder), revision, place)
        assert found["baselines/h200.json"] == expected
        assert ("baselines/README.md" in found) == (place == "baselines")


def test_files__are_relative_to_the_top_wherever_the_repository_was_opened(folder: Path) -> None:
    assert "baselines/h200.json" in content(open_repository(folder / "baselines"), "HEAD", "baselines")


def test_files__are_none_where_nothing_is(folder: Path) -> None:
    for place in ("absent", "absent/h200.json", "baselines/absent.json", "."):
        assert content(open_repository(folder), "HEAD", place) == {}


def test_files__takes_a_pattern_for_a_name(folder: Path) -> None:
    for place in ("base*", ":(top)baselines", "baselines/*.json"):
        assert content(open_repository(folder), "HEAD", place) == {}


def test_files__refuses_links_and_other_repositories(folder: Path) -> None:
    (folder / "link").symlink_to("baselines")
    git(folder, "add", "link")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    git(folder, "commit", "-m", "not baselines")
    for place in ("link", "module", "."):
        with pytest.raises(DocumentError, match="symbolic link or a submodule"):
            content(open_repository(folder), "HEAD", place)


@pytest.mark.parametrize("missing", ["HEAD:baselines/h200.json", "HEAD:baselines", "HEAD:"])
def test_files__fails_where_the_commit_came_without_its_objects(folder: Path, missing: str) -> None:
    repository = open_repository(folder)
    remove_object(folder, missing)
    with pytest.raises(ConfigurationError, match="cannot read") as caught:
        content(repository, "HEAD", "baselines")
    assert "fetch-depth" in caught.value.hint


def test_content__refuses_what_is_too_large(folder: Path) -> None:
    repository = open_repository(folder)
    (file,) = repository.files(git(folder, "rev-parse", "HEAD"), FOLDER / "h200.json")
    assert file.size_bytes == 6
    with pytest.raises(DocumentError, match="6 bytes, more than 5"):
        repository.content(file, 5)


@pytest.mark.parametrize("revision", ["absent", "HEAD~9", "--help", "-h", "", "a b", "HEAD:baselines"])
def test_commit_id__is_none_for_what_is_no_commit(folder: Path, revision: str) -> None:
    assert open_repository(folder).commit_id(revision) is None


def test_open_repository__refuses_a_folder_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigurationError, match="in no git repository"):
        open_repository(tmp_path)
    with pytest.raises(ConfigurationError, match="git cannot be run"):
        open_repository(tmp_path / "absent")


def test_open_repository__says_that_there_is_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="git cannot be run") as caught:
        open_repository(tmp_path)
    assert caught.value.hint == "install git"
