"""What a case may ask of a device while it is prepared: kernels, buffers, data and a stream.

Protocols only. ``devices`` implement them, ``suite`` and users' own suites call them; neither
knows the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from perfgate.core.gpu import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether an output is right.

    Attributes:
        passed: the error is within the tolerance and everything was written.
        error: largest relative error found; NaN where something was left unwritten.
        tolerance: largest relative error allowed, derived from the accumulator.
        detail: what was compared with what; names the first wrong element where there is one.
    """

    passed: bool
    error: float
    tolerance: float
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A prepared case.

    Attributes:
        executions: one callable a buffer set; calling it enqueues one execution on the toolbox's
            stream and returns at once. The measuring loop rotates over them.
        poison: makes every output invalid (NaN), so that an execution that writes nothing is seen.
        verify: checks the outputs that the last rotation left behind.
        close: tears down what the set-up made; called once, when the case is over or has failed.
        is_foreign: the executions are somebody's callables, which may synchronize or use another stream:
            the device watches for that before it times them.
        outputs: memory that the first execution writes, for that watch.
        digest: hashes all outputs bit by bit; None where equal outputs need not be equally right.
    """

    executions: tuple[Callable[[], None], ...]
    poison: Callable[[], None]
    verify: Callable[[], Verification]
    close: Callable[[], None] = lambda: None
    is_foreign: bool = False
    outputs: tuple["Buffer", ...] = ()
    digest: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        if not self.executions:
            message = "a workload needs at least one execution"
            raise ValueError(message)


class Buffer(Protocol):
    """Memory that lives as long as the case is open: the device's, where nothing else is said."""

    @property
    def address(self) -> int:
        """Device pointer."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size as asked for; the address is aligned to 256 bytes at least."""
        ...


class Kernel(Protocol):
    """A compiled device function."""

    def bind(
        self,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared_bytes: int = 0,
    ) -> Callable[[], None]:
        """Return a callable that enqueues this kernel with these arguments on the toolbox's stream.

        ``args`` are Buffers or numpy scalars (``np.uint64(7)``); a plain Python int or float is
        refused, since its width would be a guess.
        """
        ...


class Toolbox(Protocol):
    """The device as a case sees it while it is prepared."""

    @property
    def gpu(self) -> Gpu:
        """The GPU at hand."""
        ...

    @property
    def stream(self) -> int:
        """Handle (CUstream) of the stream that everything is timed on."""
        ...

    def kernel(
        self,
        source: str,
        function: str,
        *,
        defines: Mapping[str, int | str] | None = None,
        options: Sequence[str] = (),
    ) -> Kernel:
        """Compile ``source`` (a file of the kernels folder, or an absolute path) and return ``function`` of it.

        ``options`` are the compiler's own, e.g. ``"-I/usr/local/cutlass/include"``.

        Raises:
            CompileError: with the compiler's log.
        """
        ...

    def library_products(
        self, dtype: str, shape: tuple[int, int, int], operands: Sequence[tuple[Buffer, Buffer, Buffer]]
    ) -> tuple[Callable[[], None], ...]:
        """Return callables that enqueue C = A B^T by the vendor's library on the toolbox's stream, one a buffer set.

        A is m x k, B n x k, C m x n, row-major; C is of the type that products of ``dtype`` have in
        ``suite.product``. What the library chooses is chosen now.

        Args:
            dtype: type of A and B, e.g. ``"bf16"``.
            shape: m, n, k.
            operands: A, B and C of each buffer set.

        Raises:
            DeviceError: the library is not installed or has no such product.
        """
        ...

    def buffer(self, size_bytes: int) -> Buffer:
        """Return uninitialised device memory of the arena that all cases of a launch share.

        Raises:
            DeviceError: the arena is too small; names the size asked for and the size left.
        """
        ...

    def peer_buffer(self, size_bytes: int) -> Buffer:
        """Return uninitialised memory of the GPU that ``Gpu.peer_link`` is to, for kernels and copies of this one.

        Raises:
            DeviceError: there is none within reach, or it has not that much free memory.
        """
        ...

    def read(self, buffer: Buffer, dtype: Any, count: int, offset_bytes: int = 0) -> np.ndarray:
        """Copy ``count`` elements to the host, after the stream has finished."""
        ...

    def write(self, buffer: Buffer, values: np.ndarray) -> None:
        """Copy an array to the device, in stream order."""
        ...

    def tensor_map(self, matrix: Buffer, *, shape: tuple[int, int], box: tuple[int, int], element_bytes: int) -> Buffer:
        """Return a map of a row-major matrix for the copy engine of Hopper and later (TMA), in device memory.

        Boxes of ``box`` rows and columns lie in shared memory with the swizzle of 128 bytes; outside of the
        matrix is zero. A kernel takes the map as a pointer, and acquires it before its first use
        (``fence.proxy.tensormap``), since the host wrote it.

        Raises:
            DeviceError: there is none, e.g. of rows that are no multiples of 16 bytes.
        """
        ...

    def pinned(self, count: int, dtype: Any) -> np.ndarray:
        """Return uninitialised page-locked host memory; it lives as long as something refers to it."""
        ...

    def bound_upload(self, target: Buffer, source: np.ndarray) -> Callable[[], None]:
        """Return a callable that enqueues a copy of page-locked memory to the begin of ``target`` and returns at once.

        Raises:
            ValueError: the source is larger than the target.
        """
        ...

    def bound_download(self, target: np.ndarray, source: Buffer) -> Callable[[], None]:
        """Return a callable that enqueues a copy of the begin of ``source`` to page-locked memory.

        Raises:
            ValueError: the target is larger than the source.
        """
        ...

    def synchronize(self) -> None:
        """Wait until the stream is empty."""
        ...

    def synchronize_device(self) -> None:
        """Wait until every stream of the device's context is empty."""
        ...
