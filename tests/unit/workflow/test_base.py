import base64
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from perfgate.errors import ConfigurationError, DocumentError
from perfgate.github.event import Event, EventKind, PullRequest
from perfgate.storage.git import open_repository
from perfgate.workflow.base import Places, base_of_event, base_of_pull, base_of_ref, laid_out
from perfgate.workflow.proposed import proposed_change
from tests.action_world import BASELINE, baseline_text
from tests.git_repository import ServedRepository, git

FILES = {"baselines/a.json": "base", "perfgate.toml": 'alpha = "2%"\n'}


@pytest.fixture
def served(tmp_path: Path) -> ServedRepository:
    return ServedRepository(tmp_path / "server")


def event_of(kind: EventKind, **fields: object) -> Event:
    return Event(name=str(kind), kind=kind, repository="octo/kernels", **fields)  # type: ignore[arg-type]


def pull_event(head: str) -> Event:
    pull = PullRequest(number=7, head_sha=head, head_repository="octo/kernels", base_ref="main")
    return event_of(EventKind.PULL_REQUEST, pull=pull)


def places(folder: Path, **changes: object) -> Places:
    return Places(**({"working": folder, "baseline": None, "policy": None} | changes))  # type: ignore[arg-type]


def test_base_of_event__of_a_merge_is_its_first_parent(served: ServedRepository, tmp_path: Path) -> None:
    base = served.commit(FILES)
    head = served.commit({"x": "y"}, branch="topic", start=base)
    later = served.commit({"z": "z"})
    merge = served.merge(7, head)
    here = served.checked_out(tmp_path / "here", merge)
    assert base_of_event(here, pull_event(head), "file:///nonexistent").commit == later


def test_base_of_event__a_merge_of_another_head_does_not_count(served: ServedRepository, tmp_path: Path) -> None:
    base = served.commit(FILES)
    head = served.commit({"x": "y"}, branch="topic", start=base)
    # The change's own merge commit, whose first parent it chose itself.
    own = served.merge(7, head)
    here = served.checked_out(tmp_path / "here", own)
    found = base_of_event(here, pull_event("e" * 40), f"file://{served.path}")
    assert found.commit == base
    assert "newest commit of main" in found.reason


def test_base_of_event__is_fetched_from_the_repository_and_not_from_origin(
    served: ServedRepository, tmp_path: Path
) -> None:
    base = served.commit(FILES)
    fork = ServedRepository(tmp_path / "fork", "mallory/kernels")
    head = fork.commit({"baselines/a.json": "planted"})
    here = fork.checked_out(tmp_path / "here", head)
    assert base_of_event(here, pull_event(head), f"file://{served.path}").commit == base


def test_base_of_event__without_a_checkout_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no git repository"):
        base_of_event(tmp_path, pull_event("a" * 40), "file:///nonexistent")
    git(tmp_path, "init", "--quiet")
    with pytest.raises(ConfigurationError, match="no commit checked out"):
        base_of_event(tmp_path, pull_event("a" * 40), "file:///nonexistent")


def test_base_of_event__a_rewritten_push_fails_closed(served: ServedRepository, tmp_path: Path) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    event = event_of(EventKind.PUSH, before_sha="e" * 40)
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        base_of_event(here, event, f"file://{served.path}")


def test_base_of_event__a_branch_named_like_an_option_is_no_option(served: ServedRepository, tmp_path: Path) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    pull = PullRequest(number=7, head_sha="e" * 40, head_repository="octo/kernels", base_ref="--upload-pack=touch x")
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        base_of_event(here, event_of(EventKind.PULL_REQUEST, pull=pull), f"file://{served.path}")
    assert not (here / "x").exists()


def test_base_of_pull__takes_githubs_merge_where_it_is_of_this_head(served: ServedRepository, tmp_path: Path) -> None:
    base = served.commit(FILES)
    head = served.commit({"x": "y"}, branch="topic", start=base)
    merge = served.merge(7, head)
    here = served.checked_out(tmp_path / "here", base)
    pull = PullRequest(number=7, head_sha=head, head_repository=None, base_ref="main")
    found, merged = base_of_pull(here, pull, f"file://{served.path}", None)
    assert (found.commit, merged) == (base, merge)
    moved = PullRequest(number=7, head_sha="e" * 40, head_repository=None, base_ref="main")
    found, merged = base_of_pull(here, moved, f"file://{served.path}", None)
    assert (found.commit, merged) == (base, None)


def test_laid_out__reads_the_commit_and_not_the_files(served: ServedRepository, tmp_path: Path) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    (here / "baselines/a.json").write_text("changed")
    (here / "baselines/b.json").write_text("added")
    (here / "perfgate.toml").write_text("")
    with laid_out(base_of_ref(here, "HEAD"), places(here)) as layout:
        assert [path.read_text() for path in layout.baseline.iterdir()] == ["base"]
        assert layout.effective_policy().alpha == 0.02
        assert layout.is_versioned
        place = layout.baseline
    assert not place.exists()


def test_laid_out__links_in_the_way_change_nothing(served: ServedRepository, tmp_path: Path) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (here / "baselines/a.json").unlink()
    (here / "baselines").rmdir()
    (here / "baselines").symlink_to(elsewhere)
    with laid_out(base_of_ref(here, "HEAD"), places(here)) as layout:
        assert layout.is_versioned
        assert [path.name for path in layout.baseline.iterdir()] == ["a.json"]


@pytest.mark.parametrize("name", ["baselines", "./baselines", "x/../baselines", "baselines/a.json"])
def test_laid_out__a_path_may_be_written_in_any_way(served: ServedRepository, tmp_path: Path, name: str) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    with laid_out(base_of_ref(here, "HEAD"), places(here, baseline=Path(name))) as layout:
        assert layout.is_versioned
        assert layout.baseline.exists()


def test_laid_out__baselines_outside_the_repository_are_taken_as_they_are(
    served: ServedRepository, tmp_path: Path
) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    outside = tmp_path / "outside"
    outside.mkdir()
    with laid_out(base_of_ref(here, "HEAD"), places(here, baseline=outside)) as layout:
        assert (layout.baseline, layout.is_versioned) == (outside, False)


def test_laid_out__a_baseline_that_is_a_link_is_refused(served: ServedRepository, tmp_path: Path) -> None:
    served.commit(FILES)
    link = served.server / "work/baselines/b.json"
    link.symlink_to("/etc/hostname")
    here = served.checked_out(tmp_path / "here", served.commit({}))
    with pytest.raises(DocumentError, match="symbolic link"), laid_out(base_of_ref(here, "HEAD"), places(here)):
        pass


def test_laid_out__a_base_without_baselines_has_none(served: ServedRepository, tmp_path: Path) -> None:
    here = served.checked_out(tmp_path / "here", served.commit({"baselines/README.md": "soon"}))
    (here / "baselines/x.json").write_text(BASELINE)
    with laid_out(base_of_ref(here, "HEAD"), places(here)) as layout:
        assert not layout.has_baseline()


def test_proposed_change__names_each_edit(served: ServedRepository, tmp_path: Path) -> None:
    base = served.commit({"baselines/a.json": BASELINE, "suite.py": "1", "baselines/README.md": "x"})
    edits = {"baselines/a.json": baseline_text(9, 1.2), "suite.py": "2", "baselines/README.md": "y"}
    head = served.commit({**edits, "perfgate.toml": 'alpha = "5%"\n'})
    here = served.checked_out(tmp_path / "here", head)
    found = proposed_change(base_of_ref(here, base), places(here, suites=(Path("suite.py"),)), head)
    assert [sentence.split(":")[0] for sentence in found.sentences] == [
        "This change edits the baseline a.json",
        "This change edits the policy",
        "This change edits the suite suite.py",
    ]
    assert "| alpha | 0.01 | 0.05 |" in found.markdown
    assert "+20.0" in found.markdown
    assert not found.is_broken


def test_proposed_change__of_nothing_is_nothing(served: ServedRepository, tmp_path: Path) -> None:
    base = served.commit({"baselines/a.json": BASELINE})
    head = served.commit({"kernel.cu": "x"})
    here = served.checked_out(tmp_path / "here", head)
    for other in (base, head, None):
        found = proposed_change(base_of_ref(here, base), places(here), other)
        assert (found.sentences, found.markdown, found.is_broken) == ((), "", False)


@pytest.mark.parametrize(
    "edits",
    [
        {"baselines/a.json": "{"},
        {"baselines/b.json": "\x00"},
        {"perfgate.toml": "alpha = 5"},
        {"perfgate.toml": "= ="},
        {"perfgate.toml": 'alpha = "1%"\n', "pyproject.toml": '[tool.perfgate]\nalpha = "1%"\n'},
    ],
    ids=str,
)
def test_proposed_change__what_could_not_be_read_back_is_broken(
    served: ServedRepository, tmp_path: Path, edits: dict[str, str]
) -> None:
    base = served.commit({"baselines/a.json": BASELINE})
    head = served.commit(edits)
    here = served.checked_out(tmp_path / "here", head)
    assert proposed_change(base_of_ref(here, base), places(here), head).is_broken


def test_repository__the_fetching_token_is_on_no_command_line(
    served: ServedRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = served.commit(FILES)
    here = served.checked_out(tmp_path / "here", base)
    log, wrapper = tmp_path / "log", tmp_path / "bin/git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:/usr/bin:/bin")
    assert open_repository(here).fetched(f"file://{served.path}", "main", "ghs_secret") == base
    assert "ghs_secret" not in log.read_text()
    assert "fetch" in log.read_text()


def test_repository__the_token_replaces_the_header_that_the_checkout_left(
    served: ServedRepository, tmp_path: Path
) -> None:
    here = served.checked_out(tmp_path / "here", served.commit(FILES))
    seen: list[list[str]] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get_all("Authorization") or [])
            self.send_response(404)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        git(here, "config", f"http.{address}/.extraheader", "AUTHORIZATION: basic b2xk")
        try:
            with pytest.raises(ConfigurationError, match="cannot be fetched") as caught:
                open_repository(here).fetched(f"{address}/octo/kernels", "main", "ghs_secret")
        finally:
            server.shutdown()
            thread.join()
    assert seen[0] == [f"basic {base64.b64encode(b'x-access-token:ghs_secret').decode()}"]
    assert "ghs_secret" not in caught.value.message
