import ctypes
import sys
import types
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.devices.cuda import driver as driver_module
from perfgate.devices.cuda.driver import device_uuid, driver, found_device, primary_context, whole_gpu_uuid
from perfgate.errors import ConfigurationError, DeviceError, NoDeviceError

FIRST, SECOND = "00000000-1111-2222-3333-444444444444", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


class FakeError(Exception):
    pass


class Context:
    def __init__(self) -> None:
        self.log: list[str] = []

    def push(self) -> None:
        self.log.append("push")

    def pop(self) -> None:
        self.log.append("pop")

    def detach(self) -> None:
        self.log.append("detach")


def fake_module(uuids: list[str], context: Any = None, init: Any = None) -> Any:
    """``pycuda.driver`` of a machine with these visible devices."""
    module: Any = types.ModuleType("pycuda.driver")
    module.Error = FakeError
    module.init = init or (lambda: None)

    class Device:
        def __init__(self, index: int) -> None:
            self.index = index

        @staticmethod
        def count() -> int:
            return len(uuids)

        def name(self) -> str:
            return f"NVIDIA Test {self.index}"

        def retain_primary_context(self) -> Any:
            if isinstance(context, Exception):
                raise context
            return context

    module.Device = Device
    return module


def fake_library(own: list[str], whole: list[str] | None = None) -> Any:
    """libcuda: devices numbered as CUDA_VISIBLE_DEVICES has them, with UUIDs."""

    def get(target: Any, index: int) -> int:
        if index >= len(own):
            return 101
        target._obj.value = index
        return 0

    def reader(uuids: list[str]) -> Any:
        def read(raw: Any, device: ctypes.c_int) -> int:
            ctypes.memmove(raw, uuid.UUID(uuids[device.value]).bytes, 16)
            return 0

        return read

    found = SimpleNamespace(cuDeviceGet=get, cuDeviceGetUuid=reader(whole or own))
    if whole is not None:
        found.cuDeviceGetUuid_v2 = reader(own)
    return found


@pytest.fixture(autouse=True)
def _fresh_driver() -> Iterator[None]:
    driver.cache_clear()
    yield
    driver.cache_clear()


def with_module(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    package: Any = types.ModuleType("pycuda")
    package.driver = module
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", module)


def test_driver__without_pycuda_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(NoDeviceError, match="PyCUDA cannot be imported") as raised:
        driver()
    assert "pip install 'perfgate[cuda]'" in raised.value.hint
    assert "--device recorded" in raised.value.hint


def test_driver__without_libcuda_names_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "pycuda":
                raise ImportError("libcuda.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.delitem(sys.modules, "pycuda", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(NoDeviceError, match=r"no NVIDIA driver: libcuda\.so\.1"):
        driver()


def test_driver__that_cannot_be_initialised_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise FakeError("cuInit failed: system has unsupported display driver / cuda driver combination")

    with_module(monkeypatch, fake_module([FIRST], init=init))
    with pytest.raises(NoDeviceError, match="CUDA cannot be initialised: cuInit failed"):
        driver()


def test_driver__that_sees_no_device_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with_module(monkeypatch, fake_module([]))
    with pytest.raises(NoDeviceError, match="CUDA_VISIBLE_DEVICES"):
        driver()


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    with_module(monkeypatch, fake_module([FIRST, SECOND]))
    monkeypatch.setattr(driver_module, "libcuda", lambda: fake_library([FIRST, SECOND]))


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize(
    ("selector", "index"),
    [("", 0), ("0", 0), ("1", 1), (f"GPU-{FIRST}", 0), (f"GPU-{SECOND}", 1), (f"gpu-{SECOND.upper()}", 1)],
)
def test_found_device__by_place_or_uuid(selector: str, index: int) -> None:
    assert found_device(selector) == index


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("selector", ["2", "99", f"GPU-{FIRST[:-1]}5", f"MIG-{FIRST[:-1]}5"])
def test_found_device__that_is_not_visible_lists_those_that_are(selector: str) -> None:
    with pytest.raises(NoDeviceError) as raised:
        found_device(selector)
    assert raised.value.hint == "visible devices: cuda:0 NVIDIA Test 0, cuda:1 NVIDIA Test 1"


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("selector", ["-1", "first", "0,1", "1.0", " 0", "²", FIRST])
def test_found_device__of_a_malformed_selector_says_what_to_write(selector: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        found_device(selector)
    assert "cuda:GPU-<uuid>" in raised.value.hint


def test_device_uuid__follows_the_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES=1,0 turns the numbers round, not the UUIDs."""
    monkeypatch.setattr(driver_module, "libcuda", lambda: fake_library([SECOND, FIRST]))
    assert [device_uuid(index) for index in (0, 1, 2)] == [f"GPU-{SECOND}", f"GPU-{FIRST}", None]


def test_device_uuid__of_a_mig_instance_is_its_own_and_leads_to_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "libcuda", lambda: fake_library([SECOND], whole=[FIRST]))
    assert device_uuid(0) == f"MIG-{SECOND}"
    assert whole_gpu_uuid(0) == f"GPU-{FIRST}"


def test_device_uuid__of_a_whole_gpu_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in (fake_library([FIRST]), fake_library([FIRST], whole=[FIRST])):
        monkeypatch.setattr(driver_module, "libcuda", lambda library=library: library)
        assert device_uuid(0) == whole_gpu_uuid(0) == f"GPU-{FIRST}"


def test_primary_context__is_popped_and_released_on_every_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context left pushed at exit aborts the process."""
    context = Context()
    with_module(monkeypatch, fake_module([FIRST], context))
    with primary_context(0):
        pass
    assert context.log == ["push", "pop", "detach"]

    def failing() -> None:
        raise KeyboardInterrupt

    context.log.clear()
    with pytest.raises(KeyboardInterrupt), primary_context(0):
        failing()
    assert context.log == ["push", "pop", "detach"]


def test_primary_context__that_cannot_be_had_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with_module(monkeypatch, fake_module([FIRST], FakeError("cuDevicePrimaryCtxRetain failed: out of memory")))
    with pytest.raises(DeviceError, match="no context on CUDA device 0"), primary_context(0):
        pass


def test_primary_context__an_error_on_the_way_out_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Context):
        def pop(self) -> None:
            raise FakeError("the launch timed out and was terminated")

    context = Broken()
    with_module(monkeypatch, fake_module([FIRST], context))

    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), primary_context(0):
        failing()
    assert context.log == ["push", "detach"]
