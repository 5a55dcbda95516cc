"""Six own cases: two kernels of a .cu file, and callables of PyCUDA, CuPy, PyTorch and Triton."""

import numpy as np
from pycuda_arrays import Pair

import perfgate.api as pg

COUNT, LARGE, ROWS = 2**24, 2**25, 2**12
STEPS_COUNT = 2**22


def suite(gpu):
    shared = {"source": "kernels.cu", "block": 256}
    yield pg.cuda_case(
        gpu,
        "vector.axpy",
        function="axpy",
        grid=COUNT // 256,
        args=[pg.Input(COUNT), pg.Output(COUNT), np.float32(2), np.uint32(COUNT)],
        reference=lambda x: 2 * x,
        **shared,
    )
    yield pg.cuda_case(
        gpu,
        "vector.polynomial",
        function="polynomial",
        grid=STEPS_COUNT // 256,
        args=[pg.Input(STEPS_COUNT), pg.Output(STEPS_COUNT), np.uint32(STEPS_COUNT)],
        reference=polynomial,
        tolerance=1e-3,
        work_flop=512 * STEPS_COUNT,
        pipe="fp32",
        **shared,
    )
    values = pg.Work(read_bytes=4 * ROWS * 4096, write_bytes=4 * ROWS * 4096)
    moved = pg.Work(read_bytes=4 * LARGE, write_bytes=4 * LARGE)
    yield pg.callable_case("copy.pycuda", copied, work=moved)
    yield pg.callable_case("double.cupy", doubled, work=moved)
    yield pg.callable_case("product.torch", multiplied, work=pg.Work(work_flop=2 * 2048**3, pipe="fp32"))
    yield pg.callable_case("softmax.triton", softmax, work=values)


def polynomial(x):
    # The sum of the geometric series, but for its last power: less than an ulp where |x| < 0.9.
    wide = x.astype(np.float64)
    return 0.5 * (1 - wide**256) / (1 - wide)


def copied(stream):
    pair = Pair(LARGE)
    yield pg.Execution(lambda: pair.copy(stream.native), outputs=[pair.output], reference=lambda: pair.values)
    pair.free()


def doubled(stream):
    import cupy

    with cupy.cuda.Stream.from_external(stream):
        x = cupy.random.default_rng(1).random(LARGE, dtype=cupy.float32)
        out = cupy.empty_like(x)
        yield pg.Execution(lambda: cupy.multiply(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def multiplied(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        torch.manual_seed(0)
        one, other = torch.randn(2, 2048, 2048, device="cuda")
        out = torch.empty_like(one)
        yield pg.Execution(
            lambda: torch.mm(one, other, out=out), outputs=[out], reference=lambda: one.double() @ other.double()
        )


def softmax(stream):
    import torch
    from triton_kernels import softmax_rows

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        torch.manual_seed(0)
        values = torch.randn(ROWS, 4096, device="cuda")
        out = torch.empty_like(values)
        yield pg.Execution(
            lambda: softmax_rows[(ROWS,)](out, values, 4096, BLOCK=4096),
            outputs=[out],
            reference=lambda: torch.softmax(values.double(), dim=1),
        )
