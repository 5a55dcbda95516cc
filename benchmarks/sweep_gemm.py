"""Finds the knobs of kernels/gemm.cu on the GPU at hand and compares the best with cuBLAS in FP32.

    python benchmarks/sweep_gemm.py [--orders 4096 8192] [--json FILE]

Every variant must be right at shapes that end inside tiles before its time counts. Times are taken in
turns with cuBLAS (C = A B^T, TF32 off) on the same operands, uniform in (-1, 1), so that a drift of the
machine meets all of them; a ratio above 1 says that ours is faster. Needs PyTorch.
"""

import argparse
import json
import math
import os
import statistics
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from perfgate.devices.cuda.compiler import found_compiler
from perfgate.devices.cuda.driver import driver, primary_context
from perfgate.resources import resource_folder
from perfgate.suite.gemm import THREADS, TILE_COLUMNS, TILE_ROWS

SHAPES = ((1, 1, 1), (127, 255, 15), (128, 256, 16), (129, 257, 17), (300, 500, 33), (513, 1028, 32), (640, 768, 1000))
FINALISTS = 6
EXECUTIONS = 4
ROUNDS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The knobs of kernels/gemm.cu."""

    tile_k: int
    store_step: int
    store_gap: int
    group: int

    @property
    def options(self) -> tuple[str, ...]:
        """What the compiler is told."""
        return tuple(f"-D{name.upper()}={value}" for name, value in asdict(self).items())


VARIANTS = tuple(
    Variant(tile_k=tile_k, store_step=step, store_gap=gap, group=group)
    for tile_k in (8, 16)
    for step, gap in [(step, 0) for step in range(7)] + [(step, 1) for step in range(5)] + [(0, 2), (1, 2), (2, 2)]
    for group in (8, 16)
)


class Bench:
    """Variants on the device; PyTorch's default stream, the legacy one, runs ours and theirs."""

    def __init__(self, variants: Iterable[Variant]) -> None:
        drv = driver()
        major, minor = drv.Context.get_device().compute_capability()
        architecture = f"sm_{major}{minor}" + ("a" if major == 9 else "")
        source, compiler = resource_folder("kernels") / "gemm.cu", found_compiler()
        variants = tuple(variants)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            cubins = list(pool.map(lambda variant: compiler.compile(source, architecture, variant.options), variants))
        self._modules = [drv.module_from_buffer(cubin) for cubin in cubins]
        self._functions = {
            variant: module.get_function("gemm_fp32").prepare(["P", "P", "P", np.uint32, np.uint32, np.uint32])
            for variant, module in zip(variants, self._modules, strict=True)
        }
        self._generator = torch.Generator(device="cuda").manual_seed(1)

    def operands(self, m: int, n: int, k: int) -> tuple[Any, Any, Any]:
        """Return A, B and a C of NaN."""
        a, b = (torch.rand((rows, k), device="cuda", generator=self._generator) * 2 - 1 for rows in (m, n))
        return a, b, torch.full((m, n), math.nan, device="cuda")

    def execute(self, variant: Variant | None, a: Any, b: Any, c: Any) -> None:
        """Enqueue C = A B^T by a variant, or by cuBLAS where it is None."""
        if variant is None:
            torch.mm(a, b.t(), out=c)
            return
        (m, n), k = c.shape, a.shape[1]
        grid = (math.ceil(n / TILE_COLUMNS), math.ceil(m / TILE_ROWS))
        self._functions[variant].prepared_call(grid, (THREADS, 1, 1), a.data_ptr(), b.data_ptr(), c.data_ptr(), m, n, k)

    def is_right(self, variant: Variant) -> bool:
        """Compare with FP64 at all shapes."""
        for m, n, k in SHAPES:
            a, b, c = self.operands(m, n, k)
            self.execute(variant, a, b, c)
            error = float((c.double() - a.double() @ b.double().t()).abs().max())
            if not error <= 4 * 2.0**-24 * k:
                print(f"wrong by {error:.3g} at {m} x {n} x {k}: {variant}", flush=True)
                return False
        return True

    def ranked(self, variants: Iterable[Variant | None], order: int, rounds: int) -> dict[Variant | None, float]:
        """Return the median time of each, in seconds, fastest first."""
        times: dict[Variant | None, list[float]] = {variant: [] for variant in variants}
        operands = self.operands(order, order, order)
        for _ in range(rounds):
            for variant, values in times.items():
                values.append(self._time_s(variant, operands))
        medians = {variant: statistics.median(values) for variant, values in times.items()}
        return dict(sorted(medians.items(), key=lambda item: item[1]))

    def _time_s(self, variant: Variant | None, operands: tuple[Any, Any, Any]) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.execute(variant, *operands)
        begin.record()
        for _ in range(EXECUTIONS):
            self.execute(variant, *operands)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3 / EXECUTIONS


def swept(orders: list[int]) -> list[dict[str, Any]]:
    """Sweep on the current device; print and return the finalists at each order, fastest first."""
    torch.backends.cuda.matmul.allow_tf32 = False
    bench = Bench(VARIANTS)
    right = [variant for variant in VARIANTS if bench.is_right(variant)]
    finalists = list(bench.ranked(right, orders[0], 2))[:FINALISTS]
    results = []
    for order in orders:
        times_s = bench.ranked([None, *finalists], order, ROUNDS)
        for variant, time_s in times_s.items():
            work_flop_per_s, ratio = 2 * order**3 / time_s, times_s[None] / time_s
            name = variant or "cuBLAS"
            print(
                f"{order} {time_s * 1e3:8.4f} ms {work_flop_per_s / 1e12:6.2f} TFLOP/s {ratio:6.4f}  {name}", flush=True
            )
            knobs = asdict(variant) if variant else {}
            results.append({"order": order, "time_s": time_s, "ratio": ratio, **knobs})
    return results


def main() -> None:
    """Sweep and print the finalists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, nargs="+", default=[4096, 8192], help="the first one chooses")
    parser.add_argument("--json", type=Path, help="also write the finalists there")
    arguments = parser.parse_args()
    with primary_context(0):
        results = swept(arguments.orders)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
