"""The action's steps on a rehearsed measurement, against a GitHub on this machine; whole runs: test_action_whole."""

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.storage.documents import read_report, write_run
from tests.action_harness import PREPARED, Finished, Job
from tests.action_world import BASELINE, COPY, ZEROS, Rehearsal, World, baseline_text, rehearsed
from tests.factories import H200, make_run, normal_medians
from tests.fake_github import TOKEN, FakeGitHub, Rule
from tests.git_repository import git


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("perfgate.workflow.gating.Check", Rehearsal)
    monkeypatch.setattr("perfgate.workflow.gating.measured", rehearsed)
    monkeypatch.setattr("perfgate.workflow.action.measured", rehearsed)
    # Waiting for a GitHub that is down is the API's own test.
    monkeypatch.setattr("perfgate.github.api.MAX_WAIT_S", 0.0)
    github = FakeGitHub()
    try:
        yield World(tmp_path, github)
    finally:
        github.close()
    assert github.violations == []


def results_of(job: Job) -> Path:
    return job.workspace / "perfgate-results"


def test_check__a_change_that_slows_nothing_passes(world: World) -> None:
    job = world.pull_job({})
    done = world.check(job)
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "passed", "0"), done.log
    assert done.outputs["gpu"] == "NVIDIA H200"
    assert done.outputs["regressed-count"] == "0"
    assert read_report(Path(done.outputs["report-path"])).verdict == "passed"
    assert Path(done.outputs["summary-path"]).read_text().startswith("### perfgate: passed")
    assert done.summary.startswith("### perfgate: passed on NVIDIA H200")
    (body,) = world.github.bodies()
    assert "### perfgate: passed on NVIDIA H200" in body
    assert world.github.pulls[0]["sha"][:12] in body
    assert world.github.check_runs == {}
    assert done.annotations == []
    assert git(job.workspace, "status", "--porcelain") == ""


def test_check__a_slower_change_fails(world: World) -> None:
    done = world.check(world.pull_job({}), world.slow, check_run="true")
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (1, "regressed", "1"), done.log
    assert done.outputs["regressed-count"] == "1"
    assert done.step_codes == {"setup": 0, "measure": 0, "publish": 1}
    assert COPY in world.github.bodies()[0]
    (run,) = world.github.check_runs.values()
    assert (run["conclusion"], run["head_sha"]) == ("failure", world.github.pulls[0]["sha"])
    assert done.annotations[0][0] == "error"
    assert COPY in done.annotations[0][1]


@pytest.mark.parametrize("fail_on", ["none", "invalid,suspected"])
def test_check__report_only_tells_and_passes(world: World, fail_on: str) -> None:
    done = world.check(world.pull_job({}), world.slow, fail_on=fail_on, check_run="true")
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "regressed", "1")
    assert [run["conclusion"] for run in world.github.check_runs.values()] == ["neutral"]
    assert done.annotations[0][0] == "warning"


def test_check__an_accepted_slowdown_passes_and_names_who(world: World) -> None:
    job = world.pull_job({})
    world.github.add_label("perfgate-accepted", by="maria", role="triage")
    done = world.check(job, world.slow)
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "regressed", "0")
    assert "accepted: maria labelled" in world.github.bodies()[0]
    assert "regressed on NVIDIA H200, accepted" in done.summary


def test_check__a_bots_label_accepts_nothing(world: World) -> None:
    job = world.pull_job({})
    world.github.add_label("perfgate-accepted", by="labeler[bot]", kind="Bot")
    assert world.check(job, world.slow).code == 1


def test_check__a_first_run_passes_and_proposes_a_baseline(world: World) -> None:
    job = world.pull_job({}, base={"README.md": "no baseline yet"})
    done = world.check(job)
    assert (done.code, done.verdict) == (0, "no-baseline"), done.log
    proposed = results_of(job) / "proposed-baseline.json"
    assert COPY in json.loads(proposed.read_text())["sessions"][0]["cases"]
    assert "No baseline yet" in world.github.bodies()[0]
    assert ("notice" in [name for name, _ in done.annotations]) or done.annotations[0][0] == "warning"


def test_check__a_baseline_of_the_change_itself_does_not_count(world: World) -> None:
    job = world.pull_job({"baselines/h200.json": baseline_text(9, 1.2)}, base={"README.md": "none"})
    done = world.check(job)
    assert done.verdict == "no-baseline"
    assert "adds the baseline h200.json" in world.github.bodies()[0]


def test_check__another_gpus_baseline_fails_once_there_is_one(world: World) -> None:
    other = BASELINE.replace("692-2G520-0282-000", "692-2G520-0282-001")
    done = world.check(world.pull_job({}, base={"baselines/other.json": other}))
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (4, "not-comparable", "4"), done.log


def test_check__a_change_is_judged_by_the_bases_baseline_and_policy(world: World) -> None:
    changed = {
        "baselines/h200.json": baseline_text(9, 1.2),
        "perfgate.toml": '[margins]\n"*" = "50%"\n',
    }
    done = world.check(world.pull_job(changed), world.slow)
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    (body,) = world.github.bodies()
    assert "This change edits the baseline h200.json: judged against the base" in body
    assert "This change edits the policy: judged by the base" in body
    assert "+20" in body
    assert "50" in body


def test_check__a_broken_baseline_in_the_change_fails_before_it_is_merged(world: World) -> None:
    done = world.check(world.pull_job({"baselines/h200.json": '{"format": "perfgate.baseline/1"}\n'}))
    assert (done.code, done.verdict) == (3, "passed"), done.log
    assert "cannot be used" in world.github.bodies()[0]


def test_check__a_removed_baseline_is_announced(world: World) -> None:
    done = world.check(world.pull_job({"baselines/h200.json": None}), world.slow)
    assert done.code == 1
    assert "removes the baseline h200.json" in world.github.bodies()[0]


def test_check__with_the_head_checked_out_the_base_is_fetched(world: World) -> None:
    job = world.pull_job({"baselines/h200.json": baseline_text(9, 1.2)}, checks_out_head=True)
    assert (world.check(job, world.slow).code) == 1


def test_check__a_shallow_checkout_fetches_the_base(world: World) -> None:
    done = world.check(world.pull_job({}, depth=1), world.slow)
    assert (done.code, done.verdict) == (1, "regressed"), done.log


def test_check__fails_closed_where_the_base_cannot_be_read(world: World) -> None:
    job = world.pull_job({"baselines/h200.json": baseline_text(9, 1.2)}, depth=1, server_url="file:///nonexistent")
    done = world.check(job, world.slow)
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (2, "error", "2"), done.log
    assert "cannot be fetched" in done.summary
    assert "fetch-depth: 2" in done.summary


def test_check__a_linked_baseline_is_refused(world: World) -> None:
    start = world.served.commit({"baselines/h200.json": BASELINE})
    work = world.served.server / "work"
    (work / "baselines/h200.json").unlink()
    (work / "baselines/h200.json").symlink_to("/etc/hostname")
    commit = world.served.commit({}, branch="main")
    assert start != commit
    done = world.check(world.job(commit, "schedule", {}))
    assert (done.code, done.verdict) == (3, "error"), done.log
    assert "symbolic link" in done.log


@pytest.mark.parametrize("repo", ["mallory/kernels", None], ids=["fork", "deleted fork"])
def test_check__a_fork_is_refused(world: World, repo: str | None) -> None:
    done = world.check(world.pull_job({}, repo=repo))
    assert (done.code, done.verdict) == (2, "error"), done.log
    assert "comes from a fork" in done.summary
    assert world.github.calls("POST", ".*/comments") == []


def test_check__an_allowed_fork_is_judged_and_its_read_only_token_changes_nothing(world: World) -> None:
    world.github.is_read_only = True
    done = world.check(world.pull_job({}, repo="mallory/kernels"), world.slow, allow_forks="true")
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    assert "Not delivered" in done.summary
    assert "Resource not accessible by integration" in done.summary
    assert "### perfgate: regressed" in done.summary


@pytest.mark.parametrize("event_name", ["schedule", "workflow_dispatch", "release"])
def test_check__events_without_a_pull_request_write_summary_and_outputs(world: World, event_name: str) -> None:
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    done = world.check(world.job(commit, event_name, {"schedule": "0 3 * * *"}))
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert "### perfgate: passed" in done.summary
    assert world.github.seen == []


def test_check__a_push_is_judged_by_what_was_before(world: World) -> None:
    before = world.served.commit({"baselines/h200.json": BASELINE})
    after = world.served.commit({"baselines/h200.json": baseline_text(9, 1.2)})
    done = world.check(world.job(after, "push", {"before": before}, depth=1), world.slow)
    assert (done.code, done.verdict) == (1, "regressed"), done.log


def test_check__a_new_branch_is_judged_by_its_own(world: World) -> None:
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    assert world.check(world.job(commit, "push", {"before": ZEROS})).code == 0


def test_check__a_merge_group_is_judged_by_what_it_is_merged_into(world: World) -> None:
    base = world.served.commit({"baselines/h200.json": BASELINE})
    group = world.served.commit({"baselines/h200.json": baseline_text(9, 1.2)}, branch="queue", start=base)
    payload = {"merge_group": {"base_sha": base, "head_sha": group}}
    done = world.check(world.job(group, "merge_group", payload), world.slow)
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    assert "edits the baseline" in done.summary


def test_check__pull_request_target_is_refused(world: World) -> None:
    job = world.pull_job({})
    job.event_name = "pull_request_target"
    done = world.check(job)
    assert (done.code, done.verdict) == (2, "error")
    assert "pull_request_target" in html.unescape(done.summary)


def test_check__base_ref_names_the_base(world: World) -> None:
    world.served.commit({"baselines/h200.json": baseline_text(9, 1.05)})
    job = world.job(world.served.commit({"baselines/h200.json": BASELINE}), "schedule", {})
    assert world.check(job, world.slow).verdict == "regressed"
    assert world.check(job, world.slow, base_ref="HEAD^1").verdict == "passed"
    assert world.check(job, world.slow, base_ref="nonexistent").code == 2


@pytest.mark.parametrize("event_name", ["issue_comment", "workflow_run"])
def test_check__an_event_that_may_have_checked_out_a_change_needs_a_base(world: World, event_name: str) -> None:
    payload = workflow_run("e" * 40, repo="octo/kernels")
    job = world.job(world.served.commit({"baselines/h200.json": BASELINE}), event_name, payload)
    done = world.check(job, allow_forks="true")
    assert (done.code, done.verdict) == (2, "error"), done.log
    assert "set base-ref" in done.summary
    assert world.check(job, allow_forks="true", base_ref="HEAD").verdict == "passed"


def test_check__a_run_that_was_ended_is_told_nobody(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.pull_job({})
    world.check(job)
    (before,) = world.github.bodies()

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("perfgate.workflow.gating.Check", ended)
    done = world.check(job, check_run="true")
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (130, "error", "130"), done.log
    assert world.github.bodies() == [before]
    assert world.github.check_runs == {}


def test_check__a_bug_is_told_as_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        message = "boom"
        raise RuntimeError(message)

    monkeypatch.setattr("perfgate.workflow.gating.Check", broken)
    done = world.check(world.pull_job({}))
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (70, "error", "70")
    assert "a bug in perfgate" in done.summary
    assert "boom" in done.log


def test_publish__where_measuring_left_nothing_there_is_no_verdict(world: World) -> None:
    job = world.pull_job({})
    real = job.run_step

    def killed(script: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        return (137, "") if "action measure" in script else real(script, folder, environment)

    job.run_step = killed
    done = world.check(job)
    assert (done.verdict, done.outputs["report-path"]) == ("error", "")
    assert done.code == 137
    assert "did not come to an end" in done.summary


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([Rule(status=503, times=999)], "answered 503"),
        ([Rule(status=401, body={"message": "Bad credentials"}, times=999)], "Bad credentials"),
        ([Rule(status=404, body={"message": "Not Found"}, times=999)], "Not Found"),
        (
            [Rule(status=403, headers={"Retry-After": "9999"}, body={"message": "secondary rate limit"}, times=999)],
            "secondary rate limit",
        ),
        ([Rule(method="POST", status=422, body={"message": "Validation Failed"}, times=999)], "Validation Failed"),
    ],
    ids=["outage", "expired", "missing", "limit", "refused"],
)
def test_check__the_verdict_does_not_depend_on_github(world: World, rules: list[Rule], told: str) -> None:
    world.github.rules += rules
    done = world.check(world.pull_job({}))
    assert (done.code, done.verdict) == (0, "passed"), done.log
    assert told in done.summary
    assert "warning" in [name for name, _ in done.annotations]


def test_check__without_a_token_everything_but_posting_works(world: World) -> None:
    done = world.check(world.pull_job({}, token=""), world.slow)
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    assert world.github.seen == []


def test_check__an_older_run_does_not_replace_the_comment_of_a_newer_one(world: World) -> None:
    job = world.pull_job({}, run_id=11)
    world.check(job)
    (before,) = world.github.bodies()
    job.run_id = 10
    assert world.check(job, world.slow).code == 1
    assert world.github.bodies() == [before]


def test_check__the_same_result_twice_touches_nothing(world: World) -> None:
    job = world.pull_job({})
    world.check(job, comment="always")
    world.github.seen.clear()
    job.variables["SOMETHING"] = "else"
    world.check(job)
    assert len(world.github.comments) == 1


@pytest.mark.parametrize(("run", "expected"), [("same", 0), ("slow", 1)])
def test_check__comments_on_failure_only_where_that_is_wanted(world: World, run: str, expected: int) -> None:
    done = world.check(world.pull_job({}), getattr(world, run), comment="failure")
    assert done.code == expected
    assert len(world.github.comments) == expected


def test_check__never_comments_where_that_is_wanted(world: World) -> None:
    world.check(world.pull_job({}), world.slow, comment="never")
    assert world.github.comments == {}


def test_check__an_error_updates_the_comment_that_says_passed(world: World) -> None:
    job = world.pull_job({})
    world.check(job)
    done = world.check(job, world.folder / "nonexistent.json")
    assert (done.code, done.verdict) == (3, "error"), done.log
    (body,) = world.github.bodies()
    assert "no verdict" in body
    assert done.step_codes["measure"] == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "chek"),
        ("launches", "0"),
        ("launches", "six"),
        ("fail_on", "slower"),
        ("allow_forks", "yes"),
        ("lock_clocks", "fast"),
        ("check_run", "maybe"),
        ("comment", "sometimes"),
        ("name", "x" * 101),
        ("device", "tpu"),
        ("working_directory", "nowhere"),
    ],
)
def test_check__a_wrong_input_is_named(world: World, name: str, value: str) -> None:
    done = world.check(world.pull_job({}), **{name: value})
    assert (done.code, done.verdict) == (2, "error"), done.log
    assert value[:20] in done.log
    assert any(kind == "error" for kind, _ in done.annotations)


def test_check__paths_are_relative_to_the_working_directory(world: World) -> None:
    job = world.pull_job({}, base={"gpu/baselines/h200.json": BASELINE, "gpu/perfgate.toml": "alpha = '2%'\n"})
    done = world.check(job, world.slow, working_directory="gpu")
    assert (done.code, done.verdict) == (1, "regressed"), done.log
    assert (job.workspace / "gpu/perfgate-results/report.json").is_file()
    assert read_report(Path(done.outputs["report-path"])).policy.alpha == 0.02


def test_check__results_of_an_earlier_job_do_not_count(world: World) -> None:
    job = world.pull_job({})
    world.check(job)
    done = world.check(job, world.folder / "nonexistent.json")
    assert done.verdict == "error"
    assert done.outputs["report-path"] == ""


def test_check__only_the_publishing_step_has_the_token(world: World) -> None:
    done = world.check(world.pull_job({}), world.slow)
    holders = [name for name, environment in done.environments.items() if TOKEN in environment.values()]
    assert holders == ["publish"]
    everything = [done.log, done.summary, *done.outputs.values(), *world.github.bodies()]
    assert not any(TOKEN in text for text in everything)


HOSTILE = (
    "x|y`z\n\n# <img src=x onerror=alert(1)>@octo #1 [a](http://e.example) ::error::e ##[add-mask]a $(id) `id` --> "
)


def test_check__what_a_change_writes_is_shown_as_text_only(world: World) -> None:
    policy = json.dumps(HOSTILE)
    changed = {"perfgate.toml": f'[[accept]]\ncase = "*"\nlimit = "90%"\nreason = {policy}\n'}
    done = world.check(world.pull_job(changed), world.slow, name="a --> <b> ::set-output name=x::y @octo")
    assert done.code == 1
    (body,) = world.github.bodies()
    for text in (body, done.summary):
        assert "<img" not in text
        assert "@octo" not in text
        assert "](http" not in text
    assert [kind for kind, _ in done.annotations if kind not in ("error", "notice", "warning")] == []


def test_update__measures_on_the_runner_and_proposes_elsewhere(world: World) -> None:
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    job = world.job(commit, "workflow_dispatch", {}, token="")
    measured = world.check(job, mode="update-baseline", reason="new driver")
    assert (measured.code, measured.verdict) == (0, "measured"), measured.log
    run = results_of(job) / "run.json"
    assert run.is_file()
    writing = world.job(commit, "workflow_dispatch", {})
    done = writing.use(mode="update-baseline", run=str(run), reason="new driver", python=PREPARED)
    assert (done.code, done.verdict) == (0, "proposed"), done.log
    (entry,) = world.github.trees[0]["tree"]
    assert entry["path"] == "baselines/h200.json"
    assert len(json.loads(entry["content"])["sessions"]) == 2
    assert list(world.github.refs) == ["refs/heads/perfgate/baseline-h200"]
    assert "new driver" in world.github.pulls[-1]["body"]
    assert world.github.commits[0]["parents"] == [commit]


def test_update__refuses_a_pull_request_and_a_missing_reason(world: World) -> None:
    assert world.check(world.pull_job({}), mode="update-baseline", reason="x").code == 2
    commit = world.served.commit({"baselines/h200.json": BASELINE})
    done = world.check(world.job(commit, "workflow_dispatch", {}), mode="update-baseline")
    assert done.code == 2
    assert "reason" in done.log


def workflow_run(head: str, *, repo: str | None = "mallory/kernels", **changes: Any) -> dict[str, Any]:
    run = {
        "id": 20,
        "run_attempt": 1,
        "event": "pull_request",
        "conclusion": "failure",
        "head_sha": head,
        "head_branch": "topic",
        "head_repository": None if repo is None else {"full_name": repo},
        "html_url": "https://evil.example/](x)",
        "pull_requests": [],
    }
    return {"workflow_run": run | changes}


def comment_job(world: World, artifact: Path | None, changed: Mapping[str, str | None] | None = None) -> Job:
    """The job that comments on what a fork's run measured: main checked out, the artifact beside it."""
    start = world.served.commit({"baselines/h200.json": BASELINE})
    head = world.served.commit({"kernel.cu": "// x", **(changed or {})}, branch="topic", start=start)
    world.served.merge(7, head)
    world.github.add_pull(7, sha=head, head="mallory:topic", repo="mallory/kernels")
    job = world.job(start, "workflow_run", workflow_run(head))
    if artifact is not None:
        (job.workspace / "perfgate-results").mkdir()
        (job.workspace / "perfgate-results/run.json").write_bytes(artifact.read_bytes())
    return job


def tell(job: Job, **inputs: str) -> Finished:
    return job.use(mode="comment", python=PREPARED, **{"baseline": "baselines", **inputs})


def test_comment__judges_a_forks_numbers_again_and_posts(world: World) -> None:
    done = tell(comment_job(world, world.slow))
    assert (done.code, done.verdict, done.outputs["exit-code"]) == (0, "regressed", "1"), done.log
    (body,) = world.github.bodies()
    assert "### perfgate: regressed" in body
    assert "evil.example" not in body
    (run,) = world.github.check_runs.values()
    assert (run["conclusion"], run["head_sha"]) == ("failure", world.github.pulls[0]["sha"])


def test_comment__a_fork_cannot_loosen_its_gate(world: World) -> None:
    changed = {"baselines/h200.json": baseline_text(9, 1.2), "perfgate.toml": '[margins]\n"*" = "50%"\n'}
    done = tell(comment_job(world, world.slow, changed))
    assert done.verdict == "regressed", done.log
    assert "edits the baseline h200.json" in world.github.bodies()[0]
    assert "edits the policy" in world.github.bodies()[0]


def test_comment__a_fork_that_changes_nothing_of_the_gate_is_told_so_nowhere(world: World) -> None:
    tell(comment_job(world, world.same))
    assert "This change" not in world.github.bodies()[0]


def test_comment__a_gate_that_left_no_numbers_failed(world: World) -> None:
    done = tell(comment_job(world, None))
    assert (done.code, done.verdict) == (5, "error"), done.log
    assert [run["conclusion"] for run in world.github.check_runs.values()] == ["failure"]
    assert world.github.comments == {}


@pytest.mark.parametrize(
    "change",
    [
        {"conclusion": "cancelled"},
        {"event": "push"},
        {"event": "schedule"},
        {"head_sha": "e" * 40},
        {"head_repository": None},
    ],
    ids=str,
)
def test_comment__tells_nothing_where_there_is_nothing_to_tell(world: World, change: dict[str, Any]) -> None:
    job = comment_job(world, None)
    job.payload = {"workflow_run": job.payload["workflow_run"] | change}
    done = tell(job)
    assert (done.code, done.verdict) == (0, "none"), done.log
    assert world.github.comments == {}
    assert world.github.check_runs == {}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[" * 100_000, '{"format": "perfgate.report/1"}', "\x00" * 1000, "9" * 100_000],
    ids=["empty", "no run", "deep", "a report", "binary", "number"],
)
def test_comment__a_malformed_artifact_is_refused(world: World, text: str) -> None:
    job = comment_job(world, world.same)
    (job.workspace / "perfgate-results/run.json").write_text(text)
    done = tell(job)
    assert (done.code, done.verdict) == (3, "error"), done.log
    assert [run["conclusion"] for run in world.github.check_runs.values()] == ["failure"]


def test_comment__a_link_in_the_artifact_is_not_followed(world: World) -> None:
    job = comment_job(world, world.same)
    run = job.workspace / "perfgate-results/run.json"
    run.unlink()
    run.symlink_to(world.same)
    assert tell(job).verdict == "error"


def test_comment__an_oversized_artifact_is_refused(world: World) -> None:
    job = comment_job(world, world.same)
    with (job.workspace / "perfgate-results/run.json").open("r+b") as stream:
        stream.truncate(65 * 10**6)
    done = tell(job)
    assert (done.code, done.verdict) == (3, "error"), done.log[-2000:]


def test_comment__names_in_the_artifact_are_shown_as_text_only(world: World) -> None:
    hostile = "GPU x|y`<b>@octo #1 [a](http://e.example)\n::error::e\n##[add-mask]a"
    run = make_run({COPY: normal_medians(1, 6, median_s=2.03e-3)}, gpu=replace(H200, name=hostile))
    path = world.folder / "hostile.json"
    write_run(path, run)
    done = tell(comment_job(world, path))
    (body,) = world.github.bodies()
    for text in (body, done.summary):
        assert "<b>" not in text
        assert "@octo" not in text
        assert "](http" not in text
    assert [kind for kind, _ in done.annotations if kind not in ("error", "notice", "warning")] == []


def test_comment__several_gpus_share_one_comment(world: World) -> None:
    job = comment_job(world, None)
    for name, run in (("h200", world.same), ("a100", world.slow)):
        place = job.workspace / "perfgate-results" / name
        place.mkdir(parents=True)
        (place / "run.json").write_bytes(run.read_bytes())
    done = tell(job)
    assert done.verdict == "regressed", done.log
    (body,) = world.github.bodies()
    assert "regressed in 1 of 2 checks" in body


def test_comment__fails_where_it_cannot_tell(world: World) -> None:
    world.github.is_read_only = True
    done = tell(comment_job(world, world.slow))
    assert (done.code, done.verdict) == (7, "regressed"), done.log
    assert "### perfgate: regressed" in done.summary


def test_comment__needs_github(world: World) -> None:
    world.github.rules.append(Rule(status=401, body={"message": "Bad credentials"}, times=99))
    done = tell(comment_job(world, world.slow))
    assert (done.code, done.verdict) == (7, "error"), done.log


def test_comment__goes_to_an_enterprise_server(world: World) -> None:
    other = FakeGitHub(prefix="/api/v3")
    try:
        job = comment_job(world, world.slow)
        other.pulls = world.github.pulls
        job.api_url, job.graphql_url = other.url, other.graphql_url
        assert tell(job).code == 0
        assert len(other.comments) == 1
        assert world.github.seen == []
    finally:
        other.close()
    assert other.violations == []


def test_check__an_edited_suite_is_announced(world: World) -> None:
    base = {"baselines/h200.json": BASELINE, "perf/kernels.py": "def suite(gpu): return []\n"}
    job = world.pull_job({"perf/kernels.py": "def suite(gpu): return [ ]\n"}, base=base)
    world.check(job, suite="default perf/kernels.py", against="none")
    assert "edits the suite kernels.py" in world.github.bodies()[0]


def test_publish__never_loads_a_suite_of_the_change(world: World) -> None:
    trap = "raise SystemExit('loaded beside the token')\n"
    job = world.pull_job({"perf/kernels.py": trap})
    done = world.check(job, world.slow, suite="perf/kernels.py", against="none")
    assert done.verdict == "regressed", done.log
    assert "loaded beside the token" not in done.log


def test_check__a_regression_that_stays_is_not_absorbed(world: World) -> None:
    job = world.pull_job({})
    assert [world.check(job, world.slow).verdict for _ in range(3)] == ["regressed"] * 3


def test_check__measures_the_suites_of_the_bases_policy(world: World) -> None:
    suite = "def suite(gpu): return []\n"
    base = {
        "baselines/h200.json": BASELINE,
        "perfgate.toml": 'suites = ["perf/kernels.py"]\n',
        "perf/kernels.py": suite,
    }
    job = world.pull_job({"perf/kernels.py": suite + "# x\n", "perfgate.toml": "suites = []\n"}, base=base)
    world.check(job, against="none")
    (body,) = world.github.bodies()
    assert "edits the suite kernels.py" in body
    assert "edits the policy" in body
