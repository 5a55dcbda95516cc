"""The one comment on a pull request: found by its marker and author, changed in place, never over a newer one's."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from perfgate.github.api import Api, MissingError, RejectedError, UncertainError
from perfgate.shims import StrEnum

# What a token of a workflow writes as, where GitHub does not tell.
_ACTIONS_LOGIN = "github-actions[bot]"
_STATE = re.compile(r"<!-- perfgate-run id=(\d{1,20}) attempt=(\d{1,9}) -->")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RunId:
    """Which workflow run a result is of: later ones are larger."""

    id: int
    attempt: int


class Posted(StrEnum):
    """What became of a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    OUTDATED = "outdated"  # a newer run's comment stands there


def marker(name: str) -> str:
    """Return the hidden first line by which a comment is found again; ``name`` tells several apart."""
    # Percent-encoded, hyphens too: nothing can close the HTML comment.
    return f"<!-- perfgate-comment name={quote(name, safe='').replace('-', '%2D')} -->"


def post_comment(
    api: Api, pull: int, *, name: str, run: RunId, bodies: Sequence[str], only_update: bool = False
) -> Posted:
    """Create or update the comment of ``name`` on a pull request, and remove own duplicates of it.

    Args:
        api: GitHub.
        pull: number of the pull request.
        name: which comment.
        run: whose result it is.
        bodies: the Markdown, longest first: where GitHub finds one too long the next is tried.
        only_update: post nothing where no comment stands yet.

    Raises:
        PublishError: it could not be delivered.
    """
    head = f"{marker(name)}\n<!-- perfgate-run id={run.id} attempt={run.attempt} -->\n"
    own = tuple(_own_comments(api, pull, name))
    if own:
        kept, *duplicates = own
        newest = max((_run_of(one["body"]) for one in own), default=RunId(id=0, attempt=0))
        if newest > run:
            return Posted.OUTDATED
        posted = _updated(api, kept, head, bodies)
        for one in duplicates:
            _removed(api, one["id"])
        return posted
    if only_update:
        return Posted.UNCHANGED
    return _created(api, pull, name, head, bodies)


def _created(api: Api, pull: int, name: str, head: str, bodies: Sequence[str]) -> Posted:
    def post(body: str) -> None:
        try:
            api.post(f"/issues/{pull}/comments", {"body": head + body})
        except UncertainError:
            # It may stand there by now: only the list can tell.
            if not any(_own_comments(api, pull, name)):
                api.post(f"/issues/{pull}/comments", {"body": head + body})

    _first_accepted(post, bodies)
    return Posted.CREATED


def _updated(api: Api, comment: Any, head: str, bodies: Sequence[str]) -> Posted:
    if _content(comment["body"]) in map(_content, bodies):
        return Posted.UNCHANGED
    _first_accepted(lambda body: api.patch(f"/issues/comments/{comment['id']}", {"body": head + body}), bodies)
    return Posted.UPDATED


def _first_accepted(send: Callable[[str], object], bodies: Sequence[str]) -> None:
    """Send one body after the other until GitHub takes one."""
    *longer, last = bodies
    for body in longer:
        with contextlib.suppress(RejectedError):
            send(body)
            return
    send(last)


def _removed(api: Api, comment_id: int) -> None:
    try:
        api.delete(f"/issues/comments/{comment_id}")
    except MissingError:
        return  # somebody was faster


def _own_comments(api: Api, pull: int, name: str) -> Iterator[Any]:
    """Yield the comments of this name that this token's account wrote, oldest first: anyone can write a marker."""
    login: str | None = None
    for comment in api.fetch_pages(f"/issues/{pull}/comments"):
        if not (comment.get("body") or "").startswith(marker(name)):
            continue
        login = login or api.fetch_login() or _ACTIONS_LOGIN
        if _is_by(comment.get("user"), login, is_installation=api.is_installation):
            yield comment


def _is_by(user: Any, login: str, *, is_installation: bool) -> bool:
    """Tell whether a user is the account of that login. An app's is a bot: no person's account can be it."""
    if not user:
        return False
    written = str(user["login"])
    if is_installation or login.endswith("[bot]"):
        return user.get("type") == "Bot" and written.removesuffix("[bot]") == login.removesuffix("[bot]")
    return written == login


def _run_of(body: str) -> RunId:
    found = _STATE.search(body)
    return RunId(id=int(found[1]), attempt=int(found[2])) if found else RunId(id=0, attempt=0)


def _content(body: str) -> str:
    """What a reader sees of a body: without the hidden lines, however line ends are stored."""
    lines = [line.rstrip() for line in body.splitlines() if not line.startswith("<!-- perfgate-")]
    return "\n".join(lines).strip()
