"""The action's input ``against``: a pull request's own suites measured in turn with its base, on a recording."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.run import Run
from perfgate.storage.documents import read_run, write_run
from tests.action_harness import PREPARED, Finished, Job
from tests.action_world import BASELINE, World
from tests.fake_github import FakeGitHub
from tests.integration.test_action import workflow_run

# At an alpha of a tenth four launches a side can prove a change: fewer processes than in earnest.
POLICY = 'alpha = "10%"\nsuites = ["benchmarks/suite.py"]\n'
SUITE = """
import sys
import perfgate.api as pg

def suite(gpu):
    yield pg.command_case("own.tool", [sys.executable, "-S", "tool.py"], sources=["tool.py"])
"""
TOOL = "import random\nfor _ in range(5): print({} * (1 + 1e-4 * random.random()), 'ms')\n"
BASE = {
    "baselines/h200.json": BASELINE,
    "perfgate.toml": POLICY,
    "benchmarks/suite.py": SUITE,
    "benchmarks/tool.py": TOOL.format(2),
}
SLOWER = {"benchmarks/tool.py": TOOL.format(2.02)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    github = FakeGitHub()
    yield World(tmp_path, github)
    github.close()
    assert github.violations == []


def measured(
    world: World, changed: Mapping[str, str | None], base: Mapping[str, str | None] = BASE, **inputs: str
) -> tuple[Job, Finished]:
    job = world.pull_job(changed, base=base)
    return job, world.check(job, launches="4", **inputs)


def runs(job: Job) -> tuple[Run, Run]:
    folder = job.workspace / "perfgate-results"
    return read_run(folder / "base.json"), read_run(folder / "run.json")


def test_check__a_pull_request_is_judged_by_its_base(world: World) -> None:
    job, done = measured(world, SLOWER)
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    (body,) = world.github.bodies()
    assert "own.tool" in body
    assert "measured in turn" in body
    assert "| case | base | now |" in body
    base, head = runs(job)
    assert [len(one.launches) for one in (base, head)] == [5, 5]


def test_check__a_pull_request_that_changes_nothing_of_its_cases_passes(world: World) -> None:
    _, done = measured(world, {"benchmarks/tool.py": TOOL.format(1.9)})
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert "improved" in world.github.bodies()[0]


@pytest.mark.parametrize("inputs", [{"against": "none"}, {"suite": "default"}])
def test_check__without_a_base_the_stored_baseline_judges(world: World, inputs: dict[str, str]) -> None:
    job, done = measured(world, SLOWER, case="bandwidth.*", **({"suite": "default"} | inputs))
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert not (job.workspace / "perfgate-results/base.json").exists()


def test_check__a_change_cannot_loosen_its_own_gate(world: World) -> None:
    loose = {**SLOWER, "perfgate.toml": POLICY + '[margins]\n"*" = "50%"\n'}
    _, done = measured(world, loose)
    assert done.verdict == "regressed", done.log
    assert "edits the policy" in world.github.bodies()[0]


def test_check__a_base_without_a_policy_does_not_take_the_changes(world: World) -> None:
    base = {name: text for name, text in BASE.items() if name != "perfgate.toml"}
    loose = {"benchmarks/tool.py": TOOL.format(2.5), "perfgate.toml": '[margins]\n"*" = "90%"\n'}
    job = world.pull_job(loose, base=base)
    done = world.check(job, launches="8", suite="benchmarks/suite.py")
    assert done.verdict == "regressed", done.log


def test_check__the_first_suite_passes_and_says_so(world: World) -> None:
    new = {name: BASE[name] for name in ("benchmarks/suite.py", "benchmarks/tool.py")}
    _, done = measured(world, new, base={"baselines/h200.json": BASELINE}, suite="benchmarks/suite.py")
    assert (done.code, done.verdict) == (0, "no-baseline"), done.log
    assert "the next one is compared" in world.github.bodies()[0]


def test_check__a_suite_that_the_change_removed_fails(world: World) -> None:
    _, done = measured(world, {"benchmarks/suite.py": SUITE.replace("own.tool", "own.other")})
    assert done.code == 8, done.log
    assert "own.tool" in world.github.bodies()[0]


def test_check__a_named_revision_needs_a_suite_of_ones_own(world: World) -> None:
    _, done = measured(world, {}, suite="default", against="HEAD^1")
    assert (done.code, done.verdict) == (2, "error"), done.log
    assert "same on both sides" in done.log


def test_check__a_revision_that_is_not_here_is_named(world: World) -> None:
    _, done = measured(world, SLOWER, against="v9.9")
    assert (done.code, done.verdict) == (2, "error"), done.log
    assert "v9.9" in done.log


def test_check__tells_the_stored_baselines_verdict_beside(world: World) -> None:
    job, _ = measured(world, SLOWER)
    _, head = runs(job)
    stored = world.folder / "stored"
    stored.mkdir()
    write_run(stored / "run.json", head)
    from perfgate.core.acceptance import baseline_of
    from perfgate.core.baseline import Provenance
    from perfgate.storage.documents import render_baseline_json

    provenance = Provenance(
        recorded_utc="2026-11-29T12:00:00Z", reason="first", device_kind="recorded", perfgate_version="0.1.0"
    )
    base = {**BASE, "baselines/h200.json": render_baseline_json(baseline_of(head, provenance))}
    _, done = measured(world, {"benchmarks/tool.py": TOOL.format(2.2)}, base=base)
    assert done.verdict == "regressed", done.log
    body = world.github.bodies()[-1]
    assert "Beside it:" in body
    assert "stored baseline h200.json" in body


def artifact(job: Job) -> dict[str, bytes]:
    folder = job.workspace / "perfgate-results"
    return {name: (folder / name).read_bytes() for name in ("run.json", "base.json")}


def told(world: World, documents: Mapping[str, bytes], base: Mapping[str, str | None] = BASE) -> Finished:
    """The job that comments on what a fork's run measured: main checked out, the artifact beside it."""
    start = world.served.commit(base)
    head = world.served.commit({"kernel.cu": "// x"}, branch="topic", start=start)
    world.served.merge(7, head)
    world.github.add_pull(7, sha=head, head="mallory:topic", repo="mallory/kernels")
    job = world.job(start, "workflow_run", workflow_run(head))
    (job.workspace / "perfgate-results").mkdir()
    for name, content in documents.items():
        (job.workspace / "perfgate-results" / name).write_bytes(content)
    return job.use(mode="comment", python=PREPARED, baseline="baselines")


@pytest.fixture
def measured_artifact(world: World) -> dict[str, bytes]:
    job, _ = measured(world, SLOWER)
    found = artifact(job)
    world.github.pulls.clear()
    world.github.comments.clear()
    return found


def test_comment__judges_both_sides_of_a_fork_again(world: World, measured_artifact: dict[str, bytes]) -> None:
    done = told(world, measured_artifact)
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "regressed", "1"), done.log
    assert "measured in turn" in world.github.bodies()[-1]


def test_comment__nothing_measured_is_told_as_passed(world: World) -> None:
    # What GitHub checks out is a merge of the head: the same files, nothing to measure.
    job = world.pull_job({"kernel.cu": None, "x": "y"}, base={**BASE, "kernel.cu": "// 1"})
    world.check(job, launches="4", against="HEAD")
    world.github.pulls.clear()
    done = told(world, artifact(job))
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert "nothing was measured" in world.github.bodies()[-1]


@pytest.mark.parametrize("change", ["drops-a-launch", "another-gpu", "swaps-sides"])
def test_comment__two_documents_that_do_not_fit_are_refused(
    world: World, measured_artifact: dict[str, bytes], change: str
) -> None:
    run: dict[str, Any] = json.loads(_plain(measured_artifact["run.json"]))
    match change:
        case "drops-a-launch":
            run["launches"] = run["launches"][:-1]
        case "another-gpu":
            run["gpu"]["name"] = "NVIDIA H100"
        case "swaps-sides":
            for place, launch in enumerate(run["launches"]):
                launch["index"] = place
    done = told(world, {**measured_artifact, "run.json": json.dumps(run).encode()})
    assert (done.code, done.verdict) == (3, "error"), done.log
    assert "base.json beside it" in done.log


def _plain(content: bytes) -> bytes:
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
