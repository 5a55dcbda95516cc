"""Twins of the products through the vendor's library: a toolkit upgrade may slow it, and users run it.

Same shapes, data and checks as the products of perfgate's own kernels, whatever kernel the library's
heuristic chooses; it is chosen once, when the case is prepared.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox
from perfgate.suite.freivalds import Operands
from perfgate.suite.gemm_fp64 import fp64_format
from perfgate.suite.product import (
    BF16,
    FP8,
    FP16,
    FP32,
    INT8,
    TF32,
    Format,
    ProductKernel,
    Shape,
    product_case,
    product_work,
)
from perfgate.suite.sizes import (
    MATRIX_OVER_L2,
    STREAM_OVER_L2,
    DoesNotFitError,
    checked_footprint,
    checked_fp32_s,
    checked_fp64_s,
    checked_tensor_s,
)

VERSION = 1
LIBRARY = "cuBLASLt"
_ORDER, _LARGE_ORDER = 4096, 8192
_SKINNY: Shape = (16, 8192, 8192)
# Whatever tiles the library takes, their corners are among those of the smallest that it has.
_TILE = (64, 64)
# First compute capability of a type.
_SINCE = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (7, 0), "fp8": (8, 9), "int8": (7, 5)}


def default_library_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what the default suite has of them."""
    return (library_case(gpu, BF16, _ORDER),)


def full_library_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what only the full suite has of them."""
    others = (FP32, fp64_format(gpu), TF32, FP16, FP8, INT8)
    return (
        *(library_case(gpu, form, _ORDER) for form in others),
        *(library_case(gpu, form, _LARGE_ORDER) for form in (FP32, fp64_format(gpu), TF32, BF16, FP16, FP8, INT8)),
        library_case(gpu, BF16, _SKINNY),
    )


def library_case(gpu: Gpu, form: Format, size: int | Shape) -> Case | AbsentCase:
    """Return the product of square matrices of an order, or of a shape; absent where the GPU forbids it."""
    shape = (size, size, size) if isinstance(size, int) else size
    axes = (
        f"n={size}"
        if isinstance(size, int)
        else ",".join(f"{axis}={one}" for axis, one in zip("mnk", size, strict=True))
    )
    identity = f"gemm.cublas_{form.name}[{axes}]"
    # Few rows are bound by memory: as of a stream, nothing may be found in the L2.
    times_l2 = MATRIX_OVER_L2 if isinstance(size, int) else STREAM_OVER_L2
    try:
        _check_type(gpu, form)
        work = product_work(gpu, form, shape, times_l2=times_l2)
        checked_footprint(gpu, work.footprint_bytes)
        predicted_s = _checked_s(gpu, form, work.work_flop)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    case = product_case(
        gpu,
        identity=identity,
        version=VERSION,
        form=form,
        shape=shape,
        kernel=ProductKernel(source="", tile=_TILE, executions=_executions),
        predicted_s=predicted_s,
        unit=Unit.CYCLES if isinstance(size, int) else Unit.SECONDS,
        times_l2=times_l2,
    )
    return replace(case, library=LIBRARY)


def _check_type(gpu: Gpu, form: Format) -> None:
    capability = tuple(int(part) for part in (gpu.compute_capability or "0").split("."))
    if capability < _SINCE.get(form.name, (0, 0)):
        known = gpu.compute_capability or "(unknown)"
        message = f"tensor cores of compute capability {known} have no {form.name.upper()}"
        raise DoesNotFitError(message)


def _checked_s(gpu: Gpu, form: Format, work_flop: int) -> float:
    match form.name:
        case "fp64":
            return checked_fp64_s(gpu, work_flop)
        case "fp32":
            return checked_fp32_s(gpu, work_flop)
        case name:
            return checked_tensor_s(gpu, name, work_flop)


def _executions(
    toolbox: Toolbox, form: Format, shape: Shape, operands: Sequence[Operands]
) -> tuple[Callable[[], None], ...]:
    return toolbox.library_products(form.name, shape, operands)
