"""``perfgate check --base-ref``: baseline and policy of another commit, on any machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.cli.main import run
from perfgate.storage.documents import write_run
from tests.action_world import BASELINE, Rehearsal, baseline_text, recorded
from tests.git_repository import ServedRepository

Checked = Callable[..., int]


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checked:
    """Checks a slower run in a checkout whose newest commit replaced the baseline by a slower one."""
    monkeypatch.setattr("perfgate.workflow.gating.Check", Rehearsal)
    served = ServedRepository(tmp_path / "server")
    served.commit({"baselines/h200.json": BASELINE})
    slower = served.commit({"baselines/h200.json": baseline_text(9, 1.05), "perfgate.toml": 'alpha = "2%"\n'})
    monkeypatch.chdir(served.checked_out(tmp_path / "here", slower))
    write_run(tmp_path / "slow.json", recorded(5, 1.05))

    def check(*arguments: str) -> int:
        device = f"recorded:{tmp_path / 'slow.json'}"
        return run(["check", "--device", device, "--baseline", "baselines", *arguments])

    return check


def test_check__base_ref_is_what_counts(checked: Checked, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked("--base-ref", "HEAD") == 0
    assert checked("--base-ref", "HEAD^") == 1
    told = capsys.readouterr().err
    assert "This change edits the baseline h200.json" in told
    assert "This change edits the policy" in told


def test_check__base_ref_without_a_baseline_is_exit_4(checked: Checked) -> None:
    assert checked("--base-ref", "HEAD^", "--baseline", "elsewhere") == 4


@pytest.mark.parametrize("revision", ["nonexistent", "--help", "HEAD:baselines"])
def test_check__a_base_ref_that_is_no_commit_is_a_usage_error(checked: Checked, revision: str) -> None:
    assert checked(f"--base-ref={revision}") == 2


def test_check__base_ref_outside_a_repository_is_a_usage_error(
    checked: Checked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert checked("--base-ref", "HEAD") == 2
    assert "no git repository" in capsys.readouterr().err
