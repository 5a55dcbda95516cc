"""Callables of any framework, stood for by numpy arrays that say where they are on the device."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perfgate.api as pg
from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError, DeviceError
from tests.unit.suite.fake_toolbox import FakeBuffer, FakeToolbox

N = 64


class ForeignToolbox(FakeToolbox):
    """Knows the memory of others by its address alone, as a device does."""

    def __init__(self) -> None:
        super().__init__(gpu=Gpu(name="small"), stream=0xBEEF)
        self.foreign: dict[int, FakeBuffer] = {}

    def known(self, given: Any) -> Any:
        return given if isinstance(given, (FakeBuffer, np.generic)) else self.foreign[given.address]

    def kernel(self, source: str, function: str, **rest: Any) -> Any:
        kernel = super().kernel(source, function, **rest)
        return SimpleNamespace(bind=lambda *, args, **launch: kernel.bind(args=tuple(map(self.known, args)), **launch))

    def read(self, buffer: Any, dtype: Any, count: int, offset_bytes: int = 0) -> np.ndarray:
        return super().read(self.known(buffer), dtype, count, offset_bytes)


class Tensor:
    """An array of a framework, in memory of the fake device."""

    def __init__(self, toolbox: ForeignToolbox, **interface: Any) -> None:
        self.buffer = toolbox.buffer(N * 4)
        toolbox.foreign[self.buffer.address] = self.buffer
        self._interface: dict[str, Any] = {"shape": (N,), "typestr": "<f4", "data": (self.buffer.address, False)}
        self._interface |= interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface

    @property
    def values(self) -> np.ndarray:
        return self.buffer.view(np.float32)


@pytest.fixture
def toolbox() -> ForeignToolbox:
    return ForeignToolbox()


def opened(toolbox: ForeignToolbox, setup: Callable[..., Any], **changes: Any) -> pg.Workload:
    return pg.callable_case("softmax.torch", setup, **changes).prepare(toolbox)


def test_callable_case__hands_over_the_stream_and_the_axes(toolbox: ForeignToolbox) -> None:
    seen: list[Any] = []

    def setup(stream: pg.Stream, n: int) -> Callable[[], None]:
        seen.append((stream.handle, int(stream), stream.__cuda_stream__(), n))
        return lambda: None

    case = pg.callable_case("softmax.torch", setup, axes={"n": 4}, work=pg.Work(read_bytes=16))
    workload = case.prepare(toolbox)
    assert case.id == "softmax.torch[n=4]"
    assert case.sources == (__file__,)
    assert seen == [(0xBEEF, 0xBEEF, (0, 0xBEEF), 4)]
    assert workload.is_foreign
    assert len(workload.executions) == 1


def test_callable_case__compares_outputs_with_the_reference(toolbox: ForeignToolbox) -> None:
    out = Tensor(toolbox)

    def setup(stream: pg.Stream) -> pg.Execution:
        return pg.Execution(lambda: out.values.fill(3), outputs=[out], reference=lambda: np.full(N, 3.0))

    workload = opened(toolbox, setup)
    workload.poison()
    assert np.isnan(out.values).all()
    assert not workload.verify().passed
    workload.executions[0]()
    assert workload.verify().passed
    out.values[5] = 4
    found = workload.verify()
    assert not found.passed
    assert "the first at index 5: 4 instead of 3" in found.detail


def test_callable_case__takes_a_reference_on_the_device(toolbox: ForeignToolbox) -> None:
    out, expected = Tensor(toolbox), Tensor(toolbox)
    out.values[:] = expected.values[:] = 2.0
    assert opened(toolbox, lambda stream: pg.Execution(print, [out], lambda: expected)).verify().passed


def test_callable_case__without_a_reference_sees_what_was_not_written(toolbox: ForeignToolbox) -> None:
    out = Tensor(toolbox)
    workload = opened(toolbox, lambda stream: pg.Execution(lambda: out.values.fill(1), outputs=[out]))
    workload.poison()
    assert "NaN" in workload.verify().detail
    workload.executions[0]()
    assert workload.verify().passed


def test_callable_case__without_outputs_says_that_nothing_was_verified(toolbox: ForeignToolbox) -> None:
    assert "nothing was verified" in opened(toolbox, lambda stream: lambda: None).verify().detail


def test_callable_case__a_generator_tears_down_when_the_case_is_closed(toolbox: ForeignToolbox) -> None:
    events: list[str] = []

    def setup(stream: pg.Stream) -> Iterator[Callable[[], None]]:
        events.append("up")
        yield lambda: events.append("run")
        events.append("down")

    workload = opened(toolbox, setup)
    workload.executions[0]()
    assert events == ["up", "run"]
    workload.close()
    assert events == ["up", "run", "down"]


def test_callable_case__tears_down_when_what_it_handed_over_is_refused(toolbox: ForeignToolbox) -> None:
    events: list[str] = []

    def setup(stream: pg.Stream) -> Iterator[Any]:
        yield 3
        events.append("down")

    with pytest.raises(ConfigurationError, match="hands over 3"):
        opened(toolbox, setup)
    assert events == ["down"]


def test_callable_case__that_yields_twice_is_refused(toolbox: ForeignToolbox) -> None:
    def setup(stream: pg.Stream) -> Iterator[Callable[[], None]]:
        yield lambda: None
        yield lambda: None

    with pytest.raises(ConfigurationError, match="yields twice"):
        opened(toolbox, setup).close()


@pytest.mark.parametrize("handed", [None, 3, [], [None]])
def test_callable_case__refuses_what_cannot_run(toolbox: ForeignToolbox, handed: Any) -> None:
    with pytest.raises(ConfigurationError, match="hands over"):
        opened(toolbox, lambda stream: handed)


def test_callable_case__names_the_missing_package(toolbox: ForeignToolbox) -> None:
    def setup(stream: pg.Stream) -> Any:
        import a_package_that_is_not_there  # type: ignore[import-not-found]

        return a_package_that_is_not_there

    with pytest.raises(ConfigurationError, match="needs the package a_package_that_is_not_there") as caught:
        opened(toolbox, setup)
    assert "test_callable_case.py:" in caught.value.message


def test_callable_case__names_what_set_up_and_execution_raise_and_where(toolbox: ForeignToolbox) -> None:
    def setup(stream: pg.Stream) -> Any:
        raise ValueError("no such size")

    with pytest.raises(DeviceError, match=r"softmax.torch: set-up raised ValueError: no such size \(test_callable_"):
        opened(toolbox, setup)

    def run() -> None:
        raise RuntimeError("CUDA error: an illegal memory access")

    with pytest.raises(DeviceError, match="an execution raised RuntimeError: CUDA error"):
        opened(toolbox, lambda stream: run).executions[0]()


@pytest.mark.parametrize(
    ("interface", "message"),
    [({"strides": (8,)}, "not contiguous"), ({"typestr": "<c8"}, "elements of type '<c8'")],
)
def test_callable_case__refuses_outputs_that_it_cannot_look_at(
    toolbox: ForeignToolbox, interface: dict[str, Any], message: str
) -> None:
    out = Tensor(toolbox, **interface)
    with pytest.raises(ConfigurationError, match=message):
        opened(toolbox, lambda stream: pg.Execution(print, [out]))
    with pytest.raises(ConfigurationError, match="is a ndarray, not an array on the device"):
        opened(toolbox, lambda stream: pg.Execution(print, [np.zeros(3)]))


def test_callable_case__reads_bf16_as_numbers(toolbox: ForeignToolbox) -> None:
    out = Tensor(toolbox, typestr="<V2")
    out.buffer.view(np.uint16)[:] = 0x3FC0  # 1.5
    workload = opened(toolbox, lambda stream: pg.Execution(print, [out], lambda: np.full(N, 1.5)))
    assert workload.verify().passed
