from typing import Any

import pytest

from perfgate.devices.cuda import graph as graph_module
from perfgate.devices.cuda.graph import Graph
from perfgate.errors import DeviceError

CAPTURED, INSTANTIATED = 0x6000, 0x7000


class Library:
    """libcuda's graph functions; ``failing`` names one and the status that it returns."""

    def __init__(self, failing: dict[str, int] | None = None) -> None:
        self.failing = failing or {}
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.log.append(name)
            status = self.failing.get(name, 0)
            if status == 0 and name == "cuStreamEndCapture":
                arguments[1]._obj.value = CAPTURED
            if status == 0 and name == "cuGraphInstantiateWithFlags":
                arguments[0]._obj.value = INSTANTIATED
            if name == "cuGraphGetNodes":
                arguments[2]._obj.value = 3
            return status

        return call


def with_library(monkeypatch: pytest.MonkeyPatch, **failing: int) -> Library:
    library = Library(failing)
    monkeypatch.setattr(graph_module, "libcuda", lambda: library)
    return library


def test_graph__captures_replays_and_is_destroyed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = with_library(monkeypatch)
    graph = Graph(0xABC, lambda: library.log.append("work"))
    assert library.log == ["cuStreamBeginCapture_v2", "work", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"]
    assert graph.node_count == 3
    library.log.clear()
    graph.replay()
    graph.close()
    graph.close()
    assert library.log == ["cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy"]


@pytest.mark.parametrize(
    ("function", "step"),
    [
        ("cuStreamBeginCapture_v2", "begin of the capture"),
        ("cuStreamEndCapture", "end of the capture"),
        ("cuGraphInstantiateWithFlags", "instantiation"),
    ],
)
def test_graph__names_the_step_that_failed(monkeypatch: pytest.MonkeyPatch, function: str, step: str) -> None:
    with_library(monkeypatch, **{function: 900})
    with pytest.raises(DeviceError, match=f"CUDA graph: {step} failed with CUDA error 900"):
        Graph(1, lambda: None)


def test_graph__that_cannot_be_instantiated_is_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = with_library(monkeypatch, cuGraphInstantiateWithFlags=2)
    with pytest.raises(DeviceError):
        Graph(1, lambda: None)
    assert library.log[-1] == "cuGraphDestroy"


def test_graph__ends_the_capture_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is left capturing takes no other work."""
    library = with_library(monkeypatch)

    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Graph(1, failing)
    assert library.log == ["cuStreamBeginCapture_v2", "cuStreamEndCapture"]


def test_replay__that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with_library(monkeypatch, cuGraphLaunch=700)
    graph = Graph(1, lambda: None)
    with pytest.raises(DeviceError, match="launch failed with CUDA error 700"):
        graph.replay()
