from collections.abc import Callable

import pytest

from perfgate.errors import ConfigurationError, ExitCode, PublishError
from perfgate.github.api import (
    MAX_TRIES,
    MAX_WAIT_S,
    Api,
    ForbiddenError,
    MissingError,
    RejectedError,
    UncertainError,
    UnreachableError,
)
from tests.fake_github import REPOSITORY, TOKEN, FakeGitHub, Rule

Opened = Callable[..., Api]
COMMENTS = f"/repos/{REPOSITORY}/issues/7/comments"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_fetch__repeats_after_a_server_error(
    github: FakeGitHub, open_api: Opened, waits: list[float], status: int
) -> None:
    github.rules.append(Rule(status=status, times=2))
    assert list(open_api(github).fetch_pages("/issues/7/comments")) == []
    assert waits == [1.0, 2.0]


def test_fetch__repeats_after_a_dropped_connection(github: FakeGitHub, open_api: Opened, waits: list[float]) -> None:
    github.rules.append(Rule(drops=True, times=2))
    assert list(open_api(github).fetch_pages("/issues/7/comments")) == []
    assert waits == [1.0, 2.0]


def test_fetch__gives_up_after_a_bounded_number_of_tries(
    github: FakeGitHub, open_api: Opened, waits: list[float]
) -> None:
    github.rules.append(Rule(status=503, times=100))
    with pytest.raises(UnreachableError, match="answered 503") as caught:
        open_api(github).fetch("/pulls/7")
    assert caught.value.exit_code == ExitCode.PUBLISH
    assert len(github.seen) == MAX_TRIES


@pytest.mark.parametrize(
    ("status", "headers", "message", "expected_s"),
    [
        (403, {"Retry-After": "7"}, "You have exceeded a secondary rate limit", 7.0),
        (429, {"Retry-After": "3"}, "slow down", 3.0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000020"}, "API rate limit exceeded", 21.0),
        (429, {}, "", 60.0),
        (403, {}, "You have exceeded a secondary rate limit", 60.0),
    ],
)
def test_post__waits_as_a_rate_limit_asks(
    github: FakeGitHub,
    open_api: Opened,
    waits: list[float],
    status: int,
    headers: dict[str, str],
    message: str,
    expected_s: float,
) -> None:
    github.rules.append(Rule(status=status, headers=headers, body={"message": message}))
    open_api(github).post("/issues/7/comments", {"body": "x"})
    assert waits == [expected_s]
    assert github.bodies() == ["x"]


def test_fetch__does_not_wait_for_a_limit_that_lasts_an_hour(
    github: FakeGitHub, open_api: Opened, waits: list[float]
) -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1003600"}
    github.rules.append(Rule(status=403, headers=headers, body={"message": "API rate limit exceeded"}))
    with pytest.raises(UnreachableError, match="rate limit"):
        open_api(github).fetch("/pulls/7")
    assert waits == []


def test_api__waits_in_total_no_longer_than_allowed(github: FakeGitHub, open_api: Opened, waits: list[float]) -> None:
    github.rules.append(Rule(status=429, headers={"Retry-After": "100"}, times=100))
    api = open_api(github)
    for _ in range(3):
        with pytest.raises(UnreachableError):
            api.fetch("/pulls/7")
    assert sum(waits) <= MAX_WAIT_S


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Bad credentials", ForbiddenError),
        (403, "Resource not accessible by integration", ForbiddenError),
        (404, "Not Found", MissingError),
        (410, "This issue was deleted", MissingError),
        (422, "Validation Failed", RejectedError),
        (409, "Conflict", PublishError),
        (451, "Repository access blocked", PublishError),
    ],
)
def test_fetch__a_refusal_is_not_repeated(
    github: FakeGitHub, open_api: Opened, waits: list[float], status: int, message: str, kind: type[PublishError]
) -> None:
    github.rules.append(Rule(status=status, body={"message": message}))
    with pytest.raises(kind, match=message):
        open_api(github).fetch("/pulls/7")
    assert (waits, len(github.seen)) == ([], 1)


def test_fetch__a_refusal_in_html_is_told_by_its_status(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(status=403, body="<html>proxy</html>"))
    with pytest.raises(ForbiddenError, match="answered 403"):
        open_api(github).fetch("/pulls/7")


@pytest.mark.parametrize("rule", [Rule(status=502, after=True), Rule(drops=True, after=True)], ids=["502", "dropped"])
def test_post__is_not_repeated_when_it_may_have_been_done(github: FakeGitHub, open_api: Opened, rule: Rule) -> None:
    github.rules.append(rule)
    with pytest.raises(UncertainError):
        open_api(github).post("/issues/7/comments", {"body": "x"})
    assert len(github.calls("POST")) == 1


def test_fetch_pages__follows_all_pages(github: FakeGitHub, open_api: Opened) -> None:
    github.page_size = 30
    for number in range(95):
        github.add_comment(f"comment {number}")
    assert len(list(open_api(github).fetch_pages("/issues/7/comments"))) == 95
    assert [one.query["page"] for one in github.seen] == ["1", "2", "3", "4"]


def test_fetch__follows_a_renamed_repository_on_the_same_host(github: FakeGitHub, open_api: Opened) -> None:
    target = f"{github.url}/repos/{REPOSITORY}/pulls/7"
    github.rules.append(Rule(status=301, headers={"Location": target}, path=".*/pulls/7"))
    assert open_api(github).fetch("/pulls/7")["number"] == 7


def test_post__follows_a_redirect_as_a_post(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(status=307, headers={"Location": f"{github.url}{COMMENTS}"}))
    open_api(github).post("/issues/7/comments", {"body": "x"})
    assert [one.method for one in github.seen] == ["POST", "POST"]


def test_fetch__takes_the_token_to_no_other_host(github: FakeGitHub, open_api: Opened) -> None:
    other = FakeGitHub()
    try:
        github.rules.append(Rule(status=302, headers={"Location": f"{other.url}/repos/{REPOSITORY}/pulls/7"}))
        with pytest.raises(PublishError, match="another host"):
            open_api(github).fetch("/pulls/7")
        assert other.seen == []
    finally:
        other.close()


def test_fetch__gives_up_on_redirects_in_circles(github: FakeGitHub, open_api: Opened) -> None:
    github.rules.append(Rule(status=302, headers={"Location": f"{github.url}/repos/{REPOSITORY}/pulls/7"}, times=9))
    with pytest.raises(PublishError, match="circles"):
        open_api(github).fetch("/pulls/7")


def test_api__all_calls_go_to_an_enterprise_server(waits: list[float]) -> None:
    github = FakeGitHub(prefix="/api/v3")
    github.add_pull()
    try:
        api = Api(
            repository=REPOSITORY, token=TOKEN, url=github.url, graphql_url=github.graphql_url, sleep=waits.append
        )
        assert api.fetch("/pulls/7")["number"] == 7
        assert api.fetch_login() == "github-actions[bot]"
    finally:
        github.close()
    assert github.violations == []


def test_fetch_login__is_unknown_where_github_does_not_say(github: FakeGitHub, open_api: Opened) -> None:
    github.login = None
    assert open_api(github).fetch_login() is None


def test_api__a_netrc_does_not_replace_the_token(
    github: FakeGitHub, open_api: Opened, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    assert open_api(github).fetch("/pulls/7")["number"] == 7


def test_api__the_token_is_in_no_repr_and_no_error(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    shown = [repr(api), repr(vars(api)), str(vars(api))]
    github.rules.append(Rule(status=422, body={"message": "no"}))
    with pytest.raises(RejectedError) as caught:
        api.fetch("/pulls/7")
    shown += [repr(caught.value), str(caught.value), caught.value.hint]
    assert not any(TOKEN in one for one in shown)


@pytest.mark.parametrize("token", ["a b", "x\ny", "tök"])
def test_api__refuses_a_token_that_no_header_takes(github: FakeGitHub, open_api: Opened, token: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_api(github, token=token)
    assert token not in str(caught.value)


def test_api__refuses_an_address_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="no address"):
        Api(repository=REPOSITORY, token=TOKEN, url="api.github.com")


def test_fetch__nobody_listens(waits: list[float]) -> None:
    api = Api(repository=REPOSITORY, token=TOKEN, url="http://127.0.0.1:9", sleep=waits.append)
    with pytest.raises(UnreachableError, match="no answer"):
        api.fetch("/pulls/7")
    assert len(waits) == MAX_TRIES - 1


def test_fetch__a_certificate_authority_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/ca.pem")
    api = Api(repository=REPOSITORY, token=TOKEN, url="https://127.0.0.1:9", sleep=lambda wait_s: None)
    with pytest.raises(UnreachableError, match="certificate"):
        api.fetch("/pulls/7")


def test_fetch__goes_through_the_proxy(github: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", github.origin)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("no_proxy", raising=False)
    api = Api(repository=REPOSITORY, token=TOKEN, url="http://ghe.example/api/v3", sleep=lambda wait_s: None)
    with pytest.raises((MissingError, PublishError)):
        api.fetch("/pulls/7")
    assert github.seen[0].path.endswith("/pulls/7")
    github.violations.clear()


def test_fake_github__refuses_what_github_refuses(github: FakeGitHub, open_api: Opened) -> None:
    api = open_api(github)
    for path, body in (
        ("/issues/7/comments", {"bodi": "x"}),
        ("/issues/7/comments", {"body": "x", "extra": 1}),
        ("/check-runs", {"name": "x", "head_sha": "a" * 40, "conclusion": "fine"}),
        ("/git/refs", {"ref": "refs/heads/x"}),
    ):
        with pytest.raises(PublishError, match="400"):
            api.post(path, body)
    with pytest.raises(PublishError, match="400"):
        api.fetch("/pulls", heads="x")
    assert len(github.violations) == 5
    github.violations.clear()
