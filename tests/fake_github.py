"""A GitHub on this machine: keeps state, checks every request and answer against GitHub's own description.

Faults are scripted: a rule answers, delays or drops the requests that it fits, so many times.
"""

import copy
import functools
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.testing.requests import MockRequest
from openapi_core.testing.responses import MockResponse

API_FILE = Path(__file__).parent / "data/github/api.json"
_HOST = "https://api.example"  # what requests are validated as: the description is read once, ports differ
REPOSITORY = "octo/kernels"
TOKEN = "ghs_0123456789abcdefTOKEN"
BOT = {"login": "github-actions[bot]", "id": 41898282, "type": "Bot"}
HEAD_SHA = "a" * 40
_QUERIES = {
    "comments": {"per_page", "page", "since"},
    "labels": {"per_page", "page"},
    "events": {"per_page", "page"},
    "pulls": {"per_page", "page", "head", "base", "state"},
    "check-runs": {"per_page", "page", "check_name", "status", "filter", "app_id"},
}


@dataclass(kw_only=True)
class Rule:
    """What is done with requests that fit, instead of (or, with ``after``, besides) carrying them out.

    Attributes:
        method, path: regular expressions that must match as a whole.
        times: how often; afterwards the rule is spent.
        status, headers, body: the answer.
        drops: close the connection without an answer.
        after: carry the request out before.
        when: a further condition on the body.
    """

    method: str = ".*"
    path: str = ".*"
    times: int = 1
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    drops: bool = False
    after: bool = False
    when: Callable[[Any], bool] = lambda body: True


@dataclass(kw_only=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class FakeGitHub:
    """The server; ``url`` is its API address. ``prefix`` is ``/api/v3`` on an Enterprise server."""

    def __init__(self, *, prefix: str = "", page_size: int = 100, login: str | None = "github-actions[bot]") -> None:
        self.prefix, self.page_size, self.login = prefix, page_size, login
        self.comments: dict[int, dict[str, Any]] = {}
        self.check_runs: dict[int, dict[str, Any]] = {}
        self.pulls: list[dict[str, Any]] = []
        self.labels: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.roles: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.trees: list[Any] = []
        self.commits: list[Any] = []
        self.rules: list[Rule] = []
        self.seen: list[Seen] = []
        self.violations: list[str] = []
        self.is_read_only = False
        self.max_comment_bytes = 262_144
        self._next_id = 1000
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: object) -> None:
                pass

            def _answer(self) -> None:
                fake._serve(self)

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.url = self.origin + prefix
        self.graphql_url = f"{self.origin}/graphql" if not prefix else f"{self.origin}/api/graphql"
        self._api = _description(prefix)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # What tests put in and read out.

    def add_comment(self, body: str, *, user: Mapping[str, Any] = BOT, pull: int = 7) -> int:
        self._next_id += 1
        self.comments[self._next_id] = {"id": self._next_id, "body": body, "user": dict(user), "pull": pull}
        return self._next_id

    def add_pull(
        self, number: int = 7, *, head: str = "octo:topic", sha: str = HEAD_SHA, repo: str | None = REPOSITORY
    ) -> None:
        self.pulls.append({"number": number, "head": head, "sha": sha, "repo": repo, "base": "main", "state": "open"})

    def add_label(self, name: str, *, by: str = "maria", kind: str = "User", role: str | None = "write") -> None:
        self.labels.append(name)
        self.events.append({"event": "labeled", "label": name, "login": by, "type": kind})
        if role is not None:
            self.roles[by] = role

    def calls(self, method: str, path: str = ".*") -> list[Seen]:
        return [one for one in self.seen if one.method == method and re.fullmatch(path, one.path)]

    def bodies(self) -> list[str]:
        return [one["body"] for one in self.comments.values()]

    # The protocol.

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        data = handler.rfile.read(length)
        parts = urlsplit(handler.path)
        body = json.loads(data) if data else None
        with self._lock:
            path = parts.path.removeprefix(self.prefix) if parts.path.startswith(self.prefix) else parts.path
            query = dict(parse_qsl(parts.query))
            seen = Seen(method=handler.command, path=path, query=query, headers=dict(handler.headers), body=body)
            self.seen.append(seen)
            rule = next((one for one in self.rules if self._fits(one, seen)), None)
            if rule is not None:
                rule.times -= 1
                if rule.after:
                    self._carried_out(seen)
                if rule.drops:
                    handler.close_connection = True
                    return
                status, headers, content = rule.status, dict(rule.headers), rule.body
            else:
                status, headers, content = self._carried_out(seen)
        text = b"" if content is None else json.dumps(content).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json; charset=utf-8")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def _fits(self, rule: Rule, seen: Seen) -> bool:
        return (
            rule.times > 0
            and re.fullmatch(rule.method, seen.method) is not None
            and re.fullmatch(rule.path, seen.path) is not None
            and rule.when(seen.body)
        )

    def _carried_out(self, seen: Seen) -> tuple[int, dict[str, str], Any]:
        if seen.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {}, {"message": "Bad credentials"}
        if seen.path == "/graphql" or seen.path.endswith("/api/graphql"):
            if self.login is None:
                return 200, {}, {"errors": [{"message": "no"}]}
            return 200, {}, {"data": {"viewer": {"login": self.login}}}
        problem = self._problem(seen)
        if problem:
            self.violations.append(problem)
            return 400, {}, {"message": problem}
        if self.is_read_only and seen.method != "GET":
            return 403, {}, {"message": "Resource not accessible by integration"}
        status, headers, content = self._routed(seen)
        if status < 300:
            self._check_answer(seen, status, content)
        return status, headers, content

    def _problem(self, seen: Seen) -> str:
        kind = seen.path.rsplit("/", 1)[-1]
        if unknown := set(seen.query) - _QUERIES.get(kind, set()):
            return f"unknown query {unknown}"
        if int(seen.query.get("per_page", "1")) > 100:
            return "per_page is at most 100"
        if seen.headers.get("X-GitHub-Api-Version") != "2022-11-28":
            return "no API version"
        errors = list(self._api.iter_request_errors(self._request(seen)))
        return "; ".join(f"{seen.method} {seen.path}: {_reason(error)}" for error in errors)

    def _request(self, seen: Seen) -> MockRequest:
        path = seen.path
        if found := re.fullmatch(r"(/repos/[^/]+/[^/]+/git/refs/)(.+)", path):
            path = found[1] + quote(unquote(found[2]), safe="")
        return MockRequest(
            _HOST,
            seen.method.lower(),
            self.prefix + path,
            args=seen.query,
            headers=seen.headers,
            data=json.dumps(seen.body).encode() if seen.body is not None else b"",
            content_type="application/json",
        )

    def _check_answer(self, seen: Seen, status: int, content: Any) -> None:
        answer = MockResponse(
            b"" if content is None else json.dumps(content).encode(),
            status_code=status,
            content_type="application/json",
        )
        errors = list(self._api.iter_response_errors(self._request(seen), answer))
        self.violations += [f"answer to {seen.method} {seen.path}: {_reason(error)}" for error in errors]

    def _routed(self, seen: Seen) -> tuple[int, dict[str, str], Any]:
        for (method, pattern), serve in _ROUTES.items():
            found = re.fullmatch(f"/repos/{REPOSITORY}{pattern}", seen.path)
            if found and method == seen.method:
                return serve(self, seen, *found.groups())
        return 404, {}, {"message": "Not Found"}

    def _page(self, seen: Seen, items: list[Any], key: str | None = None) -> tuple[int, dict[str, str], Any]:
        size = min(int(seen.query.get("per_page", "30")), self.page_size)
        page = int(seen.query.get("page", "1"))
        begin = (page - 1) * size
        headers = {}
        if begin + size < len(items):
            headers["Link"] = f'<{self.url}{seen.path}?page={page + 1}>; rel="next"'
        part = items[begin : begin + size]
        return 200, headers, part if key is None else {"total_count": len(items), key: part}

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id


def _list_comments(fake: FakeGitHub, seen: Seen, pull: str) -> Any:
    shown = [_comment(one) for one in fake.comments.values() if one["pull"] == int(pull)]
    return fake._page(seen, shown)


def _post_comment(fake: FakeGitHub, seen: Seen, pull: str) -> Any:
    if len(seen.body["body"].encode()) > fake.max_comment_bytes:
        return 422, {}, {"message": "Validation Failed", "errors": [{"message": "body is too long"}]}
    number = fake.add_comment(seen.body["body"], user=_self(fake), pull=int(pull))
    return 201, {}, _comment(fake.comments[number])


def _patch_comment(fake: FakeGitHub, seen: Seen, number: str) -> Any:
    if int(number) not in fake.comments:
        return 404, {}, {"message": "Not Found"}
    if len(seen.body["body"].encode()) > fake.max_comment_bytes:
        return 422, {}, {"message": "Validation Failed", "errors": [{"message": "body is too long"}]}
    fake.comments[int(number)]["body"] = seen.body["body"]
    return 200, {}, _comment(fake.comments[int(number)])


def _delete_comment(fake: FakeGitHub, seen: Seen, number: str) -> Any:
    if fake.comments.pop(int(number), None) is None:
        return 404, {}, {"message": "Not Found"}
    return 204, {}, None


def _list_labels(fake: FakeGitHub, seen: Seen, pull: str) -> Any:
    return fake._page(seen, [_sample("/issues/{issue_number}/labels", "get", "200", name=name) for name in fake.labels])


def _list_events(fake: FakeGitHub, seen: Seen, pull: str) -> Any:
    shown = []
    for event in fake.events:
        item = _sample("/issues/{issue_number}/events", "get", "200", event=event["event"])
        item["label"] = {"name": event["label"], "color": "fff"}
        item["actor"] |= {"login": event["login"], "type": event["type"]}
        shown.append(item)
    return fake._page(seen, shown)


def _permission(fake: FakeGitHub, seen: Seen, login: str) -> Any:
    if login not in fake.roles:
        return 404, {}, {"message": "Not Found"}
    role = fake.roles[login]
    legacy = {"triage": "read", "maintain": "write"}.get(role, role)
    path = "/collaborators/{username}/permission"
    return 200, {}, _sample(path, "get", "200", permission=legacy, role_name=role)


def _list_pulls(fake: FakeGitHub, seen: Seen) -> Any:
    wanted = [
        one
        for one in fake.pulls
        if seen.query.get("head", one["head"]) == one["head"] and seen.query.get("state", "open") == one["state"]
    ]
    return fake._page(seen, [_pull(one, "/pulls", "get", "200") for one in wanted])


def _post_pull(fake: FakeGitHub, seen: Seen) -> Any:
    one = {"number": 99, "head": f"octo:{seen.body['head']}", "sha": HEAD_SHA, "repo": REPOSITORY}
    one |= {"base": seen.body["base"], "state": "open", "title": seen.body["title"], "body": seen.body["body"]}
    fake.pulls.append(one)
    return 201, {}, _pull(one, "/pulls", "post", "201")


def _fetch_pull(fake: FakeGitHub, seen: Seen, number: str) -> Any:
    one = next((one for one in fake.pulls if one["number"] == int(number)), None)
    if one is None:
        return 404, {}, {"message": "Not Found"}
    return 200, {}, _pull(one, "/pulls/{pull_number}", "get", "200")


def _patch_pull(fake: FakeGitHub, seen: Seen, number: str) -> Any:
    one = next(one for one in fake.pulls if one["number"] == int(number))
    one |= seen.body
    return 200, {}, _pull(one, "/pulls/{pull_number}", "patch", "200")


def _list_check_runs(fake: FakeGitHub, seen: Seen, ref: str) -> Any:
    name = seen.query.get("check_name")
    runs = [one for one in fake.check_runs.values() if one["head_sha"] == ref and name in (None, one["name"])]
    return fake._page(seen, [_check_run(one, "/commits/{ref}/check-runs", "get", "200") for one in runs], "check_runs")


def _post_check_run(fake: FakeGitHub, seen: Seen) -> Any:
    number = fake.new_id()
    fake.check_runs[number] = {**seen.body, "id": number}
    return 201, {}, _check_run(fake.check_runs[number], "/check-runs", "post", "201")


def _patch_check_run(fake: FakeGitHub, seen: Seen, number: str) -> Any:
    fake.check_runs[int(number)] |= seen.body
    return 200, {}, _check_run(fake.check_runs[int(number)], "/check-runs/{check_run_id}", "patch", "200")


def _post_tree(fake: FakeGitHub, seen: Seen) -> Any:
    fake.trees.append(seen.body)
    return 201, {}, _sample("/git/trees", "post", "201", sha="b" * 40)


def _post_commit(fake: FakeGitHub, seen: Seen) -> Any:
    fake.commits.append(seen.body)
    return 201, {}, _sample("/git/commits", "post", "201", sha="c" * 40)


def _post_ref(fake: FakeGitHub, seen: Seen) -> Any:
    if seen.body["ref"] in fake.refs:
        return 422, {}, {"message": "Reference already exists"}
    fake.refs[seen.body["ref"]] = seen.body["sha"]
    return 201, {}, _sample("/git/refs", "post", "201", ref=seen.body["ref"])


def _patch_ref(fake: FakeGitHub, seen: Seen, name: str) -> Any:
    fake.refs[f"refs/{unquote(name)}"] = seen.body["sha"]
    return 200, {}, _sample("/git/refs/{ref}", "patch", "200", ref=f"refs/{name}")


_ROUTES: dict[tuple[str, str], Callable[..., Any]] = {
    ("GET", r"/issues/(\d+)/comments"): _list_comments,
    ("POST", r"/issues/(\d+)/comments"): _post_comment,
    ("PATCH", r"/issues/comments/(\d+)"): _patch_comment,
    ("DELETE", r"/issues/comments/(\d+)"): _delete_comment,
    ("GET", r"/issues/(\d+)/labels"): _list_labels,
    ("GET", r"/issues/(\d+)/events"): _list_events,
    ("GET", r"/collaborators/([^/]+)/permission"): _permission,
    ("GET", r"/pulls"): _list_pulls,
    ("POST", r"/pulls"): _post_pull,
    ("GET", r"/pulls/(\d+)"): _fetch_pull,
    ("PATCH", r"/pulls/(\d+)"): _patch_pull,
    ("GET", r"/commits/([0-9a-f]+)/check-runs"): _list_check_runs,
    ("POST", r"/check-runs"): _post_check_run,
    ("PATCH", r"/check-runs/(\d+)"): _patch_check_run,
    ("POST", r"/git/trees"): _post_tree,
    ("POST", r"/git/commits"): _post_commit,
    ("POST", r"/git/refs"): _post_ref,
    ("PATCH", r"/git/refs/(.+)"): _patch_ref,
}


def _self(fake: FakeGitHub) -> dict[str, Any]:
    login = fake.login or "github-actions[bot]"
    return {"login": login, "id": 1, "type": "Bot" if login.endswith("[bot]") else "User"}


def _comment(one: Mapping[str, Any]) -> Any:
    item = _sample("/issues/{issue_number}/comments", "post", "201", id=one["id"], body=one["body"])
    if one["user"] == {}:
        item["user"] = None  # a deleted account
    else:
        item["user"] |= one["user"]
    return item


def _pull(one: Mapping[str, Any], path: str, method: str, status: str) -> Any:
    item = _sample(path, method, status, number=one["number"], state=one["state"])
    owner, _, ref = one["head"].partition(":")
    item["head"] |= {"sha": one["sha"], "ref": ref, "label": f"{owner}:{ref}"}
    if one["repo"] is None:
        item["head"]["repo"] = None
    else:
        item["head"]["repo"] = _filled(item["head"]["repo"] or {}, one["repo"])
    item["base"] |= {"ref": one["base"]}
    item["html_url"] = f"https://github.com/{REPOSITORY}/pull/{one['number']}"
    return item


def _filled(repo: dict[str, Any], full_name: str) -> dict[str, Any]:
    return {**_sample_of({"$ref": "#/components/schemas/repository"}), **repo, "full_name": full_name}


def _check_run(one: Mapping[str, Any], path: str, method: str, status: str) -> Any:
    item = _sample(path, method, status)
    item = item if "external_id" in item else _sample("/check-runs", "post", "201")
    kept = {key: one[key] for key in ("id", "name", "head_sha", "status", "conclusion", "external_id") if key in one}
    item |= kept
    item["output"] |= {"title": one["output"]["title"], "summary": one["output"]["summary"]}
    return item


# Samples made from the description: every required field, of the right type.


def _sample(path: str, method: str, status: str, **fields: Any) -> Any:
    operation = _document()["paths"][f"/repos/{{owner}}/{{repo}}{path}"][method]
    schema = operation["responses"][status]["content"]["application/json"]["schema"]
    schema = schema.get("items", schema)
    return {**copy.deepcopy(_sample_of(schema)), **fields}


def _sample_of(schema: Mapping[str, Any]) -> Any:
    return copy.deepcopy(_cached_sample(json.dumps(schema, sort_keys=True)))


@functools.cache
def _cached_sample(text: str) -> Any:
    return _made(json.loads(text))


def _made(schema: Mapping[str, Any], depth: int = 0) -> Any:
    if "$ref" in schema:
        return _made(_document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]], depth)
    if "allOf" in schema:
        parts = [_made(part, depth) for part in schema["allOf"]]
        return {key: value for part in parts for key, value in part.items()} if isinstance(parts[0], dict) else parts[0]
    for kind in ("oneOf", "anyOf"):
        if kind in schema:
            return _made(schema[kind][0], depth)
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object" | None:
            wanted = schema.get("required", ())
            return {name: _made(schema["properties"][name], depth + 1) for name in wanted}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            formats = {"date-time": "2026-11-30T12:00:00Z", "uri": "https://github.com/x", "email": "a@b.example"}
            return formats.get(schema.get("format", ""), "x" * schema.get("minLength", 1))


@functools.cache
def _document() -> dict[str, Any]:
    return json.loads(API_FILE.read_text(encoding="utf-8"))


@functools.cache
def _description(prefix: str) -> OpenAPI:
    document = {**_document(), "servers": [{"url": f"{_HOST}{prefix}"}]}
    return OpenAPI.from_dict(
        document, config=Config(spec_validator_cls=None, additional_properties_default_policy="forbid")
    )


def _reason(error: BaseException) -> str:
    cause = error.__cause__
    inner = getattr(cause, "schema_errors", None) or getattr(error, "schema_errors", None) or ()
    details = "; ".join(f"{'/'.join(map(str, one.absolute_path))}: {one.message[:200]}" for one in inner)
    return f"{type(error).__name__} {error} {details or cause or ''}"
