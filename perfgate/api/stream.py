"""The stream that everything is timed on, as a callable of an own suite gets it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stream:
    """A CUDA stream: all work that is to be timed must be enqueued on it, and nothing may wait for it.

    Every framework takes it: ``torch.cuda.ExternalStream(stream.handle)``,
    ``cupy.cuda.Stream.from_external(stream)`` (or ``ExternalStream(stream.handle)``),
    ``numba.cuda.external_stream(stream.handle)``, ``stream.native`` for PyCUDA.

    Attributes:
        handle: CUstream as a number.
        native: the device's own object, a ``pycuda.driver.Stream`` on CUDA; None on a device that has none.
    """

    handle: int
    native: Any = None

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return version and handle: the protocol of cuda.core that CuPy, Numba and others read."""
        return (0, self.handle)

    def __int__(self) -> int:
        return self.handle
