"""peak.tensor_bf16: how fast the tensor cores take BF16 products whose operands are at hand.

By wgmma from shared memory on compute capability 9.0, by mma.sync from registers elsewhere.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import legacy_pipe
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.suite.filling import poisoning
from perfgate.suite.gemm_mma import is_legacy
from perfgate.suite.tally import exact_verification

VERSION = 1
SOURCE = "peak.cu"
_ID = "peak.tensor_bf16"
_PIPE = "bf16-tensor"
_SEED = 0x5EED
_DEPTH, _SLICES = 16, 4
# Whole numbers that BF16 holds, and those of the slice that is left: so small that their sum over all rounds is exact.
_LARGEST, _LARGEST_LEFT = 127, 3
_SLOWEST_CLOCK_HZ = 1e9
_WITHOUT_BF16 = ("5.", "6.", "7.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Issue:
    """How a kernel of peak.cu issues products.

    Attributes:
        kernel: name behind ``peak_``.
        rows, columns: of the product of one group of threads.
        group_threads, groups: threads that issue together, and how many of them a block has.
        repeats: of all slices in a round.
        rounds: of an execution.
        slowest_flop_per_clock: of an SM.
    """

    kernel: str
    rows: int
    columns: int
    group_threads: int
    groups: int
    repeats: int
    rounds: int
    slowest_flop_per_clock: int

    @property
    def block_flop(self) -> int:
        """FLOP of one block in an execution: all slices but the last count twice, added and subtracted."""
        products = self.rounds * self.repeats * (2 * _SLICES - 1)
        return self.groups * products * 2 * self.rows * self.columns * _DEPTH


_WGMMA = _Issue(
    kernel="wgmma_bf16",
    rows=64,
    columns=256,
    group_threads=128,
    groups=2,
    repeats=4,
    rounds=512,
    slowest_flop_per_clock=4096,
)
_MMA = _Issue(
    kernel="mma_bf16",
    rows=16,
    columns=64,
    group_threads=32,
    groups=8,
    repeats=1,
    rounds=4096,
    slowest_flop_per_clock=512,
)


def tensor_peak_case(gpu: Gpu, sm_count: int) -> Case | AbsentCase:
    """Return the case; absent where tensor cores take no BF16, and no roof where mma.sync is their slower way in."""
    capability = gpu.compute_capability
    if capability is None or capability.startswith(_WITHOUT_BF16):
        return AbsentCase(id=_ID, reason="BF16 on tensor cores needs compute capability 8.0")
    issue = _WGMMA if capability == "9.0" else _MMA
    return Case(
        id=_ID,
        version=VERSION,
        work=Work(
            work_flop=sm_count * issue.block_flop,
            footprint_bytes=sm_count * issue.groups * issue.rows * issue.columns * 4,
            dtype="bf16",
            pipe=legacy_pipe(_PIPE) if is_legacy(gpu) else _PIPE,
        ),
        prepare=partial(_prepared, issue, sm_count),
        sources=(SOURCE,),
        unit=Unit.CYCLES,
        predicted_s=issue.block_flop / issue.slowest_flop_per_clock / _SLOWEST_CLOCK_HZ,
    )


def _prepared(issue: _Issue, sm_count: int, toolbox: Toolbox) -> Workload:
    left, right = operands(issue.rows, issue.columns)
    a, b = (toolbox.buffer(one.size * 2) for one in (left, right))
    for buffer, values in ((a, left), (b, right)):
        toolbox.write(buffer, bf16_words(values))
    count = sm_count * issue.groups
    out = toolbox.buffer(count * issue.rows * issue.columns * 4)
    execution = toolbox.kernel(SOURCE, f"peak_{issue.kernel}").bind(
        grid=(sm_count, 1, 1),
        block=(issue.group_threads * issue.groups, 1, 1),
        args=(a, b, out, np.uint32(issue.rounds)),
    )
    expected = issue.rounds * issue.repeats * (left[-1] @ right[-1].T)

    def verification() -> Verification:
        found = toolbox.read(out, np.float32, count * expected.size).reshape(count, *expected.shape)
        wrong = np.flatnonzero(found != expected)
        compared = "all products exactly: each counts its rounds"
        return exact_verification([(len(wrong), int(wrong[0]) if len(wrong) else 0)], compared)

    return Workload(executions=(execution,), poison=poisoning(toolbox, [out]), verify=verification)


def operands(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return A (slices x rows x 16) and B (slices x columns x 16): random whole numbers, FP32."""
    random = np.random.default_rng(_SEED)
    slices = []
    for height in (rows, columns):
        values = random.integers(-_LARGEST, _LARGEST + 1, (_SLICES, height, _DEPTH))
        values[-1] = random.integers(-_LARGEST_LEFT, _LARGEST_LEFT + 1, (height, _DEPTH))
        slices.append(values.astype(np.float32))
    return slices[0], slices[1]


def bf16_words(values: np.ndarray) -> np.ndarray:
    """Return numbers that BF16 holds as its 16-bit patterns."""
    words: np.ndarray = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> np.uint32(16)
    return words.astype(np.uint16)
