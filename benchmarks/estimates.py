"""The time model against a GPU: what it predicts from measured roofs beside what was measured.

    python benchmarks/estimates.py measure FILE.json [--launches 2]      on a GPU, needs PyTorch
    python benchmarks/estimates.py table FILE.json [--write FILE.md]     anywhere

``measure`` runs ``perfgate run`` and then times matrix products of PyTorch (cuBLAS) in BF16 and in FP32 with
TF32 off. Executions rotate over operands of at least three times the L2 cache and are replayed as a graph,
so that neither cache nor host helps or hinders. The suite has no BF16 product: the best of PyTorch's is the
BF16 roof, and its row is marked. ``table`` needs no GPU and predicts again from the same numbers.
"""

import argparse
import gzip
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.core.case import MemoryLevel, Unit
from perfgate.core.codec import decode, encode
from perfgate.core.estimate import prediction
from perfgate.core.gemm import gemm
from perfgate.core.peaks import pipe_text
from perfgate.core.prediction import Prediction
from perfgate.core.roofs import Roof, Roofs, measured_roofs
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics
from perfgate.core.units import rate_text, time_text
from perfgate.storage.documents import read_run
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.suite.gemm import TILE_COLUMNS, TILE_ROWS

# Square; tokens against the weights of language models; tall and deep; and sizes that leave a wave nearly empty.
SHAPES = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (1, 8192, 8192),
    (16, 8192, 8192),
    (64, 8192, 8192),
    (128, 7168, 2048),
    (256, 7168, 2048),
    (512, 14336, 4096),
    (1024, 4096, 14336),
    (2048, 7168, 2048),
    (8192, 256, 8192),
    (16384, 4096, 512),
    (256, 256, 65536),
    (1408, 3072, 4096),
    (1536, 3072, 4096),
    (2816, 3072, 4096),
    (2944, 3072, 4096),
)
DTYPES = ("bf16", "fp32")
_OVER_L2 = 3
_NO_KERNELS = ("Memset", "Memcpy", "cuda", "cuLaunch", "Activity")
_SAMPLES = 9
_SAMPLE_S = 4e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A measured matrix product."""

    m: int
    n: int
    k: int
    dtype: str
    time_s: float
    kernel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A predicted time beside a measured one; ``is_roof`` where the roof was measured by this very case."""

    name: str
    predicted: Prediction
    time_s: float
    is_roof: bool

    @property
    def error(self) -> float:
        """Relative: positive where the estimate is too long."""
        return self.predicted.time_s / self.time_s - 1


def timed_product(torch: Any, m: int, n: int, k: int, dtype: str, l2_bytes: int) -> Product:
    """Time one shape: the median of replays of a graph of rotating executions."""
    kind = {"bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    set_bytes = (m * k + k * n + m * n) * (2 if dtype == "bf16" else 4)
    sets = min(64, max(2, math.ceil(_OVER_L2 * l2_bytes / set_bytes)))
    operands = [
        (
            torch.rand((m, k), device="cuda").mul_(2).sub_(1).to(kind),
            torch.rand((n, k), device="cuda").mul_(2).sub_(1).to(kind),
            torch.empty((m, n), device="cuda", dtype=kind),
        )
        for _ in range(sets)
    ]

    def rotate() -> None:
        for a, b, c in operands:
            torch.mm(a, b.T, out=c)

    rotate()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rotate()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def replayed_s(replays: int) -> float:
        begin.record()
        for _ in range(replays):
            graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    replayed_s(2)
    replays = max(1, round(_SAMPLE_S / replayed_s(1)))
    replayed_s(3 * replays)
    times_s = [replayed_s(replays) / replays / sets for _ in range(_SAMPLES)]
    return Product(m=m, n=n, k=k, dtype=dtype, time_s=statistics.median(times_s), kernel=_kernel(torch, operands[0]))


def _kernel(torch: Any, operands: Any) -> str:
    a, b, c = operands
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        torch.mm(a, b.T, out=c)
        torch.cuda.synchronize()
    names = [event.name for event in profile.events() if not event.name.startswith(_NO_KERNELS)]
    return " + ".join(dict.fromkeys(names))


def measured(launches: int) -> dict[str, Any]:
    """Measure the suite, then the products."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        command = [sys.executable, "-m", "perfgate", "run", str(path), "--launches", str(launches), "--quiet"]
        subprocess.run(command, check=True)
        run = read_run(path)
    import torch  # noqa: PLC0415 - only where it is measured

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    l2_bytes = run.gpu.l2_bytes or 2**27
    products = [timed_product(torch, *shape, dtype, l2_bytes) for dtype in DTYPES for shape in SHAPES]
    return {"torch": torch.__version__, "run": encode(run), "products": encode(tuple(products))}


def roofs_with_products(run: Run, products: tuple[Product, ...]) -> tuple[Roofs, Product]:
    """Return the run's roofs with the best BF16 product as the BF16 roof, and that product."""
    roofs = measured_roofs(run, read_gpu_table())
    best = max((one for one in products if one.dtype == "bf16"), key=_rate)
    pipe = "bf16-tensor"
    known = roofs.compute_roof(pipe) or Roof(key=pipe, label=pipe_text(pipe), unit="FLOP")
    roof = replace(known, measured_per_s=_rate(best), measured_case=_name(best))
    return replace(roofs, compute=(*(one for one in roofs.compute if one.key != pipe), roof)), best


def _rate(product: Product) -> float:
    return 2 * product.m * product.n * product.k / product.time_s


def _name(product: Product) -> str:
    return f"torch {product.dtype.upper()} {product.m} x {product.n} x {product.k}"


def rows(run: Run, products: tuple[Product, ...]) -> tuple[list[Row], Roofs]:
    """Predict every case of the suite that declares work, and every product."""
    roofs, best = roofs_with_products(run, products)
    winners = {roof.measured_case for roof in (*roofs.memory, *roofs.compute)}
    found = []
    for case_id, info in run.cases.items():
        times_s = launch_statistics(run, case_id, Unit.SECONDS)
        if not info.timing.is_of_work or not times_s or not info.work.moved_bytes:
            continue
        if info.family == "gemm":
            order = math.isqrt(info.work.write_bytes // 4)
            predicted = gemm(order, order, order, dtype="fp32", roofs=roofs, tile=(TILE_ROWS, TILE_COLUMNS))
        else:
            predicted = prediction(kind=info.family, subject=case_id, work=info.work, roofs=roofs)
        found.append(
            Row(name=case_id, predicted=predicted, time_s=statistics.median(times_s), is_roof=case_id in winners)
        )
    for one in products:
        predicted = gemm(one.m, one.n, one.k, dtype=one.dtype, roofs=roofs)
        found.append(Row(name=_name(one), predicted=predicted, time_s=one.time_s, is_roof=one == best))
    return found, roofs


def table(found: list[Row]) -> str:
    """Render rows as Markdown."""
    lines = ["| case | measured | estimate | error | bound | waves |", "|---|---|---|---|---|---|"]
    for row in found:
        waves = row.predicted.waves
        lines.append(
            f"| {row.name}{' (the roof)' if row.is_roof else ''} | {time_text(row.time_s)} "
            f"| {time_text(row.predicted.time_s)} | {row.error:+.1%} | {row.predicted.limit.name} "
            f"| {f'{waves.tile_m}x{waves.tile_n}, {waves.factor:.2f} of {waves.waves}' if waves else ''} |"
        )
    errors = [abs(row.error) for row in found if not row.is_roof]
    lines += ["", f"Median error {statistics.median(errors):.1%} of {len(errors)}, the roofs' own cases left out; "]
    worst = sorted((row for row in found if not row.is_roof), key=lambda row: -abs(row.error))[:3]
    lines[-1] += "largest: " + ", ".join(f"{row.name} {row.error:+.1%}" for row in worst) + "."
    return "\n".join(lines) + "\n"


def read_measured(path: Path) -> tuple[Run, tuple[Product, ...]]:
    """Read what ``measure`` wrote."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text)
    return decode(Run, document["run"]), decode(tuple[Product, ...], document["products"])


def main() -> None:
    """Measure on a GPU, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["measure", "table"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--launches", type=int, default=2)
    options = parser.parse_args()
    if options.step == "measure":
        options.file.write_text(json.dumps(measured(options.launches)), encoding="utf-8")
    run, products = read_measured(options.file)
    found, roofs = rows(run, products)
    dram = roofs.memory_roof(MemoryLevel.DRAM)
    print(f"DRAM {rate_text(dram.best_per_s, 'B')}" if dram and dram.best_per_s else "")
    print(table(found))


if __name__ == "__main__":
    main()
