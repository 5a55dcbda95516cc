"""Cut GitHub's OpenAPI description down to what perfgate calls: tests/data/github/api.json.

Usage: prune_github_api.py package/generated/api.github.com.json (of the npm package @octokit/openapi, MIT).
"""

import json
import sys
from pathlib import Path
from typing import Any

_REPO = "/repos/{owner}/{repo}"
KEPT: dict[str, tuple[str, ...]] = {
    f"{_REPO}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_REPO}/issues/comments/{{comment_id}}": ("patch", "delete"),
    f"{_REPO}/issues/{{issue_number}}/labels": ("get",),
    f"{_REPO}/issues/{{issue_number}}/events": ("get",),
    f"{_REPO}/collaborators/{{username}}/permission": ("get",),
    f"{_REPO}/check-runs": ("post",),
    f"{_REPO}/check-runs/{{check_run_id}}": ("patch",),
    f"{_REPO}/commits/{{ref}}/check-runs": ("get",),
    f"{_REPO}/pulls": ("get", "post"),
    f"{_REPO}/pulls/{{pull_number}}": ("get", "patch"),
    f"{_REPO}/git/trees": ("post",),
    f"{_REPO}/git/commits": ("post",),
    f"{_REPO}/git/refs": ("post",),
    f"{_REPO}/git/refs/{{ref}}": ("patch",),
}
_DROPPED = frozenset({"example", "examples", "description", "summary", "externalDocs", "tags", "operationId", "links"})


def pruned(document: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the kept operations, with the components that they use."""
    paths = {
        path: {
            **({"parameters": item["parameters"]} if "parameters" in item else {}),
            **{method: _operation(item[method]) for method in methods},
        }
        for path, methods in KEPT.items()
        for item in (document["paths"][path],)
    }
    paths = _without_prose(paths)
    components: dict[str, dict[str, Any]] = {}
    open_references = _references(paths)
    while open_references:
        kind, name = open_references.pop()
        if name in components.setdefault(kind, {}):
            continue
        components[kind][name] = _without_prose(document["components"][kind][name])
        open_references |= _references(components[kind][name])
    return {
        "openapi": document["openapi"],
        "info": {"title": "GitHub, as far as perfgate calls it", "version": document["info"]["version"]},
        "servers": [{"url": "https://api.github.com"}],
        "paths": paths,
        "components": {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())},
    }


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in operation.items() if key in ("parameters", "requestBody")}
    kept["responses"] = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
    return kept


def _without_prose(value: Any, *, is_named: bool = False) -> Any:
    """Drop what no validator reads; below ``properties`` every key is a name."""
    if isinstance(value, list):
        return [_without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_prose(item, is_named=key == "properties" and not is_named)
        for key, item in value.items()
        if is_named or not (key in _DROPPED or key.startswith("x-"))
    }


def _references(value: Any) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            _, _, kind, name = target.split("/")
            found.add((kind, name))
        for item in value.values():
            found |= _references(item)
    elif isinstance(value, list):
        for item in value:
            found |= _references(item)
    return found


if __name__ == "__main__":
    source, target = Path(sys.argv[1]), Path(__file__).resolve().parent.parent / "tests/data/github/api.json"
    text = json.dumps(pruned(json.loads(source.read_text(encoding="utf-8"))), separators=(",", ":"), sort_keys=True)
    target.write_text(text + "\n", encoding="utf-8")
