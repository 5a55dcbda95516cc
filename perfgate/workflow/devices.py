"""From a selector to a device: ``auto``, ``cuda[:N|:UUID]``, ``recorded[:FILE]``."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.core.device import Device, DeviceKind
from perfgate.errors import ConfigurationError
from perfgate.resources import data_folder, resource_folder
from perfgate.shims import assert_never

if TYPE_CHECKING:
    from perfgate.devices.recorded import Recording

SELECTORS = "auto, cuda, cuda:N, cuda:GPU-<uuid>, recorded or recorded:FILE"


def parse_selector(selector: str) -> tuple[DeviceKind, str]:
    """Parse what ``--device`` was given into the kind of device and which one, ``""`` for the first.

    Raises:
        ConfigurationError: it is none of SELECTORS.
    """
    kind, _, rest = selector.partition(":")
    if selector == "auto":
        return DeviceKind.CUDA, ""
    if kind not in tuple(DeviceKind):
        raise ConfigurationError(f"--device {selector!r} is unknown", hint=f"one of {SELECTORS}")
    return DeviceKind(kind), rest


def opened_device(selector: str) -> Device:
    """Open the device that a selector names.

    Raises:
        ConfigurationError: the selector is malformed.
        NoDeviceError: there is no such GPU.
        DocumentError: a recording cannot be read.
    """
    kind, rest = parse_selector(selector)
    match kind:
        case DeviceKind.CUDA:
            from perfgate.devices.cuda.device import CudaDevice

            return CudaDevice(rest)
        case DeviceKind.RECORDED:
            from perfgate.devices.recorded import RecordedDevice

            source = recordings_place(rest)
            return RecordedDevice(recording(source), source=str(source))
        case _:
            assert_never(kind)


def recording(source: Path) -> "Recording":
    """Read the recorded sessions of a file, or of a folder of them."""
    from perfgate.devices.recorded import Recording
    from perfgate.storage.documents import read_run

    files = sorted(source.glob("*.json.gz")) if source.is_dir() else [source]
    if not files:
        raise ConfigurationError(f"no recorded session (*.json.gz) in {source.name}")
    return Recording([read_run(file) for file in files])


def recordings_place(named: str) -> Path:
    """Return the file or folder of recorded sessions that a selector names; by default those that ship."""
    return Path(named) if named else recordings_folder()


def recordings_folder() -> Path:
    """Return the folder of recorded sessions that ship with the package."""
    return data_folder() / "recordings"


def baseline_place(asked: Path | None, device: Device) -> Path:
    """Return where baselines are looked for: as asked, else ``baseline_folder``."""
    return baseline_folder(device.kind) if asked is None else asked


def baseline_folder(kind: DeviceKind) -> Path:
    """Return the folder of baselines for a kind of device: baselines/ here, else what ships with perfgate.

    A recording is judged against what ships with it: the baselines of a repository are of its own GPUs.
    """
    here = Path("baselines")
    return here if here.is_dir() and kind is DeviceKind.CUDA else resource_folder("baselines")


def session_seed(asked: int | None, device: Device) -> int:
    """Return the seed of a session: as asked; else fixed for a recording, so that it repeats, and fresh on a GPU."""
    if asked is not None:
        return asked
    return 0 if device.kind is DeviceKind.RECORDED else secrets.randbelow(2**31)
