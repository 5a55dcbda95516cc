"""The product of 16 rows with large weights in BF16, as of decoding: bound by memory, the weights stream once."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox
from perfgate.suite.freivalds import Operands
from perfgate.suite.product import BF16, Format, ProductKernel, Shape, product_case, product_work
from perfgate.suite.sizes import STREAM_OVER_L2, DoesNotFitError, checked_footprint, predicted_stream_s

VERSION = 1
_SOURCE = "gemm_skinny.cu"
SHAPE: Shape = (16, 8192, 8192)
# First compute capability with BF16.
_SINCE_MAJOR = 8
# Rows of C that a block makes; knobs of the kernel; floats that a row of its sums is padded by.
_ROWS, _TILE_COLUMNS, _WARPS, _BLOCKS = 16, 64, 8, 1
_PADDING = 8


def skinny_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the product; absent where BF16 or memory lack."""
    return (skinny_case(gpu, SHAPE),)


def skinny_case(gpu: Gpu, shape: Shape) -> Case | AbsentCase:
    """Return the product of one shape."""
    m, n, k = shape
    identity = f"gemm.bf16[m={m},n={n},k={k}]"
    if int((gpu.compute_capability or "0").split(".")[0]) < _SINCE_MAJOR:
        known = gpu.compute_capability or "(unknown)"
        return AbsentCase(id=identity, reason=f"tensor cores of compute capability {known} have no BF16")
    try:
        work = product_work(gpu, BF16, shape, times_l2=STREAM_OVER_L2)
        checked_footprint(gpu, work.footprint_bytes)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    return product_case(
        gpu,
        identity=identity,
        version=VERSION,
        form=BF16,
        shape=shape,
        kernel=skinny_kernel(),
        predicted_s=predicted_stream_s(gpu, work.moved_bytes),
        unit=Unit.SECONDS,
        times_l2=STREAM_OVER_L2,
    )


def skinny_kernel() -> ProductKernel:
    """Return the kernel for few rows."""
    return ProductKernel(source=_SOURCE, tile=(_ROWS, _TILE_COLUMNS), executions=_executions)


def _executions(
    toolbox: Toolbox, form: Format, shape: Shape, operands: Sequence[Operands]
) -> tuple[Callable[[], None], ...]:
    m, n, _ = shape
    defines = {"TILE_N": _TILE_COLUMNS, "WARPS": _WARPS, "BLOCKS": _BLOCKS}
    kernel = toolbox.kernel(_SOURCE, f"gemm_skinny_{form.name}", defines=defines)
    grid = (math.ceil(n / _TILE_COLUMNS), math.ceil(m / _ROWS), 1)
    shared_bytes = 4 * _WARPS * _ROWS * (_TILE_COLUMNS + _PADDING)
    sizes = tuple(np.uint32(size) for size in shape)
    return tuple(
        kernel.bind(grid=grid, block=(32 * _WARPS, 1, 1), args=(*buffers, *sizes), shared_bytes=shared_bytes)
        for buffers in operands
    )
