"""The Toolbox of core.toolbox on CUDA: kernels, buffers and a stream for a case that is prepared."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer
from perfgate.devices.cuda.compiler import CodeCache
from perfgate.devices.cuda.cublas import NAME, WORKSPACE_BYTES, required_cublaslt
from perfgate.devices.cuda.driver import driver
from perfgate.devices.cuda.memory import Arena, ArenaBuffer
from perfgate.devices.cuda.peer import Peer
from perfgate.devices.cuda.tensor_map import MAP_BYTES, encoded_tensor_map
from perfgate.errors import DeviceError

# More dynamic shared memory than this must be asked for explicitly.
_SHARED_WITHOUT_ASKING = 48 * 1024
# Enough to tell data from a constant; small enough to be read in microseconds.
_SAMPLED_WORDS = 64


class CudaKernel:
    """A compiled device function on one stream."""

    def __init__(self, function: Any, name: str, stream: Any) -> None:
        self._function = function
        self._name = name
        self._stream = stream

    def bind(
        self,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared_bytes: int = 0,
    ) -> Callable[[], None]:
        """See core.toolbox.Kernel.bind."""
        types: list[Any] = []
        values: list[Any] = []
        for place, argument in enumerate(args):
            if isinstance(argument, np.generic):
                types.append(argument.dtype)
                values.append(argument)
            elif hasattr(argument, "address"):
                types.append("P")
                values.append(int(argument.address))
            else:
                message = (
                    f"{self._name}: argument {place} is a {type(argument).__name__}; pass a buffer or a numpy scalar"
                    " such as np.uint64(7), since the width of a plain number would be a guess"
                )
                raise TypeError(message)
        if shared_bytes > _SHARED_WITHOUT_ASKING:
            drv = driver()
            self._function.set_attribute(drv.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        self._function.prepare(types)
        call, stream = self._function.prepared_async_call, self._stream
        return lambda: call(grid, block, stream, *values, shared_size=shared_bytes)


class CudaToolbox:
    """What a case may ask of the CUDA device; counts the machine code that it loads."""

    def __init__(self, *, gpu: Gpu, stream: Any, cache: CodeCache, arena: Arena, peer: Peer) -> None:
        self._gpu = gpu
        self._stream = stream
        self._cache = cache
        self._arena = arena
        self._peer = peer
        self._modules: dict[str, Any] = {}
        self._code: list[tuple[str, str]] = []
        self._buffers: list[ArenaBuffer] = []

    @property
    def gpu(self) -> Gpu:
        """The GPU at hand."""
        return self._gpu

    @property
    def stream(self) -> int:
        """Handle of the stream."""
        return int(self._stream.handle)

    @property
    def native_stream(self) -> Any:
        """The ``pycuda.driver.Stream`` itself."""
        return self._stream

    def code_sha256(self, source: str) -> tuple[str, ...]:
        """Hashes of the cubins of a source, or of a library's version, asked for since the last ``begin``, in order."""
        return tuple(code for asked, code in self._code if asked == source)

    def begin(self) -> None:
        """Start counting code and buffers for a new case."""
        self._code = []
        self._buffers = []

    def end(self) -> None:
        """Free what the case had outside of the arena."""
        self._peer.free()

    def varied_bytes(self) -> int:
        """Bytes of the case's buffers that do not hold one repeated word, by samples of each.

        A GPU is faster on constant data (zeros run a BF16 product 13 % faster on H200), so a case that
        reads must have been given some that varies.
        """
        self.synchronize()
        return sum(buffer.size_bytes for buffer in self._buffers if self._is_varied(buffer))

    def _is_varied(self, buffer: ArenaBuffer) -> bool:
        words = min(_SAMPLED_WORDS, buffer.size_bytes // 4)
        last = buffer.size_bytes // 4 - words
        samples = [self.read(buffer, np.uint32, words, 4 * place) for place in (0, last // 2, last)]
        return len(np.unique(np.concatenate(samples))) > 1

    def kernel(
        self,
        source: str,
        function: str,
        *,
        defines: Mapping[str, int | str] | None = None,
        options: Sequence[str] = (),
    ) -> CudaKernel:
        """See core.toolbox.Toolbox.kernel."""
        cubin = self._cache.cubin(source, defines or {}, options)
        self._code.append((source, cubin.sha256))
        drv = driver()
        if cubin.sha256 not in self._modules:
            try:
                self._modules[cubin.sha256] = drv.module_from_buffer(cubin.code)
            except drv.Error as error:
                raise DeviceError(f"{source}: the driver refuses the compiled code: {error}") from error
        try:
            loaded = self._modules[cubin.sha256].get_function(function)
        except drv.Error as error:
            raise DeviceError(f'{source}: no function {function!r} (is it extern "C"?)') from error
        return CudaKernel(loaded, f"{source}:{function}", self._stream)

    def library_products(
        self, dtype: str, shape: tuple[int, int, int], operands: Sequence[tuple[Buffer, Buffer, Buffer]]
    ) -> tuple[Callable[[], None], ...]:
        """See core.toolbox.Toolbox.library_products."""
        library = required_cublaslt()
        self._code.append((NAME, hashlib.sha256(library.version.encode()).hexdigest()))
        workspace = self.buffer(WORKSPACE_BYTES)
        return tuple(library.product(dtype, shape, one, workspace, self.stream) for one in operands)

    def buffer(self, size_bytes: int) -> ArenaBuffer:
        """See core.toolbox.Toolbox.buffer."""
        buffer = self._arena.buffer(size_bytes)
        self._buffers.append(buffer)
        return buffer

    def peer_buffer(self, size_bytes: int) -> ArenaBuffer:
        """See core.toolbox.Toolbox.peer_buffer."""
        return self._peer.buffer(size_bytes)

    def read(self, buffer: Buffer, dtype: Any, count: int, offset_bytes: int = 0) -> np.ndarray:
        """See core.toolbox.Toolbox.read."""
        self.synchronize()
        host = np.empty(count, dtype=dtype)
        if offset_bytes + host.nbytes > buffer.size_bytes:
            message = f"read of {host.nbytes} bytes at {offset_bytes} from a buffer of {buffer.size_bytes}"
            raise ValueError(message)
        driver().memcpy_dtoh(host, buffer.address + offset_bytes)
        return host

    def peek(self, target: np.ndarray, address: int) -> None:
        """Copy device memory to the host now, whatever the stream is doing."""
        driver().memcpy_dtoh(target, address)

    def write(self, buffer: Buffer, values: np.ndarray) -> None:
        """See core.toolbox.Toolbox.write."""
        if values.nbytes > buffer.size_bytes:
            message = f"write of {values.nbytes} bytes to a buffer of {buffer.size_bytes}"
            raise ValueError(message)
        self.synchronize()
        driver().memcpy_htod(buffer.address, np.ascontiguousarray(values))

    def tensor_map(
        self, matrix: Buffer, *, shape: tuple[int, int], box: tuple[int, int], element_bytes: int
    ) -> ArenaBuffer:
        """See core.toolbox.Toolbox.tensor_map."""
        place = self.buffer(MAP_BYTES)
        self.write(place, encoded_tensor_map(matrix.address, shape=shape, box=box, element_bytes=element_bytes))
        return place

    def pinned(self, count: int, dtype: Any) -> np.ndarray:
        """See core.toolbox.Toolbox.pinned."""
        array: np.ndarray = driver().pagelocked_empty(count, dtype)
        return array

    def bound_upload(self, target: Buffer, source: np.ndarray) -> Callable[[], None]:
        """See core.toolbox.Toolbox.bound_upload."""
        _refuse_overrun(source.nbytes, target.size_bytes)
        call, address, stream = driver().memcpy_htod_async, int(target.address), self._stream
        return lambda: call(address, source, stream)

    def bound_download(self, target: np.ndarray, source: Buffer) -> Callable[[], None]:
        """See core.toolbox.Toolbox.bound_download."""
        _refuse_overrun(target.nbytes, source.size_bytes)
        call, address, stream = driver().memcpy_dtoh_async, int(source.address), self._stream
        return lambda: call(target, address, stream)

    def synchronize(self) -> None:
        """Wait until the stream is empty."""
        self._stream.synchronize()

    def synchronize_device(self) -> None:
        """See core.toolbox.Toolbox.synchronize_device."""
        driver().Context.synchronize()


def _refuse_overrun(host_bytes: int, device_bytes: int) -> None:
    if host_bytes > device_bytes:
        message = f"a copy of {host_bytes} bytes to or from a buffer of {device_bytes}"
        raise ValueError(message)
