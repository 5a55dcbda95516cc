from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.devices.cuda.nvml import Nvml
from perfgate.devices.cuda.xids import XidWatch
from tests.unit.devices.cuda.fake_nvml import H200_READINGS, FakeNvml, FakeNvmlError

UUID = "GPU-12345678-1234-1234-1234-123456789abc"


class Events(FakeNvml):
    """An NVML that has Xid errors to tell, and counts its event sets."""

    nvmlEventTypeXidCriticalError = 8  # noqa: N815 - as the binding calls it

    def __init__(self, *told: int, failing: dict[str, Exception] | None = None) -> None:
        super().__init__({UUID: H200_READINGS}, failing=failing)
        self.told = list(told)
        self.open_sets = 0
        self.registered: list[Any] = []

    def nvmlEventSetCreate(self) -> str:  # noqa: N802
        self._fails("nvmlEventSetCreate")
        self.open_sets += 1
        return "events"

    def nvmlDeviceRegisterEvents(self, handle: Any, kinds: int, events: str) -> None:  # noqa: N802
        self._fails("nvmlDeviceRegisterEvents")
        assert (kinds, events) == (8, "events")
        self.registered.append(handle)

    def nvmlEventSetWait_v2(self, events: str, timeout_ms: int) -> Any:  # noqa: N802
        assert (events, timeout_ms) == ("events", 0)
        if not self.told:
            raise FakeNvmlError("Timeout")
        return SimpleNamespace(eventData=self.told.pop(0))

    def nvmlEventSetFree(self, events: str) -> None:  # noqa: N802
        assert events == "events"
        self.open_sets -= 1


def test_seen__collects_over_several_looks() -> None:
    library = Events(31, 43)
    watch = XidWatch(library, UUID)
    assert watch.seen() == (31, 43)
    library.told.append(79)
    assert watch.seen() == (31, 43, 79)
    watch.close()
    assert library.open_sets == 0
    assert watch.seen() is None


def test_seen__ends_although_a_binding_never_times_out() -> None:
    library = Events()
    library.nvmlEventSetWait_v2 = lambda *_: SimpleNamespace(eventData=13)  # type: ignore[method-assign]
    seen = XidWatch(library, UUID).seen()
    assert seen is not None
    assert 0 < len(seen) <= 1000


@pytest.mark.parametrize("name", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
def test_seen__is_unknown_where_the_driver_refuses(name: str) -> None:
    library = Events(31, failing={name: FakeNvmlError("Insufficient Permissions")})
    assert XidWatch(library, UUID).seen() is None
    assert library.open_sets == 0


def test_seen__is_unknown_where_the_binding_is_old() -> None:
    assert XidWatch(FakeNvml({UUID: H200_READINGS}), UUID).seen() is None


def test_health__tells_the_errors_since_it_was_told_to_watch() -> None:
    library = Events(94)
    nvml = Nvml(UUID, library)
    assert nvml.health().xids is None
    nvml.watch_xids()
    assert nvml.health().xids == (94,)
    nvml.close()
    assert library.open_sets == 0


def test_watch_xids__of_an_instance_watches_its_whole_gpu() -> None:
    instance = "MIG-12345678-1234-1234-1234-123456789abc"
    library = Events()
    library.gpus = {instance: {**H200_READINGS, "DeviceHandleFromMigDeviceHandle": UUID}, UUID: H200_READINGS}
    Nvml(instance, library).watch_xids()
    assert library.registered == [UUID]
