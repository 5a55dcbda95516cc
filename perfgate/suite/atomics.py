"""Additions to words of global memory: alone, and while a warp on every SM adds to the same word.

Words lie in different parts of the L2, near or far from an SM: one alone would differ by 15 % between
launches, as its physical address does.
"""

from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.suite.chain import NO_BITS, SOURCE, rounds
from perfgate.suite.filling import WORD_BYTES, poisoning
from perfgate.suite.tally import exact_verification

VERSION = 1
# Of latency.cu: ATOMIC_WORDS, ATOMIC_STRIDE.
WORDS, STRIDE_BYTES = 1024, 4096
_STEPS = 8192
# Each execution adds to a word of its own.
_CONTENDED_WORDS, _CONTENDED_STEPS = 8, 256
_WARP = 32


def atomic_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the two cases; the contended one is absent where the number of SMs is not known."""
    return (_alone(), _contended(gpu.sm_count))


def _alone() -> Case:
    return Case(
        id=f"latency.atomic_global[steps={_STEPS}]",
        version=VERSION,
        work=Work(footprint_bytes=WORDS * STRIDE_BYTES),
        prepare=_prepared_alone,
        sources=(SOURCE,),
        predicted_s=_STEPS * 1e-6,
    )


def _prepared_alone(toolbox: Toolbox) -> Workload:
    words = toolbox.buffer(WORDS * STRIDE_BYTES)
    execution = toolbox.kernel(SOURCE, "latency_atomic_global").bind(
        grid=(1, 1, 1), block=(WORDS, 1, 1), args=(words, rounds(_STEPS))
    )
    expected = added_words(_STEPS)

    def verification() -> Verification:
        found = toolbox.read(words, np.uint32, words.size_bytes // WORD_BYTES)[:: STRIDE_BYTES // WORD_BYTES]
        wrong = np.flatnonzero(found != expected)
        first = int(wrong[0]) if len(wrong) else 0
        return exact_verification([(len(wrong), first)], f"the words after {_STEPS} additions")

    return Workload(executions=(execution,), poison=poisoning(toolbox, [words]), verify=verification)


def added_words(steps: int) -> np.ndarray:
    """Return the words, 1 at first, after each step in turn added to one what the step before found, modulo 2^32."""
    words, found = [1] * WORDS, 0
    for step in range(steps):
        place = step % WORDS
        words[place], found = (words[place] + found) % 2**32, words[place]
    return np.array(words, dtype=np.uint32)


def _contended(sm_count: int | None) -> Case | AbsentCase:
    name = "latency.atomic_global_contended"
    if not sm_count:
        return AbsentCase(id=name, reason="the GPU does not tell how many SMs it has")
    return Case(
        id=f"{name}[steps={_CONTENDED_STEPS},threads={sm_count * _WARP}]",
        version=VERSION,
        work=Work(footprint_bytes=_CONTENDED_WORDS * STRIDE_BYTES),
        prepare=partial(_prepared_contended, sm_count),
        sources=(SOURCE,),
        # A word takes one addition a clock at most.
        predicted_s=_CONTENDED_STEPS * sm_count * _WARP * 2e-9,
    )


def _prepared_contended(blocks: int, toolbox: Toolbox) -> Workload:
    words = [toolbox.buffer(STRIDE_BYTES) for _ in range(_CONTENDED_WORDS)]
    kernel = toolbox.kernel(SOURCE, "latency_atomic_global_contended")
    executions = tuple(
        kernel.bind(grid=(blocks, 1, 1), block=(_WARP, 1, 1), args=(word, NO_BITS, rounds(_CONTENDED_STEPS)))
        for word in words
    )

    def verification() -> Verification:
        # The poison is 2^64 - 1: one less than nothing.
        added = [(int(toolbox.read(word, np.uint64, 1)[0]) + 1) % 2**64 for word in words]
        whole = blocks * _WARP * _CONTENDED_STEPS
        wrong = [index for index, count in enumerate(added) if count == 0 or count % whole]
        return exact_verification(
            [(len(wrong), wrong[0] if wrong else 0)], "additions to each word, in whole executions"
        )

    return Workload(executions=executions, poison=poisoning(toolbox, words), verify=verification)
