import subprocess
from pathlib import Path

import pytest

from perfgate.workflow import repository
from perfgate.workflow.repository import commit_of


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    finished = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return finished.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "kernel.cu").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_commit_of__a_clean_checkout(checkout: Path) -> None:
    assert commit_of(checkout) == (git(checkout, "rev-parse", "HEAD"), False)


def test_commit_of__a_changed_file_makes_it_dirty_and_a_new_one_does_not(checkout: Path) -> None:
    (checkout / "perfgate-results").mkdir()
    (checkout / "perfgate-results" / "run.json").write_text("{}")
    assert commit_of(checkout)[1] is False
    (checkout / "kernel.cu").write_text("2")
    assert commit_of(checkout)[1] is True


def test_commit_of__elsewhere_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit_of(tmp_path) == (None, None)


def test_commit_of__before_the_first_commit_is_unknown(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert commit_of(tmp_path) == (None, None)


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)])
def test_commit_of__without_git_or_patience_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(repository.subprocess, "run", failing)
    assert commit_of(tmp_path) == (None, None)
