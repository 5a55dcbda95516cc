"""Latencies of single operations on the device: chains of dependent steps, timed together.

An execution is a chain of as many steps as the axis ``steps`` says; its time over the steps is the
latency. What the host has a part in (copies, synchronizing) is in ``host_latency``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.suite.atomics import atomic_cases
from perfgate.suite.chain import NO_BITS, SOURCE, rounds
from perfgate.suite.filling import WORD_BYTES, poisoning
from perfgate.suite.host_latency import host_latency_cases
from perfgate.suite.ring import ring_node
from perfgate.suite.tally import exact_verification
from perfgate.suite.walk import walk_cases

VERSION = 1
_RING_BITS = 8
_BARRIER_WARPS = (1, 2, 4, 8, 16, 32)
# Slower than any GPU's clock under load.
_SLOWEST_CLOCK_HZ = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """One kernel of latency.cu that starts anew in every execution.

    Attributes:
        name: of the case, ``latency.`` before it.
        axes: of the id, behind ``steps``.
        steps: of an execution: about a millisecond at least, so that the launch is a fifth of a percent at most.
        cycles: of a step, roughly and on the slow side.
        expected: what the output is after so many steps.
        arguments: between the output and the rounds.
    """

    name: str
    steps: int
    cycles: int
    expected: Callable[[int], Sequence[int]]
    axes: str = ""
    threads: int = 1
    arguments: tuple[np.generic, ...] = ()
    unit: Unit = Unit.CYCLES

    def case(self) -> Case:
        return Case(
            id=f"latency.{self.name}[steps={self.steps}{self.axes}]",
            version=VERSION,
            work=Work(),
            prepare=self._prepared,
            sources=(SOURCE,),
            unit=self.unit,
            predicted_s=self.steps * self.cycles / _SLOWEST_CLOCK_HZ,
        )

    def _prepared(self, toolbox: Toolbox) -> Workload:
        expected = np.array(self.expected(self.steps), dtype=np.uint32)
        out = toolbox.buffer(max(self.threads, len(expected)) * WORD_BYTES)
        execution = toolbox.kernel(SOURCE, f"latency_{self.name}").bind(
            grid=(1, 1, 1),
            block=(self.threads, 1, 1),
            args=(out, *self.arguments, rounds(self.steps)),
        )

        def verification() -> Verification:
            wrong = np.flatnonzero(toolbox.read(out, np.uint32, len(expected)) != expected)
            first = int(wrong[0]) if len(wrong) else 0
            return exact_verification([(len(wrong), first)], f"what {self.steps} steps lead to, word by word")

        return Workload(executions=(execution,), poison=poisoning(toolbox, [out]), verify=verification)


def fibonacci(index: int, modulus: int) -> int:
    """Return the Fibonacci number F(index), F(1) = F(2) = 1, modulo a number, by doubling."""
    low, high = 0, 1
    for bit in f"{index:b}":
        low, high = low * (2 * high - low) % modulus, (low * low + high * high) % modulus
        if bit == "1":
            low, high = high, (low + high) % modulus
    return low


def _handed_on(steps: int) -> list[int]:
    return [100 + (lane + steps) % 31 for lane in range(31)] + [131]


def _barrier(warps: int) -> _Chain:
    threads = 32 * warps
    return _Chain(
        name="barrier",
        axes=f",warps={warps}",
        steps=2**17,
        cycles=40 + 4 * warps,
        threads=threads,
        expected=lambda steps: [int(rounds(steps)) + (thread + 33) % threads for thread in range(threads)],
    )


def _contended_shared(threads: int) -> _Chain:
    return _Chain(
        name="atomic_shared_contended",
        axes=f",threads={threads}",
        steps=2**15,
        cycles=60 + 4 * threads,
        threads=threads,
        arguments=(NO_BITS,),
        expected=lambda steps: [threads * steps % 2**32],
    )


_CHAINS = (
    _Chain(name="shuffle", steps=2**17, cycles=40, threads=32, expected=_handed_on),
    _Chain(
        name="shared",
        steps=2**17,
        cycles=50,
        threads=2**_RING_BITS,
        expected=lambda steps: [ring_node(steps % 2**_RING_BITS, _RING_BITS)],
    ),
    *(_barrier(warps) for warps in _BARRIER_WARPS),
    _Chain(name="atomic_shared", steps=2**17, cycles=100, expected=lambda steps: [fibonacci(steps + 1, 2**32)]),
    _contended_shared(32),
    _Chain(name="fence_system", steps=2**12, cycles=2000, expected=lambda steps: [steps], unit=Unit.SECONDS),
)


def latency_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the latency cases; absent where the GPU does not tell what a size or a grid follows from."""
    return (
        *(chain.case() for chain in _CHAINS),
        *atomic_cases(gpu),
        *walk_cases(gpu),
        *host_latency_cases(gpu),
    )
