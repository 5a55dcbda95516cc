"""How a launch is started, and how long it may be silent."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from perfgate.core.codec import encode
from perfgate.core.device import DeviceKind
from perfgate.errors import OutputError
from perfgate.measure.attempt import Limits
from perfgate.measure.child import start_child
from perfgate.measure.order import LaunchOrder

# A recording neither compiles nor computes: a rehearsed hang need not be waited for like a real one.
RECORDED_LIMITS = Limits(stall_s=10.0, compile_stall_s=60.0)


def limits(kind: DeviceKind) -> Limits:
    """Return how long a supervisor waits for launches on a device."""
    return RECORDED_LIMITS if kind is DeviceKind.RECORDED else Limits()


def starter(kind: DeviceKind) -> Callable[[LaunchOrder, Path], "subprocess.Popen[bytes]"]:
    """Return how a launch is started: a fresh interpreter on the hidden command."""
    from perfgate.devices.environment import launch_environment

    environment = launch_environment(kind)

    def start(order: LaunchOrder, journal: Path) -> "subprocess.Popen[bytes]":
        return start_child(launch_command(str(write_order(order, journal)), str(journal)), environment)

    return start


def launch_command(*arguments: str) -> list[str]:
    """Return the hidden command of a launch."""
    # Isolated as its parent is: a folder that is measured in must not shadow Python's modules.
    isolated = ["-I"] if sys.flags.isolated else []
    return [sys.executable, *isolated, "-m", "perfgate", "launch", *arguments]


def write_order(order: LaunchOrder, journal: Path) -> Path:
    """Write a launch's order beside its journal, and return where.

    Raises:
        OutputError: it cannot be written.
    """
    place = journal.with_suffix(".order.json")
    try:
        place.write_text(json.dumps(encode(order)), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"a launch's order cannot be written: {error}", hint="free space, or set TMPDIR") from error
    return place
