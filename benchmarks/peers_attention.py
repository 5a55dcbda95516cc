"""Compares prefill attention with PyTorch's on the GPU at hand: its flash backend, cuDNN's, and ours on mma.sync.

    python benchmarks/peers_attention.py [--rounds 5] [--round-s 1] [--json FILE]

As benchmarks/peers.py does: one process, one stream, one way of timing, rounds of at least a second that
alternate. All read the same kind of data in the same layout, one sequence: heads x positions x 128. A ratio
above 1 says that ours is faster.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from peers import Contest, held
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.core.units import rate_text
from perfgate.devices.cuda.session import opened_session
from perfgate.resources import cache_folder
from perfgate.suite.attention_check import HEAD_DIM
from perfgate.suite.attention_prefill import (
    HEADS,
    MMA,
    POSITIONS,
    attention_prefill_cases,
    fill_normal,
    prepared_prefill,
)

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
SHAPE = (1, HEADS, POSITIONS, HEAD_DIM)


class _DeviceArray:
    """BF16 numbers of a buffer as PyTorch takes them without a copy: as integers of their size."""

    def __init__(self, buffer: Buffer) -> None:
        self.__cuda_array_interface__ = {
            "shape": SHAPE,
            "typestr": "<i2",
            "data": (buffer.address, False),
            "version": 3,
        }


def attention(backend: SDPBackend, causal: bool, operands: list[Any]) -> Callable[[], Any]:
    """Return a call of PyTorch's attention with one backend alone."""

    def call() -> Any:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(*operands, is_causal=causal)

    return call


def peer_case(ours: Case, name: str, backend: SDPBackend, causal: bool) -> Case:
    """Return a backend as a case with the work of ours, on the same number of buffer sets."""
    stem, _, axes = ours.id.partition("[")

    def prepare(toolbox: Toolbox) -> Workload:
        torch.cuda.set_stream(torch.cuda.ExternalStream(toolbox.stream))
        executions = []
        for index in range(ours.work.footprint_bytes // ours.work.moved_bytes):
            operands = []
            for place in range(3):
                buffer = toolbox.buffer(ours.work.write_bytes)
                fill_normal(toolbox, buffer, 3 * index + place)
                operands.append(torch.as_tensor(_DeviceArray(buffer), device="cuda").view(torch.bfloat16))
            executions.append(attention(backend, causal, operands))
        for execution in executions:  # libraries load code and plan on first use
            execution()
        toolbox.synchronize()
        return Workload(
            executions=tuple(executions),
            poison=lambda: None,
            verify=lambda: Verification(passed=True, error=0.0, tolerance=0.0, detail="a peer is not verified"),
        )

    return replace(ours, id=f"{stem}_{name}[{axes}", prepare=prepare, sources=())


def mma_case(ours: Case, causal: bool) -> Case:
    """Return our kernel of the other architectures."""
    stem, _, axes = ours.id.partition("[")
    sets = ours.work.footprint_bytes // ours.work.moved_bytes
    prepare = partial(prepared_prefill, MMA, HEADS, POSITIONS, causal, sets)
    return replace(ours, id=f"{stem}_mma[{axes}", prepare=prepare, sources=(MMA.source,))


def contests(gpu: Gpu) -> list[Contest]:
    """Return what is compared on a GPU."""
    found = []
    for causal, ours in zip((False, True), attention_prefill_cases(gpu), strict=True):
        if isinstance(ours, Case):
            peers = {name: peer_case(ours, name, backend, causal) for name, backend in BACKENDS.items()}
            found.append(Contest(ours=ours, peers={"ours on mma.sync": mma_case(ours, causal), **peers}))
    return found


def table(compared: list[Contest]) -> list[dict[str, Any]]:
    """Print and return the medians."""
    rows = []
    for contest in compared:
        ours = contest.times_s["ours"]
        for name in ("ours", *contest.peers):
            theirs = contest.times_s[name]
            ratios = [peer_s / our_s for our_s, peer_s in zip(ours, theirs, strict=True)]
            rate = contest.ours.work.work_flop / statistics.median(theirs)
            print(
                f"{contest.ours.id:56} {name:18} {rate_text(rate, 'FLOP'):>14}"
                f"  ratio {statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f})"
            )
            rows.append({"case": contest.ours.id, "name": name, "flop_per_s": rate, "times_s": theirs})
    return rows


def main() -> None:
    """Hold the contests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=1.0, help="least time of one contestant in a round")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    arguments = parser.parse_args()
    compared: list[Contest] = []
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        compared.extend(contests(gpu))
        return Suite(name="peers", cases=tuple(case for one in compared for case in (one.ours, *one.peers.values())))

    with opened_session("", suite, cache_folder()) as session:
        held(session, compared, arguments.rounds, arguments.round_s)
    print(f"{found[0].name}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    rows = table(compared)
    if arguments.json:
        document = {"gpu": asdict(found[0]), "rows": rows}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
