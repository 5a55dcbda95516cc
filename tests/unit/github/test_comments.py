from collections.abc import Callable

import pytest

from perfgate.github.api import Api, ForbiddenError, RejectedError, UnreachableError
from perfgate.github.comments import Posted, RunId, marker, post_comment
from tests.fake_github import FakeGitHub, Rule

Opened = Callable[..., Api]
HUMAN = {"login": "mallory", "id": 666, "type": "User"}
OTHER_BOT = {"login": "chatter[bot]", "id": 667, "type": "Bot"}


def body_of(text: str, *, name: str = "perfgate", run: int = 1, attempt: int = 1) -> str:
    return f"{marker(name)}\n<!-- perfgate-run id={run} attempt={attempt} -->\n{text}"


def post(api: Api, *bodies: str, name: str = "perfgate", run: int = 10, attempt: int = 1, **options: bool) -> Posted:
    return post_comment(api, 7, name=name, run=RunId(id=run, attempt=attempt), bodies=bodies, **options)


def test_post_comment__creates_then_updates_one(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    assert post(api, "first") is Posted.CREATED
    assert post(api, "second", run=11) is Posted.UPDATED
    assert github.bodies() == [body_of("second", run=11)]


def test_post_comment__finds_its_own_on_the_last_page(github: FakeGitHub, open_api: Opened) -> None:
    for number in range(250):
        github.add_comment(f"talk {number}", user=HUMAN)
    own = github.add_comment(body_of("old"))
    assert post(open_api(github), "new") is Posted.UPDATED
    assert github.comments[own]["body"].endswith("new")
    assert len(github.comments) == 251


@pytest.mark.parametrize("user", [HUMAN, OTHER_BOT, {**HUMAN, "login": "github-actions"}, {}])
def test_post_comment__leaves_a_marker_that_another_account_wrote(
    github: FakeGitHub, open_api: Opened, user: dict[str, object]
) -> None:
    foreign = github.add_comment(body_of("planted"), user=user)
    assert post(open_api(github), "ours") is Posted.CREATED
    assert github.comments[foreign]["body"] == body_of("planted")


def test_post_comment__a_marker_within_a_text_is_no_marker(github: FakeGitHub, open_api: Opened) -> None:
    github.add_comment(f"> quoted\n{body_of('old')}")
    assert post(open_api(github), "ours") is Posted.CREATED


def test_post_comment__removes_own_duplicates_and_keeps_the_oldest(github: FakeGitHub, open_api: Opened) -> None:
    first = github.add_comment(body_of("one"))
    github.add_comment(body_of("planted"), user=HUMAN)
    github.add_comment(body_of("two"))
    assert post(open_api(github), "three") is Posted.UPDATED
    own = [number for number, one in github.comments.items() if one["user"]["type"] == "Bot"]
    assert own == [first]


def test_post_comment__a_duplicate_that_somebody_removed_is_no_trouble(github: FakeGitHub, open_api: Opened) -> None:
    github.add_comment(body_of("one"))
    github.add_comment(body_of("two"))
    github.rules.append(Rule(method="DELETE", status=404, body={"message": "Not Found"}))
    assert post(open_api(github), "three") is Posted.UPDATED


def test_post_comment__does_not_touch_an_unchanged_one(github: FakeGitHub, open_api: Opened) -> None:
    github.add_comment(body_of("same\r\ntext  \r\n", run=9))
    assert post(open_api(github), "same\ntext") is Posted.UNCHANGED
    assert github.calls("PATCH") == []


@pytest.mark.parametrize(("run", "attempt"), [(11, 1), (10, 2)])
def test_post_comment__never_replaces_a_newer_runs(
    github: FakeGitHub, open_api: Opened, run: int, attempt: int
) -> None:
    github.add_comment(body_of("newer", run=run, attempt=attempt))
    assert post(open_api(github), "older") is Posted.OUTDATED
    assert github.bodies() == [body_of("newer", run=run, attempt=attempt)]


def test_post_comment__a_state_that_another_account_wrote_does_not_block(github: FakeGitHub, open_api: Opened) -> None:
    github.add_comment(body_of("planted", run=10**19), user=HUMAN)
    assert post(open_api(github), "ours") is Posted.CREATED


def test_post_comment__names_keep_matrix_legs_apart(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    for name in ("H200", "A100", "H200 --> <b>"):
        post(api, f"of {name}", name=name)
    post(api, "again", name="A100", run=11)
    assert [one.splitlines()[-1] for one in github.bodies()] == ["of H200", "again", "of H200 --> <b>"]


@pytest.mark.parametrize("name", ["-->", "--!>", "a--b", "<!--", "\n", "über", "%2D"])
def test_marker__no_name_ends_the_hidden_line(name: str) -> None:
    text = marker(name)
    inside = text.removeprefix("<!-- ").removesuffix(" -->")
    assert "--" not in inside
    assert ">" not in inside
    assert "\n" not in text


def test_post_comment__takes_a_shorter_body_where_one_is_too_long(github: FakeGitHub, open_api: Opened) -> None:
    github.max_comment_bytes = 1000
    assert post(open_api(github), "🚀" * 75_000, "x" * 5000, "short") is Posted.CREATED
    assert github.bodies() == [body_of("short", run=10)]
    assert all(one.body["body"].startswith(marker("perfgate")) for one in github.calls("POST"))


def test_post_comment__an_update_is_shortened_too(github: FakeGitHub, open_api: Opened) -> None:
    github.add_comment(body_of("old"))
    github.max_comment_bytes = 1000
    assert post(open_api(github), "x" * 5000, "short") is Posted.UPDATED
    assert github.bodies() == [body_of("short", run=10)]


def test_post_comment__says_so_where_even_the_shortest_is_refused(github: FakeGitHub, open_api: Opened) -> None:
    github.max_comment_bytes = 10
    with pytest.raises(RejectedError, match="too long"):
        post(open_api(github), "long", "shorter")


def test_post_comment__after_a_dropped_answer_looks_before_it_posts_again(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(method="POST", path=".*/comments", drops=True, after=True))
    assert post(open_api(github), "text") is Posted.CREATED
    assert len(github.comments) == 1


def test_post_comment__posts_again_what_did_not_arrive(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(method="POST", path=".*/comments", status=502))
    assert post(open_api(github), "text") is Posted.CREATED
    assert len(github.comments) == 1


def test_post_comment__only_update_posts_no_new_one(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    assert post(api, "text", only_update=True) is Posted.UNCHANGED
    assert github.comments == {}
    github.add_comment(body_of("old"))
    assert post(api, "text", only_update=True) is Posted.UPDATED


def test_post_comment__a_persons_token_edits_that_persons_comment(github: FakeGitHub, open_api: Opened) -> None:
    github.login = "maria"
    github.add_comment(body_of("old"), user={"login": "maria", "id": 5, "type": "User"})
    api = open_api(github)
    api.is_installation = False
    assert post(api, "new") is Posted.UPDATED


def test_post_comment__an_apps_token_edits_the_apps_comment(github: FakeGitHub, open_api: Opened) -> None:
    github.login = "acme-ci"
    github.add_comment(body_of("planted"), user={"login": "acme-ci", "id": 6, "type": "User"})
    own = github.add_comment(body_of("old"), user={"login": "acme-ci[bot]", "id": 5, "type": "Bot"})
    assert post(open_api(github), "new") is Posted.UPDATED
    assert github.comments[own]["body"].endswith("new")


def test_post_comment__takes_actions_account_where_github_does_not_say(github: FakeGitHub, open_api: Opened) -> None:
    github.login = None
    github.add_comment(body_of("old"))
    assert post(open_api(github), "new") is Posted.UPDATED


def test_post_comment__a_read_only_token_is_told(github: FakeGitHub, open_api: Opened, waits: list[float]) -> None:
    github.is_read_only = True
    with pytest.raises(ForbiddenError, match="Resource not accessible by integration") as caught:
        post(open_api(github), "text")
    assert "pull-requests: write" in caught.value.hint
    assert waits == []


def test_post_comment__an_outage_is_told(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(status=503, times=99))
    with pytest.raises(UnreachableError):
        post(open_api(github), "text")
