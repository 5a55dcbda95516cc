"""From a selector to a device: ``auto``, ``cuda[:N|:UUID]``, ``recorded[:FILE]``."""

from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.core.device import Device, DeviceKind
from perfgate.errors import ConfigurationError
from perfgate.resources import data_folder

if TYPE_CHECKING:
    from perfgate.devices.recorded import Recording

SELECTORS = "auto, cuda, cuda:N, cuda:GPU-<uuid>, recorded or recorded:FILE"


def opened_device(selector: str) -> Device:
    """Open the device that a selector names.

    Raises:
        ConfigurationError: the selector is malformed.
        NoDeviceError: there is no such GPU.
        DocumentError: a recording cannot be read.
    """
    kind, _, rest = selector.partition(":")
    if kind == "auto" and not rest:
        kind = DeviceKind.CUDA
    if kind == DeviceKind.CUDA:
        from perfgate.devices.cuda.device import CudaDevice

        return CudaDevice(rest)
    if kind == DeviceKind.RECORDED:
        from perfgate.devices.recorded import RecordedDevice

        source = Path(rest) if rest else recordings_folder()
        return RecordedDevice(recording(source), source=str(source))
    raise ConfigurationError(f"--device {selector!r} is unknown", hint=f"one of {SELECTORS}")


def recording(source: Path) -> "Recording":
    """Read the recorded sessions of a file, or of a folder of them."""
    from perfgate.devices.recorded import Recording
    from perfgate.storage.documents import read_run

    files = sorted(source.glob("*.json.gz")) if source.is_dir() else [source]
    if not files:
        raise ConfigurationError(f"no recorded session (*.json.gz) in {source.name}")
    return Recording([read_run(file) for file in files])


def recordings_folder() -> Path:
    """Return the folder of recorded sessions that ship with the package."""
    return data_folder() / "recordings"
