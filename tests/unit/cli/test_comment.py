from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.cli.main import run
from perfgate.storage.documents import write_report
from tests.fake_github import REPOSITORY, TOKEN, FakeGitHub, Rule
from tests.golden.reports import REPORTS


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    fake = FakeGitHub()
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", fake.url)
    monkeypatch.setenv("GITHUB_GRAPHQL_URL", fake.graphql_url)
    for name in ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    try:
        yield fake
    finally:
        fake.close()
    assert fake.violations == []


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    write_report(path, REPORTS["regressed"]())
    return path


def test_comment__posts_and_updates(github: FakeGitHub, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["comment", str(report), "--pull", "7", "--repository", REPOSITORY]
    assert run(arguments) == 0
    assert run([*arguments, "--run-url", "https://ci.example/runs/8"]) == 0
    (body,) = github.bodies()
    assert "### perfgate: regressed on NVIDIA H200" in body
    assert "https://ci.example/runs/8" in body
    assert capsys.readouterr().out.split() == ["comment", "created", "comment", "updated"]


def test_comment__dry_run_posts_nothing(github: FakeGitHub, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["comment", str(report), str(report), "--pull", "7", "--dry-run"]) == 0
    assert github.seen == []
    assert "regressed in all 2 checks" in capsys.readouterr().out


def test_comment__exits_7_where_github_refuses(
    github: FakeGitHub, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    github.is_read_only = True
    assert run(["comment", str(report), "--pull", "7", "--repository", REPOSITORY]) == 7
    told = capsys.readouterr().err
    assert "Resource not accessible by integration" in told
    assert TOKEN not in told


def test_comment__exits_7_where_it_is_not_found(github: FakeGitHub, report: Path) -> None:
    github.rules.append(Rule(status=404, body={"message": "Not Found"}))
    assert run(["comment", str(report), "--pull", "7", "--repository", REPOSITORY]) == 7


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [("GITHUB_TOKEN", ["--repository", REPOSITORY]), ("NOTHING", ["--repository", "kernels"]), ("NOTHING", [])],
)
def test_comment__says_what_it_lacks(
    github: FakeGitHub, report: Path, monkeypatch: pytest.MonkeyPatch, variable: str, arguments: list[str]
) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert run(["comment", str(report), "--pull", "7", *arguments]) == 2


def test_comment__a_document_that_is_no_report_is_refused(github: FakeGitHub, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}", encoding="utf-8")
    assert run(["comment", str(path), "--pull", "7", "--repository", REPOSITORY]) == 3
