"""Baseline and policy of a base commit come from git's objects, whatever lies in the work tree."""

import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from perfgate.core.policy import Policy
from perfgate.errors import ConfigurationError, DocumentError
from perfgate.storage.documents import write_baseline
from perfgate.storage.git import commit_at, find_baseline_at, read_policy_at
from tests.factories import H200, make_baseline, make_session

FOLDER = PurePosixPath("baselines")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A base commit with a baseline and a policy, and a pull request on top that changes both."""
    git(tmp_path, "init")
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "README.md").write_text("about")
    write_baseline(tmp_path / "baselines" / "h200.json", make_baseline(make_session({"launch.gap": 1e-6})))
    (tmp_path / "perfgate.toml").write_text('alpha = "1%"\nlaunches = 8\n')
    git(tmp_path, "add", "baselines/h200.json", "baselines/README.md", "perfgate.toml")
    git(tmp_path, "commit", "-m", "base")
    write_baseline(tmp_path / "baselines" / "h200.json", make_baseline(make_session({"launch.gap": 9e-6})))
    (tmp_path / "perfgate.toml").write_text("launches = 1\n")
    git(tmp_path, "commit", "-am", "loosen the gate")
    (tmp_path / "perfgate.toml").write_text("broken")
    (tmp_path / "baselines" / "h200.json").unlink()
    return tmp_path


def test_find_baseline_at__reads_the_base_and_not_what_the_change_made_of_it(repository: Path) -> None:
    for path in (FOLDER, PurePosixPath("./baselines/"), FOLDER / "h200.json"):
        for ref, median_s in (("HEAD^", 1e-6), ("HEAD", 9e-6)):
            search = find_baseline_at(repository, ref, path, H200)
            assert search.found is not None
            assert search.found.path == Path("baselines/h200.json")
            assert search.found.baseline.sessions[0].cases["launch.gap"].launch_medians_s[0] == median_s


def test_find_baseline_at__is_relative_to_the_folder_that_it_is_given(repository: Path) -> None:
    found = find_baseline_at(repository / "baselines", "HEAD", PurePosixPath("h200.json"), H200).found
    assert found is not None
    assert find_baseline_at(repository / "baselines", "HEAD", PurePosixPath(), H200).found is not None


def test_find_baseline_at__finds_nothing_where_nothing_is(repository: Path) -> None:
    for path in ("absent", "absent/h200.json", "baselines/absent.json"):
        search = find_baseline_at(repository, "HEAD", PurePosixPath(path), H200)
        assert search.found is None
        assert search.searched == ()
        assert search.reason == f"{path} holds no baseline"


def test_find_baseline_at__says_what_differs(repository: Path) -> None:
    other = replace(H200, board_part_number="692-2G520-0282-001")
    assert "board_part_number" in find_baseline_at(repository, "HEAD", FOLDER, other).reason


def test_find_baseline_at__names_commit_and_file_of_a_broken_baseline(repository: Path) -> None:
    (repository / "baselines" / "a.json").write_text("{")
    git(repository, "add", "baselines/a.json")
    git(repository, "commit", "-m", "break")
    with pytest.raises(DocumentError, match=r"^[0-9a-f]{12}:baselines/a\.json: is not JSON"):
        find_baseline_at(repository, "HEAD", FOLDER, H200)


def test_find_baseline_at__refuses_a_committed_link(repository: Path, tmp_path: Path) -> None:
    (repository / "baselines" / "a.json").symlink_to("/etc/hostname")
    git(repository, "add", "baselines/a.json")
    git(repository, "commit", "-m", "link")
    with pytest.raises(DocumentError, match="is a symbolic link"):
        find_baseline_at(repository, "HEAD", FOLDER, H200)


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../../x"])
def test_find_baseline_at__refuses_a_path_out_of_the_repository(repository: Path, path: str) -> None:
    with pytest.raises(ConfigurationError, match="not inside the repository"):
        find_baseline_at(repository, "HEAD", PurePosixPath(path), H200)


def test_find_baseline_at__takes_a_pattern_for_a_name(repository: Path) -> None:
    assert find_baseline_at(repository, "HEAD", PurePosixPath("base*"), H200).found is None
    assert find_baseline_at(repository, "HEAD", PurePosixPath(":(top)baselines"), H200).found is None


@pytest.mark.parametrize("ref", ["absent", "HEAD~9", "--help", "-h", "", "a b", "HEAD:perfgate.toml", "a\0b"])
def test_commit_at__refuses_what_is_no_commit(repository: Path, ref: str) -> None:
    with pytest.raises(ConfigurationError):
        commit_at(repository, ref)


def test_commit_at__refuses_a_folder_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigurationError, match="names no commit"):
        commit_at(tmp_path, "HEAD")
    with pytest.raises(ConfigurationError, match="does not exist"):
        commit_at(tmp_path / "absent", "HEAD")


def test_commit_at__says_that_there_is_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="git is not installed"):
        commit_at(tmp_path, "HEAD")


def test_read_policy_at__reads_the_base_and_not_what_the_change_made_of_it(repository: Path) -> None:
    assert read_policy_at(repository, "HEAD^").launches == 8
    assert read_policy_at(repository, "HEAD").launches == 1
    assert read_policy_at(repository, "HEAD^", PurePosixPath("perfgate.toml")).launches == 8
    with pytest.raises(ConfigurationError, match=r"has no policy strict\.toml"):
        read_policy_at(repository, "HEAD", PurePosixPath("strict.toml"))


def test_read_policy_at__is_the_default_where_the_base_has_none(repository: Path) -> None:
    assert read_policy_at(repository / "baselines", "HEAD^") == Policy()


def test_read_policy_at__refuses_a_large_or_linked_policy(repository: Path) -> None:
    (repository / "perfgate.toml").write_text("#" * 2 * 10**6)
    git(repository, "commit", "-am", "large")
    with pytest.raises(ConfigurationError, match="larger than"):
        read_policy_at(repository, "HEAD")
    (repository / "perfgate.toml").unlink()
    (repository / "perfgate.toml").symlink_to("/etc/passwd")
    git(repository, "commit", "-am", "link")
    with pytest.raises(ConfigurationError, match="symbolic link"):
        read_policy_at(repository, "HEAD")


def test_find_baseline_at__says_so_when_the_commit_came_without_its_files(repository: Path) -> None:
    listing = subprocess.run(
        ["git", "rev-parse", "HEAD:baselines/h200.json"], cwd=repository, check=True, capture_output=True, text=True
    )
    name = listing.stdout.strip()
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises((ConfigurationError, DocumentError)) as caught:
        find_baseline_at(repository, "HEAD", FOLDER, H200)
    assert "fetch the commit with its files" in caught.value.hint
