"""The git commit that is measured: recorded beside the times, never needed for them."""

import subprocess
from pathlib import Path


def commit_of(folder: Path) -> tuple[str | None, bool | None]:
    """Return the commit checked out in a folder and whether files differ from it; None where git says nothing."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None, None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        finished = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return finished.stdout.strip() if finished.returncode == 0 else None
