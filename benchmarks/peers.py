"""Compares the built-in kernels with PyTorch, cuBLAS, BabelStream and the driver's own copies on the GPU at hand.

    python benchmarks/peers.py [--case 'bandwidth.*'] [--babelstream CUBIN] [--rounds 5] [--round-s 1] [--json FILE]

BabelStream's kernels come from its own source, compiled for the GPU and given as a file:

    nvcc -O3 -std=c++17 -arch=sm_90 -cubin -DDEFAULT -Isrc -Isrc/cuda src/cuda/CUDAStream.cu -o babelstream.cubin

One process, one context, one stream, one way of timing: peers are cases like ours, and rounds of at
least a second alternate between ours and theirs, so that a drift of the machine meets both. A ratio
above 1 says that ours is faster.
"""

import argparse
import ctypes
import fnmatch
import json
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from perfgate.core.case import Case, Suite, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Verification, Workload
from perfgate.core.units import rate_text
from perfgate.devices.cuda.driver import driver, libcuda
from perfgate.devices.cuda.session import CudaSession, opened_session
from perfgate.errors import DeviceError, WrongOutputError
from perfgate.resources import cache_folder
from perfgate.suite import built_in_suite
from perfgate.suite.filling import fill_uniform
from perfgate.suite.gemm import gemm_fp32_case

INTERVAL_S = 0.01
ORDERS = (4096, 8192)
# Of BabelStream 5.0, CUDAStream.h and CUDAStream.cu: threads a block, blocks of Dot an SM, FP64.
BABELSTREAM_BLOCK = 1024
BABELSTREAM_DOT_BLOCKS = 4
BABELSTREAM_KERNELS = {
    "dot": "_Z10dot_kernelIdEvPKT_S2_PS0_i",
    "copy": "_Z11copy_kernelIdEvPKT_PS0_",
    "triad": "_Z12triad_kernelIdEvPT_PKS0_S3_",
}


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


def babelstream(name: str, cubin: bytes) -> Callable[[Arrays], Callable[[], Any]]:
    """A kernel of BabelStream, launched as its CUDAStream.cu does, on as many bytes of FP64."""

    def make(arrays: Arrays) -> Callable[[], Any]:
        module = driver().module_from_buffer(cubin)
        elements = arrays.buffers[0].size_bytes // 8
        blocks = elements // BABELSTREAM_BLOCK
        arguments: list[Any] = [buffer.address for buffer in arrays.buffers]
        types: list[Any] = ["P"] * len(arguments)
        if name == "dot":
            blocks = BABELSTREAM_DOT_BLOCKS * (arrays.toolbox.gpu.sm_count or 1)
            arguments += [arrays.toolbox.buffer(8 * blocks).address, np.int32(elements)]
            types += ["P", np.int32]
        function = module.get_function(BABELSTREAM_KERNELS[name]).prepare(types)
        call, native = function.prepared_async_call, arrays.toolbox.native_stream  # type: ignore[attr-defined]
        return partial(call, (blocks, 1), (BABELSTREAM_BLOCK, 1, 1), native, *arguments)

    return make


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What ours is compared with: on how many arrays as large as ours, all of them moved once."""

    arrays: int
    make: Callable[[Arrays], Callable[[], Any]]


PEERS: dict[str, dict[str, Peer]] = {
    "bandwidth.read": {"torch_sum": Peer(arrays=1, make=torch_sum)},
    "bandwidth.write": {"torch_fill": Peer(arrays=1, make=torch_fill), "driver_set": Peer(arrays=1, make=driver_set)},
    "bandwidth.copy": {"torch_copy": Peer(arrays=2, make=torch_copy), "driver_copy": Peer(arrays=2, make=driver_copy)},
    "bandwidth.triad": {"torch_add": Peer(arrays=3, make=torch_triad)},
    "gemm.fp32": {"cublas_tn": Peer(arrays=3, make=cublas_tn), "cublas_nn": Peer(arrays=3, make=cublas_nn)},
}


def babelstream_peers(cubin: bytes) -> dict[str, dict[str, Peer]]:
    """Return the kernels of BabelStream beside ours: Dot reads two arrays."""
    shapes = {"bandwidth.read": ("dot", 2), "bandwidth.copy": ("copy", 2), "bandwidth.triad": ("triad", 3)}
    return {
        ours: {f"babelstream_{name}": Peer(arrays=arrays, make=babelstream(name, cubin))}
        for ours, (name, arrays) in shapes.items()
    }


# Arrays that ours moves once each.
OUR_ARRAYS = {"bandwidth.read": 1, "bandwidth.write": 1, "bandwidth.copy": 2, "bandwidth.triad": 3, "gemm.fp32": 3}


def peer_case(ours: Case, name: str, peer: Peer) -> Case:
    """Return a peer as a case on arrays and buffer sets like ours."""
    stem, _, axes = ours.id.partition("[")
    our_arrays = OUR_ARRAYS[stem]
    array_bytes = ours.work.moved_bytes // our_arrays
    sets = ours.work.footprint_bytes // ours.work.moved_bytes
    elements = array_bytes // 4
    order = math.isqrt(elements)
    shape = (order, order) if ours.family == "gemm" else (elements,)
    work = ours.work
    if peer.arrays != our_arrays:
        work = Work(read_bytes=peer.arrays * array_bytes, footprint_bytes=sets * peer.arrays * array_bytes)

    def prepare(toolbox: Toolbox) -> Workload:
        executions = []
        for _ in range(sets):
            buffers = [toolbox.buffer(array_bytes) for _ in range(peer.arrays)]
            for seed, buffer in enumerate(buffers):
                fill_uniform(toolbox, buffer, seed)
            executions.append(peer.make(Arrays(toolbox=toolbox, buffers=buffers, shape=shape)))
        for execution in executions:  # libraries load code and take workspace on first use
            execution()
        toolbox.synchronize()
        return Workload(
            executions=tuple(executions),
            poison=lambda: None,
            verify=lambda: Verification(passed=True, error=0.0, tolerance=0.0, detail="a peer is not verified"),
        )

    return replace(ours, id=f"{stem}.{name}[{axes}", prepare=prepare, sources=(), work=work)


@dataclass
class Contest:
    """Ours and its peers."""

    ours: Case
    peers: dict[str, Case]
    times_s: dict[str, list[float]] = field(default_factory=dict)


def contests(gpu: Gpu, globs: list[str], cubin: bytes | None) -> list[Contest]:
    """Return what is compared on a GPU: cases that match one of ``globs`` and have a peer."""
    further = {} if cubin is None else babelstream_peers(cubin)
    found = []
    for ours in (*built_in_suite("default", gpu).cases, *(gemm_fp32_case(gpu, order) for order in ORDERS[1:])):
        stem = ours.id.partition("[")[0]
        peers = {**PEERS.get(stem, {}), **further.get(stem, {})}
        if peers and any(fnmatch.fnmatchcase(ours.id, glob) or fnmatch.fnmatchcase(stem, glob) for glob in globs):
            found.append(Contest(ours=ours, peers={name: peer_case(ours, name, one) for name, one in peers.items()}))
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
    """Print and return the medians; ratios are of neighbours in a round."""
    rows = []
    for contest in compared:
        is_product = contest.ours.family == "gemm"
        unit = "FLOP" if is_product else "B"
        ours_per_s = _rates(contest.ours, contest.times_s["ours"], is_product=is_product)
        for name, peer in contest.peers.items():
            peer_per_s = _rates(peer, contest.times_s[name], is_product=is_product)
            ratios = [our / their for our, their in zip(ours_per_s, peer_per_s, strict=True)]
            our_rate, peer_rate, ratio = map(statistics.median, (ours_per_s, peer_per_s, ratios))
            print(
                f"{contest.ours.id:28} {rate_text(our_rate, unit):>14}  {name:17} {rate_text(peer_rate, unit):>14}"
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
                    "ratio_low": min(ratios),
                    "ratio_high": max(ratios),
                    "rounds": len(ratios),
                }
            )
    return rows


def _rates(case: Case, times_s: list[float], *, is_product: bool) -> list[float]:
    amount = case.work.work_flop if is_product else case.work.moved_bytes
    return [amount / time_s for time_s in times_s]


def main() -> None:
    """Hold the contests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=1.0, help="least time of one contestant in a round")
    parser.add_argument("--case", action="append", metavar="GLOB", help="only these of ours (repeatable)")
    parser.add_argument("--babelstream", type=Path, metavar="CUBIN", help="its CUDAStream.cu, compiled: see above")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    arguments = parser.parse_args()
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    torch.set_float32_matmul_precision("highest")

    compared: list[Contest] = []
    found: list[Gpu] = []

    cubin = arguments.babelstream.read_bytes() if arguments.babelstream else None

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        compared.extend(contests(gpu, arguments.case or ["*"], cubin))
        return Suite(name="peers", cases=tuple(case for one in compared for case in (one.ours, *one.peers.values())))

    with opened_session("", suite, cache_folder()) as session:
        held(session, compared, arguments.rounds, arguments.round_s)
    print(found[0].name)
    rows = table(compared)
    if arguments.json:
        # Which chip it was is nobody's business.
        document = {"gpu": asdict(replace(found[0], chip=None)), "rows": rows}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
