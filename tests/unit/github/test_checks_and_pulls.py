from collections.abc import Callable
from dataclasses import replace

import pytest

from perfgate.errors import PublishError
from perfgate.github.api import Api, ForbiddenError
from perfgate.github.checks import CheckRun, post_check_run
from perfgate.github.event import WorkflowRun
from perfgate.github.proposal import Proposal, post_proposal
from perfgate.github.pulls import fetch_accepter, fetch_pull_of_run
from tests.fake_github import HEAD_SHA, REPOSITORY, FakeGitHub, Rule

Opened = Callable[..., Api]

CHECK = CheckRun(
    name="perfgate",
    head_sha=HEAD_SHA,
    conclusion="failure",
    title="regressed on NVIDIA H200",
    summary="text",
    external_id="perfgate:10:1",
    details_url="https://github.example/run",
)
RUN = WorkflowRun(
    id=10,
    attempt=1,
    event="pull_request",
    conclusion="failure",
    head_sha=HEAD_SHA,
    head_branch="topic",
    head_repository="mallory/kernels",
    url="",
)
PROPOSAL = Proposal(
    branch="perfgate/baseline-nvidia-h200",
    base_ref="main",
    parent_sha="d" * 40,
    tree_sha="e" * 40,
    files={"baselines/nvidia-h200.json": "{}\n"},
    title="Update the baseline of NVIDIA H200",
    body="| case |",
)


def test_post_check_run__posts_on_the_head(github: FakeGitHub, open_api: Opened) -> None:
    post_check_run(open_api(github), CHECK)
    (run,) = github.check_runs.values()
    assert (run["head_sha"], run["conclusion"], run["status"]) == (HEAD_SHA, "failure", "completed")


def test_post_check_run__the_same_result_makes_no_second_one(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    post_check_run(api, CHECK)
    post_check_run(api, replace(CHECK, conclusion="success"))
    post_check_run(api, replace(CHECK, external_id="perfgate:11:1"))
    assert [run["conclusion"] for run in github.check_runs.values()] == ["success", "failure"]


@pytest.mark.parametrize("rule", [Rule(drops=True, after=True), Rule(status=502)], ids=["done", "not done"])
def test_post_check_run__looks_before_it_posts_again(github: FakeGitHub, open_api: Opened, rule: Rule) -> None:
    github.rules.append(replace(rule, method="POST", path=".*/check-runs"))
    post_check_run(open_api(github), CHECK)
    assert len(github.check_runs) == 1


def test_post_check_run__names_and_texts_are_cut_to_githubs_bounds(github: FakeGitHub, open_api: Opened) -> None:
    post_check_run(open_api(github), replace(CHECK, name="ü" * 200, summary="🚀" * 70_000))
    (run,) = github.check_runs.values()
    assert len(run["name"].encode()) <= 255
    assert len(run["output"]["summary"].encode()) <= 65_535


def test_fetch_pull_of_run__finds_a_forks_pull_by_branch_and_head(github: FakeGitHub, open_api: Opened) -> None:
    github.add_pull(8, head="mallory:topic", repo="mallory/kernels")
    github.add_pull(9, head="mallory:topic", repo="mallory/kernels", sha="b" * 40)
    found = fetch_pull_of_run(open_api(github), RUN)
    assert found is not None
    assert found.number == 8
    assert github.seen[0].query["head"] == "mallory:topic"


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, head_sha="c" * 40),
        replace(RUN, head_repository="eve/kernels"),
        replace(RUN, head_repository=None),
        replace(RUN, head_branch=""),
    ],
    ids=["head moved on", "another repository", "deleted fork", "no branch"],
)
def test_fetch_pull_of_run__is_none_where_none_has_that_head(
    github: FakeGitHub, open_api: Opened, run: WorkflowRun
) -> None:
    github.add_pull(8, head="mallory:topic", repo="mallory/kernels")
    assert fetch_pull_of_run(open_api(github), run) is None


def test_fetch_pull_of_run__passes_over_a_pull_of_a_deleted_fork(github: FakeGitHub, open_api: Opened) -> None:
    github.add_pull(8, head="mallory:topic", repo=None)
    assert fetch_pull_of_run(open_api(github), RUN) is None
    # GitHub's description does not know that the repository can be null; GitHub does it.
    github.violations.clear()


@pytest.mark.parametrize("role", ["triage", "write", "maintain", "admin"])
def test_fetch_accepter__is_who_labelled(github: FakeGitHub, open_api: Opened, role: str) -> None:
    github.add_label("perfgate-accepted", by="maria", role=role)
    assert fetch_accepter(open_api(github), 7) == "maria"


@pytest.mark.parametrize(
    ("kind", "role"), [("Bot", "write"), ("User", "read"), ("User", "none"), ("User", None)], ids=str
)
def test_fetch_accepter__is_nobody_who_may_not(
    github: FakeGitHub, open_api: Opened, kind: str, role: str | None
) -> None:
    github.add_label("perfgate-accepted", by="mallory", kind=kind, role=role)
    assert fetch_accepter(open_api(github), 7) is None


def test_fetch_accepter__counts_who_set_it_last(github: FakeGitHub, open_api: Opened) -> None:
    github.add_label("perfgate-accepted", by="maria")
    github.add_label("perfgate-accepted", by="labeler[bot]", kind="Bot")
    assert fetch_accepter(open_api(github), 7) is None


@pytest.mark.parametrize("label", ["perfgate-accepted ", "Perfgate-Accepted", "bug"])
def test_fetch_accepter__another_label_accepts_nothing(github: FakeGitHub, open_api: Opened, label: str) -> None:
    github.add_label(label)
    assert fetch_accepter(open_api(github), 7) is None


def test_fetch_accepter__a_label_that_was_taken_away_accepts_nothing(github: FakeGitHub, open_api: Opened) -> None:
    github.add_label("perfgate-accepted")
    github.labels.clear()
    assert fetch_accepter(open_api(github), 7) is None


def test_post_proposal__opens_a_pull_request_on_its_own_branch(github: FakeGitHub, open_api: Opened) -> None:
    address = post_proposal(open_api(github), PROPOSAL)
    assert address.endswith("/pull/99")
    assert list(github.refs) == ["refs/heads/perfgate/baseline-nvidia-h200"]
    assert github.commits[0]["parents"] == [PROPOSAL.parent_sha]
    assert github.trees[0]["tree"][0]["path"] == "baselines/nvidia-h200.json"


def test_post_proposal__updates_the_open_one(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    post_proposal(api, PROPOSAL)
    post_proposal(api, replace(PROPOSAL, body="again"))
    assert [one["body"] for one in github.pulls if one["number"] == 99] == ["again"]
    assert len(github.pulls) == 2


def test_post_proposal__names_the_setting_that_forbids_it(github: FakeGitHub, open_api: Opened) -> None:
    message = "GitHub Actions is not permitted to create or approve pull requests."
    github.rules.append(Rule(method="POST", path=".*/pulls", status=403, body={"message": message}))
    with pytest.raises(ForbiddenError, match="not permitted") as caught:
        post_proposal(open_api(github), PROPOSAL)
    assert "Allow GitHub Actions to create and approve pull requests" in caught.value.hint


def test_post_proposal__names_the_permission_that_is_missing(github: FakeGitHub, open_api: Opened) -> None:
    github.is_read_only = True
    with pytest.raises(ForbiddenError) as caught:
        post_proposal(open_api(github), PROPOSAL)
    assert "contents: write" in caught.value.hint


@pytest.mark.parametrize("branch", ["main", "release/1", "refs/heads/main"])
def test_post_proposal__touches_no_branch_but_its_own(github: FakeGitHub, open_api: Opened, branch: str) -> None:
    with pytest.raises(PublishError, match="own branch"):
        post_proposal(open_api(github), replace(PROPOSAL, branch=branch))
    assert github.refs == {}
    assert f"/repos/{REPOSITORY}/git/refs" not in [one.path for one in github.seen]
