"""What a launch tells its parent while it measures: JSON lines in a file that outlives the process.

The launch appends one message a line and flushes each; the parent follows the file. Whatever the
launch dies of, the cases that it finished are in the journal. The parent trusts nothing in it: a
line that is damaged or foreign is named and skipped.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.plan import CasePlan
from perfgate.core.run import CaseLaunch
from perfgate.shims import StrEnum

# A line longer than this is no message of ours: a case of 50 samples takes about 2 kB.
_LINE_LIMIT_BYTES = 16 * 2**20
_CHUNK_BYTES = 2**20
_DAMAGES_KEPT = 20


class Phase(StrEnum):
    """What a launch is doing with a case."""

    COMPILE = "compile"
    WARM_UP = "warm-up"
    BLOCK = "block"
    VERIFY = "verify"


class FailureKind(StrEnum):
    """Why a case, or a whole launch, has no result."""

    COMPILE = "compile"
    WRONG_OUTPUT = "wrong-output"
    DEVICE = "device"
    OUT_OF_MEMORY = "out-of-memory"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The process runs; ``pid`` is its own."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntered:
    """A case goes on: the sign of life that the watchdog waits for. Every block says it anew."""

    case_id: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMeasured:
    """A case is finished, with the plan that it was sampled by and the change that was rehearsed."""

    case_id: str
    result: CaseLaunch
    plan: CasePlan
    effective_change: float = 0.0
    code_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFailed:
    """A case has no result; the launch goes on with the others."""

    case_id: str
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailed:
    """The launch as a whole cannot go on."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFinished:
    """Every case was measured or has failed; nothing that happens to the process from here on matters.

    ``modules`` are the installed packages that it had imported, for launches that import ahead.
    """

    event_floor_s: float | None = None
    modules: tuple[str, ...] = ()


Message = Started | PhaseEntered | CaseMeasured | CaseFailed | LaunchFailed | LaunchFinished

# The field that names a message; no message has a field of that name itself.
_NAME = "says"
_KINDS: dict[str, type[Message]] = {
    "started": Started,
    "phase": PhaseEntered,
    "case": CaseMeasured,
    "case-failed": CaseFailed,
    "failed": LaunchFailed,
    "finished": LaunchFinished,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Journal:
    """The launch's side: writes messages to an open file."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, message: Message) -> None:
        """Append a message; when this returns it survives the death of the process.

        Raises:
            ValueError: the message holds a number that is not finite.
            OSError: the file cannot be written.
        """
        line = json.dumps({_NAME: _NAMES[type(message)], **encode(message)}, allow_nan=False, separators=(",", ":"))
        self._file.write(line + "\n")
        self._file.flush()


@contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open the journal that the parent named, for appending."""
    with path.open("a", encoding="utf-8") as file:
        yield Journal(file)


class JournalReader:
    """The parent's side: follows the file and returns what is new.

    Attributes:
        damages: what was wrong with the lines that were skipped; the first twenty, then a count.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""
        self._line = 0
        self._is_overlong = False
        self._damages: list[str] = []
        self._damage_count = 0

    @property
    def damages(self) -> tuple[str, ...]:
        """What was wrong with the lines that were skipped."""
        more = self._damage_count - len(self._damages)
        return (*self._damages, f"and {more} more lines") if more else tuple(self._damages)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages of the complete lines written since the last call."""
        found = (self._parsed(line) for line in self._complete_lines())
        return tuple(message for message in found if message is not None)

    def last_messages(self) -> tuple[Message, ...]:
        """Return what is left once the writer is gone, and name a last line that was cut off."""
        messages = self.messages()
        if self._rest or self._is_overlong:
            self._line += 1
            self._damage(f"cut off after {len(self._rest)} bytes")
            self._rest, self._is_overlong = b"", False
        return messages

    def _complete_lines(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                while chunk := file.read(_CHUNK_BYTES):
                    self._offset += len(chunk)
                    *lines, self._rest = (self._rest + chunk).split(b"\n")
                    for line in lines:
                        self._line += 1
                        if self._is_overlong:
                            self._is_overlong = False
                            self._damage("too long")
                        else:
                            yield line
                    if len(self._rest) > _LINE_LIMIT_BYTES:
                        self._rest, self._is_overlong = b"", True
        except FileNotFoundError:
            return

    def _parsed(self, line: bytes) -> Message | None:
        try:
            return _message(line)
        except ValueError as error:
            self._damage(str(error))
            return None

    def _damage(self, what: str) -> None:
        self._damage_count += 1
        if len(self._damages) < _DAMAGES_KEPT:
            self._damages.append(f"journal line {self._line}: {what}")


def _message(line: bytes) -> Message:
    """Parse a line.

    Raises:
        ValueError: it is no message; says why.
    """
    try:
        value = json.loads(line, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {_excerpt(line)}") from None
    name = value.pop(_NAME, None) if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"not a message of a launch: {_excerpt(line)}")
    try:
        return decode(_KINDS[name], value)
    except CodecError as error:
        raise ValueError(f"{name}: {error}") from error


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _excerpt(line: bytes, length: int = 60) -> str:
    text = line[:length].decode("utf-8", "backslashreplace")
    return repr(text) + ("..." if len(line) > length else "")
