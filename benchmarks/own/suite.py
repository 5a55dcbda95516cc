"""Six own cases: two kernels of a .cu file, and callables of PyCUDA, CuPy, PyTorch and Triton."""

import numpy as np
from pycuda_arrays import Pair

import perfgate.api as pg

COUNT = 2**24


def suite(gpu):
    shared = {"source": "kernels.cu", "block": 256, "grid": COUNT // 256}
    yield pg.cuda_case(
        gpu,
        "vector.axpy",
        function="axpy",
        args=[pg.Input(COUNT), pg.Output(COUNT), np.float32(2), np.uint32(COUNT)],
        reference=lambda x: 2 * x,
        **shared,
    )
    yield pg.cuda_case(
        gpu,
        "vector.polynomial",
        function="polynomial",
        args=[pg.Input(COUNT), pg.Output(COUNT), np.uint32(COUNT)],
        reference=polynomial,
        tolerance=1e-3,
        work_flop=512 * COUNT,
        pipe="fp32",
        **shared,
    )
    moved = pg.Work(read_bytes=4 * 2**26, write_bytes=4 * 2**26)
    yield pg.callable_case("copy.pycuda", copied, work=moved)
    yield pg.callable_case("double.cupy", doubled, work=moved)
    yield pg.callable_case("product.torch", multiplied, work=pg.Work(work_flop=2 * 2048**3, pipe="fp32"))
    yield pg.callable_case("softmax.triton", softmax, work=moved)


def polynomial(x):
    total = np.zeros_like(x)
    for _ in range(256):
        total *= x
        total += np.float32(0.5)
    return total


def copied(stream):
    pair = Pair(2**26)
    yield pg.Execution(lambda: pair.copy(stream.native), outputs=[pair.output], reference=lambda: pair.values)
    pair.free()


def doubled(stream):
    import cupy

    with cupy.cuda.ExternalStream(stream.handle):
        x = cupy.random.default_rng(1).random(2**26, dtype=cupy.float32)
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
        values = torch.randn(2**14, 4096, device="cuda")
        out = torch.empty_like(values)
        yield pg.Execution(
            lambda: softmax_rows[(2**14,)](out, values, 4096, BLOCK=4096),
            outputs=[out],
            reference=lambda: torch.softmax(values.double(), dim=1),
        )
