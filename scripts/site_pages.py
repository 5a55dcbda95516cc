"""What the site of the documentation has beside docs/: a page of every document's schema; links to the sources.

A hook of mkdocs (mkdocs.yml). In the repository pages link to files beside docs/; on the site these
links lead to the repository.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = "reference/documents.md"
_LINK = re.compile(r"\]\(((?:\.\./)+)([^)#]*)(#[^)]*)?\)")


def on_config(config: Any) -> Any:
    """List every page of a folder that the navigation names with a slash at its end."""
    for entry in config["nav"]:
        for title, place in entry.items():
            if isinstance(place, str) and place.endswith("/"):
                entry[title] = [f"{place}{path.name}" for path in sorted((ROOT / "docs" / place).glob("*.md"))]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the page of the documents."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests read this file without mkdocs

    files.append(File.generated(config, DOCUMENTS, content=documents_page()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links that leave docs/ lead to the repository."""
    del files
    depth = page.file.src_uri.count("/")
    return _LINK.sub(lambda found: f"]({_target(found, depth, config['repo_url'])})", markdown)


def _target(found: re.Match[str], depth: int, repository: str) -> str:
    ups, rest, anchor = found[1].count("../"), found[2], found[3] or ""
    if ups <= depth:
        return f"{found[1]}{rest}{anchor}"
    kind = "tree" if (ROOT / rest).is_dir() else "blob"
    return f"{repository}/{kind}/main/{rest}{anchor}"


def documents_page() -> str:
    """Render a table of the fields of every document, of its published schema."""
    lines = [
        "# Documents",
        "",
        "What perfgate writes and reads, by the [schemas](../../schemas) (JSON Schema 2020-12), in base SI units.",
    ]
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        lines += ["", f"## {path.name.partition('.')[0].capitalize()}", "", _sentence(schema)]
        lines += _table(schema)
        for name, part in sorted(schema.get("$defs", {}).items()):
            if "properties" in part:
                lines += ["", f"### {path.name.partition('.')[0]}: {name}", "", _sentence(part), *_table(part)]
    return "\n".join(lines) + "\n"


def _sentence(schema: dict[str, Any]) -> str:
    return _plain(schema.get("description", schema.get("title", "")))


def _table(schema: dict[str, Any]) -> Iterator[str]:
    needed = set(schema.get("required", ()))
    yield from ("", "| field | type | meaning |", "|---|---|---|")
    for name, field in schema.get("properties", {}).items():
        mark = "" if name in needed else ", optional"
        yield f"| `{name}` | {_type(field)}{mark} | {_plain(field.get('description', ''))} |"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "anyOf" in field or "oneOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field.get("anyOf", field.get("oneOf", ()))))
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"map to {_type(field['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
