"""Locking the SM clock, only when asked: checked first, restored on every way out.

A lock survives the process that set it, so a process that was killed leaves it behind: a marker file
names the process, and the next one that looks restores the clocks.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from perfgate.devices.cuda.nvml import Nvml
from perfgate.errors import ConfigurationError, DeviceError

# Low enough to hold under the power limit: an FP16 product at 690 W pulls an H200 from 1980 to 1286 MHz.
DEFAULT_SHARE_OF_MAX = 0.6
_GRAPHICS, _MEMORY = 0, 2
_PERMISSION_HINT = "run as root, or leave --lock-clocks away: perfgate measures the clock and judges without a lock"


def lockable_clock_mhz(nvml: Nvml, asked_mhz: int | None) -> int:
    """Return the clock to lock: what was asked for, else the supported one nearest to 60 % of the highest.

    Raises:
        DeviceError: NVML cannot be read, or lists no clocks.
        ConfigurationError: the GPU does not have the clock that was asked for.
    """
    memory = nvml.read("MaxClockInfo", _MEMORY)
    supported = None if memory is None else nvml.read("SupportedGraphicsClocks", memory)
    if not supported:
        raise DeviceError(
            f"--lock-clocks: NVML lists no clocks of this GPU{f' ({nvml.note})' if nvml.note else ''}",
            hint=_PERMISSION_HINT,
        )
    if asked_mhz is None:
        wanted = DEFAULT_SHARE_OF_MAX * max(supported)
        return int(min(supported, key=lambda clock: abs(clock - wanted)))
    if asked_mhz not in supported:
        near = sorted(sorted(supported, key=lambda clock: abs(clock - asked_mhz))[:3])
        raise ConfigurationError(
            f"--lock-clocks {asked_mhz}: this GPU has no such clock", hint=f"nearest: {', '.join(map(str, near))} MHz"
        )
    return asked_mhz


@contextlib.contextmanager
def locked_clocks(nvml: Nvml, clock_mhz: int, marker: Path) -> Iterator[None]:
    """Hold the SM clock at ``clock_mhz`` until the block ends, by whatever way it ends.

    Args:
        nvml: of the GPU.
        clock_mhz: see ``lockable_clock_mhz``.
        marker: file that names this process while the lock holds.

    Raises:
        DeviceError: NVML refuses; says why. Nothing is left locked.
    """
    restore_abandoned(nvml, marker)
    try:
        marker.write_text(str(os.getpid()), encoding="utf-8")
    except OSError as error:
        raise DeviceError(f"--lock-clocks: {marker.name} cannot be written: {error.strerror}") from error
    try:
        with _ending_on_signals():
            _checked(nvml.change("SetGpuLockedClocks", clock_mhz, clock_mhz), "refused")
            yield
    finally:
        _restore(nvml, marker)


def restore_abandoned(nvml: Nvml, marker: Path) -> bool:
    """Restore clocks that a process left locked when it was killed; tell whether there were any."""
    try:
        owner = int(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if owner == os.getpid() or _is_alive(owner):
        return False
    _restore(nvml, marker)
    return True


def _restore(nvml: Nvml, marker: Path) -> None:
    error = nvml.change("ResetGpuLockedClocks")
    if error is None:
        marker.unlink(missing_ok=True)


def _checked(error: str | None, what: str) -> None:
    if error is not None:
        raise DeviceError(f"--lock-clocks: {what} by the driver: {error}", hint=_PERMISSION_HINT)


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, so that the clocks are restored on the way out."""

    def ended(number: int, frame: FrameType | None) -> None:
        del frame
        raise KeyboardInterrupt(signal.Signals(number).name)

    previous: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                previous[number] = signal.signal(number, ended)
    try:
        yield
    finally:
        for caught, handler in previous.items():
            signal.signal(caught, handler)
