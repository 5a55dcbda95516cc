"""The most that the units of the SMs do: fused multiply-adds, exponentials, tensor-core products.

Nothing is loaded while it counts, so these are the compute roofs of a run. Judged in SM cycles: under
a power limit the time follows the power, the cycles do not. Results are whole numbers, exact, that
count every round.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import EXPONENTIAL_PIPE
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.suite.filling import poisoning
from perfgate.suite.tally import exact_verification
from perfgate.suite.tensor_peak import tensor_peak_case

VERSION = 1
SOURCE = "peak.cu"
THREADS, CHAINS, STEPS = 1024, 8, 128
_SLOWEST_CLOCK_HZ = 1e9
# Compute capabilities with FP64 units for half the rate of FP32; all others have 2 lanes an SM.
_WITH_FP64 = ("7.0", "8.0", "9.0", "10.0")
# What 2^-x leaves alone, and how far MUFU.EX2 may be off it: 2 ulp (CUDA C++ Programming Guide, intrinsic functions),
# summed over steps that shrink an error by 0.44 each.
_FIXED_POINT, _FIXED_POINT_TOLERANCE = 0.641185744504986, 2.0**-21


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chains:
    """One kernel of peak.cu that runs chains of one instruction.

    Attributes:
        name: of the case, behind ``peak.``; kernel: of the function, behind ``peak_``.
        pipe: whose roof it is.
        rounds: of an execution: 2 milliseconds on an H200.
        lanes: of an SM, the fewest that a GPU has.
        operations: of a step of a chain.
        arguments: between output and rounds.
        expected: what a chain ends at, from its start and the rounds.
        start_bits: of the start, as in peak.cu.
    """

    name: str
    kernel: str
    pipe: str
    dtype: str
    rounds: int
    lanes: int
    operations: int
    arguments: tuple[np.generic, ...]
    out_dtype: Any
    compare: Callable[[np.ndarray, int], np.ndarray]
    compared: str

    def case(self, sm_count: int) -> Case:
        threads = sm_count * THREADS
        steps = CHAINS * STEPS * self.rounds
        return Case(
            id=f"peak.{self.name}",
            version=VERSION,
            work=Work(
                work_flop=self.operations * threads * steps,
                footprint_bytes=threads * CHAINS * np.dtype(self.out_dtype).itemsize,
                dtype=self.dtype,
                pipe=self.pipe,
            ),
            prepare=partial(self.prepared, sm_count),
            sources=(SOURCE,),
            unit=Unit.CYCLES,
            predicted_s=THREADS * steps / self.lanes / _SLOWEST_CLOCK_HZ,
        )

    def prepared(self, sm_count: int, toolbox: Toolbox) -> Workload:
        count = sm_count * THREADS * CHAINS
        out = toolbox.buffer(count * np.dtype(self.out_dtype).itemsize)
        execution = toolbox.kernel(SOURCE, f"peak_{self.kernel}").bind(
            grid=(sm_count, 1, 1), block=(THREADS, 1, 1), args=(out, *self.arguments, np.uint32(self.rounds))
        )

        def verification() -> Verification:
            # Chains lie behind each other, each with all threads; starts count a thread's chains first.
            found = toolbox.read(out, self.out_dtype, count).reshape(CHAINS, -1).T.ravel()
            wrong = np.flatnonzero(self.compare(found, self.rounds))
            return exact_verification([(len(wrong), int(wrong[0]) if len(wrong) else 0)], self.compared)

        return Workload(executions=(execution,), poison=poisoning(toolbox, [out]), verify=verification)


def starts(count: int, bits: int) -> np.ndarray:
    """Return where the chains of all threads start: ``start_of`` of peak.cu."""
    with np.errstate(over="ignore"):
        words: np.ndarray = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
    words >>= np.uint32(32 - bits)
    return words


def _wrong_numbers(bits: int, found: np.ndarray, rounds: int) -> np.ndarray:
    wrong: np.ndarray = found != starts(len(found), bits).astype(np.float64) + rounds
    return wrong


def _wrong_pairs(found: np.ndarray, rounds: int) -> np.ndarray:
    start = starts(len(found), 20)
    expected = np.stack([start & np.uint32(0x3FF), start >> np.uint32(10)], axis=-1) + np.uint32(rounds)
    wrong: np.ndarray = (found.view(np.float16).reshape(-1, 2).astype(np.float32) != expected).any(axis=-1)
    return wrong


def _wrong_fixed_points(found: np.ndarray, _rounds: int) -> np.ndarray:
    near: np.ndarray = np.abs(found - _FIXED_POINT) <= _FIXED_POINT_TOLERANCE
    return ~near


def _pair(number: float) -> np.uint32:
    words: np.ndarray = np.array([number, number], dtype=np.float16).view(np.uint32)
    pair: np.uint32 = words[0]
    return pair


_EXACTLY = "the ends of all chains, exactly: each counts its rounds"


def _chains(capability: str | None) -> tuple[_Chains, ...]:
    with_fp64 = capability in _WITH_FP64
    return (
        _Chains(
            name="fma_fp32",
            kernel="fma_fp32",
            pipe="fp32",
            dtype="fp32",
            rounds=500,
            lanes=64,
            operations=2,
            arguments=(np.float32(-1), np.float32(2**22), np.float32(2**22 + 1)),
            out_dtype=np.float32,
            compare=partial(_wrong_numbers, 22),
            compared=_EXACTLY,
        ),
        _Chains(
            name="fma_fp64",
            kernel="fma_fp64",
            pipe="fp64",
            dtype="fp64",
            rounds=250 if with_fp64 else 8,
            lanes=32 if with_fp64 else 1,
            operations=2,
            arguments=(np.float64(-1), np.float64(2**32), np.float64(2**32 + 1)),
            out_dtype=np.float64,
            compare=partial(_wrong_numbers, 32),
            compared=_EXACTLY,
        ),
        _Chains(
            name="fma_fp16x2",
            kernel="fma_fp16x2",
            pipe="fp16",
            dtype="fp16",
            rounds=500,
            lanes=64,
            operations=4,
            arguments=(_pair(-1), _pair(1024), _pair(1025)),
            out_dtype=np.uint32,
            compare=_wrong_pairs,
            compared=_EXACTLY,
        ),
        _Chains(
            name="exponential",
            kernel="ex2",
            pipe=EXPONENTIAL_PIPE,
            dtype="fp32",
            rounds=64,
            lanes=16,
            operations=1,
            arguments=(),
            out_dtype=np.float32,
            compare=_wrong_fixed_points,
            compared="the ends of all chains against the number that 2^-x leaves alone",
        ),
    )


def peak_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the peaks; absent where the SMs are not known, which the grid and the work follow from."""
    chains = _chains(gpu.compute_capability)
    if not gpu.sm_count:
        reason = "the GPU does not tell how many SMs it has"
        names = (*(one.name for one in chains), "tensor_bf16")
        return tuple(AbsentCase(id=f"peak.{name}", reason=reason) for name in names)
    return (*(one.case(gpu.sm_count) for one in chains), tensor_peak_case(gpu, gpu.sm_count))
