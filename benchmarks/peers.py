"""Compares the built-in kernels with PyTorch, cuBLAS and the driver's own copies on the GPU at hand.

    python benchmarks/peers.py [--rounds 5] [--round-s 1] [--json FILE]

One process, one context, one stream, one way of timing: peers are cases like ours, and rounds of at
least a second alternate between ours and theirs, so that a drift of the machine meets both. A ratio
above 1 says that ours is faster.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.core.units import rate_text
from perfgate.devices.cuda.driver import libcuda
from perfgate.devices.cuda.session import CudaSession, opened_session
from perfgate.errors import DeviceError, WrongOutputError
from perfgate.resources import cache_folder
from perfgate.suite import built_in_suite
from perfgate.suite.filling import fill_uniform
from perfgate.suite.gemm import gemm_fp32_case

INTERVAL_S = 0.01
ORDERS = (4096, 8192)


class _DeviceArray:
    """A buffer as PyTorch takes it without a copy."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...]) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (buffer.address, False),
            "version": 3,
        }


@dataclass
class Arrays:
    """What a peer works on: FP32 arrays of one shape, filled with uniform numbers."""

    toolbox: Toolbox
    buffers: list[Buffer]
    shape: tuple[int, ...]

    def tensor(self, index: int) -> Any:
        """Return an array as a tensor of PyTorch, whose current stream is the toolbox's from then on."""
        torch.cuda.set_stream(torch.cuda.ExternalStream(self.toolbox.stream))
        return torch.as_tensor(_DeviceArray(self.buffers[index], self.shape), device="cuda")


def torch_sum(arrays: Arrays) -> Callable[[], Any]:
    """Sum in FP32."""
    source = arrays.tensor(0)
    total = torch.empty((), device="cuda")
    return lambda: torch.sum(source, dim=0, out=total)


def torch_fill(arrays: Arrays) -> Callable[[], Any]:
    """One value everywhere."""
    return partial(arrays.tensor(0).fill_, 0.7)


def torch_copy(arrays: Arrays) -> Callable[[], Any]:
    """PyTorch's copy of a contiguous tensor is a cudaMemcpyAsync."""
    return partial(arrays.tensor(0).copy_, arrays.tensor(1))


def torch_triad(arrays: Arrays) -> Callable[[], Any]:
    """Add with a factor, in one kernel."""
    a, b, c = (arrays.tensor(index) for index in range(3))
    return lambda: torch.add(b, c, alpha=0.75, out=a)


def driver_set(arrays: Arrays) -> Callable[[], Any]:
    """The driver's fill, cuMemsetD32Async, with the word of 0.7."""
    target = arrays.buffers[0]
    return _driver_call(
        "cuMemsetD32Async",
        ctypes.c_uint64(target.address),
        ctypes.c_uint32(0x3F333333),
        ctypes.c_size_t(target.size_bytes // 4),
        ctypes.c_void_p(arrays.toolbox.stream),
    )


def driver_copy(arrays: Arrays) -> Callable[[], Any]:
    """The driver's copy, cuMemcpyDtoDAsync: what cudaMemcpyAsync calls."""
    target, source = arrays.buffers
    return _driver_call(
        "cuMemcpyDtoDAsync_v2",
        ctypes.c_uint64(target.address),
        ctypes.c_uint64(source.address),
        ctypes.c_size_t(target.size_bytes),
        ctypes.c_void_p(arrays.toolbox.stream),
    )


def _driver_call(name: str, *values: Any) -> Callable[[], None]:
    function = getattr(libcuda(), name)

    def call() -> None:
        status = function(*values)
        if status != 0:
            raise DeviceError(f"{name} returned {status}")

    return call


def cublas_tn(arrays: Arrays) -> Callable[[], Any]:
    """C = A B^T, as our kernel does."""
    a, b, c = (arrays.tensor(index) for index in range(3))
    return lambda: torch.mm(a, b.t(), out=c)


def cublas_nn(arrays: Arrays) -> Callable[[], Any]:
    """C = A B, the layout that cuBLAS likes as well."""
    a, b, c = (arrays.tensor(index) for index in range(3))
    return lambda: torch.mm(a, b, out=c)


PEERS: dict[str, dict[str, tuple[int, Callable[[Arrays], Callable[[], Any]]]]] = {
    "bandwidth.read": {"torch_sum": (1, torch_sum)},
    "bandwidth.write": {"torch_fill": (1, torch_fill), "driver_set": (1, driver_set)},
    "bandwidth.copy": {"torch_copy": (2, torch_copy), "driver_copy": (2, driver_copy)},
    "bandwidth.triad": {"torch_add": (3, torch_triad)},
    "gemm.fp32": {"cublas_tn": (3, cublas_tn), "cublas_nn": (3, cublas_nn)},
}


def peer_case(ours: Case, name: str, arrays: int, make: Callable[[Arrays], Callable[[], Any]]) -> Case:
    """Return a peer as a case with the work of ours, on the same number of buffer sets."""
    stem, _, axes = ours.id.partition("[")
    array_bytes = ours.work.moved_bytes // arrays
    sets = ours.work.footprint_bytes // ours.work.moved_bytes
    elements = array_bytes // 4
    order = math.isqrt(elements)
    shape = (order, order) if ours.family == "gemm" else (elements,)

    def prepare(toolbox: Toolbox) -> Workload:
        executions = []
        for _ in range(sets):
            buffers = [toolbox.buffer(array_bytes) for _ in range(arrays)]
            for seed, buffer in enumerate(buffers):
                fill_uniform(toolbox, buffer, seed)
            executions.append(make(Arrays(toolbox=toolbox, buffers=buffers, shape=shape)))
        for execution in executions:  # libraries load code and take workspace on first use
            execution()
        toolbox.synchronize()
        return Workload(
            executions=tuple(executions),
            poison=lambda: None,
            verify=lambda: Verification(passed=True, error=0.0, tolerance=0.0, detail="a peer is not verified"),
        )

    return replace(ours, id=f"{stem}.{name}[{axes}", prepare=prepare, sources=())


@dataclass
class Contest:
    """Ours and its peers."""

    ours: Case
    peers: dict[str, Case]
    times_s: dict[str, list[float]] = field(default_factory=dict)


def contests(gpu: Gpu) -> list[Contest]:
    """Return what is compared on a GPU."""
    streams = [case for case in built_in_suite("default", gpu).cases if case.family == "bandwidth"]
    found = []
    for ours in (*streams, *(gemm_fp32_case(gpu, order) for order in ORDERS)):
        peers = PEERS[ours.id.partition("[")[0]]
        found.append(
            Contest(ours=ours, peers={name: peer_case(ours, name, *one) for name, one in peers.items()}),
        )
    return found


def verified(session: CudaSession, case: Case) -> None:
    """Check ours once: a wrong kernel wins nothing."""
    with session.open_case(case.id) as opened:
        opened.poison()
        opened.time_batch(executions=opened.sets, samples=1)
        result = opened.verify()
        print(f"{case.id}: {'right' if result.passed else 'WRONG'}, {result.detail}", flush=True)
        if not result.passed:
            raise WrongOutputError(f"{case.id}: {result.detail}")


def timed_s(session: CudaSession, case: Case, round_s: float) -> float:
    """Return the median time of one execution over at least ``round_s``."""
    with session.open_case(case.id) as opened:
        probe = opened.time_batch(executions=opened.sets, samples=3)
        rough_s = statistics.median(probe.intervals_s) / opened.sets
        executions = opened.sets * max(1, math.ceil(INTERVAL_S / rough_s / opened.sets))
        times_s: list[float] = []
        measured_s = 0.0
        while measured_s < round_s:
            batch = opened.time_batch(executions=executions, samples=10)
            measured_s += sum(batch.intervals_s)
            times_s += [interval_s / executions for interval_s in batch.intervals_s if not batch.spin_timed_out]
        if not times_s:
            raise DeviceError(f"{case.id}: the spin kernel timed out in every batch")
        return statistics.median(times_s)


def held(session: CudaSession, compared: list[Contest], rounds: int, round_s: float) -> None:
    """Time all contestants in turns; every other round goes backwards."""
    for contest in compared:
        verified(session, contest.ours)
    for turn in range(rounds):
        for contest in compared:
            entries = [("ours", contest.ours), *contest.peers.items()]
            for name, case in entries if turn % 2 == 0 else reversed(entries):
                contest.times_s.setdefault(name, []).append(timed_s(session, case, round_s))
        print(f"round {turn + 1} of {rounds}", flush=True)


def table(compared: list[Contest]) -> list[dict[str, Any]]:
    """Print and return the medians."""
    rows = []
    for contest in compared:
        work = contest.ours.work
        is_product = contest.ours.family == "gemm"
        amount, unit = (work.work_flop, "FLOP") if is_product else (work.moved_bytes, "B")
        ours = contest.times_s["ours"]
        for name in contest.peers:
            theirs = contest.times_s[name]
            ratios = [peer_s / our_s for our_s, peer_s in zip(ours, theirs, strict=True)]
            our_rate, peer_rate = (amount / statistics.median(values) for values in (ours, theirs))
            ratio = statistics.median(ratios)
            print(
                f"{contest.ours.id:28} {rate_text(our_rate, unit):>14}  {name:12} {rate_text(peer_rate, unit):>14}"
                f"  ratio {ratio:.4f} ({min(ratios):.4f} to {max(ratios):.4f})"
            )
            rows.append(
                {
                    "case": contest.ours.id,
                    "peer": name,
                    "unit": f"{unit}/s",
                    "ours_per_s": our_rate,
                    "peer_per_s": peer_rate,
                    "ratio": ratio,
                    "ours_s": ours,
                    "peer_s": theirs,
                }
            )
    return rows


def main() -> None:
    """Hold the contests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=1.0, help="least time of one contestant in a round")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    arguments = parser.parse_args()
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    torch.set_float32_matmul_precision("highest")

    compared: list[Contest] = []
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        compared.extend(contests(gpu))
        return Suite(name="peers", cases=tuple(case for one in compared for case in (one.ours, *one.peers.values())))

    with opened_session("", suite, cache_folder()) as session:
        held(session, compared, arguments.rounds, arguments.round_s)
    print(found[0].name)
    rows = table(compared)
    if arguments.json:
        document = {"gpu": asdict(found[0]), "rows": rows}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
