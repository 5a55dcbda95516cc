"""A Toolbox that runs the real kernels on the CPU: sources are compiled with the host's compiler over a shim.

Slow, single-threaded and right: for shapes at the edges, where an emulation in numpy would prove nothing.
"""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.core.gpu import Gpu
from perfgate.resources import resource_folder
from tests.unit.suite.declarations import signatures

COMPILER = shutil.which("g++")
GUARD_BYTES = 256
_GUARD = 0xC3
# PTX does not exist on the host: loads and stores with cache hints, special functions, tensor cores.
_PTX = {
    r"asm volatile\(LOAD_PTX": "v = *address;",
    r"asm volatile\(STORE_PTX": "*address = v;",
    r'asm\("ex2\.approx': "y = exp2f(x);",
    r'asm\("rcp\.approx': "y = 1 / x;",
    r'asm volatile\("mma\.sync': "host::mma_bf16(d, {a0, a1, a2, a3}, {b0, b1});",
    r'asm volatile\("movmatrix': "found = host::transposed_8x8(pair);",
}
_INCLUDE = re.compile(r'^#include "(.*)"$', re.MULTILINE)
_DYNAMIC_SHARED = re.compile(r"extern __shared__ (\w+ \w+)\[\];")
_DYNAMIC_WORDS = 2**14
# Headers of instructions that the host lacks, and what stands for them.
_ON_HOST = {"mma.cuh": Path(__file__).parent / "mma_on_host.hpp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBuffer:
    """Memory between two guards; the content starts aligned to 256 bytes."""

    memory: np.ndarray
    address: int
    size_bytes: int

    def view(self, dtype: Any) -> np.ndarray:
        begin = self.address - self.memory.ctypes.data
        return self.memory[begin : begin + self.size_bytes].view(dtype)

    def is_guarded(self) -> bool:
        begin = self.address - self.memory.ctypes.data
        outside = np.concatenate([self.memory[:begin], self.memory[begin + self.size_bytes :]])
        return bool((outside == _GUARD).all())


@dataclass
class HostKernel:
    toolbox: "HostToolbox"
    library: ctypes.CDLL
    source: str
    function: str

    def bind(
        self,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[Any],
        shared_bytes: int = 0,
    ) -> Callable[[], None]:
        assert shared_bytes <= 16 * _DYNAMIC_WORDS
        assert block[1:] == (1, 1)
        self.toolbox.bound.append((self.function, tuple(args)))
        parameters = signatures(self.source)[self.function].parameters
        values = [
            ctypes.c_void_p(one.address) if kind == "pointer" else np.ctypeslib.as_ctypes_type(one.dtype)(one.item())
            for kind, one in zip(parameters, args, strict=True)
        ]
        entry = getattr(self.library, f"host_{self.function}")
        place = [ctypes.c_uint(one) for one in (grid[0], grid[1], block[0], self.toolbox.backwards)]
        return lambda: entry(*place, *values)


@dataclass
class HostToolbox:
    gpu: Gpu
    backwards: bool = False
    stream: int = 0
    buffers: list[HostBuffer] = field(default_factory=list)
    bound: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def kernel(self, source: str, function: str, *, defines: Mapping[str, int | str] | None = None) -> HostKernel:
        options = tuple(f"-D{name}={value}" for name, value in sorted((defines or {}).items()))
        return HostKernel(self, _library(source, options), source, function)

    def buffer(self, size_bytes: int) -> HostBuffer:
        memory = np.full(size_bytes + 3 * GUARD_BYTES, _GUARD, dtype=np.uint8)
        address = -(-(memory.ctypes.data + GUARD_BYTES) // 256) * 256
        self.buffers.append(HostBuffer(memory=memory, address=address, size_bytes=size_bytes))
        return self.buffers[-1]

    def read(self, buffer: HostBuffer, dtype: Any, count: int, offset_bytes: int = 0) -> np.ndarray:
        size = np.dtype(dtype).itemsize * count
        return buffer.view(np.uint8)[offset_bytes : offset_bytes + size].view(dtype).copy()

    def write(self, buffer: HostBuffer, values: np.ndarray) -> None:
        buffer.view(np.uint8)[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)

    def synchronize(self) -> None:
        pass

    def assert_guarded(self) -> None:
        assert all(buffer.is_guarded() for buffer in self.buffers), "a kernel wrote outside of its buffers"


@functools.cache
def _library(source: str, options: tuple[str, ...]) -> ctypes.CDLL:
    assert COMPILER is not None
    text = _on_host(resource_folder("kernels") / source)
    text = _DYNAMIC_SHARED.sub(rf"alignas(128) static \1[{_DYNAMIC_WORDS}];", text)
    with tempfile.TemporaryDirectory() as folder:
        program, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        program.write_text(f'#include "cuda_on_host.hpp"\n{text}\n{_entries(source)}', encoding="utf-8")
        # Shared memory of an inline function would otherwise be one for all libraries, whatever its size in each.
        command = [COMPILER, "-std=c++20", "-O2", "-shared", "-fPIC", "-fno-gnu-unique", "-Wno-unknown-pragmas"]
        finished = subprocess.run(
            [*command, f"-I{Path(__file__).parent}", *options, "-o", str(library), str(program)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return ctypes.CDLL(str(library))


def _on_host(path: Path, included: set[str] | None = None) -> str:
    """The source with its headers in place, each once, and without PTX."""
    included = set() if included is None else included

    def content(found: re.Match[str]) -> str:
        if found[1] in included:
            return ""
        included.add(found[1])
        return _on_host(_ON_HOST.get(found[1], resource_folder("kernels") / found[1]), included)

    text = path.read_text(encoding="utf-8").replace("#pragma once\n", "")
    for ptx, instead in _PTX.items():
        text = re.sub(rf"{ptx}.*?;\n", f"{instead}\n", text, flags=re.DOTALL)
    return _INCLUDE.sub(content, text)


def _entries(source: str) -> str:
    """C functions ``host_<kernel>(grid x, grid y, threads, from_the_last, arguments...)``."""
    lines = []
    for name, signature in signatures(source).items():
        names = [f"a{place}" for place in range(len(signature.declared))]
        head = ", ".join(
            ["unsigned x", "unsigned y", "unsigned threads", "unsigned from_the_last"]
            + [f"{declared} {one}" for declared, one in zip(signature.declared, names, strict=True)]
        )
        lines.append(
            f'extern "C" void host_{name}({head}) {{ host::launch({{x, y, 1}}, {{threads, 1, 1}}, from_the_last,'
            f" [&] {{ {name}({', '.join(names)}); }}); }}"
        )
    return "\n".join(lines)
