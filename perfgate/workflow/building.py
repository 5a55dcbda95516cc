"""Building a side of a comparison: the team's own command, in the side's folder."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from perfgate.errors import CompileError, ConfigurationError

_TIMEOUT_S = 3600.0
_TAIL_LINES = 30
SIDE_VARIABLE = "PERFGATE_SIDE"


def build_side(command: str, folder: Path, side: str) -> None:
    """Run a build command without a shell; its environment says which side it builds.

    Raises:
        ConfigurationError: the command makes no sense or cannot be started.
        CompileError: it fails; the message holds the end of its output.
    """
    if not command.strip():
        return
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"--build {command!r}: {error}") from None
    with tempfile.TemporaryFile() as output:
        try:
            code: int | None = subprocess.run(
                words,
                cwd=folder,
                env={**os.environ, SIDE_VARIABLE: side},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_TIMEOUT_S,
                check=False,
            ).returncode
        except OSError as error:
            raise ConfigurationError(f"--build: {words[0]} cannot be started: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            code = None
        output.seek(0)
        tail = "\n".join(output.read().decode("utf-8", "replace").strip().splitlines()[-_TAIL_LINES:])
    if code is None:
        raise CompileError(f"the build of the {side} took longer than {_TIMEOUT_S:.0f} s:\n{tail}")
    if code != 0:
        raise CompileError(
            f"the {side} does not build: {command} ended with {code}:\n{tail}", hint=f"run it in the {side}'s folder"
        )
