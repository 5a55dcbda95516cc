"""What a user writes as a suite; checked by strict type checkers against the installed package."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import perfgate.api as pg

Image = NDArray[np.float32]


def suite(gpu: pg.Gpu) -> Iterator[pg.Case | pg.AbsentCase]:
    for width in (1024, 4096):
        yield blur(gpu, width)


def blur(gpu: pg.Gpu, width: int) -> pg.Case | pg.AbsentCase:
    def reference(pixels: Image) -> Image:
        return pixels * np.float32(2)

    return pg.cuda_case(
        gpu,
        "image.blur",
        axes={"width": width},
        source="kernels/blur.cu",
        function="blur",
        grid=(width // 256, 64),
        block=256,
        args=[pg.Input((64, width)), pg.Output((64, width)), np.uint32(width)],
        reference=reference,
    )
