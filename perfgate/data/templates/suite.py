"""What this repository's kernels are measured at: perfgate check --against REF compares two states of them.

An example: put your own kernels in its place. docs/own-kernels.md of perfgate explains all of it.
"""

import numpy as np

import perfgate.api as pg


def suite(gpu):
    for point in pg.axes(n=(2**20, 2**26)):
        n = point["n"]
        yield pg.cuda_case(
            gpu,
            "vector.axpy",
            axes=point,
            source="axpy.cu",
            function="axpy",
            grid=-(-n // 256),
            block=256,
            args=[pg.Input(n), pg.Output(n), np.float32(2), np.uint32(n)],
            reference=lambda x: 2 * x,
            work_flop=n,
            pipe="fp32",
            # At 2^20 elements an execution is shorter than its launch.
            graph=n < 2**22,
        )
