"""What a step tells its runner: annotations on stdout, outputs and the job summary in files."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfgate.errors import OutputError

# The runner cuts a message at 4,096 characters.
_MAX_MESSAGE_CHARACTERS = 4000
# GitHub keeps 10 warnings and 10 errors a step.
MAX_ANNOTATIONS = 10
# The runner drops a step's summary above 1 MiB as a whole.
MAX_SUMMARY_BYTES = 900_000

Level = Literal["notice", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A note that GitHub shows on the run, and beside the changed lines where it names a file.

    Attributes:
        level: how grave.
        title: short; message: plain text.
        file: path relative to the repository, only of files inside the workspace.
        line: from 1.
    """

    level: Level
    title: str
    message: str
    file: str | None = None
    line: int = 1


def render_annotation(annotation: Annotation) -> str:
    """Render an annotation as a workflow command: one line, whatever its texts hold."""
    properties = {"title": annotation.title}
    if annotation.file is not None:
        properties |= {"file": annotation.file, "line": str(annotation.line)}
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{annotation.level} {shown}::{_message(annotation.message[:_MAX_MESSAGE_CHARACTERS])}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


class Silence:
    """Between ``begin`` and ``end`` the runner takes nothing that is printed for a command."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token or secrets.token_hex(16)

    @property
    def begin(self) -> str:
        """The line that starts it."""
        return f"::stop-commands::{self._token}"

    @property
    def end(self) -> str:
        """The line that ends it."""
        return f"::{self._token}::"


def append_outputs(path: Path | None, outputs: Mapping[str, str]) -> None:
    """Append outputs to the runner's file; later values win. Without a file nothing happens.

    Raises:
        OutputError: the file cannot be written.
    """
    if path is None:
        return
    parts = []
    for name, value in outputs.items():
        # Random: no value can hold it, so none can end early and set another output.
        delimiter = f"perfgate_{secrets.token_hex(16)}"
        parts.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    _append(path, "".join(parts), "GITHUB_OUTPUT")


def append_summary(path: Path | None, text: str) -> None:
    """Append Markdown to the step's summary, what is left of MAX_SUMMARY_BYTES at most. Without a file: nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    if path is None:
        return
    try:
        used = path.stat().st_size if path.exists() else 0
    except OSError:
        used = 0
    room = MAX_SUMMARY_BYTES - used
    data = text.encode("utf-8")
    if len(data) > room:
        text = data[: max(room, 0)].decode("utf-8", errors="ignore")
    _append(path, text, "GITHUB_STEP_SUMMARY")


def _append(path: Path, text: str, name: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise OutputError(f"the runner's file {name} cannot be written: {error.strerror}") from None
