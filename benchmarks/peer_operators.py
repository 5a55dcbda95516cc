"""Compares the operators of the suite with PyTorch's on the GPU at hand.

    python -m benchmarks.peer_operators [--rounds 5] [--json FILE]

One process, one stream, one way of timing, in turns that go backwards every other time; outputs of ours are verified,
and PyTorch's are allocated by its own cache. A ratio above 1 says that ours is faster.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.sweep_operators import STREAM_ELEMENTS, Variant, measured_roofs, row_of, timed_s
from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.devices.cuda.session import CudaSession, opened_session
from perfgate.resources import cache_folder
from perfgate.suite import built_in_suite

HEAD_DIM = 128


def uniform(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    """Return random numbers in (-1, 1)."""
    return torch.empty(shape, dtype=dtype, device="cuda").uniform_(-1, 1)


def gelu(axes: dict[str, str]) -> Callable[[], Any]:
    """The tanh form."""
    del axes
    return partial(functional.gelu, uniform(STREAM_ELEMENTS), approximate="tanh")


def add(axes: dict[str, str]) -> Callable[[], Any]:
    """Of two arrays."""
    del axes
    return partial(torch.add, uniform(STREAM_ELEMENTS), uniform(STREAM_ELEMENTS))


def total(axes: dict[str, str]) -> Callable[[], Any]:
    """Of an FP32 array."""
    del axes
    return partial(torch.sum, uniform(STREAM_ELEMENTS // 2, dtype=torch.float32))


def softmax(axes: dict[str, str]) -> Callable[[], Any]:
    """Of each row."""
    return partial(functional.softmax, uniform(int(axes["rows"]), int(axes["columns"])), dim=-1)


def layer_norm(axes: dict[str, str]) -> Callable[[], Any]:
    """Of each row, with scale and shift."""
    columns = int(axes["columns"])
    x, gamma, beta = uniform(int(axes["rows"]), columns), uniform(columns), uniform(columns)
    return partial(functional.layer_norm, x, (columns,), gamma, beta)


def attention(backend: Any, as_rows: bool, axes: dict[str, str]) -> Callable[[], Any]:
    """Heads of a group by their number, or as so many rows of one head: the same products."""
    batch, heads, kv_heads, context = (int(axes[one]) for one in ("batch", "heads", "kv_heads", "context"))
    shape = (kv_heads, heads // kv_heads) if as_rows else (heads, 1)
    q = uniform(batch, *shape, HEAD_DIM)
    k, v = (uniform(batch, kv_heads, context, HEAD_DIM) for _ in range(2))

    def call() -> Any:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, enable_gqa=not as_rows)

    return call


PEERS: dict[str, dict[str, Callable[[dict[str, str]], Callable[[], Any]]]] = {
    "operator.gelu": {"gelu": gelu},
    "operator.add": {"add": add},
    "operator.sum": {"sum": total},
    "operator.softmax": {"softmax": softmax},
    "operator.layernorm": {"layer_norm": layer_norm},
    "operator.attention_decode": {
        f"sdpa_{name}_{'rows' if as_rows else 'heads'}": partial(attention, backend, as_rows)
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION))
        for as_rows in (False, True)
    },
}


def peer_cases(case: Case) -> dict[str, Case]:
    """Return PyTorch's ways as cases with the work of ours, on as many buffer sets of PyTorch's own memory."""
    stem, _, axes = case.id.partition("[")
    sizes = dict(part.split("=") for part in axes.removesuffix("]").split(","))
    sets = case.work.footprint_bytes // case.work.moved_bytes

    def prepare(make: Callable[[dict[str, str]], Callable[[], Any]], toolbox: Toolbox) -> Workload:
        torch.cuda.set_stream(torch.cuda.ExternalStream(toolbox.stream))
        executions = tuple(make(sizes) for _ in range(sets))
        for execution in executions:  # libraries load code and take workspace on first use
            execution()
        toolbox.synchronize()
        unverified = Verification(passed=True, error=0.0, tolerance=0.0, detail="a peer is not verified")
        return Workload(executions=executions, poison=lambda: None, verify=lambda: unverified)

    return {
        name: replace(
            case,
            id=f"{stem}.torch_{name}[{axes}",
            work=replace(case.work, footprint_bytes=0),
            sources=(),
            prepare=partial(prepare, make),
        )
        for name, make in PEERS[stem].items()
    }


def compared(session: CudaSession, gpu: Gpu, rounds: int) -> list[dict[str, Any]]:
    """Time the suite's operators and PyTorch's in turns; print and return medians and ratios."""
    rows = []
    roofs = measured_roofs(session, gpu)
    print({name: f"{value / 1e9:.0f} GB/s" for name, value in roofs.items()}, flush=True)
    for case in (case for case in built_in_suite("full", gpu).cases if case.id.partition("[")[0] in PEERS):
        entries = {"ours": case, **peer_cases(case)}
        times: dict[str, list[float]] = {name: [] for name in entries}
        for turn in range(rounds):
            for name in entries if turn % 2 == 0 else reversed(entries):
                times[name].append(timed_s(session, entries[name], verify=name == "ours" and turn == 0))
                torch.cuda.empty_cache()
        row = row_of(Variant(case=case, knobs={}), statistics.median(times["ours"]), roofs)
        row["peers_s"] = {name: statistics.median(found) for name, found in times.items() if name != "ours"}
        ratios = " ".join(f"{name} {value / row['time_s']:.3f}" for name, value in row["peers_s"].items())
        print(f"{row['of_roof']:.4f} {row['bandwidth_bytes_per_s'] / 1e9:7.1f} GB/s {case.id} {ratios}", flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Hold the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the rows there")
    arguments = parser.parse_args()
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        return Suite(name="operators", cases=())

    with opened_session("", suite, cache_folder()) as session:
        rows = compared(session, found[0], arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
