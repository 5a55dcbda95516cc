"""Git repositories for tests: a server's bare one, and a checkout as actions/checkout leaves it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Maria",
    "GIT_AUTHOR_EMAIL": "maria@example.org",
    "GIT_COMMITTER_NAME": "Maria",
    "GIT_COMMITTER_EMAIL": "maria@example.org",
    "GIT_AUTHOR_DATE": "2026-11-30T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-30T12:00:00Z",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git and return what it says."""
    finished = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def git_fails(folder: Path, *arguments: str) -> str:
    """Run git where it has to fail, and return what it says."""
    finished = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert finished.returncode != 0, finished.stdout
    return finished.stdout + finished.stderr


class ServedRepository:
    """A repository on a server, ``server/octo/kernels``, with branches that tests write."""

    def __init__(self, server: Path, name: str = "octo/kernels") -> None:
        self.server = server
        self.path = server / name
        self.path.mkdir(parents=True)
        git(self.path, "init", "--quiet", "--bare", "--initial-branch=main")
        git(self.path, "config", "uploadpack.allowAnySHA1InWant", "true")
        self._work = server / "work"
        git(server, "clone", "--quiet", str(self.path), str(self._work))
        git(self._work, "checkout", "--quiet", "-B", "main")

    def commit(self, files: Mapping[str, str | None], *, branch: str = "main", start: str | None = None) -> str:
        """Commit files (None removes one) to a branch, begun at ``start``, and return the commit."""
        if start is not None:
            git(self._work, "checkout", "--quiet", "-B", branch, start)
        else:
            git(self._work, "checkout", "--quiet", branch) if branch != "main" or self._has("main") else None
        for name, text in files.items():
            path = self._work / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        git(self._work, "add", "--all")
        git(self._work, "commit", "--quiet", "--allow-empty", "--message", "change")
        git(self._work, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")
        return git(self._work, "rev-parse", "HEAD")

    def merge(self, number: int, head: str, base: str = "main") -> str:
        """Make refs/pull/N/merge and refs/pull/N/head, as GitHub does, and return the merge."""
        git(self._work, "checkout", "--quiet", "--detach", base)
        git(self._work, "merge", "--quiet", "--no-ff", "--message", "merge", head)
        merged = git(self._work, "rev-parse", "HEAD")
        git(self._work, "push", "--quiet", "--force", "origin", f"HEAD:refs/pull/{number}/merge")
        git(self._work, "push", "--quiet", "--force", "origin", f"{head}:refs/pull/{number}/head")
        return merged

    def checked_out(self, folder: Path, commit: str, *, depth: int = 2) -> Path:
        """Check a commit out as actions/checkout does, with so much history."""
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "remote", "add", "origin", f"file://{self.path}")
        git(folder, "fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", commit)
        git(folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return folder

    def _has(self, branch: str) -> bool:
        return bool(git(self._work, "for-each-ref", f"refs/heads/{branch}"))
