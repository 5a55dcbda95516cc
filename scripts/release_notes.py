"""Print what CHANGELOG.md says of a release, once tag, pyproject.toml and changelog agree on its version.

Usage: ``python scripts/release_notes.py vX.Y.Z``; exits 1 with the reason where they disagree.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def release_notes(tag: str, project: str, changelog: str) -> str:
    """Return the section of a version.

    Args:
        tag: ``v`` and the version.
        project: text of pyproject.toml.
        changelog: text of CHANGELOG.md.

    Raises:
        ValueError: the three do not say the same.
    """
    version = tag.removeprefix("v")
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        message = f"{tag} is no tag of a release: vX.Y.Z"
        raise ValueError(message)
    stated = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    if stated is None or stated[1] != version:
        message = f"pyproject.toml says version {stated[1] if stated else 'nothing'}, the tag {version}"
        raise ValueError(message)
    section = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None or not section[1].strip():
        message = f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' that says something"
        raise ValueError(message)
    return section[1].strip() + "\n"


def main() -> int:
    """Print the notes, or on stderr why there are none."""
    try:
        notes = release_notes(
            sys.argv[1],
            (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
            (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        )
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
