# ruff: noqa: N802 - the library's own names
"""How cuBLASLt is asked for a product, and what is said where it is missing or refuses."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from perfgate.devices.cuda import cublas
from perfgate.devices.cuda.cublas import CublasLt, found_cublaslt, required_cublaslt
from perfgate.devices.cuda.memory import ArenaBuffer
from perfgate.errors import DeviceError

INT8, FP32, BF16, INT32, FP64, E4M3 = 3, 0, 14, 10, 1, 28
HANDLE, FIRST_DESCRIPTOR = 0x4000, 0x5000
STREAM = 0x7777


class FakeLibrary:
    """Notes what is asked; fails where told to."""

    def __init__(self, failing: str = "", algorithms: int = 1) -> None:
        self.failing = failing
        self.algorithms = algorithms
        self.layouts: dict[int, tuple[int, int, int, int]] = {}
        self.descriptions: list[tuple[int, int]] = []
        self.attributes: list[tuple[int, int, int]] = []
        self.workspace_limit = 0
        self.products: list[tuple[Any, ...]] = []
        self.destroyed = 0
        self.next = FIRST_DESCRIPTOR

    def __getattr__(self, name: str) -> Any:
        called = self.__class__.__dict__.get(f"_{name}")
        if called is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            return 15 if name == self.failing else called(self, *arguments)

        self.__dict__[name] = call
        return call

    def _made(self, place: Any) -> int:
        self.next += 1
        place._obj.value = self.next
        return self.next

    def _cublasLtGetVersion(self) -> int:
        return 130102

    def _cublasLtGetStatusString(self, status: int) -> bytes:
        return b"CUBLAS_STATUS_NOT_SUPPORTED" if status == 15 else b"?"

    def _cublasLtCreate(self, place: Any) -> int:
        place._obj.value = HANDLE
        return 0

    def _cublasLtMatmulDescCreate(self, place: Any, compute: int, scale: int) -> int:
        self._made(place)
        self.descriptions.append((compute, scale))
        return 0

    def _cublasLtMatmulDescSetAttribute(self, _: Any, attribute: int, value: Any, size: Any) -> int:
        self.attributes.append((attribute, value._obj.value, size.value))
        return 0

    def _cublasLtMatrixLayoutCreate(self, place: Any, kind: int, rows: Any, columns: Any, leading: Any) -> int:
        self.layouts[self._made(place)] = (kind, rows.value, columns.value, leading.value)
        return 0

    def _cublasLtMatmulPreferenceCreate(self, place: Any) -> int:
        self._made(place)
        return 0

    def _cublasLtMatmulPreferenceSetAttribute(self, _: Any, attribute: int, value: Any, size: Any) -> int:
        assert (attribute, size.value) == (1, 8)
        self.workspace_limit = value._obj.value
        return 0

    def _cublasLtMatmulPreferenceDestroy(self, _: Any) -> int:
        self.destroyed += 1
        return 0

    def _cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:
        found, count = arguments[-2]._obj, arguments[-1]._obj
        assert ctypes.sizeof(found) == 96
        found.algorithm.opaque[0] = 42
        found.workspace_bytes = 4096
        count.value = self.algorithms
        return 0

    def _cublasLtMatmul(self, *arguments: Any) -> int:
        self.products.append(arguments)
        return 0


def buffer(address: int, size_bytes: int = 2**20) -> ArenaBuffer:
    return ArenaBuffer(address=address, size_bytes=size_bytes)


A, B, C, WORKSPACE = buffer(0x1000), buffer(0x2000), buffer(0x3000), buffer(0x9000, 2**25)


def product(library: FakeLibrary, dtype: str = "bf16") -> Callable[[], None]:
    made: Any = library
    return CublasLt(made).product(dtype, (16, 96, 128), (A, B, C), WORKSPACE, STREAM)


def test_product__is_that_of_row_major_matrices() -> None:
    """C^T = B A^T to a library that counts by columns: B first and transposed, n x k, then A, then C of n x m."""
    library = FakeLibrary()
    execute = product(library)
    assert not library.products
    execute()
    (asked,) = library.products
    values = [one.value if isinstance(one, (ctypes.c_void_p, ctypes.c_size_t)) else one._obj for one in asked]
    handle, _, one, b, left, a, right, zero, c, before, d, after, algorithm, workspace, size, stream = values
    assert (handle, a, b, c, d) == (HANDLE, A.address, B.address, C.address, C.address)
    assert (one.value, zero.value) == (1.0, 0.0)
    assert library.layouts[left] == (BF16, 128, 96, 128)
    assert library.layouts[right] == (BF16, 128, 16, 128)
    assert library.layouts[before] == library.layouts[after] == (BF16, 96, 16, 96)
    assert library.attributes == [(3, 1, 4)]
    assert algorithm.opaque[0] == 42
    assert (workspace, size, stream) == (WORKSPACE.address, 4096, STREAM)
    assert library.workspace_limit == WORKSPACE.size_bytes
    assert library.destroyed == 1


@pytest.mark.parametrize(
    ("dtype", "operand", "result", "compute", "scale"),
    [
        ("fp64", FP64, FP64, 70, FP64),
        ("fp32", FP32, FP32, 68, FP32),
        ("tf32", FP32, FP32, 77, FP32),
        ("bf16", BF16, BF16, 68, FP32),
        ("fp16", 2, 2, 68, FP32),
        ("fp8", E4M3, BF16, 68, FP32),
        ("int8", INT8, INT32, 72, INT32),
    ],
)
def test_product__names_the_types(dtype: str, operand: int, result: int, compute: int, scale: int) -> None:
    library = FakeLibrary()
    product(library, dtype)()
    kinds = [layout[0] for layout in library.layouts.values()]
    assert kinds == [operand, operand, result]
    assert library.descriptions == [(compute, scale)]
    one = library.products[0][2]._obj
    assert ctypes.sizeof(one) == {FP64: 8, FP32: 4, INT32: 4}[scale]
    assert ((25, 1, 1) in library.attributes) == (dtype == "fp8")


def test_product__makes_one_handle() -> None:
    library = FakeLibrary()
    made: Any = library
    loaded = CublasLt(made)
    for _ in range(2):
        loaded.product("bf16", (16, 96, 128), (A, B, C), WORKSPACE, STREAM)()
    assert [asked[0].value for asked in library.products] == [HANDLE, HANDLE]


@pytest.mark.parametrize("function", ["cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic"])
def test_product__says_what_the_library_refuses(function: str) -> None:
    with pytest.raises(DeviceError, match=rf"cuBLASLt 13.1.2: {function} failed: CUBLAS_STATUS_NOT_SUPPORTED"):
        product(FakeLibrary(failing=function))


def test_product__says_that_there_is_no_algorithm() -> None:
    library = FakeLibrary(algorithms=0)
    with pytest.raises(DeviceError, match="has no algorithm"):
        product(library)
    assert library.destroyed == 1


def test_product__fails_where_an_execution_does() -> None:
    execute = product(FakeLibrary(failing="cublasLtMatmul"))
    with pytest.raises(DeviceError, match="cublasLtMatmul failed: status 15"):
        execute()


def test_found_cublaslt__takes_the_first_that_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def load(place: str) -> Any:
        tried.append(place)
        if place != "libcublasLt.so.12":
            raise OSError(place)
        return FakeLibrary()

    monkeypatch.setattr(cublas.ctypes, "CDLL", load)
    monkeypatch.setattr(cublas, "_wheel_libraries", lambda: ["/wheel/libcublasLt.so.13"])
    found_cublaslt.cache_clear()
    try:
        found = found_cublaslt()
        assert found is not None
        assert found.version == "13.1.2"
        assert tried[0] == "/wheel/libcublasLt.so.13"
    finally:
        found_cublaslt.cache_clear()


def test_required_cublaslt__says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "found_cublaslt", lambda: None)
    with pytest.raises(DeviceError, match="cuBLASLt is not installed") as refused:
        required_cublaslt()
    assert "nvidia-cublas" in refused.value.hint
