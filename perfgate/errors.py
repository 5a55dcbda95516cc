"""The errors that stop perfgate from reaching a verdict, and the exit code of each.

A regression is a result, not an exception. The tree::

    PerfgateError
    ├── ConfigurationError       2   usage, policy, environment of the workflow
    ├── DocumentError            3   a document is unreadable, malformed or makes no sense
    ├── BaselineError            4   no comparable baseline
    ├── DeviceError              5   GPU, driver, compiler or launch failure
    │   ├── NoDeviceError
    │   ├── CompileError
    │   ├── DeviceMemoryError
    │   ├── LaunchError
    │   └── DeviceBusyError
    ├── WrongOutputError         6   a kernel's output is wrong: its time means nothing
    ├── PublishError             7   GitHub could not be reached or refused
    └── OutputError              2   results cannot be written where they were asked for

Every message says what happened and where; ``hint`` says what to do about it.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What each exit code of the command means; docs/cli.md says who acts on it."""

    PASSED = 0
    REGRESSED = 1
    USAGE = 2
    DOCUMENT = 3
    NO_BASELINE = 4
    DEVICE = 5
    WRONG_OUTPUT = 6
    PUBLISH = 7
    UNDECIDED = 8
    BUG = 70
    INTERRUPTED = 130


class PerfgateError(Exception):
    """A failure that a person can act on.

    Args:
        message: what happened, and where (file, case, device).
        hint: what to do about it; empty where the message says all.
    """

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigurationError(PerfgateError):
    """An option, policy or case selection is wrong."""

    exit_code = ExitCode.USAGE


class OutputError(PerfgateError):
    """Results cannot be written where they were asked for."""

    exit_code = ExitCode.USAGE


class DocumentError(PerfgateError):
    """A document cannot be read or makes no sense.

    Args:
        source: the file, or a name for what was read.
        message: what is wrong.
        pointer: JSON pointer of the place, "" for the document as a whole.
        hint: what to do about it.
    """

    exit_code = ExitCode.DOCUMENT

    def __init__(self, source: str, message: str, *, pointer: str = "", hint: str = "") -> None:
        place = f"{source}#{pointer}" if pointer else source
        super().__init__(f"{place}: {message}", hint=hint)
        self.source = source
        self.pointer = pointer
        self.reason = message


class BaselineError(PerfgateError):
    """There is no baseline to compare with, or none that is comparable."""

    exit_code = ExitCode.NO_BASELINE


class DeviceError(PerfgateError):
    """The GPU, its driver, its compiler or a launch failed."""

    exit_code = ExitCode.DEVICE


class NoDeviceError(DeviceError):
    """No usable GPU of the kind that was asked for."""


class CompileError(DeviceError):
    """A kernel does not compile; the message holds the compiler's log."""


class DeviceMemoryError(DeviceError):
    """The GPU has too little free memory for a case."""


class LaunchError(DeviceError):
    """No launch of a session could be completed."""


class DeviceBusyError(DeviceError):
    """Another perfgate holds the GPU's lock."""


class WrongOutputError(PerfgateError):
    """A kernel's output differs from its reference."""

    exit_code = ExitCode.WRONG_OUTPUT


class PublishError(PerfgateError):
    """GitHub could not be reached or refused."""

    exit_code = ExitCode.PUBLISH
