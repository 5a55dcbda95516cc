import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfgate.devices.cuda.clocks import lockable_clock_mhz, locked_clocks, restore_abandoned
from perfgate.devices.cuda.nvml import Nvml
from perfgate.errors import ConfigurationError, DeviceError
from tests.unit.devices.cuda.fake_nvml import FakeNvml, FakeNvmlError

UUID = "GPU-1"
CLOCKS = list(range(345, 1981, 15))


class Gpu:
    """A GPU whose clocks can be locked; notes what was done."""

    def __init__(self, *, refuses: bool = False, clocks: list[int] | None = None) -> None:
        self.log: list[Any] = []
        readings = {"MaxClockInfo": lambda kind: 3201, "SupportedGraphicsClocks": lambda memory: clocks or CLOCKS}
        fake: Any = FakeNvml({UUID: readings if clocks != [] else {}})

        def lock(handle: str, low: int, high: int) -> None:
            if refuses:
                raise FakeNvmlError("Insufficient Permissions")
            self.log.append((low, high))

        fake.nvmlDeviceSetGpuLockedClocks = lock
        fake.nvmlDeviceResetGpuLockedClocks = lambda handle: self.log.append("reset")
        self.nvml = Nvml(UUID, fake)


@pytest.mark.parametrize(("asked", "clock"), [(None, 1185), (1980, 1980), (345, 345)])
def test_lockable_clock__is_that_asked_for_or_60_percent(asked: int | None, clock: int) -> None:
    assert lockable_clock_mhz(Gpu().nvml, asked) == clock


def test_lockable_clock__that_the_gpu_lacks_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="--lock-clocks 1201") as raised:
        lockable_clock_mhz(Gpu().nvml, 1201)
    assert raised.value.hint == "nearest: 1185, 1200, 1215 MHz"


@pytest.mark.parametrize("nvml", [Nvml(None, None), Gpu(clocks=[]).nvml])
def test_lockable_clock__without_a_list_is_a_device_error(nvml: Nvml) -> None:
    with pytest.raises(DeviceError, match="NVML lists no clocks") as raised:
        lockable_clock_mhz(nvml, None)
    assert "leave --lock-clocks away" in raised.value.hint


def test_locked_clocks__are_restored_on_every_way_out(tmp_path: Path) -> None:
    gpu, marker = Gpu(), tmp_path / "marker"

    def failing() -> None:
        raise ZeroDivisionError

    with locked_clocks(gpu.nvml, 1200, marker):
        assert gpu.log == [(1200, 1200)]
        assert marker.read_text() == str(os.getpid())
    assert gpu.log == [(1200, 1200), "reset"]
    assert not marker.exists()
    with pytest.raises(ZeroDivisionError), locked_clocks(gpu.nvml, 1200, marker):
        failing()
    assert gpu.log[-1] == "reset"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_locked_clocks__are_restored_when_the_process_is_asked_to_end(tmp_path: Path, number: signal.Signals) -> None:
    gpu, before = Gpu(), signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), locked_clocks(gpu.nvml, 1200, tmp_path / "marker"):
        os.kill(os.getpid(), number)
    assert gpu.log == [(1200, 1200), "reset"]
    assert signal.getsignal(number) is before


def test_locked_clocks__that_are_refused_leave_nothing(tmp_path: Path) -> None:
    gpu = Gpu(refuses=True)
    with (
        pytest.raises(DeviceError, match="refused by the driver: Insufficient Permissions"),
        locked_clocks(gpu.nvml, 1200, tmp_path / "marker"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_locked_clocks__without_a_place_for_the_marker_lock_nothing(tmp_path: Path) -> None:
    gpu = Gpu()
    with pytest.raises(DeviceError, match="cannot be written"), locked_clocks(gpu.nvml, 1, tmp_path / "no" / "marker"):
        pass
    assert gpu.log == []


def test_restore_abandoned__of_a_process_that_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    gpu, marker = Gpu(), tmp_path / "marker"
    marker.write_text(str(process.pid))
    assert restore_abandoned(gpu.nvml, marker)
    assert gpu.log == ["reset"]
    assert not marker.exists()


@pytest.mark.parametrize("content", [None, "", "nonsense", str(os.getppid())])
def test_restore_abandoned__touches_no_clock_without_a_reason(tmp_path: Path, content: str | None) -> None:
    gpu, marker = Gpu(), tmp_path / "marker"
    if content is not None:
        marker.write_text(content)
    assert not restore_abandoned(gpu.nvml, marker)
    assert gpu.log == []
