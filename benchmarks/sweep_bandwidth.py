"""Finds the knobs of kernels/bandwidth.cu on the GPU at hand: block size, unrolling, cache hints, grid.

    python benchmarks/sweep_bandwidth.py [--gib 4] [--json FILE]

First every block size and unrolling with two pairs of hints and three grids; then all hints on the
best of these; then the finalists in turns, so that a drift of the machine meets all of them.
"""

import argparse
import itertools
import json
import os
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.devices.cuda.compiler import found_compiler
from perfgate.devices.cuda.driver import driver, primary_context
from perfgate.resources import resource_folder

BYTES_OVER_ARRAY = {"read": 1, "write": 1, "copy": 2, "triad": 3}
VECTOR_BYTES = 16
EXECUTIONS = 12
FINALISTS = 6
ROUNDS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kernel with its knobs; ``waves`` 0 is a block a tile, else that many times what fits on the SMs at once."""

    kernel: str
    block: int
    unroll: int
    load: int
    store: int
    waves: int

    @property
    def options(self) -> tuple[str, ...]:
        """What the compiler is told."""
        return (f"-DBLOCK={self.block}", f"-DUNROLL={self.unroll}", f"-DLOAD={self.load}", f"-DSTORE={self.store}")


class Bench:
    """Arrays, modules and a stream on the device."""

    def __init__(self, array_bytes: int, device: Any) -> None:
        self._drv = driver()
        self._array_bytes = array_bytes
        self._sms = device.multiprocessor_count
        major, minor = device.compute_capability()
        self._architecture = f"sm_{major}{minor}" + ("a" if major == 9 else "")
        self._modules: dict[tuple[str, ...], Any] = {}
        self._stream = self._drv.Stream(1)
        self._arrays = [self._drv.mem_alloc(array_bytes) for _ in range(3)]
        self._partials = self._drv.mem_alloc(array_bytes // 512)  # one word for each block of 128 vectors
        data = self._drv.module_from_buffer(self._compiled("data.cu", ()))
        fill = data.get_function("fill_uniform").prepare(["P", np.uint64, np.uint64])
        for seed, array in enumerate(self._arrays):
            fill.prepared_async_call((65536, 1), (256, 1, 1), self._stream, array, array_bytes // 4, seed)
        self._stream.synchronize()

    def _compiled(self, source: str, options: tuple[str, ...]) -> bytes:
        return found_compiler().compile(resource_folder("kernels") / source, self._architecture, options)

    def compile(self, variants: Iterable[Variant]) -> None:
        """Compile what is missing, on all cores."""
        missing = sorted({variant.options for variant in variants} - set(self._modules))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            cubins = list(pool.map(lambda options: self._compiled("bandwidth.cu", options), missing))
        for options, cubin in zip(missing, cubins, strict=True):
            self._modules[options] = self._drv.module_from_buffer(cubin)

    def bandwidth_bytes_per_s(self, variant: Variant) -> float:
        """Time one interval of back-to-back executions."""
        execute = self._execution(variant)
        begin, end = self._drv.Event(), self._drv.Event()
        execute()
        begin.record(self._stream)
        for _ in range(EXECUTIONS):
            execute()
        end.record(self._stream)
        end.synchronize()
        time_s = end.time_since(begin) * 1e-3 / EXECUTIONS
        return BYTES_OVER_ARRAY[variant.kernel] * self._array_bytes / time_s

    def _execution(self, variant: Variant) -> Callable[[], None]:
        a, b, c = self._arrays
        vectors = self._array_bytes // VECTOR_BYTES
        types, values = {
            "read": (["P", "P", np.uint64], (a, self._partials, vectors)),
            "write": (["P", np.uint32, np.uint64], (c, 1, vectors)),
            "copy": (["P", "P", np.uint64], (a, c, vectors)),
            "triad": (["P", "P", "P", np.float32, np.uint64], (a, b, c, 0.75, vectors)),
        }[variant.kernel]
        function = self._modules[variant.options].get_function(f"bandwidth_{variant.kernel}").prepare(types)
        tiles = -(-vectors // (variant.block * variant.unroll))
        resident = self._sms * (2048 // variant.block) * variant.waves
        grid = (min(tiles, resident) if variant.waves else tiles, 1)
        block = (variant.block, 1, 1)
        return lambda: function.prepared_async_call(grid, block, self._stream, *values)


def shapes(kernel: str) -> list[Variant]:
    """Every block size, unrolling and grid with two pairs of hints."""
    grid = itertools.product((128, 256, 512, 1024), (1, 2, 4, 8), ((0, 0), (1, 1)), (0, 1, 4))
    return [
        Variant(kernel=kernel, block=block, unroll=unroll, load=load, store=store, waves=waves)
        for block, unroll, (load, store), waves in grid
    ]


def hints(variant: Variant) -> list[Variant]:
    """All hints that matter to a kernel."""
    loads = (0, 1, 2, 3) if variant.kernel in ("read", "copy", "triad") else (variant.load,)
    stores = (0, 1, 2, 3) if variant.kernel in ("write", "copy", "triad") else (variant.store,)
    return [replace(variant, load=load, store=store) for load in loads for store in stores]


def ranked(bench: Bench, variants: Iterable[Variant], rounds: int) -> list[tuple[float, Variant]]:
    """Measure variants in turns; best median first."""
    variants = list(dict.fromkeys(variants))
    bench.compile(variants)
    values: dict[Variant, list[float]] = {variant: [] for variant in variants}
    for _ in range(rounds):
        for variant in variants:
            values[variant].append(bench.bandwidth_bytes_per_s(variant))
    return sorted(((statistics.median(found), variant) for variant, found in values.items()), key=lambda one: -one[0])


def swept(array_bytes: int) -> list[dict[str, Any]]:
    """Sweep all kernels on the current device; print and return the finalists, best first."""
    results = []
    device = driver().Context.get_device()
    peak = 2 * device.memory_clock_rate * 1e3 * device.global_memory_bus_width / 8
    print(f"{device.name()}: {peak / 1e9:.0f} GB/s by its attributes", flush=True)
    bench = Bench(array_bytes, device)
    bench.compile([variant for kernel in BYTES_OVER_ARRAY for variant in shapes(kernel)])
    for kernel in BYTES_OVER_ARRAY:
        best = [variant for _, variant in ranked(bench, shapes(kernel), 1)[:FINALISTS]]
        hinted = [one for variant in best for one in hints(variant)]
        finalists = [variant for _, variant in ranked(bench, hinted, 1)[: 2 * FINALISTS]]
        for value, variant in ranked(bench, finalists, ROUNDS):
            print(f"{value / 1e9:7.1f} GB/s {value / peak:6.4f}  {variant}", flush=True)
            results.append({"bandwidth_bytes_per_s": value, **asdict(variant)})
    return results


def main() -> None:
    """Sweep all kernels and print the finalists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4.0, help="size of an array")
    parser.add_argument("--json", type=Path, help="also write the finalists there")
    arguments = parser.parse_args()
    with primary_context(0):
        results = swept(int(arguments.gib * 2**30))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
