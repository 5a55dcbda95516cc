from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfgate.core.toolbox import Toolbox
from perfgate.devices.cuda import memory, toolbox
from perfgate.devices.cuda.compiler import CodeCache
from perfgate.devices.cuda.memory import Arena
from perfgate.devices.cuda.peer import Peer
from perfgate.devices.cuda.toolbox import CudaKernel, CudaToolbox
from perfgate.errors import CompileError, DeviceError
from tests.factories import H200
from tests.unit.devices.cuda.fake_cuda import FakeCuda, FakeError, Function, Stream


class Compiler:
    name = "fake 1"

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        return f"{source.name} {options}".encode()


class Bench:
    """A toolbox on a fake device; kernels are found in every module but those that are called missing."""

    def __init__(self, cuda: FakeCuda, folder: Path) -> None:
        self.cuda = cuda
        self.stream: Stream = cuda.stream()
        self.loaded: list[bytes] = []
        self.functions: dict[str, Function] = {}
        self.arena = Arena()
        self.arena.reset(1 << 20)
        cuda.module_from_buffer = self.module  # type: ignore[attr-defined]
        cache = CodeCache(folder, Compiler(), "sm_90a")
        self.toolbox = CudaToolbox(gpu=H200, stream=self.stream, cache=cache, arena=self.arena, peer=Peer(0))

    def module(self, code: bytes) -> Any:
        if b"REFUSED" in code:
            raise FakeError("no kernel image is available for execution on the device")
        self.loaded.append(code)
        return SimpleNamespace(get_function=self.function)

    def function(self, name: str) -> Function:
        if name == "missing":
            raise FakeError("named symbol not found")
        return self.functions.setdefault(name, Function(self.cuda, 1e-6, name=name))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    cuda = FakeCuda()
    for module in (toolbox, memory):
        monkeypatch.setattr(module, "driver", lambda: cuda)
    return Bench(cuda, tmp_path)


def test_toolbox__keeps_the_protocol(bench: Bench) -> None:
    kept: Toolbox = bench.toolbox
    assert kept.gpu == H200
    assert kept.stream == bench.stream.handle


def test_kernel__is_loaded_once_and_counted_for_every_case(bench: Bench) -> None:
    for _ in range(2):
        bench.toolbox.begin()
        bench.toolbox.kernel("launch.cu", "empty")
        bench.toolbox.kernel("launch.cu", "empty", defines={"N": 2})
        assert len(set(bench.toolbox.code_sha256("launch.cu"))) == 2
        assert bench.toolbox.code_sha256("data.cu") == ()
    assert len(bench.loaded) == 2


def test_kernel__of_a_missing_file_or_function_is_named(bench: Bench) -> None:
    with pytest.raises(CompileError, match=r"nothing\.cu"):
        bench.toolbox.kernel("nothing.cu", "empty")
    with pytest.raises(DeviceError, match=r"launch\.cu: no function 'missing' \(is it extern \"C\"\?\)"):
        bench.toolbox.kernel("launch.cu", "missing")


def test_kernel__that_the_driver_refuses_is_named(bench: Bench) -> None:
    with pytest.raises(DeviceError, match=r"launch\.cu: the driver refuses the compiled code: no kernel image"):
        bench.toolbox.kernel("launch.cu", "empty", defines={"REFUSED": 1})


def test_bind__passes_arguments_with_their_widths(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(256)
    kernel = bench.toolbox.kernel("launch.cu", "empty")
    launch = kernel.bind(grid=(3, 2, 1), block=(64, 1, 1), args=(buffer, np.uint64(7), np.float32(0.5)))
    function = bench.functions["empty"]
    assert function.prepared == ["P", np.dtype(np.uint64), np.dtype(np.float32)]
    assert function.calls == []
    launch()
    launch()
    assert function.calls == [((3, 2, 1), (64, 1, 1), (buffer.address, np.uint64(7), np.float32(0.5)), 0)] * 2


@pytest.mark.parametrize("argument", [7, 0.5, True, "7", None, [1]])
def test_bind__refuses_arguments_whose_width_is_a_guess(bench: Bench, argument: object) -> None:
    kernel = bench.toolbox.kernel("launch.cu", "empty")
    with pytest.raises(TypeError, match=rf"argument 0 is a {type(argument).__name__}; pass a buffer or a numpy scalar"):
        kernel.bind(grid=(1, 1, 1), block=(1, 1, 1), args=(argument,))


@pytest.mark.parametrize(("shared_bytes", "asked"), [(0, {}), (48 * 1024, {}), (48 * 1024 + 1, {"shared": 49153})])
def test_bind__asks_for_much_shared_memory_explicitly(bench: Bench, shared_bytes: int, asked: dict[str, int]) -> None:
    function = Function(bench.cuda)
    CudaKernel(function, "k", bench.stream).bind(grid=(1, 1, 1), block=(1, 1, 1), args=(), shared_bytes=shared_bytes)()
    assert function.attributes == asked
    assert function.calls[0][3] == shared_bytes


def test_read__gives_back_what_was_written(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(1024)
    values = np.arange(256, dtype=np.float32)
    bench.toolbox.write(buffer, values)
    assert np.array_equal(bench.toolbox.read(buffer, np.float32, 256), values)


def test_write__takes_a_view_that_is_not_contiguous(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(1024)
    values = np.arange(64, dtype=np.int32).reshape(8, 8).T
    bench.toolbox.write(buffer, values)
    assert np.array_equal(bench.toolbox.read(buffer, np.int32, 64).reshape(8, 8), values)


def test_read_and_write__stay_within_the_buffer(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(16)
    with pytest.raises(ValueError, match="write of 20 bytes to a buffer of 16"):
        bench.toolbox.write(buffer, np.zeros(5, dtype=np.float32))
    with pytest.raises(ValueError, match="read of 16 bytes at 4 from a buffer of 16"):
        bench.toolbox.read(buffer, np.float32, 4, offset_bytes=4)


def test_tensor_map__lies_in_device_memory_aligned_as_maps_must(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.arange(16, dtype=np.uint64)
    asked: list[Any] = []

    def encoded(address: int, **geometry: Any) -> np.ndarray:
        asked.append((address, geometry))
        return words

    monkeypatch.setattr(toolbox, "encoded_tensor_map", encoded)
    matrix = bench.toolbox.buffer(2 * 64 * 128)
    geometry: dict[str, Any] = {"shape": (64, 128), "box": (64, 64), "element_bytes": 2}
    found = bench.toolbox.tensor_map(matrix, **geometry)
    assert asked == [(matrix.address, geometry)]
    assert found.address % 64 == 0
    assert bench.toolbox.read(found, np.uint64, 16).tolist() == words.tolist()


def test_read__waits_for_the_stream(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(16)
    bench.toolbox.write(buffer, np.zeros(4, dtype=np.float32))
    bench.cuda.kernel(bench.stream, 3.0)()
    begun_s = bench.cuda.host.now_s
    bench.toolbox.read(buffer, np.float32, 4)
    assert bench.cuda.host.now_s - begun_s >= 3.0


def test_bound_copies__move_page_locked_memory_when_called(bench: Bench) -> None:
    buffer = bench.toolbox.buffer(64)
    source, target = bench.toolbox.pinned(16, np.uint32), bench.toolbox.pinned(16, np.uint32)
    source[:], target[:] = np.arange(16), 0
    upload, download = bench.toolbox.bound_upload(buffer, source), bench.toolbox.bound_download(target, buffer)
    upload()
    download()
    bench.toolbox.synchronize()
    assert target.tolist() == list(range(16))


def test_bound_copies__beyond_the_buffer_are_refused(bench: Bench) -> None:
    buffer, large = bench.toolbox.buffer(64), bench.toolbox.pinned(17, np.uint32)
    with pytest.raises(ValueError, match="a copy of 68 bytes to or from a buffer of 64"):
        bench.toolbox.bound_upload(buffer, large)
    with pytest.raises(ValueError, match="a copy of 68 bytes to or from a buffer of 64"):
        bench.toolbox.bound_download(large, buffer)


def test_synchronize_device__waits_for_the_context(bench: Bench) -> None:
    waits: list[str] = []
    bench.cuda.Context = SimpleNamespace(synchronize=lambda: waits.append("context"))  # type: ignore[attr-defined]
    bench.toolbox.synchronize_device()
    assert waits == ["context"]
