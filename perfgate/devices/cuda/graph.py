"""CUDA graphs through ctypes: PyCUDA has none. Stream capture around ordinary launches."""

import ctypes
from collections.abc import Callable

from perfgate.devices.cuda.driver import libcuda
from perfgate.errors import DeviceError

_CAPTURE_RELAXED = 2


class Graph:
    """An instantiated graph of what ``enqueue`` puts on the stream.

    Args:
        stream: handle (CUstream) that is captured and replayed on.
        enqueue: launches ordinary work on that stream.

    Raises:
        DeviceError: the work cannot be captured.
    """

    def __init__(self, stream: int, enqueue: Callable[[], None]) -> None:
        self._library = libcuda()
        self._stream = ctypes.c_void_p(stream)
        self._graph = ctypes.c_void_p()
        self._executable = ctypes.c_void_p()
        begin = getattr(self._library, "cuStreamBeginCapture_v2", self._library.cuStreamBeginCapture)
        self._checked("begin of the capture", begin(self._stream, ctypes.c_int(_CAPTURE_RELAXED)))
        try:
            enqueue()
        finally:
            status = self._library.cuStreamEndCapture(self._stream, ctypes.byref(self._graph))
        self._checked("end of the capture", status)
        status = self._library.cuGraphInstantiateWithFlags(
            ctypes.byref(self._executable), self._graph, ctypes.c_ulonglong(0)
        )
        if status != 0:
            self.close()
        self._checked("instantiation", status)

    @property
    def node_count(self) -> int:
        """Number of commands in it."""
        count = ctypes.c_size_t()
        self._checked("count of nodes", self._library.cuGraphGetNodes(self._graph, None, ctypes.byref(count)))
        return count.value

    def replay(self) -> None:
        """Enqueue one replay."""
        self._checked("launch", self._library.cuGraphLaunch(self._executable, self._stream))

    def close(self) -> None:
        """Destroy the graph."""
        if self._executable.value:
            self._library.cuGraphExecDestroy(self._executable)
        if self._graph.value:
            self._library.cuGraphDestroy(self._graph)
        self._executable = self._graph = ctypes.c_void_p()

    def _checked(self, step: str, status: int) -> None:
        if status != 0:
            raise DeviceError(f"CUDA graph: {step} failed with CUDA error {status}")
