"""Pull requests: which one a commit belongs to, and who accepted its slowdown."""

from perfgate.github.api import Api, MissingError
from perfgate.github.event import PullRequest, WorkflowRun, parse_pull

ACCEPTED_LABEL = "perfgate-accepted"
# GitHub lets nobody below triage set a label, but a bot can be talked into it (labels by branch name or path).
_MAY_ACCEPT = frozenset({"admin", "maintain", "write", "triage"})


def fetch_pull_of_run(api: Api, run: WorkflowRun) -> PullRequest | None:
    """Find the open pull request whose head a workflow run was of; None where the head has moved on, or is none.

    By branch and commit: a fork's runs name no pull request, and what an artifact says is its writer's claim.

    Raises:
        PublishError: the pull requests could not be fetched.
    """
    if run.head_repository is None or not run.head_branch:
        return None
    owner = run.head_repository.partition("/")[0]
    pulls = api.fetch_pages("/pulls", head=f"{owner}:{run.head_branch}", state="open")
    found = [parse_pull(one) for one in pulls]
    matching = [one for one in found if (one.head_sha, one.head_repository) == (run.head_sha, run.head_repository)]
    return min(matching, key=lambda one: one.number, default=None)


def fetch_accepter(api: Api, pull: int) -> str | None:
    """Return the login of whoever labelled a pull request ``perfgate-accepted``, a person who may; None without one.

    Raises:
        PublishError: labels, events or rights could not be fetched.
    """
    labels = {label["name"] for label in api.fetch_pages(f"/issues/{pull}/labels")}
    if ACCEPTED_LABEL not in labels:
        return None
    actor = None
    for event in api.fetch_pages(f"/issues/{pull}/events"):
        if event.get("event") == "labeled" and (event.get("label") or {}).get("name") == ACCEPTED_LABEL:
            actor = event.get("actor")
    if not actor or actor.get("type") != "User":
        return None
    login = str(actor["login"])
    try:
        rights = api.fetch(f"/collaborators/{login}/permission")
    except MissingError:
        return None
    return login if (rights.get("role_name") or rights.get("permission")) in _MAY_ACCEPT else None
