"""Products on Hopper's tensor cores: how gemm_wgmma.cu is launched."""

from collections.abc import Callable, Sequence

import numpy as np

from perfgate.core.toolbox import Toolbox
from perfgate.suite.freivalds import Operands
from perfgate.suite.product import Format, ProductKernel, Shape
from perfgate.suite.sizes import DoesNotFitError

SOURCE = "gemm_wgmma.cu"
# As gemm_wgmma.cu defines them: its tile, threads and the warpgroups of them that make C, blocks of a cluster, rows of
# a box of C, bytes of a row of any box, stages of operands and boxes of C of a warpgroup in shared memory.
TILE_ROWS, TILE_COLUMNS = 128, 256
THREADS, MAKERS = 384, 2
CLUSTER = 2
BOX_ROWS = 64
ROW_BYTES = 128
STAGES, SLOTS = 4, 2
_BARRIER_BYTES = 8
# Shared memory begins where the driver likes; stages begin at multiples of this.
_ALIGNMENT = 1024
SHARED_BYTES = (
    _ALIGNMENT
    + STAGES * (TILE_ROWS + TILE_COLUMNS) * ROW_BYTES
    + MAKERS * SLOTS * BOX_ROWS * ROW_BYTES
    + 2 * STAGES * _BARRIER_BYTES
)
# What a tensor map can describe.
_ROW_MULTIPLE_BYTES = 16


def wgmma_kernel(form: Format, shape: Shape) -> ProductKernel:
    """Return the kernel of a format.

    Raises:
        DoesNotFitError: rows of A, B or C are no multiples of 16 bytes.
    """
    _, n, k = shape
    if k * form.operand_bytes % _ROW_MULTIPLE_BYTES or n * form.result_bytes % _ROW_MULTIPLE_BYTES:
        message = f"the copy engine needs rows of multiples of {_ROW_MULTIPLE_BYTES} bytes"
        raise DoesNotFitError(message)
    return ProductKernel(source=SOURCE, tile=(TILE_ROWS, TILE_COLUMNS), executions=_executions)


def _executions(
    toolbox: Toolbox, form: Format, shape: Shape, operands: Sequence[Operands]
) -> tuple[Callable[[], None], ...]:
    m, n, k = shape
    kernel = toolbox.kernel(SOURCE, f"gemm_{form.name}")
    deep, wide = ROW_BYTES // form.operand_bytes, ROW_BYTES // form.result_bytes
    blocks = (toolbox.gpu.sm_count or CLUSTER) // CLUSTER * CLUSTER
    executions = []
    for a, b, c in operands:
        maps = (
            toolbox.tensor_map(a, shape=(m, k), box=(TILE_ROWS, deep), element_bytes=form.operand_bytes),
            toolbox.tensor_map(b, shape=(n, k), box=(TILE_COLUMNS // CLUSTER, deep), element_bytes=form.operand_bytes),
            toolbox.tensor_map(c, shape=(m, n), box=(BOX_ROWS, wide), element_bytes=form.result_bytes),
        )
        executions.append(
            kernel.bind(
                grid=(blocks, 1, 1),
                block=(THREADS, 1, 1),
                args=(*maps, np.uint32(m), np.uint32(n), np.uint32(k)),
                shared_bytes=SHARED_BYTES,
            )
        )
    return tuple(executions)
