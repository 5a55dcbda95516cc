"""Matrix products on tensor cores: which kernel an architecture runs, and the cases of the suites.

gemm.bf16, gemm.fp16, gemm.tf32, gemm.fp8 (e4m3) and gemm.int8, square. Accumulated in FP32 (INT8 in
INT32); written as BF16, FP16, FP32, BF16 and INT32.
"""

from dataclasses import replace

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import legacy_pipe
from perfgate.suite.gemm_mma import is_legacy, mma_kernel
from perfgate.suite.gemm_wgmma import wgmma_kernel
from perfgate.suite.product import BF16, FP8, FP16, INT8, TF32, Format, ProductKernel, Shape, product_case, product_work
from perfgate.suite.sizes import DoesNotFitError, checked_footprint, checked_tensor_s

VERSION = 1
_ORDER, _LARGE_ORDER = 4096, 8192
_HOPPER = "9.0"


def default_tensor_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what the default suite has of them."""
    return tuple(tensor_case(gpu, form, _ORDER) for form in (BF16, FP8))


def full_tensor_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what only the full suite has of them."""
    return (
        *(tensor_case(gpu, form, _ORDER) for form in (FP16, TF32, INT8)),
        *(tensor_case(gpu, form, _LARGE_ORDER) for form in (BF16, FP16, TF32, FP8, INT8)),
    )


def tensor_case(gpu: Gpu, form: Format, order: int) -> Case | AbsentCase:
    """Return the product of square matrices; absent where the architecture, the memory or the time forbids it."""
    identity, shape = f"gemm.{form.name}[n={order}]", (order, order, order)
    if is_legacy(gpu):
        form = replace(form, pipe=legacy_pipe(form.pipe))
    try:
        kernel = tensor_kernel(gpu, form, shape)
        work = product_work(gpu, form, shape)
        checked_footprint(gpu, work.footprint_bytes)
        predicted_s = checked_tensor_s(gpu, form.name, work.work_flop)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    return product_case(
        gpu, identity=identity, version=VERSION, form=form, shape=shape, kernel=kernel, predicted_s=predicted_s
    )


def tensor_kernel(gpu: Gpu, form: Format, shape: Shape) -> ProductKernel:
    """Return the kernel that a GPU runs for a product.

    Raises:
        DoesNotFitError: there is none, and why.
    """
    if gpu.compute_capability == _HOPPER:
        return wgmma_kernel(form, shape)
    return mma_kernel(gpu, form)
