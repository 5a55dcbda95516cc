"""Baselines in real repositories: branches that are joined, and changes that would loosen their own gate."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.cli.main import run as run_command
from perfgate.core.acceptance import with_session
from perfgate.core.baseline import Baseline, BaselineSession
from perfgate.core.policy import Policy
from perfgate.storage.documents import read_baseline, read_report, write_baseline, write_run
from tests.action_world import BASELINE, COPY, Rehearsal, baseline_text, recorded
from tests.factories import make_baseline, make_session, make_session_case
from tests.git_repository import ServedRepository, git, git_fails

CHIPS = ("11111111", "55555555", "99999999")


def session(chip: str, day: int) -> BaselineSession:
    cases = {
        f"bandwidth.copy[bytes={size}GiB]": make_session_case(2e-3 + 1e-6 * day + 1e-9 * size) for size in (1, 2, 4)
    }
    return make_session({}, chip=chip, recorded_utc=f"2026-11-{day:02}T12:00:00Z", cases=cases)


def with_sessions(*sessions: BaselineSession) -> Baseline:
    baseline = make_baseline(*(session(chip, day) for day, chip in enumerate(CHIPS, start=1)))
    for one in sessions:
        baseline = with_session(baseline, one)
    return baseline


class Fork:
    """A repository whose baseline two branches change, each in its own way."""

    def __init__(self, folder: Path, ours: Baseline, theirs: Baseline) -> None:
        self.folder, self.path = folder, folder / "baselines" / "h200.json"
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch=main")
        (folder / ".gitattributes").write_text("baselines/*.json merge=perfgate-baseline\n")
        self._commit(with_sessions())
        git(folder, "checkout", "--quiet", "-b", "theirs")
        self._commit(theirs)
        git(folder, "checkout", "--quiet", "main")
        self._commit(ours)

    def install_driver(self) -> None:
        command = f"{sys.executable} -m perfgate baseline merge --quiet --base %O %A %B -o %A"
        git(self.folder, "config", "merge.perfgate-baseline.driver", command)

    def days(self) -> list[int]:
        return [int(one.provenance.recorded_utc[8:10]) for one in read_baseline(self.path).sessions]

    def _commit(self, baseline: Baseline) -> None:
        write_baseline(self.path, baseline)
        git(self.folder, "add", ".gitattributes", "baselines/h200.json")
        git(self.folder, "commit", "--quiet", "--message", "baseline")


def test_git__joins_sessions_of_different_chips_by_itself(tmp_path: Path) -> None:
    fork = Fork(tmp_path / "r", with_sessions(session(CHIPS[0], 10)), with_sessions(session(CHIPS[2], 11)))
    git(fork.folder, "merge", "--quiet", "--no-edit", "theirs")
    assert fork.days() == [1, 2, 3, 10, 11]
    text = fork.path.read_bytes()
    write_baseline(fork.path, read_baseline(fork.path))
    assert fork.path.read_bytes() == text


def test_git__with_the_merge_driver_joins_sessions_of_one_chip(tmp_path: Path) -> None:
    fork = Fork(tmp_path / "r", with_sessions(session(CHIPS[1], 10)), with_sessions(session(CHIPS[1], 11)))
    git_fails(fork.folder, "merge", "--quiet", "--no-edit", "theirs")
    git(fork.folder, "merge", "--abort")
    fork.install_driver()
    git(fork.folder, "merge", "--quiet", "--no-edit", "theirs")
    assert fork.days() == [1, 2, 3, 10, 11]
    assert git(fork.folder, "status", "--porcelain", "--ignored").splitlines() == ["?? baselines/.perfgate.lock"]
    assert run_command(["baseline", "validate", "--quiet", str(fork.path)]) == 0


def test_git__with_the_merge_driver_keeps_what_a_side_removed_away(tmp_path: Path) -> None:
    pruned = replace(with_sessions(session(CHIPS[1], 10)), sessions=(session(CHIPS[1], 10), session(CHIPS[1], 2)))
    fork = Fork(tmp_path / "r", pruned, with_sessions(session(CHIPS[1], 11)))
    fork.install_driver()
    git(fork.folder, "merge", "--quiet", "--no-edit", "theirs")
    assert fork.days() == [2, 10, 11]


def test_git__reports_a_conflict_where_the_driver_cannot_join(tmp_path: Path) -> None:
    other = with_sessions(session(CHIPS[1], 11))
    other = replace(other, gpu=replace(other.gpu, board_part_number="another"))
    fork = Fork(tmp_path / "r", with_sessions(session(CHIPS[1], 10)), other)
    fork.install_driver()
    before = fork.path.read_bytes()
    told = git_fails(fork.folder, "merge", "--quiet", "--no-edit", "theirs")
    assert "CONFLICT" in told
    assert git(fork.folder, "status", "--porcelain", "--", "baselines/h200.json") == "UU baselines/h200.json"
    assert fork.path.read_bytes() == before, "ours stays, without conflict markers in it"


# --- a change that would loosen its own gate -----------------------------------------------------


class Gate:
    """A checkout of a change, in which a slower recording is checked against the base."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.served = ServedRepository(folder / "server")
        self.folder = folder
        self.slow = folder / "slow.json"
        write_run(self.slow, recorded(5, 1.05))
        self._monkeypatch = monkeypatch

    def check(self, changed: dict[str, str | None], *arguments: str) -> tuple[int, Any]:
        base = self.served.commit({"baselines/h200.json": BASELINE, "kernel.cu": "a"})
        head = self.served.commit(changed, branch="topic", start=base)
        here = self.served.checked_out(self.folder / "here", head)
        self._monkeypatch.chdir(here)
        device = f"recorded:{self.slow}"
        code = run_command(["check", "--device", device, "--baseline", "baselines", "--base-ref", "HEAD^", *arguments])
        return code, read_report(here / "perfgate-results" / "report.json")


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    monkeypatch.setattr("perfgate.workflow.gating.Check", Rehearsal)
    return Gate(tmp_path, monkeypatch)


SLOWER = baseline_text(9, 1.05)


def ungated() -> str:
    """The baseline, with its case taken out of the gate and a margin of 90 %."""
    document = json.loads(BASELINE)
    document["sessions"][0]["cases"][COPY]["gated"] = False
    document["margins"] = {COPY: {"relative": 0.9, "sessions": 9, "same_chip": True, "chip": None}}
    return json.dumps(document)


@pytest.mark.parametrize(
    "changed",
    [
        {"baselines/h200.json": SLOWER},
        {"baselines/h200.json": None, "baselines/renamed.json": SLOWER},
        {"baselines/h200.json": ungated()},
        {"perfgate.toml": '[margins]\n"*" = "50%"\n'},
        {"pyproject.toml": '[tool.perfgate]\nalpha = "0.001%"\nsuspected_fails = false\n'},
        {"schemas/baseline.schema.json": "{}", "perfgate/schemas/baseline.schema.json": "{}"},
        {"perfgate/core/gate.py": "raise SystemExit(0)\n", "perfgate.py": "raise SystemExit(0)\n"},
        {".gitattributes": "*.json filter=evil\n", ".git-blame-ignore-revs": "x"},
    ],
    ids=["baseline", "renamed", "ungated", "policy", "project", "schemas", "code", "attributes"],
)
def test_check__a_change_passes_by_editing_nothing(gate: Gate, changed: dict[str, str | None]) -> None:
    code, report = gate.check(changed)
    assert code == 1
    assert report.verdict == "regressed"
    assert report.policy == Policy()
    assert report.baseline.sessions == 1


def test_check__a_renamed_baseline_is_the_same_baseline(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(gate.slow, recorded(1))
    code, _ = gate.check({"baselines/h200.json": None, "baselines/renamed.json": BASELINE})
    assert code == 0
    told = capsys.readouterr().err
    assert "removes the baseline h200.json" in told
    assert "renamed.json" in told


def test_check__a_change_widens_no_margin_by_its_own_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def widened(policy: Policy, *_: object) -> Policy:
        return replace(policy, margins={"*": 0.5})

    monkeypatch.setattr("perfgate.workflow.checking.with_own_margins", widened)
    monkeypatch.setattr("perfgate.workflow.checking.rest", lambda *_: None)
    code, report = Gate(tmp_path, monkeypatch).check({"suite.py": "margin = 0.5"})
    assert (code, report.verdict) == (1, "regressed")


def test_check__a_case_that_a_change_takes_out_of_the_gate_is_still_judged(gate: Gate) -> None:
    run = recorded(5, 1.05)
    write_run(gate.slow, replace(run, cases={COPY: replace(run.cases[COPY], gated=False)}))
    code, report = gate.check({})
    assert (code, report.verdict) == (1, "regressed")


def test_check__baselines_of_a_submodule_are_refused(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ServedRepository(tmp_path / "other")
    commit = other.commit({"h200.json": SLOWER})
    base = gate.served.commit({"kernel.cu": "a"})
    work = gate.served.server / "work"
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},baselines")
    git(work, "commit", "--quiet", "--message", "submodule")
    head = git(work, "rev-parse", "HEAD")
    git(work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/topic")
    assert head != base
    here = gate.served.checked_out(tmp_path / "here", head)
    monkeypatch.chdir(here)
    arguments = ["check", "--device", f"recorded:{gate.slow}", "--baseline", "baselines", "--base-ref", "HEAD"]
    assert run_command(arguments) == 3


def test_check__works_inside_a_submodule(gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate.served.commit({"baselines/h200.json": BASELINE})
    gate.served.commit({"baselines/h200.json": SLOWER})
    parent = tmp_path / "parent"
    parent.mkdir()
    git(parent, "init", "--quiet")
    git(parent, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"file://{gate.served.path}", "sub")
    monkeypatch.chdir(parent / "sub")
    arguments = ["check", "--device", f"recorded:{gate.slow}", "--baseline", "baselines", "--quiet"]
    assert run_command([*arguments, "--base-ref", "HEAD^"]) == 1
    assert run_command([*arguments, "--base-ref", "HEAD"]) == 0
