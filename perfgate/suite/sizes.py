"""How large a case is on a GPU: a pure function of the GPU's identity, so that every session of one GPU agrees.

The rules are those of docs/measurement.md: streams rotate over at least 16 times the L2 cache, matrix
products over at least 3 times; no case takes more than a quarter of the memory; one execution is
predicted to stay under 50 ms.
"""

from collections.abc import Callable

from perfgate.core.gpu import MEMORY_TOLERANCE, Gpu
from perfgate.core.units import bytes_text

EXECUTION_LIMIT_S = 0.05
# 256 MiB arrays read 7 % low on an H200, 1 GiB 1.5 %: ramp-up of 9.5 µs an execution.
LARGEST_ARRAY_BYTES = 4 * 2**30
# Below this an execution is shorter than the ramp-up on any GPU.
SMALLEST_ARRAY_BYTES = 2**20
# Read, write, copy and triad share one size; triad has the most arrays.
MOST_ARRAYS = 3

STREAM_OVER_L2 = 16
MATRIX_OVER_L2 = 3

# The largest L2 known (RTX PRO 6000, B200), for a GPU that does not tell.
_UNKNOWN_L2_BYTES = 128 * 2**20
# Slower than any discrete GPU's memory (T4 240 GB/s measured); of the order of an integrated one's.
_UNKNOWN_BANDWIDTH_BYTES_PER_S = 100e9
# Below what any GPU of the last ten years reaches.
_UNKNOWN_FP32_FLOP_PER_S = 1e12
# What the kernels reach of their roof at least; 0.88 to 0.95 and 0.7 measured on an H200.
_STREAM_EFFICIENCY = 0.75
_MATRIX_EFFICIENCY = 0.6
# BF16 operations a clock and SM on tensor cores with FP32 accumulation, at least: GeForce parts where they differ.
_TENSOR_FLOP_PER_CLOCK = {"8.0": 2048, "8.7": 2048, "9.0": 4096, "10.0": 2048, "10.3": 2048}
_TENSOR_FLOP_PER_CLOCK_ELSEWHERE = 512
_TENSOR_OVER_BF16 = {"tf32": 0.5, "fp16": 1.0, "bf16": 1.0, "fp8": 2.0, "int8": 2.0}
# FP64 operations a clock and SM, on tensor cores where they have FP64 (8.0, 9.0, 10.0); two units an SM elsewhere.
_FP64_FLOP_PER_CLOCK = {"7.0": 64, "8.0": 128, "9.0": 256, "10.0": 128}
_FP64_FLOP_PER_CLOCK_ELSEWHERE = 4
_UNKNOWN_FP64_FLOP_PER_S = 1e11
# FP32 lanes an SM (CUDA C++ Best Practices Guide, arithmetic throughput): 64 up to 8.0, 128 since.
_CAPABILITIES_OF_64_LANES = ("7.0", "7.2", "7.5", "8.0")


class DoesNotFitError(Exception):
    """A case cannot run on a GPU; the text is the reason that its AbsentCase gives."""


def size_axis(size_bytes: int) -> str:
    """Return a size as a case's id has it: ``"4GiB"``."""
    return bytes_text(size_bytes).replace(" ", "")


def usable_bytes(gpu: Gpu) -> int:
    """Return what one case may take: a quarter of the total memory, less what drivers and ECC take from one model.

    Raises:
        DoesNotFitError: the total memory is unknown.
    """
    if not gpu.memory_bytes:
        message = "the GPU does not tell its total memory, which sizes follow from"
        raise DoesNotFitError(message)
    return int(gpu.memory_bytes * (1 - MEMORY_TOLERANCE)) // 4


def array_bytes(gpu: Gpu) -> int:
    """Return the size of an array of the streaming cases: a power of two, 4 GiB where there is room and speed.

    Raises:
        DoesNotFitError: the memory is too small or its size unknown.
    """
    size = LARGEST_ARRAY_BYTES
    while MOST_ARRAYS * size > usable_bytes(gpu) or predicted_stream_s(gpu, MOST_ARRAYS * size) > EXECUTION_LIMIT_S:
        size //= 2
        if size < SMALLEST_ARRAY_BYTES:
            message = f"a quarter of {gpu.memory_bytes} bytes of memory is too small for {MOST_ARRAYS} arrays"
            raise DoesNotFitError(message)
    return size


def matrix_order(gpu: Gpu, orders: tuple[int, ...], element_bytes: int) -> int:
    """Return the first of ``orders`` for which square matrix products fit and take less than 50 ms.

    Raises:
        DoesNotFitError: none does.
    """
    for order in orders:
        set_bytes = MOST_ARRAYS * order**2 * element_bytes
        fits = set_bytes * buffer_sets(gpu, set_bytes, MATRIX_OVER_L2, at_least=2) <= usable_bytes(gpu)
        if fits and predicted_fp32_s(gpu, 2 * order**3) <= EXECUTION_LIMIT_S:
            return order
    message = f"no order of {', '.join(map(str, orders))} fits a quarter of the memory and takes less than 50 ms"
    raise DoesNotFitError(message)


def stream_size(gpu: Gpu, most: int, least: int, set_bytes: Callable[[int], int]) -> int:
    """Return the largest of ``most``, ``most / 2``, ... ``least`` that fits rotated and takes less than 50 ms.

    Sizes count whatever the case does: rows, positions. ``set_bytes`` tells the memory of one buffer set of a
    size, which an execution moves once.

    Raises:
        DoesNotFitError: none does, or the total memory is unknown.
    """
    size = most
    while size >= least:
        moved_bytes = set_bytes(size)
        rotated_bytes = moved_bytes * buffer_sets(gpu, moved_bytes, STREAM_OVER_L2)
        if rotated_bytes <= usable_bytes(gpu) and predicted_stream_s(gpu, moved_bytes) <= EXECUTION_LIMIT_S:
            return size
        size //= 2
    message = f"a quarter of {gpu.memory_bytes} bytes of memory is too small for arrays beyond the L2 cache"
    raise DoesNotFitError(message)


def buffer_sets(gpu: Gpu, set_bytes: int, times_l2: int, *, at_least: int = 1) -> int:
    """Return how many buffer sets executions rotate over, so that they touch ``times_l2`` times the L2 cache."""
    l2_bytes = gpu.l2_bytes or _UNKNOWN_L2_BYTES
    return max(at_least, -(-times_l2 * l2_bytes // set_bytes))


def checked_footprint(gpu: Gpu, footprint_bytes: int) -> int:
    """Return a case's footprint.

    Raises:
        DoesNotFitError: it is more than a case may take.
    """
    if footprint_bytes > usable_bytes(gpu):
        message = f"beating the L2 cache takes {footprint_bytes} bytes, more than a quarter of the memory"
        raise DoesNotFitError(message)
    return footprint_bytes


def predicted_stream_s(gpu: Gpu, moved_bytes: int) -> float:
    """Return the time to move bytes through device memory, on the slow side."""
    bandwidth_bytes_per_s = _UNKNOWN_BANDWIDTH_BYTES_PER_S
    if gpu.memory_clock_hz and gpu.memory_bus_bits and gpu.integrated is False:
        bandwidth_bytes_per_s = _STREAM_EFFICIENCY * gpu.memory_clock_hz * 2 * gpu.memory_bus_bits / 8
    return moved_bytes / bandwidth_bytes_per_s


def predicted_fp32_s(gpu: Gpu, work_flop: int) -> float:
    """Return the time of a matrix product on the FP32 units, on the slow side."""
    rate_flop_per_s = _UNKNOWN_FP32_FLOP_PER_S
    if gpu.sm_count and gpu.sm_clock_max_hz:
        lanes = 128 if (gpu.compute_capability or "7.0") not in _CAPABILITIES_OF_64_LANES else 64
        rate_flop_per_s = _MATRIX_EFFICIENCY * 2 * lanes * gpu.sm_count * gpu.sm_clock_max_hz
    return work_flop / rate_flop_per_s


def checked_tensor_s(gpu: Gpu, dtype: str, work_flop: int) -> float:
    """Return the time of a matrix product on tensor cores, on the slow side.

    Raises:
        DoesNotFitError: it is more than an execution may take.
    """
    rate_flop_per_s = _UNKNOWN_FP32_FLOP_PER_S
    if gpu.sm_count and gpu.sm_clock_max_hz:
        bf16 = _TENSOR_FLOP_PER_CLOCK.get(gpu.compute_capability or "", _TENSOR_FLOP_PER_CLOCK_ELSEWHERE)
        rate = _MATRIX_EFFICIENCY * bf16 * _TENSOR_OVER_BF16[dtype]
        rate_flop_per_s = rate * gpu.sm_count * gpu.sm_clock_max_hz
    return _checked_s(work_flop / rate_flop_per_s)


def checked_fp32_s(gpu: Gpu, work_flop: int) -> float:
    """Return the time of a matrix product on the FP32 units, on the slow side.

    Raises:
        DoesNotFitError: it is more than an execution may take.
    """
    return _checked_s(predicted_fp32_s(gpu, work_flop))


def checked_fp64_s(gpu: Gpu, work_flop: int) -> float:
    """Return the time of a matrix product in FP64, on the slow side.

    Raises:
        DoesNotFitError: it is more than an execution may take.
    """
    rate_flop_per_s = _UNKNOWN_FP64_FLOP_PER_S
    if gpu.sm_count and gpu.sm_clock_max_hz:
        rate = _FP64_FLOP_PER_CLOCK.get(gpu.compute_capability or "", _FP64_FLOP_PER_CLOCK_ELSEWHERE)
        rate_flop_per_s = _MATRIX_EFFICIENCY * rate * gpu.sm_count * gpu.sm_clock_max_hz
    return _checked_s(work_flop / rate_flop_per_s)


def _checked_s(predicted_s: float) -> float:
    if predicted_s > EXECUTION_LIMIT_S:
        message = f"predicted to take {1e3 * predicted_s:.0f} ms an execution, longer than 50 ms"
        raise DoesNotFitError(message)
    return predicted_s
