"""Check runs: the verdict beside a commit, which a ruleset can require."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from perfgate.github.api import Api, UncertainError

# GitHub's bounds: the name's is undocumented, a check run of more than 255 bytes is refused.
_MAX_NAME_BYTES = 255
_MAX_TEXT_BYTES = 65_000

Conclusion = Literal["success", "failure", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """What a check run says.

    Attributes:
        name: shown in the list of checks; what a ruleset names.
        head_sha: commit that it is about.
        conclusion: of the check.
        title: one line; summary: Markdown.
        external_id: what makes posting the same result again no second check run.
        details_url: the workflow run.
    """

    name: str
    head_sha: str
    conclusion: Conclusion
    title: str
    summary: str
    external_id: str
    details_url: str | None = None


def post_check_run(api: Api, check: CheckRun) -> None:
    """Create the completed check run, or update the one of the same result.

    Raises:
        PublishError: it could not be delivered.
    """
    name = _cut(check.name, _MAX_NAME_BYTES)
    body = {
        "name": name,
        "status": "completed",
        "conclusion": check.conclusion,
        "external_id": check.external_id,
        "output": {"title": _cut(check.title, 255), "summary": _cut(check.summary, _MAX_TEXT_BYTES)},
    }
    if check.details_url:
        body["details_url"] = check.details_url
    known = _known(api, name, check)
    if known is None:
        try:
            api.post("/check-runs", {**body, "head_sha": check.head_sha})
        except UncertainError:
            known = _known(api, name, check)
            if known is None:
                api.post("/check-runs", {**body, "head_sha": check.head_sha})
        else:
            return
    if known is not None:
        api.patch(f"/check-runs/{known}", body)


def _known(api: Api, name: str, check: CheckRun) -> int | None:
    """Return the id of the check run that holds this result already."""
    path = f"/commits/{quote(check.head_sha, safe='')}/check-runs"
    runs = api.fetch_pages(path, key="check_runs", check_name=name)
    return next((int(run["id"]) for run in runs if run.get("external_id") == check.external_id), None)


def _cut(text: str, most_bytes: int) -> str:
    data = text.encode("utf-8")
    return text if len(data) <= most_bytes else data[: most_bytes - 3].decode("utf-8", errors="ignore") + "…"
