"""What is asked of the driver for a map of a matrix, and what is said where it refuses."""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfgate.devices.cuda import tensor_map as tensor_map_module
from perfgate.devices.cuda.tensor_map import encoded_tensor_map
from perfgate.errors import DeviceError


def with_driver(monkeypatch: pytest.MonkeyPatch, status: int = 0) -> list[tuple[Any, ...]]:
    """A driver that writes 0, 1, 2, ... into the map; returns what it was asked."""
    asked: list[tuple[Any, ...]] = []

    def encode(place: ctypes.c_void_p, *arguments: Any) -> int:
        assert place.value is not None
        assert place.value % 64 == 0
        ctypes.memmove(place.value, np.arange(16, dtype=np.uint64).tobytes(), 128)
        asked.append(tuple(list(one) if isinstance(one, ctypes.Array) else one.value for one in arguments))
        return status

    library = SimpleNamespace(cuTensorMapEncodeTiled=encode)
    monkeypatch.setattr(tensor_map_module, "libcuda", lambda: library)
    return asked


def test_encoded_tensor_map__puts_the_contiguous_dimension_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = with_driver(monkeypatch)
    found = encoded_tensor_map(0x7000, shape=(300, 520), box=(128, 64), element_bytes=2)
    assert found.tolist() == list(range(16))
    unsigned_16_bits, no_interleave, swizzle_of_128_bytes, promotion_to_256, zero_outside = 1, 0, 3, 3, 0
    modes = (no_interleave, swizzle_of_128_bytes, promotion_to_256, zero_outside)
    assert asked == [(unsigned_16_bits, 2, 0x7000, [520, 300], [1040], [64, 128], [1, 1], *modes)]


def test_encoded_tensor_map__says_what_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_driver(monkeypatch, status=1)
    with pytest.raises(DeviceError, match=r"3 x 5 elements of 4 bytes in boxes of 2 x 4: .* returned 1"):
        encoded_tensor_map(0x7000, shape=(3, 5), box=(2, 4), element_bytes=4)


def test_encoded_tensor_map__needs_a_driver_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_map_module, "libcuda", SimpleNamespace)
    with pytest.raises(DeviceError, match="knows no tensor maps"):
        encoded_tensor_map(0x7000, shape=(8, 8), box=(8, 8), element_bytes=2)
