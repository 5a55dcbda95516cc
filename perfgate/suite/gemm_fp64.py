"""Square products in FP64: on tensor cores where they have FP64, else on the few FP64 units that every GPU has."""

from dataclasses import replace

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.suite.multistage import Tiling, multistage_kernel
from perfgate.suite.product import Format, product_case, product_work
from perfgate.suite.sizes import DoesNotFitError, checked_footprint, checked_fp64_s

VERSION = 1
_SOURCE = "gemm_fp64.cu"
_ORDERS, _LARGE_ORDER = (4096, 2048, 1024, 512), 8192
# Rounded to nearest at 53 bits. The check adds up in FP64 too: B^T x, A (B^T x) and C x err like the product itself,
# which doubles the deviation.
FP64 = Format(
    name="fp64",
    operand="fp64",
    result="fp64",
    operand_bytes=8,
    result_bytes=8,
    pipe="fp64",
    significand=52,
    cuts=False,
)
_TENSOR_CAPABILITIES = ("8.0", "9.0", "10.0")
# 160 KiB of shared memory. What FP64 units alone multiply needs fewer accumulators, and a tile that fits a T4.
_TENSOR_TILING = Tiling(tile=(128, 128), warps=(4, 2), stages=5)
_VECTOR_TILING = Tiling(tile=(64, 64), warps=(2, 4), stages=2)


def default_fp64_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the FP64 product at the largest order that fits the memory and the time of an execution."""
    absent = AbsentCase(id="gemm.fp64", reason="")
    for order in _ORDERS:
        found = fp64_case(gpu, order)
        if isinstance(found, Case):
            return (found,)
        absent = replace(absent, reason=found.reason)
    return (absent,)


def full_fp64_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what only the full suite has of them."""
    return (fp64_case(gpu, _LARGE_ORDER),)


def fp64_case(gpu: Gpu, order: int) -> Case | AbsentCase:
    """Return the FP64 product of square matrices; absent where memory or time forbid it."""
    identity, shape, form = f"gemm.fp64[n={order}]", (order, order, order), fp64_format(gpu)
    try:
        work = product_work(gpu, form, shape)
        checked_footprint(gpu, work.footprint_bytes)
        predicted_s = checked_fp64_s(gpu, work.work_flop)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    tiling = _TENSOR_TILING if gpu.compute_capability in _TENSOR_CAPABILITIES else _VECTOR_TILING
    return product_case(
        gpu,
        identity=identity,
        version=VERSION,
        form=form,
        shape=shape,
        kernel=multistage_kernel(_SOURCE, tiling),
        predicted_s=predicted_s,
    )


def fp64_format(gpu: Gpu) -> Format:
    """Return FP64 on the pipe that a GPU multiplies it on."""
    return replace(FP64, pipe="fp64-tensor") if gpu.compute_capability in _TENSOR_CAPABILITIES else FP64
