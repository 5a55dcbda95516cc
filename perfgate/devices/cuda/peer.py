"""The other GPU: which one this GPU has a link to, what the link is, and memory there."""

from typing import Any

from perfgate.devices.cuda.driver import driver
from perfgate.devices.cuda.memory import ArenaBuffer
from perfgate.devices.cuda.nvml import Nvml
from perfgate.errors import DeviceError, DeviceMemoryError

# NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: of one link, in one direction.
_NVLINK_SPEED_FIELD = 90
_ALREADY_ENABLED = "already"


def peer_index(module: Any, index: int) -> int | None:
    """Return the visible device next to ``index`` whose memory its kernels can reach; None where there is none.

    Args:
        module: PyCUDA's driver module.
        index: of a visible device.
    """
    count = int(module.Device.count())
    try:
        others = [(index + step) % count for step in range(1, count)]
        return next((one for one in others if module.Device(index).can_access_peer(module.Device(one))), None)
    except module.Error:
        return None


def peer_link(module: Any, index: int, nvml: Nvml) -> str | None:
    """Return what joins a device and its peer: ``"nvlink-18x26.6"`` (links x GB/s each) or ``"pcie"``; None without.

    Args: see ``peer_index``; NVML counts the links that are up.
    """
    if peer_index(module, index) is None:
        return None
    links = nvml.active_nvlinks()
    if not links:
        return "pcie"
    speed_mb_per_s = nvml.fields(_NVLINK_SPEED_FIELD).get(_NVLINK_SPEED_FIELD)
    return f"nvlink-{links}x{speed_mb_per_s / 1e3:.1f}" if speed_mb_per_s else f"nvlink-{links}"


class Peer:
    """Memory of the peer of a device; its context is opened when it is first asked for.

    Args:
        index: the device whose context is current.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._context: Any = None
        self._allocations: list[Any] = []

    def buffer(self, size_bytes: int) -> ArenaBuffer:
        """Return memory of the peer that kernels of this device reach.

        Raises:
            DeviceError: there is no peer, or it has not that much free memory.
        """
        module = driver()
        self._open()
        self._context.push()
        try:
            self._allocations.append(module.mem_alloc(size_bytes))
        except module.MemoryError as error:
            raise DeviceMemoryError(f"{size_bytes} bytes are not free on the other GPU") from error
        finally:
            self._context.pop()
        return ArenaBuffer(address=int(self._allocations[-1]), size_bytes=size_bytes)

    def free(self) -> None:
        """Free all memory of the peer."""
        if self._allocations:
            self._context.push()
            try:
                for allocation in self._allocations:
                    allocation.free()
            finally:
                self._context.pop()
        self._allocations = []

    def close(self) -> None:
        """Free the memory and let go of the peer's context."""
        self.free()
        if self._context is not None:
            self._context.detach()
        self._context = None

    def _open(self) -> None:
        if self._context is not None:
            return
        module = driver()
        other = peer_index(module, self._index)
        if other is None:
            raise DeviceError("no other GPU is visible whose memory this one reaches")
        context = module.Device(other).retain_primary_context()
        try:
            module.Context.enable_peer_access(context)
        except module.Error as error:
            if _ALREADY_ENABLED not in str(error).lower():
                raise
        self._context = context
