"""One arena of device memory for all cases of a launch: a case takes views, the next one reuses it."""

from dataclasses import dataclass
from typing import Any

from perfgate.devices.cuda.driver import driver
from perfgate.errors import DeviceError, DeviceMemoryError

# cuMemAlloc's own alignment; TMA and 16-byte vector accesses need no more.
_ALIGNMENT = 256
# What cases take but for one that looks at all of the memory; frameworks of other cases need the rest.
_KEPT_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaBuffer:
    """A view of the arena."""

    address: int
    size_bytes: int


class Arena:
    """Device memory handed out front to back, grown when a case needs more than any before it.

    Growing frees first: two arenas never exist at once, so that a case may use a quarter of the
    memory on any GPU.
    """

    def __init__(self) -> None:
        self._allocation: Any = None
        self._capacity = 0
        self._used = 0

    def reset(self, size_bytes: int) -> None:
        """Take back all views and make room for at least ``size_bytes``.

        Raises:
            DeviceError: the device has not that much free memory.
        """
        self._used = 0
        module = driver()
        kept_bytes = max(size_bytes, int(module.mem_get_info()[1] * _KEPT_SHARE))
        if size_bytes <= self._capacity <= kept_bytes:
            return
        self.close()
        try:
            self._allocation = module.mem_alloc(size_bytes)
        except module.MemoryError as error:
            free, total = module.mem_get_info()
            raise DeviceMemoryError(
                f"out of memory on the device: {size_bytes / 2**30:.1f} GiB asked for, {free / 2**30:.1f} of"
                f" {total / 2**30:.1f} GiB free",
                hint="stop what else uses this GPU's memory",
            ) from error
        self._capacity = size_bytes

    def buffer(self, size_bytes: int) -> ArenaBuffer:
        """Return a view; memory beyond what was reserved is refused.

        Raises:
            DeviceError: the case asks for more than it declared.
        """
        begin = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        if self._allocation is None or begin + size_bytes > self._capacity:
            raise DeviceError(
                f"a buffer of {size_bytes} bytes does not fit: {self._capacity - begin} of {self._capacity} bytes left",
                hint="declare the case's whole footprint in its work",
            )
        self._used = begin + size_bytes
        return ArenaBuffer(address=int(self._allocation) + begin, size_bytes=size_bytes)

    def close(self) -> None:
        """Free the device memory."""
        if self._allocation is not None:
            self._allocation.free()
        self._allocation = None
        self._capacity = self._used = 0
