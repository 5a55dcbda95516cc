"""The other GPU: whether there is one, what joins it, and memory there that is given back."""

from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.case import CASE_ID
from perfgate.devices.cuda import peer
from perfgate.devices.cuda.peer import Peer, peer_index, peer_link
from perfgate.errors import DeviceError, DeviceMemoryError
from tests.unit.devices.cuda.fake_cuda import FakeError, FakeMemoryError, Memory


class FakePair:
    """PyCUDA's driver module with several devices; contexts and memory of all but the first are logged."""

    Error = FakeError
    MemoryError = FakeMemoryError

    def __init__(self, reached: dict[int, set[int]], *, enabling: Exception | None = None) -> None:
        self.log: list[str] = []
        self.memory = Memory()
        pair = self

        class Context:
            def __init__(self, index: int) -> None:
                self.index = index

            def push(self) -> None:
                pair.log.append(f"push {self.index}")

            def pop(self) -> None:
                pair.log.append("pop")

            def detach(self) -> None:
                pair.log.append(f"detach {self.index}")

            @staticmethod
            def enable_peer_access(other: "Context") -> None:
                pair.log.append(f"reach {other.index}")
                if enabling is not None:
                    raise enabling

        class Device:
            def __init__(self, index: int) -> None:
                self.index = index

            @staticmethod
            def count() -> int:
                return len(reached)

            def can_access_peer(self, other: "Device") -> bool:
                return other.index in reached[self.index]

            def retain_primary_context(self) -> Context:
                return Context(self.index)

        self.Device = Device
        self.Context = Context

    def mem_alloc(self, size_bytes: int) -> Any:
        self.log.append(f"allocate {size_bytes}")
        return self.memory.allocate(size_bytes)


def nvml(links: int | None, speed: int | None = None) -> Any:
    return SimpleNamespace(
        active_nvlinks=lambda: links, fields=lambda *numbers: {} if speed is None else dict.fromkeys(numbers, speed)
    )


@pytest.mark.parametrize(
    ("reached", "index", "found"),
    [
        ({0: set()}, 0, None),
        ({0: {1}, 1: {0}}, 0, 1),
        ({0: {1}, 1: {0}}, 1, 0),
        ({0: set(), 1: set()}, 0, None),
        ({0: {2}, 1: set(), 2: {0}}, 0, 2),
    ],
)
def test_peer_index__is_the_next_device_within_reach(
    reached: dict[int, set[int]], index: int, found: int | None
) -> None:
    assert peer_index(FakePair(reached), index) == found


def test_peer_index__is_none_where_the_driver_refuses_to_say() -> None:
    module: Any = FakePair({0: {1}, 1: {0}})

    def refuse(self: Any, other: Any) -> bool:
        raise FakeError("not permitted")

    module.Device.can_access_peer = refuse
    assert peer_index(module, 0) is None


@pytest.mark.parametrize(
    ("links", "speed", "expected"),
    [(18, 26562, "nvlink-18x26.6"), (4, None, "nvlink-4"), (0, None, "pcie"), (None, None, "pcie")],
)
def test_peer_link__names_links_and_speed_as_an_axis_may(links: int | None, speed: int | None, expected: str) -> None:
    found = peer_link(FakePair({0: {1}, 1: {0}}), 0, nvml(links, speed))
    assert found == expected
    assert CASE_ID.fullmatch(f"bandwidth.peer_read[link={found}]")


def test_peer_link__is_none_alone_whatever_links_are_up() -> None:
    assert peer_link(FakePair({0: set()}), 0, nvml(18, 26562)) is None


def test_peer__memory_is_the_other_device_s_and_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FakePair({0: {1}, 1: {0}})
    monkeypatch.setattr(peer, "driver", lambda: module)
    other = Peer(0)
    first, second = other.buffer(1000), other.buffer(500)
    assert (first.size_bytes, second.size_bytes) == (1000, 500)
    assert first.address != second.address
    other.free()
    assert module.memory.allocated == 0
    other.buffer(200)
    other.close()
    assert module.memory.allocated == 0
    assert module.log == [
        *("reach 1", "push 1", "allocate 1000", "pop", "push 1", "allocate 500", "pop"),
        *("push 1", "pop"),
        *("push 1", "allocate 200", "pop", "push 1", "pop", "detach 1"),
    ]


def test_peer__that_nobody_asked_for_touches_nothing() -> None:
    other = Peer(0)
    other.free()
    other.close()


def test_peer__access_that_is_enabled_already_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FakePair({0: {1}, 1: {0}}, enabling=FakeError("cuCtxEnablePeerAccess failed: already enabled"))
    monkeypatch.setattr(peer, "driver", lambda: module)
    assert Peer(0).buffer(10).size_bytes == 10


def test_peer__says_that_there_is_none_or_that_its_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "driver", lambda: FakePair({0: set()}))
    with pytest.raises(DeviceError, match="no other GPU is visible"):
        Peer(0).buffer(10)
    module = FakePair({0: {1}, 1: {0}})
    module.memory.free_bytes = 100
    monkeypatch.setattr(peer, "driver", lambda: module)
    with pytest.raises(DeviceMemoryError, match="1000 bytes are not free on the other GPU"):
        Peer(0).buffer(1000)
    assert module.log[-1] == "pop"
