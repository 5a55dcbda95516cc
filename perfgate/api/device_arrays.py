"""Arrays of other frameworks on the device, known by ``__cuda_array_interface__`` alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from perfgate.api.elements import ELEMENTS, Element
from perfgate.core.toolbox import Toolbox
from perfgate.errors import ConfigurationError

# BF16 has no numpy type: frameworks export it as two bytes of nothing in particular.
_BF16_TYPES = ("<V2", "|V2")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceArray:
    """Device memory of a framework; a Buffer of the toolbox.

    Attributes:
        address: device pointer.
        shape: number of elements along each axis.
        element: their type.
    """

    address: int
    shape: tuple[int, ...]
    element: Element

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def size_bytes(self) -> int:
        """Bytes of its elements."""
        return self.count * self.element.size_bytes

    def values(self, toolbox: Toolbox) -> np.ndarray:
        """Copy it to the host, as numbers."""
        return self.element.decoded(toolbox.read(self, self.element.storage, self.count)).reshape(self.shape)


def device_array(given: Any, what: str) -> DeviceArray:
    """Return what a framework's array is.

    Raises:
        ConfigurationError: it is not on the device, not contiguous, or of an unknown element type.
    """
    try:
        interface = given.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError) as error:
        raise ConfigurationError(
            f"{what} is a {type(given).__name__}, not an array on the device: {error}",
            hint="pass a CUDA tensor or array that needs no gradient (anything with __cuda_array_interface__)",
        ) from None
    kind = _element(interface["typestr"])
    if kind is None:
        raise ConfigurationError(f"{what} has elements of type {interface['typestr']!r}", hint=f"{', '.join(ELEMENTS)}")
    shape = tuple(int(size) for size in interface["shape"])
    if not _is_contiguous(interface.get("strides"), shape, kind.size_bytes):
        raise ConfigurationError(f"{what} is not contiguous", hint="pass out.contiguous(), or the whole of it")
    return DeviceArray(address=int(interface["data"][0]), shape=shape, element=kind)


def host_values(given: Any, toolbox: Toolbox, what: str) -> np.ndarray:
    """Return an array of the host or of the device as numbers of numpy."""
    if hasattr(given, "__cuda_array_interface__"):
        return device_array(given, what).values(toolbox)
    return np.asarray(given)


def _element(typestr: str) -> Element | None:
    if typestr in _BF16_TYPES:
        return ELEMENTS["bf16"]
    try:
        kind = np.dtype(typestr)
    except TypeError:
        return None
    return next((one for one in ELEMENTS.values() if one.storage == kind and one.name != "bf16"), None)


def _is_contiguous(strides: Any, shape: tuple[int, ...], size_bytes: int) -> bool:
    if strides is None:
        return True
    expected = size_bytes
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True
