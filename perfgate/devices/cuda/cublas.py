"""cuBLASLt through ctypes: the vendor's matrix product, so that a toolkit upgrade that slows it is seen.

Descriptors are opaque pointers that the library makes; values are those of cublasLt.h and
library_types.h, which have not changed since CUDA 11.8. Everything is made before anything is timed: an
execution is one call that enqueues.
"""

import ctypes
import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.toolbox import Buffer
from perfgate.errors import DeviceError

NAME = "cuBLASLt"
_MAJORS = (13, 12)
# NVIDIA's advice for Hopper (cuBLAS, "cublasSetWorkspace"); smaller GPUs ask for less and get no less.
WORKSPACE_BYTES = 32 * 2**20

# cudaDataType_t
_R_32F, _R_64F, _R_16F, _R_8I, _R_32I, _R_16BF, _R_8F_E4M3 = 0, 1, 2, 3, 10, 14, 28
# cublasComputeType_t
_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32I, _COMPUTE_TF32 = 68, 70, 72, 77
# cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t
_TRANSA, _FAST_ACCUMULATION = 3, 25
_WORKSPACE_LIMIT = 1
_TRANSPOSED = 1


class _Algorithm(ctypes.Structure):
    _fields_ = (("opaque", ctypes.c_uint64 * 8),)


class _Heuristic(ctypes.Structure):
    _fields_ = (
        ("algorithm", _Algorithm),
        ("workspace_bytes", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Types:
    """How a product is described: types of the operands, the result, the sum and the factors."""

    operand: int
    result: int
    compute: int
    scale: int
    scalar: type[ctypes.c_float | ctypes.c_double | ctypes.c_int] = ctypes.c_float
    fast_accumulation: bool = False


_TYPES = {
    "fp64": _Types(operand=_R_64F, result=_R_64F, compute=_COMPUTE_64F, scale=_R_64F, scalar=ctypes.c_double),
    "fp32": _Types(operand=_R_32F, result=_R_32F, compute=_COMPUTE_32F, scale=_R_32F),
    "tf32": _Types(operand=_R_32F, result=_R_32F, compute=_COMPUTE_TF32, scale=_R_32F),
    "bf16": _Types(operand=_R_16BF, result=_R_16BF, compute=_COMPUTE_32F, scale=_R_32F),
    "fp16": _Types(operand=_R_16F, result=_R_16F, compute=_COMPUTE_32F, scale=_R_32F),
    "fp8": _Types(
        operand=_R_8F_E4M3, result=_R_16BF, compute=_COMPUTE_32F, scale=_R_32F, fast_accumulation=True
    ),
    "int8": _Types(operand=_R_8I, result=_R_32I, compute=_COMPUTE_32I, scale=_R_32I, scalar=ctypes.c_int),
}  # fmt: skip


class CublasLt:
    """The library, loaded.

    Args:
        library: libcublasLt.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.cublasLtGetVersion.restype = ctypes.c_size_t
        library.cublasLtGetStatusString.restype = ctypes.c_char_p
        number = int(library.cublasLtGetVersion())
        # CUDA 13 and 12 alike: 10000 major + 100 minor + patch.
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    @functools.cached_property
    def _handle(self) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call("cublasLtCreate", ctypes.byref(handle))
        return handle

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = self._library.cublasLtGetStatusString(status)
            raise DeviceError(f"cuBLASLt {self.version}: {name} failed: {text.decode() if text else status}")

    def product(
        self,
        dtype: str,
        shape: tuple[int, int, int],
        operands: tuple[Buffer, Buffer, Buffer],
        workspace: Buffer,
        stream: int,
    ) -> Callable[[], None]:
        """Return a callable that enqueues C = A B^T by the algorithm that the library's heuristic names first.

        Args:
            dtype: type of A and B; results as in ``suite.product``.
            shape: m, n, k of row-major A (m x k), B (n x k), C (m x n).
            operands: A, B and C.
            workspace: memory that the algorithm may use.
            stream: CUstream to enqueue on.

        Raises:
            DeviceError: the library has no algorithm for this product, or fails.
        """
        m, n, k = shape
        a, b, c = operands
        types = _TYPES[dtype]
        # The library's matrices are column-major: ours are C^T = B A^T to it, B transposed ("TN").
        description = ctypes.c_void_p()
        self._call("cublasLtMatmulDescCreate", ctypes.byref(description), types.compute, types.scale)
        self._set("cublasLtMatmulDescSetAttribute", description, _TRANSA, ctypes.c_int32(_TRANSPOSED))
        if types.fast_accumulation:
            self._set("cublasLtMatmulDescSetAttribute", description, _FAST_ACCUMULATION, ctypes.c_int8(1))
        left, right = self._layout(types.operand, k, n), self._layout(types.operand, k, m)
        result = self._layout(types.result, n, m)
        found = self._algorithm(description, left, right, result, workspace.size_bytes)
        one, zero = types.scalar(1), types.scalar(0)
        arguments = (
            self._handle,
            description,
            ctypes.byref(one),
            ctypes.c_void_p(b.address),
            left,
            ctypes.c_void_p(a.address),
            right,
            ctypes.byref(zero),
            ctypes.c_void_p(c.address),
            result,
            ctypes.c_void_p(c.address),
            result,
            ctypes.byref(found.algorithm),
            ctypes.c_void_p(workspace.address),
            ctypes.c_size_t(found.workspace_bytes),
            ctypes.c_void_p(stream),
        )
        enqueue = self._library.cublasLtMatmul

        def execution() -> None:
            status = enqueue(*arguments)
            if status != 0:
                raise DeviceError(f"cuBLASLt {self.version}: cublasLtMatmul failed: status {status}")

        return execution

    def _set(self, function: str, target: ctypes.c_void_p, attribute: int, value: "ctypes._SimpleCData[int]") -> None:
        self._call(function, target, attribute, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _layout(self, data_type: int, rows: int, columns: int) -> ctypes.c_void_p:
        layout = ctypes.c_void_p()
        self._call(
            "cublasLtMatrixLayoutCreate",
            ctypes.byref(layout),
            data_type,
            ctypes.c_uint64(rows),
            ctypes.c_uint64(columns),
            ctypes.c_int64(rows),
        )
        return layout

    def _algorithm(
        self,
        description: ctypes.c_void_p,
        left: ctypes.c_void_p,
        right: ctypes.c_void_p,
        result: ctypes.c_void_p,
        workspace_bytes: int,
    ) -> _Heuristic:
        preference, found, count = ctypes.c_void_p(), _Heuristic(), ctypes.c_int()
        self._call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        try:
            limit = ctypes.c_size_t(workspace_bytes)
            self._set("cublasLtMatmulPreferenceSetAttribute", preference, _WORKSPACE_LIMIT, limit)
            self._call(
                "cublasLtMatmulAlgoGetHeuristic",
                self._handle,
                description,
                left,
                right,
                result,
                result,
                preference,
                1,
                ctypes.byref(found),
                ctypes.byref(count),
            )
        finally:
            self._library.cublasLtMatmulPreferenceDestroy(preference)
        if count.value < 1 or found.status != 0:
            raise DeviceError(f"cuBLASLt {self.version} has no algorithm for this product")
        return found


def required_cublaslt() -> CublasLt:
    """Return cuBLASLt.

    Raises:
        DeviceError: it is not installed.
    """
    library = found_cublaslt()
    if library is None:
        raise DeviceError(
            f"{NAME} is not installed", hint="install it with the CUDA toolkit, or: pip install nvidia-cublas"
        )
    return library


@functools.cache
def found_cublaslt() -> CublasLt | None:
    """Return cuBLASLt of the toolkit or of the nvidia-cublas wheel; None where there is neither."""
    names = [f"libcublasLt.so.{major}" for major in _MAJORS]
    places = [*_wheel_libraries(), *(f"/usr/local/cuda/lib64/{name}" for name in names), *names]
    return next((library for place in places if (library := _loaded(place)) is not None), None)


def _loaded(place: str) -> CublasLt | None:
    try:
        return CublasLt(ctypes.CDLL(place))
    except (OSError, AttributeError):
        return None


def _wheel_libraries() -> list[str]:
    found = importlib.util.find_spec("nvidia")
    if found is None or not found.submodule_search_locations:
        return []
    roots = [Path(location) for location in found.submodule_search_locations]
    return [str(path) for root in roots for path in sorted(root.glob("*/lib/libcublasLt.so.*"), reverse=True)]
