"""A Toolbox in numpy: buffers are host arrays, kernels are emulated, every bind is recorded."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from perfgate.core.gpu import Gpu

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PATTERN_STEP = np.uint32(0x9E3779B9)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeBuffer:
    address: int
    size_bytes: int
    content: np.ndarray | None = None

    def view(self, dtype: Any) -> np.ndarray:
        assert self.content is not None, "this toolbox records only"
        return self.content.view(dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    source: str
    function: str
    defines: Mapping[str, int | str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Any, ...]
    shared_bytes: int


@dataclass
class FakeKernel:
    toolbox: "FakeToolbox"
    source: str
    function: str
    defines: Mapping[str, int | str]

    def bind(
        self,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared_bytes: int = 0,
    ) -> Callable[[], None]:
        for argument in args:
            assert isinstance(argument, (FakeBuffer, np.generic)), f"{self.function}: {argument!r} has no width"
        bind = Bind(
            source=self.source,
            function=self.function,
            defines=dict(self.defines),
            grid=grid,
            block=block,
            args=tuple(args),
            shared_bytes=shared_bytes,
        )
        self.toolbox.binds.append(bind)
        return lambda: self.toolbox.run(bind)


@dataclass
class FakeToolbox:
    """``emulate=False`` records only: then buffers may be as large as a real GPU's."""

    gpu: Gpu
    emulate: bool = True
    stream: int = 0
    binds: list[Bind] = field(default_factory=list)
    products: list[Bind] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)
    locked: list[np.ndarray] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    allocated_bytes: int = 0
    kernels: dict[str, Callable[[Bind], None]] = field(default_factory=dict)
    maps: dict[int, tuple[FakeBuffer, tuple[int, int], tuple[int, int]]] = field(default_factory=dict)

    def kernel(self, source: str, function: str, *, defines: Mapping[str, int | str] | None = None) -> FakeKernel:
        return FakeKernel(self, source, function, defines or {})

    def buffer(self, size_bytes: int) -> FakeBuffer:
        address = 256 + -(-self.allocated_bytes // 256) * 256
        self.allocated_bytes = address + size_bytes
        return self._memory(address, size_bytes)

    def peer_buffer(self, size_bytes: int) -> FakeBuffer:
        return self._memory(1 << 41, size_bytes)

    def _memory(self, address: int, size_bytes: int) -> FakeBuffer:
        content = np.full(size_bytes, 0xA5, dtype=np.uint8) if self.emulate else None
        return FakeBuffer(address=address, size_bytes=size_bytes, content=content)

    def read(self, buffer: FakeBuffer, dtype: Any, count: int, offset_bytes: int = 0) -> np.ndarray:
        size = np.dtype(dtype).itemsize * count
        assert offset_bytes + size <= buffer.size_bytes
        return buffer.view(np.uint8)[offset_bytes : offset_bytes + size].view(dtype).copy()

    def write(self, buffer: FakeBuffer, values: np.ndarray) -> None:
        assert values.nbytes <= buffer.size_bytes
        if self.emulate:
            buffer.view(np.uint8)[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)

    def library_products(
        self, dtype: str, shape: tuple[int, int, int], operands: Sequence[tuple[FakeBuffer, FakeBuffer, FakeBuffer]]
    ) -> tuple[Callable[[], None], ...]:
        operand, result = _LIBRARY_TYPES[dtype]
        binds = [
            Bind(
                source="",
                function="library_product",
                defines={"OPERAND": operand, "RESULT": result},
                grid=(1, 1, 1),
                block=(1, 1, 1),
                args=(*buffers, *(np.uint32(size) for size in shape)),
                shared_bytes=0,
            )
            for buffers in operands
        ]
        self.products += binds
        return tuple(partial(self.run, bind) for bind in binds)

    def pinned(self, count: int, dtype: Any) -> np.ndarray:
        self.locked.append(np.full(count * np.dtype(dtype).itemsize, 0xA5, dtype=np.uint8).view(dtype))
        return self.locked[-1]

    def bound_upload(self, target: FakeBuffer, source: np.ndarray) -> Callable[[], None]:
        assert source.nbytes <= target.size_bytes
        self.copies.append((source.nbytes, target.size_bytes))
        return lambda: self.write(target, source)

    def bound_download(self, target: np.ndarray, source: FakeBuffer) -> Callable[[], None]:
        assert target.nbytes <= source.size_bytes
        self.copies.append((target.nbytes, source.size_bytes))

        def download() -> None:
            if self.emulate:
                np.copyto(target, self.read(source, target.dtype, target.size))

        return download

    def tensor_map(
        self, matrix: FakeBuffer, *, shape: tuple[int, int], box: tuple[int, int], element_bytes: int
    ) -> FakeBuffer:
        assert shape[1] * element_bytes % 16 == 0
        assert box[1] * element_bytes <= 128
        assert matrix.size_bytes == math.prod(shape) * element_bytes
        place = self.buffer(128)
        self.maps[place.address] = (matrix, shape, box)
        return place

    def synchronize(self) -> None:
        pass

    def synchronize_device(self) -> None:
        pass

    def run(self, bind: Bind) -> None:
        self.executed.append(bind.function)
        if self.emulate:
            {**KERNELS, **self.kernels}[bind.function](bind)


def random_bits(seed: int, count: int) -> np.ndarray:
    """random.cuh, for indices 0 to count - 1."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_uniform(seed: int, count: int) -> np.ndarray:
    odd = 2 * (random_bits(seed, count) >> np.uint64(40)).astype(np.int64) + 1 - 2**24
    return (odd * 2.0**-24).astype(np.float32)


def random_normal_patterns(seed: int, count: int) -> np.ndarray:
    bits = random_bits(seed, count)
    exponent = np.uint64(1) + (((bits >> np.uint64(32)) * np.uint64(254)) >> np.uint64(32))
    return (bits.astype(np.uint32) & np.uint32(0x807FFFFF)) | (exponent.astype(np.uint32) << np.uint32(23))


def pattern_words(seed: int, count: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.uint32(seed) + np.arange(count, dtype=np.uint32) * PATTERN_STEP


def triad(added: np.ndarray, scaled: np.ndarray, scale: np.float32) -> np.ndarray:
    """Rounded once: the products of a 24- and a 2-bit significand and these sums are exact in FP64."""
    return (added.astype(np.float64) + float(scale) * scaled.astype(np.float64)).astype(np.float32)


def tile_sums(words: np.ndarray, tile_words: int) -> np.ndarray:
    starts = np.arange(0, len(words), tile_words)
    return np.add.reduceat(words.astype(np.uint64), starts).astype(np.uint32)


def _tally(buffer: FakeBuffer, wrong: np.ndarray) -> None:
    tally = buffer.view(np.uint64)
    places = np.flatnonzero(wrong)
    tally[0] += np.uint64(len(places))
    if len(places):
        tally[1] = min(tally[1], np.uint64(places[0]))


def _fill(bind: Bind, values: Callable[[int, int], np.ndarray]) -> None:
    buffer, count, seed = bind.args
    buffer.view(np.uint32)[: int(count)] = values(int(seed), int(count)).view(np.uint32)


def random_small_uniform(seed: int, count: int, bits: int) -> np.ndarray:
    """own.cu: the odd multiples of 2^-bits in (-1, 1), as FP64."""
    drawn = (random_bits(seed, count) >> np.uint64(64 - bits)).astype(np.int64)
    return (2 * drawn + 1 - 2**bits) * 2.0**-bits


def random_integers(seed: int, count: int, limit: int, dtype: Any) -> np.ndarray:
    bits = random_bits(seed, count)
    return (bits if limit == 0 else (bits >> np.uint64(1)) % np.uint64(limit)).astype(dtype)


def _fill_float(bind: Bind, bits: int, stored: Callable[[np.ndarray], np.ndarray]) -> None:
    buffer, count, seed = bind.args
    values = stored(random_small_uniform(int(seed), int(count), bits))
    buffer.view(np.uint8)[: values.nbytes] = values.view(np.uint8)


def _fill_integers(bind: Bind) -> None:
    buffer, count, seed, limit, width = bind.args
    values = random_integers(int(seed), int(count), int(limit), f"u{int(width)}")
    buffer.view(np.uint8)[: values.nbytes] = values.view(np.uint8)


def bf16_words(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _hash_words(bind: Bind) -> None:
    words, count, sums = bind.args
    index = np.arange(int(count), dtype=np.uint64)
    mixed = _mixed(words.view(np.uint32)[: int(count)].astype(np.uint64), index)
    with np.errstate(over="ignore"):
        sums.view(np.uint64)[:2] += np.array([mixed.sum(), _mixed(mixed, index).sum()], dtype=np.uint64)


def _mixed(seed: np.ndarray, index: np.ndarray) -> np.ndarray:
    """random_bits of random.cuh, of many seeds."""
    with np.errstate(over="ignore"):
        z = seed + (index + np.uint64(1)) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _count_poison(bind: Bind) -> None:
    target, count, tally = bind.args
    _tally(tally, target.view(np.uint32)[: int(count)] == np.uint32(0xFFFFFFFF))


def _bandwidth_read(bind: Bind) -> None:
    source, partials, vectors = bind.args
    tile_words = int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"]) * 4
    partials.view(np.uint32)[:] = tile_sums(source.view(np.uint32)[: 4 * int(vectors)], tile_words)


def _bandwidth_write(bind: Bind) -> None:
    target, seed, vectors = bind.args
    target.view(np.uint32)[:] = pattern_words(int(seed), 4 * int(vectors))


def _bandwidth_copy(bind: Bind) -> None:
    source, target, _ = bind.args
    target.view(np.uint32)[:] = source.view(np.uint32)


def _bandwidth_triad(bind: Bind) -> None:
    added, scaled, target, scale, _ = bind.args
    target.view(np.float32)[:] = triad(added.view(np.float32), scaled.view(np.float32), scale)


def _check_read(bind: Bind) -> None:
    partials, count, words, tile_words, seed, tally = bind.args
    expected = tile_sums(random_normal_patterns(int(seed), int(words)), int(tile_words))
    _tally(tally, partials.view(np.uint32)[: int(count)] != expected)


def _check_write(bind: Bind) -> None:
    target, count, seed, tally = bind.args
    _tally(tally, target.view(np.uint32) != pattern_words(int(seed), int(count)))


def _check_copy(bind: Bind) -> None:
    target, count, seed, tally = bind.args
    _tally(tally, target.view(np.uint32) != random_normal_patterns(int(seed), int(count)))


def _check_triad(bind: Bind) -> None:
    target, count, seed_added, seed_scaled, scale, tally = bind.args
    expected = triad(random_uniform(int(seed_added), int(count)), random_uniform(int(seed_scaled), int(count)), scale)
    _tally(tally, target.view(np.uint32) != expected.view(np.uint32))


_STORED = {
    "fp64": np.float64,
    "fp32": np.float32,
    "tf32": np.float32,
    "bf16": np.uint16,
    "fp16": np.float16,
    "e4m3": np.uint8,
    "int8": np.int8,
    "int32": np.int32,
}
# Operand and result of what products of a type are.
_LIBRARY_TYPES = {
    "fp64": ("fp64", "fp64"),
    "fp32": ("fp32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "bf16": ("bf16", "bf16"),
    "fp16": ("fp16", "fp16"),
    "fp8": ("e4m3", "bf16"),
    "int8": ("int8", "int32"),
}
# Bits that a significand has, of the types that products draw operands of.
_SIGNIFICANDS = {"fp64": 53, "fp32": 24, "tf32": 11, "bf16": 8, "fp16": 11, "e4m3": 4}


def numbers(buffer: FakeBuffer, element: str) -> np.ndarray:
    """elements.cuh: what the patterns of a buffer are, in FP64."""
    stored = buffer.view(_STORED[element])
    if element == "bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if element == "e4m3":
        magnitude = stored & 0x7F
        exponent, fraction = magnitude >> 3, magnitude & 7
        normal, subnormal = (8.0 + fraction) * 2.0 ** (exponent.astype(np.float64) - 10), fraction * 2.0**-9
        value = np.where(exponent > 0, normal, subnormal)
        return np.where(magnitude == 0x7F, np.nan, np.where(stored & 0x80, -value, value))
    return stored.astype(np.float64)


def patterns(values: np.ndarray, element: str) -> np.ndarray:
    """The patterns of numbers, rounded to nearest; of e4m3 those of normal numbers that it holds exactly."""
    if element == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
        return (np.where(np.isnan(values), bits, rounded) >> np.uint32(16)).astype(np.uint16)
    if element == "e4m3":
        fraction, exponent = np.frexp(np.abs(values))
        magnitude = ((exponent + 6) << 3) + (16 * fraction).astype(np.int64) - 8
        return (magnitude + np.where(values < 0, 0x80, 0)).astype(np.uint8)
    return values.astype(_STORED[element])


def _operands(bind: Bind, place: int) -> np.ndarray:
    return numbers(bind.args[place], str(bind.defines["OPERAND"]))


def _fill_operand(bind: Bind) -> None:
    buffer, count, seed = bind.args
    element = str(bind.defines["OPERAND"])
    if element == "int8":
        filled = ((random_bits(int(seed), int(count)) >> np.uint64(56)).astype(np.int64) - 128).astype(np.int8)
    else:
        filled = patterns(random_small_uniform(int(seed), int(count), _SIGNIFICANDS[element]), element)
    buffer.view(filled.dtype)[: int(count)] = filled


def _count_unwritten(bind: Bind) -> None:
    target, _, tally = bind.args
    result = str(bind.defines["RESULT"])
    values = numbers(target, result)
    _tally(tally, values == -(2.0**31) if result == "int32" else np.isnan(values))


def _fill_signs(bind: Bind) -> None:
    target, count, seed = bind.args
    target.view(np.float64)[:] = np.where(random_bits(int(seed), int(count)) >> np.uint64(63), 1.0, -1.0)


def _multiply_operand(bind: Bind) -> None:
    _, rows, columns, x, y = bind.args
    y.view(np.float64)[:] = _operands(bind, 0).reshape(int(rows), int(columns)) @ x.view(np.float64)


def _multiply_result(bind: Bind) -> None:
    matrix, rows, columns, x, y = bind.args
    whole = numbers(matrix, str(bind.defines["RESULT"])).reshape(int(rows), int(columns))
    y.view(np.float64)[:] = whole @ x.view(np.float64)


def _multiply_transposed(bind: Bind) -> None:
    _, rows, columns, x, y = bind.args
    y.view(np.float64)[:] = _operands(bind, 0).reshape(int(rows), int(columns)).T @ x.view(np.float64)


def _dot_products(bind: Bind) -> None:
    _, _, c, n, k, positions, count, results = bind.args
    rows, columns = positions.view(np.uint32).reshape(int(count), 2).T
    a, b = (_operands(bind, place).reshape(-1, int(k)) for place in (0, 1))
    pairs = results.view(np.float64).reshape(int(count), 2)
    pairs[:, 0] = np.einsum("pk,pk->p", a[rows], b[columns])
    pairs[:, 1] = numbers(c, str(bind.defines["RESULT"])).reshape(-1, int(n))[rows, columns]


def _product(bind: Bind, operand: str, result: str) -> None:
    """C = A B^T, summed up in FP64."""
    a, b, c, m, n, k = bind.args
    left, right = numbers(a, operand).reshape(int(m), int(k)), numbers(b, operand).reshape(int(n), int(k))
    stored = patterns(left @ right.T, result)
    c.view(stored.dtype).reshape(int(m), int(n))[:] = stored


def _library_product(bind: Bind) -> None:
    _product(bind, str(bind.defines["OPERAND"]), str(bind.defines["RESULT"]))


def _gemm_fp32(bind: Bind) -> None:
    a, b, c, m, n, k = bind.args
    left, right = a.view(np.float32).reshape(int(m), int(k)), b.view(np.float32).reshape(int(n), int(k))
    c.view(np.float32).reshape(int(m), int(n))[:] = left @ right.T


KERNELS: dict[str, Callable[[Bind], None]] = {
    "fill_uniform": lambda bind: _fill(bind, random_uniform),
    "fill_normal_patterns": lambda bind: _fill(bind, random_normal_patterns),
    "fill_word": lambda bind: _fill(bind, lambda word, count: np.full(count, word, dtype=np.uint32)),
    "bandwidth_read": _bandwidth_read,
    "bandwidth_write": _bandwidth_write,
    "bandwidth_copy": _bandwidth_copy,
    "bandwidth_triad": _bandwidth_triad,
    "check_read": _check_read,
    "check_write": _check_write,
    "check_copy": _check_copy,
    "check_triad": _check_triad,
    "fill_operand": _fill_operand,
    "count_unwritten": _count_unwritten,
    "fill_signs": _fill_signs,
    "multiply_operand": _multiply_operand,
    "multiply_result": _multiply_result,
    "multiply_transposed": _multiply_transposed,
    "dot_products": _dot_products,
    "gemm_fp32": _gemm_fp32,
    "gemm_fp64": lambda bind: _product(bind, "fp64", "fp64"),
    "gemm_skinny_bf16": lambda bind: _product(bind, "bf16", "bf16"),
    "library_product": _library_product,
    "launch_empty": lambda bind: None,
    "fill_uniform_fp64": lambda bind: _fill_float(bind, 53, lambda values: values),
    "fill_uniform_fp16": lambda bind: _fill_float(bind, 11, lambda values: values.astype(np.float16)),
    "fill_uniform_bf16": lambda bind: _fill_float(bind, 8, bf16_words),
    "fill_integers": _fill_integers,
    "count_poison": _count_poison,
    "hash_words": _hash_words,
}


def buffers_of(bind: Bind) -> list[FakeBuffer]:
    """The buffers among the arguments of a bind."""
    return list(itertools.chain(argument for argument in bind.args if isinstance(argument, FakeBuffer)))
