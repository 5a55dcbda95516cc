"""Six own cases: two kernels of a .cu file, and callables of PyCUDA, CuPy, PyTorch and Triton."""

import numpy as np
from pycuda_arrays import Pair

import perfgate.api as pg

# Arrays of 256 MiB, since launches agree the better the more they move: 64 MiB of a copy spread by 0.3 to 0.5 %.
COUNT, ROWS, STEPS_COUNT, SIDE = 2**26, 2**14, 2**22, 2048


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
    moved = pg.Work(read_bytes=4 * COUNT, write_bytes=4 * COUNT)
    yield pg.callable_case("copy.pycuda", copied, work=moved)
    yield pg.callable_case("double.cupy", doubled, work=moved)
    yield pg.callable_case("product.torch", multiplied, work=pg.Work(work_flop=2 * SIDE**3, pipe="fp32"))
    yield pg.callable_case("softmax.triton", softmax, work=moved)


def polynomial(x):
    # The sum of the geometric series, but for its last power: less than an ulp where |x| < 0.9.
    power = wide = x.astype(np.float64)
    for _ in range(8):
        power = power * power
    return 0.5 * (1 - power) / (1 - wide)


def copied(stream):
    pair = Pair(COUNT)
    yield pg.Execution(lambda: pair.copy(stream.native), outputs=[pair.output], reference=lambda: pair.values)
    pair.free()


def doubled(stream):
    import cupy

    with cupy.cuda.Stream.from_external(stream):
        x = cupy.random.default_rng(1).random(COUNT, dtype=cupy.float32)
        out = cupy.empty_like(x)
        yield pg.Execution(lambda: cupy.multiply(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def multiplied(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        torch.manual_seed(0)
        one, other = torch.randn(2, SIDE, SIDE, device="cuda")
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
            reference=lambda: torch.softmax(values, dim=1),
        )
