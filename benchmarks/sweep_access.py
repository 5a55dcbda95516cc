"""Finds the knobs of kernels/access.cu and kernels/onchip.cu on the GPU at hand.

    python benchmarks/sweep_access.py [--pattern GLOB] [--gib 4] [--json FILE] [--compile-only sm_90a]

Every block size, unrolling and hint once for each pattern; then the best again in turns, so that a drift
of the machine meets all of them. Outputs are not looked at: the cases and their tests do that.
"""

import argparse
import fnmatch
import itertools
import json
import os
import statistics
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.devices.cuda.compiler import CodeCache, found_compiler
from perfgate.devices.cuda.driver import driver, primary_context
from perfgate.resources import cache_folder

GATHERED_SHARE = 16
L2_MIB = (8, 12, 16, 20, 24, 32)
L2_READ_BYTES = 2**31
SHARED_PASSES = 4096
LEAST_INTERVAL_S = 6e-3
FINALISTS = 6
ROUNDS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What is read how; knobs that fit it are all that ``variants`` gives.

    Attributes:
        name: as in the case's id.
        kernel: function.
        width, stride, offset: of copies, in words and elements.
        l2_mib: size of an array in the L2.
    """

    name: str
    kernel: str
    width: int = 1
    stride: int = 1
    offset: int = 0
    l2_mib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Knobs; ``blocks_per_sm`` is 0 where there is a block a tile."""

    block: int
    unroll: int
    load: int = 1
    store: int = 1
    blocks_per_sm: int = 0


PATTERNS = (
    Pattern(name="gather", kernel="access_gather"),
    *(Pattern(name=f"vector_copy width={width}", kernel="access_copy", width=width) for width in (1, 2, 4)),
    Pattern(name="misaligned", kernel="access_copy", offset=1),
    *(Pattern(name=f"strided stride={stride}", kernel="access_copy", stride=stride) for stride in (2, 4, 8, 16)),
    *(Pattern(name=f"l2_read {mib} MiB", kernel="onchip_l2", l2_mib=mib) for mib in L2_MIB),
    Pattern(name="shared", kernel="onchip_shared"),
)


def variants(pattern: Pattern) -> list[Variant]:
    """Return the knobs that are tried for a pattern."""
    blocks = (128, 256, 512, 1024)
    if pattern.kernel == "onchip_shared":
        shapes = [
            (block, unroll) for block, unroll in itertools.product(blocks, (1, 2, 4, 8)) if block * unroll <= 2048
        ]
        return [
            Variant(block=block, unroll=unroll, blocks_per_sm=several)
            for (block, unroll), several in itertools.product(shapes, (1, 2, 4, 8))
            if block * several <= 2048 and block * unroll * several * 16 <= 200 * 2**10
        ]
    if pattern.kernel == "onchip_l2":
        return [
            Variant(block=block, unroll=unroll, blocks_per_sm=several)
            for block, unroll, several in itertools.product(blocks, (1, 2, 4, 8), (1, 2, 4, 8, 16))
            if 256 <= block * several <= 2048
        ]
    unrolls = {1: (1, 2, 4, 8, 16), 2: (1, 2, 4, 8), 4: (1, 2, 4)}[pattern.width]
    return [
        Variant(block=block, unroll=unroll, load=load, store=store)
        for block, unroll, load, store in itertools.product(blocks, unrolls, (0, 1, 2), (0, 1))
    ]


def defines(pattern: Pattern, variant: Variant) -> Mapping[str, int]:
    """Return what the compiler is told."""
    shape = {"BLOCK": variant.block, "UNROLL": variant.unroll}
    if pattern.kernel.startswith("onchip"):
        return shape
    return {**shape, "WIDTH": pattern.width, "LOAD": variant.load, "STORE": variant.store}


def source(pattern: Pattern) -> str:
    """Return the file of a pattern's kernel."""
    return "onchip.cu" if pattern.kernel.startswith("onchip") else "access.cu"


def compile_all(cache: CodeCache, patterns: Iterable[Pattern]) -> None:
    """Compile every variant into the cache, on all cores."""
    wanted = {
        (source(pattern), tuple(sorted(defines(pattern, variant).items())))
        for pattern in patterns
        for variant in variants(pattern)
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda one: cache.cubin(one[0], dict(one[1])), sorted(wanted)))


class Bench:
    """Arrays, modules and a stream on the device."""

    def __init__(self, cache: CodeCache, span_bytes: int, device: Any) -> None:
        self._drv = driver()
        self._cache = cache
        self._span_bytes = span_bytes
        self._sms = device.multiprocessor_count
        self._functions: dict[tuple[str, tuple[tuple[str, int], ...]], Any] = {}
        self._modules: list[Any] = []
        self._stream = self._drv.Stream(1)
        self._in = self._drv.mem_alloc(span_bytes + 4096)
        self._out = self._drv.mem_alloc(span_bytes)
        self._gathered = span_bytes // 4 // GATHERED_SHARE
        self._indices = self._drv.mem_alloc(4 * self._gathered)
        fill = self._module("data.cu", {}).get_function("fill_normal_patterns").prepare(["P", np.uint64, np.uint64])
        fill.prepared_async_call((65536, 1), (256, 1, 1), self._stream, self._in, span_bytes // 4, 0)
        pick = self._module("access.cu", {}).get_function("access_indices").prepare(["P"] + 3 * [np.uint64])
        limits = (self._gathered, 1, span_bytes // 4)
        pick.prepared_async_call((65536, 1), (256, 1, 1), self._stream, self._indices, *limits)
        self._stream.synchronize()

    def _module(self, name: str, given: Mapping[str, int]) -> Any:
        module = self._drv.module_from_buffer(self._cache.cubin(name, given).code)
        self._modules.append(module)
        return module

    def _function(self, pattern: Pattern, variant: Variant, types: list[Any]) -> Any:
        given = defines(pattern, variant)
        key = (pattern.kernel, tuple(sorted(given.items())))
        if key not in self._functions:
            found = self._module(source(pattern), given).get_function(pattern.kernel)
            self._functions[key] = found.prepare(types)
        return self._functions[key]

    def prepared(self, pattern: Pattern, variant: Variant) -> tuple[Callable[[], None], int]:
        """Return an execution and the bytes that it has to move."""
        block, tile = (variant.block, 1, 1), variant.block * variant.unroll
        blocks = self._sms * variant.blocks_per_sm
        call: Callable[..., None]
        if pattern.kernel == "onchip_shared":
            call = self._function(pattern, variant, ["P", "P", np.uint32]).prepared_async_call
            arguments: tuple[Any, ...] = (self._in, self._out, SHARED_PASSES)
            moved = blocks * tile * 16 * SHARED_PASSES
        elif pattern.kernel == "onchip_l2":
            passes = L2_READ_BYTES // (pattern.l2_mib * 2**20)
            call = self._function(pattern, variant, ["P", "P", np.uint32, np.uint32]).prepared_async_call
            arguments = (self._in, self._out, pattern.l2_mib * 2**16, passes)
            moved = passes * pattern.l2_mib * 2**20
        elif pattern.kernel == "access_gather":
            blocks = -(-self._gathered // tile)
            call = self._function(pattern, variant, ["P", "P", "P", np.uint64]).prepared_async_call
            arguments = (self._in, self._indices, self._out, self._gathered)
            moved = 12 * self._gathered
        else:
            elements = self._span_bytes // 4 // pattern.width // pattern.stride
            blocks = -(-elements // tile)
            call = self._function(pattern, variant, ["P", "P"] + 3 * [np.uint64]).prepared_async_call
            arguments = (self._in, self._out, pattern.offset, pattern.stride, elements)
            moved = 8 * elements * pattern.width
        return lambda: call((blocks, 1), block, self._stream, *arguments), moved

    def time_s(self, execute: Callable[[], None]) -> float:
        """Time of one execution among back-to-back ones."""
        count, time_s = 1, 0.0
        while count * time_s < LEAST_INTERVAL_S:
            count = 2 if time_s == 0.0 else int(1.2 * LEAST_INTERVAL_S / time_s) + 1
            begin, end = self._drv.Event(), self._drv.Event()
            execute()
            begin.record(self._stream)
            for _ in range(count):
                execute()
            end.record(self._stream)
            end.synchronize()
            time_s = end.time_since(begin) * 1e-3 / count
        return time_s


def ranked(bench: Bench, pattern: Pattern, some: Iterable[Variant], rounds: int) -> list[tuple[float, Variant]]:
    """Measure variants in turns; return bytes per second, best median first."""
    prepared = {variant: bench.prepared(pattern, variant) for variant in some}
    rates: dict[Variant, list[float]] = {variant: [] for variant in prepared}
    for _ in range(rounds):
        for variant, (execute, moved) in prepared.items():
            rates[variant].append(moved / bench.time_s(execute))
    return sorted(((statistics.median(found), variant) for variant, found in rates.items()), key=lambda one: -one[0])


def swept(bench: Bench, patterns: Iterable[Pattern]) -> list[dict[str, Any]]:
    """Sweep patterns; print and return the finalists, best first."""
    results = []
    for pattern in patterns:
        finalists = [variant for _, variant in ranked(bench, pattern, variants(pattern), 1)[:FINALISTS]]
        for rate, variant in ranked(bench, pattern, finalists, ROUNDS):
            print(f"{pattern.name:22} {rate / 1e9:8.1f} GB/s  {variant}", flush=True)
            results.append({"pattern": pattern.name, "bytes_per_s": rate, **asdict(variant)})
    return results


def main() -> None:
    """Sweep all patterns and print the finalists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", default="*", metavar="GLOB", help="only these, e.g. 'strided*'")
    parser.add_argument("--gib", type=float, default=4.0, help="size of the array that is read")
    parser.add_argument("--json", type=Path, help="also write the finalists there")
    parser.add_argument("--compile-only", metavar="ARCH", help="fill the cache of compiled kernels, without a GPU")
    arguments = parser.parse_args()
    patterns = [one for one in PATTERNS if fnmatch.fnmatchcase(one.name, arguments.pattern)]
    if arguments.compile_only:
        compile_all(CodeCache(cache_folder(), found_compiler(), arguments.compile_only), patterns)
        return
    with primary_context(0):
        device = driver().Context.get_device()
        major, minor = device.compute_capability()
        architecture = f"sm_{major}{minor}" + ("a" if major == 9 else "")
        cache = CodeCache(cache_folder(), found_compiler(), architecture)
        compile_all(cache, patterns)
        results = swept(Bench(cache, int(arguments.gib * 2**30), device), patterns)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
