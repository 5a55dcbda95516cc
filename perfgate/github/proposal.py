"""A pull request that changes files: a branch of its own on top of a commit, never a push to another branch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfgate.errors import PublishError
from perfgate.github.api import Api, ForbiddenError, RejectedError

_SETTING = (
    "Settings > Actions > General > Workflow permissions > Allow GitHub Actions to create and approve pull requests"
)
# GitHub's bound of a pull request's body.
MAX_BODY_CHARACTERS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What is proposed.

    Attributes:
        branch: made or moved; must be perfgate's own.
        base_ref: branch that it is proposed to.
        parent_sha, tree_sha: the commit that it starts from, and that commit's tree.
        files: new contents by path.
        title, body: of the pull request; the title is also the commit's message.
    """

    branch: str
    base_ref: str
    parent_sha: str
    tree_sha: str
    files: Mapping[str, str]
    title: str
    body: str


def post_proposal(api: Api, proposal: Proposal) -> str:
    """Commit the files to the branch and open a pull request for it, or update the open one; return its address.

    Raises:
        ForbiddenError: the token may not; names the permissions and the setting.
        PublishError: it could not be delivered.
    """
    try:
        commit = _commit(api, proposal)
        _point_branch(api, proposal.branch, commit)
    except ForbiddenError as error:
        raise ForbiddenError(error.message, hint="give the job the permission contents: write") from None
    owner = api.repository.partition("/")[0]
    query = {"head": f"{owner}:{proposal.branch}", "base": proposal.base_ref, "state": "open"}
    content: dict[str, Any] = {"title": proposal.title, "body": proposal.body[:MAX_BODY_CHARACTERS]}
    opened = next(iter(api.fetch_pages("/pulls", **query)), None)
    try:
        if opened is not None:
            return str(api.patch(f"/pulls/{opened['number']}", content)["html_url"])
        wanted = {**content, "head": proposal.branch, "base": proposal.base_ref, "maintainer_can_modify": False}
        return str(api.post("/pulls", wanted)["html_url"])
    except ForbiddenError as error:
        raise ForbiddenError(
            f"the branch {proposal.branch} is pushed, but its pull request cannot be opened: {error.message}",
            hint=f"give the job the permission pull-requests: write, and turn on {_SETTING}",
        ) from None


def _commit(api: Api, proposal: Proposal) -> str:
    entries = [
        {"path": path, "mode": "100644", "type": "blob", "content": text} for path, text in proposal.files.items()
    ]
    tree = api.post("/git/trees", {"base_tree": proposal.tree_sha, "tree": entries})
    commit = {"message": proposal.title, "tree": tree["sha"], "parents": [proposal.parent_sha]}
    return str(api.post("/git/commits", commit)["sha"])


def _point_branch(api: Api, branch: str, commit: str) -> None:
    if not branch.startswith("perfgate/"):
        raise PublishError(f"{branch} is not perfgate's own branch: not touched")
    try:
        api.post("/git/refs", {"ref": f"refs/heads/{branch}", "sha": commit})
    except RejectedError as error:
        if "already exists" not in error.message:
            raise
        api.patch(f"/git/refs/heads/{branch}", {"sha": commit, "force": True})
