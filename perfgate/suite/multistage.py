"""Launching the products of multistage.cuh: tiles, warps and stages of shared memory."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfgate.core.toolbox import Toolbox
from perfgate.suite.freivalds import Operands
from perfgate.suite.product import Format, ProductKernel, Shape

# ROW_BYTES of multistage.cuh: depth of a tile.
DEPTH_BYTES = 128
# Where a GPU does not tell its SMs: blocks walk over tiles, so that any number is right.
_UNKNOWN_SMS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How blocks divide C.

    Attributes:
        tile: rows and columns of C that a block makes at a time.
        warps: rows and columns of warps that divide a tile.
        stages: tiles of operands in flight.
        blocks: blocks an SM.
    """

    tile: tuple[int, int]
    warps: tuple[int, int]
    stages: int
    blocks: int = 1

    @property
    def defines(self) -> Mapping[str, int]:
        """The knobs of multistage.cuh."""
        return {
            "TILE_M": self.tile[0],
            "TILE_N": self.tile[1],
            "WARPS_M": self.warps[0],
            "WARPS_N": self.warps[1],
            "STAGES": self.stages,
            "BLOCKS": self.blocks,
        }

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * math.prod(self.warps)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.stages * sum(self.tile) * DEPTH_BYTES


def multistage_kernel(source: str, tiling: Tiling) -> ProductKernel:
    """Return the kernel ``gemm_<format>`` of a source in one tiling."""

    def executions(
        toolbox: Toolbox, form: Format, shape: Shape, operands: Sequence[Operands]
    ) -> tuple[Callable[[], None], ...]:
        m, n, _ = shape
        kernel = toolbox.kernel(source, f"gemm_{form.name}", defines=tiling.defines)
        tiles = math.ceil(m / tiling.tile[0]) * math.ceil(n / tiling.tile[1])
        grid = (min(tiles, (toolbox.gpu.sm_count or _UNKNOWN_SMS) * tiling.blocks), 1, 1)
        sizes = tuple(np.uint32(size) for size in shape)
        return tuple(
            kernel.bind(
                grid=grid, block=(tiling.threads, 1, 1), args=(*buffers, *sizes), shared_bytes=tiling.shared_bytes
            )
            for buffers in operands
        )

    return ProductKernel(source=source, tile=tiling.tile, executions=executions)
