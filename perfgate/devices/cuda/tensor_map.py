"""Tensor maps: what the copy engine of Hopper and later (TMA) knows of a matrix, encoded by the driver."""

import ctypes

import numpy as np

from perfgate.devices.cuda.driver import libcuda
from perfgate.errors import DeviceError

MAP_BYTES = 128
_MAP_ALIGNMENT = 64
# CUtensorMapDataType of unsigned integers by size: elements are moved as they are, and outside of a matrix are zero.
_TYPES = {1: 0, 2: 1, 4: 2, 8: 4}
_NO_INTERLEAVE, _SWIZZLE_128_BYTES, _PROMOTE_TO_256_BYTES_IN_L2, _ZERO_OUTSIDE = 0, 3, 3, 0


def encoded_tensor_map(address: int, *, shape: tuple[int, int], box: tuple[int, int], element_bytes: int) -> np.ndarray:
    """Return the 128 bytes of a map of a row-major matrix, uint64 of shape (16,).

    Raises:
        DeviceError: the driver has none (before CUDA 12.0) or refuses: rows must be multiples of 16 bytes, a box
            at most 256 rows and 128 bytes wide.
    """
    encode = getattr(libcuda(), "cuTensorMapEncodeTiled", None)
    if encode is None:
        raise DeviceError("the driver knows no tensor maps", hint="install a driver of CUDA 12.0 or later")
    (rows, columns), (box_rows, box_columns) = shape, box
    raw = (ctypes.c_char * (MAP_BYTES + _MAP_ALIGNMENT))()
    aligned = -(-ctypes.addressof(raw) // _MAP_ALIGNMENT) * _MAP_ALIGNMENT
    status = encode(
        ctypes.c_void_p(aligned),
        ctypes.c_int(_TYPES[element_bytes]),
        ctypes.c_uint32(2),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(columns * element_bytes),
        (ctypes.c_uint32 * 2)(box_columns, box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        ctypes.c_int(_NO_INTERLEAVE),
        ctypes.c_int(_SWIZZLE_128_BYTES),
        ctypes.c_int(_PROMOTE_TO_256_BYTES_IN_L2),
        ctypes.c_int(_ZERO_OUTSIDE),
    )
    if status != 0:
        raise DeviceError(
            f"no tensor map of {rows} x {columns} elements of {element_bytes} bytes in boxes of {box_rows} x"
            f" {box_columns}: cuTensorMapEncodeTiled returned {status}",
            hint="rows must be multiples of 16 bytes, a box at most 256 rows and 128 bytes wide",
        )
    return np.array(np.frombuffer(ctypes.string_at(aligned, MAP_BYTES), dtype=np.uint64))
