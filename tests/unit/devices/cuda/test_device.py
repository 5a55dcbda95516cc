import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.device import Device
from perfgate.core.gpu import Environment
from perfgate.devices.cuda import device as device_module
from perfgate.devices.cuda.device import CudaDevice
from perfgate.devices.cuda.nvml import Nvml
from perfgate.errors import DeviceBusyError, DeviceError
from tests.factories import H200
from tests.unit.devices.cuda.fake_nvml import H200_READINGS, FakeNvml

UUID = "GPU-12345678-1234-1234-1234-123456789abc"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., CudaDevice]:
    """Opens a device whose running processes are given, one list a look."""

    def call(*processes: list[int], uuid: str | None = UUID) -> CudaDevice:
        looks = iter(processes)
        readings = H200_READINGS | {
            "ComputeRunningProcesses": lambda: [SimpleNamespace(pid=one) for one in next(looks)]
        }
        monkeypatch.setattr(device_module, "found_device", lambda selector: 1)
        monkeypatch.setattr(device_module, "device_uuid", lambda index: uuid)
        monkeypatch.setattr(device_module, "opened_nvml", lambda uuid: Nvml(uuid, FakeNvml({UUID: readings})))
        monkeypatch.setattr(device_module, "identified_gpu", lambda index, nvml: H200)
        monkeypatch.setattr(device_module, "surrounding_environment", lambda nvml, compiler, cublas: Environment())
        monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
        return CudaDevice("1")

    return call


def test_device__keeps_the_protocol_and_is_addressed_by_uuid(opened: Any) -> None:
    device: Device = opened([], [])
    assert device.address == f"cuda:{UUID}"
    assert device.gpu == H200
    assert device.health().temperature_c == 41.0
    assert opened([], [], uuid=None).address == "cuda:1"


@pytest.mark.parametrize(
    ("before", "now", "own", "foreign"),
    [
        ([], [], 1, ()),
        ([], [501], 1, ()),
        ([7], [7, 501], 1, ("process 7",)),
        ([7, 8], [8, 501], 1, ("process 8",)),
        ([], [501, 502], 1, ("a process that started during the session",)),
        ([7], [7, 501, 502, 503], 1, ("process 7",) + ("a process that started during the session",) * 2),
    ],
)
def test_foreign_processes__are_those_before_us_and_those_too_many(
    opened: Any, before: list[int], now: list[int], own: int, foreign: tuple[str, ...]
) -> None:
    assert opened(before, now).foreign_processes(own) == foreign


def test_foreign_processes__that_cannot_be_listed_are_unknown(opened: Any) -> None:
    assert opened().foreign_processes(1) == ()


HOLD = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock__of_a_gpu_that_another_perfgate_measures_fails_or_waits(opened: Any, tmp_path: Path) -> None:
    device = opened([], [])
    place = tmp_path / f"perfgate-{H200.chip}.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DeviceBusyError, match="another perfgate is measuring") as raised, device.lock(wait=False):
            pass
        assert "--wait" in raised.value.hint
        holder.stdin.close()
        with device.lock(wait=True):
            pass
    finally:
        with contextlib.suppress(OSError):
            holder.stdin.close()
        holder.wait(timeout=30)
        holder.stdout.close()


def test_lock__is_released_after_an_error(opened: Any) -> None:
    device = opened([], [])

    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), device.lock(wait=False):
        failing()
    with device.lock(wait=False):
        pass


def test_lock__that_cannot_be_taken_is_a_device_error(opened: Any, tmp_path: Path) -> None:
    (tmp_path / f"perfgate-{H200.chip}.lock").mkdir()
    with pytest.raises(DeviceError, match="lock"), opened([], []).lock(wait=False):
        pass
