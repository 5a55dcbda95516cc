"""Follow docs/tutorial.md to the letter, in an empty clone and a new environment, without a GPU.

Usage: ``python scripts/follow_tutorial.py [FOLDER]``, a temporary folder by default. Exits 1 at the first command that
exits otherwise than the page says (``# exit N``, else 0), or that does not print the lines below it.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s+# exit (\d+)$")
_END = "@@ the command ended with "


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the page, how it ends, and what it prints among other things, in this order."""

    command: str
    exit_code: int
    prints: tuple[str, ...]


def parse_steps(page: str) -> tuple[Step, ...]:
    """Return the commands of a page's console blocks in order."""
    steps: list[Step] = []
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *prints = part.splitlines()
            stated = _EXIT.search(line)
            steps.append(
                Step(
                    command=line[: stated.start()] if stated else line,
                    exit_code=int(stated[1]) if stated else 0,
                    prints=tuple(filter(None, prints)),
                )
            )
    return tuple(steps)


def refusal(step: Step, exit_code: int, output: str) -> str:
    """Return what a command did otherwise than the page says; "" for nothing."""
    if exit_code != step.exit_code:
        return f"exits {exit_code}, the page says {step.exit_code}"
    text, place = " ".join(output.split()), 0
    for line in step.prints:
        words = " ".join(line.split())
        place = text.find(words, place)
        if place < 0:
            return f"does not print {words!r}, at least not after the lines before it"
        place += len(words)
    return ""


def follow(steps: tuple[Step, ...], folder: Path) -> str:
    """Run the steps in one shell within a folder; return the first refusal with what was printed, "" for none."""
    script = "".join(f"{step.command}\nprintf '\\n%s%s\\n' {_END!r} $?\n" for step in steps)
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=known | {"COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    parts = re.split(rf"^{re.escape(_END)}(\d+)\n", ended.stdout, flags=re.MULTILINE)
    for step, output, code in zip(steps, parts[::2], parts[1::2], strict=False):
        sys.stdout.write(f"$ {step.command}\n")
        if why := refusal(step, int(code), output):
            return f"{step.command}\n{why}; it printed:\n{output}"
    return "" if len(parts) // 2 == len(steps) else f"the shell ended early:\n{ended.stdout[-2000:]}"


def main() -> int:
    """Clone, follow, tell."""
    with tempfile.TemporaryDirectory() as own:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(own)
        clone = folder / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        steps = parse_steps(PAGE.read_text(encoding="utf-8"))
        why = follow(steps, clone)
        if why:
            sys.stderr.write(f"the tutorial is wrong: {why}\n")
            return 1
        sys.stdout.write(f"{len(steps)} passed, 0 failed\n")
        return 0


if __name__ == "__main__":
    sys.exit(main())
