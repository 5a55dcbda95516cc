"""Finds the knobs of the operators' kernels on the GPU at hand.

    python -m benchmarks.sweep_operators [--only WORD] [--json FILE]

Every variant is verified and timed; rates are fractions of the same run's own roof: of read, copy and triad, by what an
operator reads and writes.
"""

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.devices.cuda.compiler import CodeCache, found_compiler
from perfgate.devices.cuda.session import CudaSession, architecture, opened_session
from perfgate.errors import DeviceError, WrongOutputError
from perfgate.resources import cache_folder
from perfgate.suite import attention_decode, built_in_suite, normalization, reduction
from perfgate.suite.attention_decode import attention_decode_case
from perfgate.suite.elementwise import ADD, GELU, elementwise_case
from perfgate.suite.normalization import normalization_case
from perfgate.suite.reduction import sum_case

INTERVAL_S = 0.004
SAMPLES = 3
ROUNDS = 5
STREAM_ELEMENTS = 2**31
ROWS = 65536
HINTS = ((1, 1), (0, 0), (0, 1))
# Threads of a block, blocks an SM that registers leave room for.
ROW_BLOCKS = tuple(itertools.product((128, 256, 512), (1, 2, 3, 4)))
DECODE_BLOCKS = ((1, 8), (2, 4), (2, 5), (3, 3), (4, 2), (4, 3), (5, 2), (6, 1), (6, 2), (8, 1), (10, 1), (12, 1))
ROOFS = {"sum": "read", "attention_decode": "read", "add": "triad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A case with knobs."""

    case: Case
    knobs: dict[str, int]

    @property
    def name(self) -> str:
        """The operator."""
        return self.case.id.split("[")[0].removeprefix("operator.")


def _named(case: Case, knobs: dict[str, int]) -> Variant:
    stem, _, axes = case.id.partition("[")
    named = ",".join(f"{name}={value}" for name, value in knobs.items())
    return Variant(case=replace(case, id=f"{stem}[{axes.removesuffix(']')},{named}]"), knobs=knobs)


def elementwise_variants(gpu: Gpu) -> Iterator[Variant]:
    """Every block size, unrolling and pair of hints."""
    grid = itertools.product((GELU, ADD), (128, 256, 512, 1024), (1, 2, 4), HINTS)
    for operation, block, unroll, (load, store) in grid:
        knobs = {"block": block, "unroll": unroll, "load": load, "store": store}
        yield _named(
            elementwise_case(
                gpu, replace(operation, block=block, unroll=unroll, load=load, store=store), STREAM_ELEMENTS
            ),
            knobs,
        )


def sum_variants(gpu: Gpu) -> Iterator[Variant]:
    """Every block size, unrolling and hint."""
    for block, unroll, load in itertools.product((256, 512, 1024), (4, 8, 16), (0, 1)):
        knobs = {"block": block, "unroll": unroll, "load": load}
        yield _named(sum_case(gpu, STREAM_ELEMENTS // 2, reduction.Knobs(**knobs)), knobs)


def row_variants(gpu: Gpu) -> Iterator[Variant]:
    """Every block size, occupancy and pair of hints."""
    grid = itertools.product(normalization.NAMES, (8192, 8191), ROW_BLOCKS, HINTS)
    for name, columns, (block, blocks_per_sm), (load, store) in grid:
        knobs = {"block": block, "blocks_per_sm": blocks_per_sm, "load": load, "store": store}
        yield _named(normalization_case(gpu, name, ROWS, columns, normalization.Knobs(**knobs)), knobs)


def decode_variants(gpu: Gpu) -> Iterator[Variant]:
    """Every block size, occupancy, hint and number of splits."""
    for (warps, blocks_per_sm), waves, load in itertools.product(DECODE_BLOCKS, (1, 2), (0, 1, 2, 3)):
        knobs = {"warps": warps, "blocks_per_sm": blocks_per_sm, "load": load, "waves": waves}
        yield _named(attention_decode_case(gpu, attention_decode.Shape(), attention_decode.Knobs(**knobs)), knobs)


def variants(gpu: Gpu) -> list[Variant]:
    """All of them."""
    families = (elementwise_variants, sum_variants, row_variants, decode_variants)
    return [variant for family in families for variant in family(gpu)]


def compiled(gpu: Gpu, cases: Iterable[Case]) -> None:
    """Compile what cases need, on all cores, into the cache that they are prepared from; needs no GPU."""
    cache = CodeCache(cache_folder(), found_compiler(), architecture(gpu.compute_capability or ""))
    recorder = _Recorder(gpu=gpu, asked=set())
    for case in cases:
        case.prepare(recorder)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: cache.cubin(one[0], dict(one[1])), sorted(recorder.asked)))
    print(f"{len(recorder.asked)} kernels compiled", flush=True)


@dataclass
class _Recorder:
    """A toolbox that notes which code it is asked for."""

    gpu: Gpu
    asked: set[tuple[str, tuple[tuple[str, int | str], ...]]]
    stream: int = 0

    def kernel(self, source: str, _function: str, *, defines: Any = None, options: Any = ()) -> "_Recorder":
        assert not options
        self.asked.add((source, tuple(sorted((defines or {}).items()))))
        return self

    def bind(self, **_launch: Any) -> Callable[[], None]:
        return lambda: None

    def buffer(self, size_bytes: int) -> Any:
        return _NoBuffer(address=0, size_bytes=size_bytes)

    def write(self, *_arguments: Any) -> None:
        pass

    def read(self, *_arguments: Any) -> Any:
        raise NotImplementedError

    def synchronize(self) -> None:
        pass


@dataclass
class _NoBuffer:
    address: int
    size_bytes: int


def timed_s(session: CudaSession, case: Case, *, verify: bool) -> float:
    """Return the median time of one execution.

    Raises:
        WrongOutputError: it is wrong.
    """
    session.add_case(case)
    with session.open_case(case.id) as opened:
        if verify:
            opened.poison()
        probe = opened.time_batch(executions=opened.sets * 2, samples=2)
        rough_s = statistics.median(probe.intervals_s) / (opened.sets * 2)
        count = opened.sets * max(1, math.ceil(INTERVAL_S / rough_s / opened.sets))
        batch = opened.time_batch(executions=count, samples=SAMPLES)
        if verify and not (found := opened.verify()).passed:
            raise WrongOutputError(f"{case.id}: {found.error} > {found.tolerance}: {found.detail}")
        if batch.spin_timed_out:
            raise DeviceError(f"{case.id}: the spin kernel timed out")
        return statistics.median(batch.intervals_s) / count


def measured_roofs(session: CudaSession, gpu: Gpu) -> dict[str, float]:
    """Return the bandwidths of our own streams, bytes/s."""
    found = {}
    for case in built_in_suite("default", gpu).cases:
        name = case.id.split("[")[0].removeprefix("bandwidth.")
        if name in ("read", "copy", "triad"):
            time_s = statistics.median(timed_s(session, case, verify=False) for _ in range(3))
            found[name] = case.work.moved_bytes / time_s
    return found


def row_of(variant: Variant, time_s: float, roofs: dict[str, float]) -> dict[str, Any]:
    """Return a line of the table."""
    roof = roofs[ROOFS.get(variant.name, "copy")]
    bandwidth = variant.case.work.moved_bytes / time_s
    return {"case": variant.case.id, "time_s": time_s, "bandwidth_bytes_per_s": bandwidth, "of_roof": bandwidth / roof}


def swept(session: CudaSession, gpu: Gpu, chosen: Iterable[Variant]) -> list[dict[str, Any]]:
    """Time variants; print the best of each operator and shape."""
    roofs = measured_roofs(session, gpu)
    print({name: f"{value / 1e9:.0f} GB/s" for name, value in roofs.items()}, flush=True)
    rows: list[dict[str, Any]] = []
    for _, group in itertools.groupby(chosen, lambda one: one.case.work):
        timed = [row for variant in group if (row := timed_row(session, variant, roofs)) is not None]
        best = sorted(timed, key=lambda row: -row["of_roof"])
        for row in (*best[:8], *best[-1:]):
            print(f"{row['of_roof']:.4f} {row['bandwidth_bytes_per_s'] / 1e9:7.1f} GB/s {row['case']}", flush=True)
        rows += best
    return rows


def timed_row(session: CudaSession, variant: Variant, roofs: dict[str, float]) -> dict[str, Any] | None:
    """Return a line of the table; None for a variant that fails, after saying why."""
    try:
        return row_of(variant, timed_s(session, variant.case, verify=True), roofs)
    except (WrongOutputError, DeviceError) as error:
        print(f"FAILED {variant.case.id}: {error}", flush=True)
        return None


def main() -> None:
    """Sweep and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="variants whose id holds this word")
    parser.add_argument("--json", type=Path, help="also write all rows there")
    arguments = parser.parse_args()
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        return Suite(name="operators", cases=())

    with opened_session("", suite, cache_folder()) as session:
        chosen = [one for one in variants(found[0]) if arguments.only in one.case.id]
        compiled(found[0], (one.case for one in chosen))
        rows = swept(session, found[0], chosen)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
