"""Square matrix products C = A B^T: gemm.fp32 on the FP32 units.

Operands are uniform in (-1, 1). The whole of C is scanned for NaN and checked with Freivalds' method in
FP64; the corners of all tiles, where a wrong bound shows, are compared with exact dot products.
"""

import math
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.filling import WORD_BYTES, fill_uniform, poisoning
from perfgate.suite.product import FP32, product_check
from perfgate.suite.sizes import (
    MATRIX_OVER_L2,
    DoesNotFitError,
    buffer_sets,
    checked_footprint,
    checked_fp32_s,
    matrix_order,
    predicted_fp32_s,
)

VERSION = 1
_SOURCE = "gemm.cu"
_ORDERS, _LARGE_ORDER = (4096, 2048, 1024), 8192
# A block of gemm.cu: THREADS, and the tile TILE_M x TILE_N of C that they make.
THREADS = 256
TILE_ROWS, TILE_COLUMNS = 128, 256


def gemm_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the matrix products; absent where no order fits the memory and the time of an execution."""
    try:
        order = matrix_order(gpu, _ORDERS, WORD_BYTES)
    except DoesNotFitError as error:
        return (AbsentCase(id="gemm.fp32", reason=str(error)),)
    return (gemm_fp32_case(gpu, order),)


def full_gemm_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return what only the full suite has of them."""
    case = gemm_fp32_case(gpu, _LARGE_ORDER)
    try:
        checked_footprint(gpu, case.work.footprint_bytes)
        checked_fp32_s(gpu, case.work.work_flop)
    except DoesNotFitError as error:
        return (AbsentCase(id=case.id, reason=str(error)),)
    return (case,)


def gemm_fp32_case(gpu: Gpu, order: int) -> Case:
    """Return the FP32 product of square matrices of one order, whether or not it suits the GPU."""
    matrix_bytes = order**2 * WORD_BYTES
    sets = buffer_sets(gpu, 3 * matrix_bytes, MATRIX_OVER_L2, at_least=2)
    return Case(
        id=f"gemm.fp32[n={order}]",
        version=VERSION,
        work=Work(
            work_flop=2 * order**3,
            read_bytes=2 * matrix_bytes,
            write_bytes=matrix_bytes,
            footprint_bytes=sets * 3 * matrix_bytes,
            dtype="fp32",
            pipe="fp32",
        ),
        prepare=partial(_prepared_fp32, order, sets),
        sources=(_SOURCE, "data.cu"),
        predicted_s=predicted_fp32_s(gpu, 2 * order**3),
        # After a product on tensor cores the power cap holds the clock 0.8 % lower for a third of a second: in time its
        # launches spread by 0.37 % on an H200, in cycles by 0.02 %.
        unit=Unit.CYCLES,
    )


def _prepared_fp32(order: int, sets: int, toolbox: Toolbox) -> Workload:
    matrix_bytes = order**2 * WORD_BYTES
    operands: list[tuple[Buffer, Buffer, Buffer]] = []
    for index in range(sets):
        a, b, c = (toolbox.buffer(matrix_bytes) for _ in range(3))
        fill_uniform(toolbox, a, 2 * index)
        fill_uniform(toolbox, b, 2 * index + 1)
        operands.append((a, b, c))
    kernel = toolbox.kernel(_SOURCE, "gemm_fp32")
    grid = (math.ceil(order / TILE_COLUMNS), math.ceil(order / TILE_ROWS), 1)
    size = np.uint32(order)
    executions = tuple(
        kernel.bind(grid=grid, block=(THREADS, 1, 1), args=(a, b, c, size, size, size)) for a, b, c in operands
    )
    check = product_check(toolbox, FP32, (order, order, order), (TILE_ROWS, TILE_COLUMNS), operands)
    return Workload(
        executions=executions, poison=poisoning(toolbox, [c for _, _, c in operands]), verify=check.verification
    )
