"""action.yml carried out by bash, as the runner does: environment files, `if`, fresh processes, real launches."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.storage.documents import read_run
from tests.action_harness import PREPARED, ROOT, run_with_bash
from tests.action_world import BASELINE, COPY, World, baseline_text
from tests.fake_github import TOKEN, FakeGitHub


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    github = FakeGitHub()
    try:
        yield World(tmp_path, github, run_with_bash)
    finally:
        github.close()
    assert github.violations == []


def test_check__a_change_that_slows_nothing_passes(world: World) -> None:
    done = world.check(world.pull_job({}), launches="3")
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "passed", "0"), done.log
    assert done.step_codes == {"setup": 0, "measure": 0, "publish": 0}
    assert done.summary.startswith("### perfgate: passed on NVIDIA H200")
    assert "### perfgate: passed" in world.github.bodies()[0]


def test_check__a_slower_change_fails_and_only_the_publishing_step_has_the_token(world: World) -> None:
    done = world.check(world.pull_job({}), world.slow, launches="3")
    assert (done.code, done.verdict, done.outputs["regressed-count"]) == (1, "regressed", "1"), done.log
    assert done.step_codes == {"setup": 0, "measure": 0, "publish": 1}
    assert COPY in world.github.bodies()[0]
    holders = [name for name, environment in done.environments.items() if TOKEN in environment.values()]
    assert holders == ["publish"]
    assert TOKEN not in done.log


def test_check__a_module_of_the_workspace_shadows_none_of_pythons(world: World) -> None:
    trap = "raise SystemExit('taken over')\n"
    names = ("click", "json", "numpy", "requests", "perfgate/__init__", "sitecustomize", "usercustomize")
    done = world.check(world.pull_job({f"{name}.py": trap for name in names}), world.slow, launches="3")
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    assert "taken over" not in done.log


def test_check__a_first_run_passes_and_proposes_a_baseline(world: World) -> None:
    job = world.pull_job({}, base={"README.md": "no baseline yet"})
    done = world.check(job)
    assert (done.code, done.verdict) == (0, "no-baseline"), done.log
    proposed = job.workspace / "perfgate-results/proposed-baseline.json"
    assert len(json.loads(proposed.read_text())["sessions"][0]["cases"][COPY]["launch_medians_s"]) == 12


def test_check__a_wrong_case_ends_in_an_error(world: World) -> None:
    done = world.check(world.pull_job({}), case="no.such")
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (2, "error", "2"), done.log
    assert done.step_codes == {"setup": 0, "measure": 2, "publish": 2}
    assert "no.such" in done.summary


def test_check__a_fork_is_refused_before_anything_runs(world: World) -> None:
    done = world.check(world.pull_job({}, repo="mallory/kernels"))
    assert (done.code, done.verdict) == (2, "error"), done.log


def test_check__a_merge_group_is_judged_by_what_it_is_merged_into(world: World) -> None:
    base = world.served.commit({"baselines/h200.json": BASELINE})
    group = world.served.commit({"baselines/h200.json": baseline_text(9, 1.2)}, branch="queue", start=base)
    payload = {"merge_group": {"base_sha": base, "head_sha": group}}
    done = world.check(world.job(group, "merge_group", payload), world.slow, launches="3")
    assert (done.code, done.verdict) == (1, "regressed"), done.log


def test_check__a_schedule_writes_summary_and_outputs(world: World) -> None:
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    done = world.check(world.job(commit, "schedule", {"schedule": "0 3 * * *"}), launches="3")
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert "### perfgate: passed" in done.summary


@pytest.mark.parametrize("python", ["/nonexistent/python3", "/nonexistent"])
def test_setup__a_python_that_is_missing_is_named(world: World, python: str) -> None:
    done = world.check(world.pull_job({}), python=python)
    assert (done.code, done.verdict) == (2, "error")
    assert done.step_codes == {"setup": 2}
    assert python in done.annotations[0][1]


def test_setup__names_the_package_that_venv_lacks(world: World, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(
        '#!/bin/sh\ncase "$*" in *"-m venv"*|*"import perfgate"*) exit 1;; esac\nexit 0\n', encoding="utf-8"
    )
    python.chmod(0o755)
    done = world.check(world.pull_job({}), python=str(python))
    assert (done.code, done.verdict) == (2, "error")
    assert "apt install python3-venv" in done.log


def test_setup__an_old_python_is_refused(world: World, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    done = world.check(world.pull_job({}), python=str(python))
    assert "older than Python 3.10" in done.annotations[0][1]


@pytest.mark.parametrize(
    ("inputs", "extra"),
    [
        ({}, "[cuda]"),
        ({"mode": "update-baseline"}, "[cuda]"),
        ({"mode": "comment"}, ""),
        ({"mode": "update-baseline", "run": "run.json"}, ""),
        ({"device": "recorded"}, ""),
    ],
    ids=str,
)
def test_setup__installs_what_the_mode_needs_into_the_jobs_own_environment(
    world: World, tmp_path: Path, inputs: dict[str, str], extra: str
) -> None:
    log, python = tmp_path / "log", tmp_path / "python3"
    python.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {log}\n'
        'case "$*" in *"import perfgate"*) exit 1;; esac\n'
        'if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    job = world.pull_job({})
    done = job.use(**{"device": "auto", "python": str(python), **inputs})
    assert done.step_codes["setup"] == 0, done.log
    assert f"pip install --quiet --disable-pip-version-check {ROOT}{extra}\n" in log.read_text()
    assert done.environments["measure"]["PERFGATE_PYTHON"] == f"{job.temp}/perfgate-venv/bin/python"
    assert "-I -m perfgate action publish" in log.read_text()


def test_update__measures_twelve_launches_on_the_runner(world: World) -> None:
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    job = world.job(commit, "workflow_dispatch", {}, token="")
    done = world.check(job, mode="update-baseline", reason="new driver")
    assert (done.code, done.verdict) == (0, "measured"), done.log
    assert len(read_run(job.workspace / "perfgate-results/run.json").launches) == 12
    assert PREPARED in done.environments["measure"]["PERFGATE_PYTHON"]
