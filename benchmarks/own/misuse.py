"""Callables that must be refused by name, beside one that behaves; and a kernel that leaves most of its output."""

import numpy as np
from pycuda_arrays import Pair

import perfgate.api as pg

COUNT = 2**22


def suite(gpu):
    bodies = (behaves, synchronizes, strays, floods, leaks, raises, raises_late, lacks, idles, wrong, unwritten)
    for body in bodies:
        yield pg.callable_case(f"misuse.{body.__name__}", case(body))
    for setup in (torch_item, torch_strays, cupy_get, no_array, yields_twice):
        yield pg.callable_case(f"misuse.{setup.__name__}", setup)
    yield pg.cuda_case(
        gpu,
        "misuse.short",
        source="kernels.cu",
        function="axpy",
        grid=COUNT // 256 // 2,
        block=256,
        args=[pg.Input(COUNT), pg.Output(COUNT), np.float32(2), np.uint32(COUNT)],
        reference=lambda x: 2 * x,
    )
    yield pg.command_case("misuse.no_program", ["./not-built"])


def case(body):
    def setup(stream):
        pair = Pair(COUNT)
        yield pg.Execution(body(pair, stream), outputs=[pair.output], reference=lambda: pair.values)
        pair.free()

    return setup


def behaves(pair, stream):
    return lambda: pair.copy(stream.native)


def synchronizes(pair, stream):
    def run():
        pair.copy(stream.native)
        stream.native.synchronize()

    return run


def strays(pair, stream):
    other = pair.driver.Stream(1)
    return lambda: pair.copy(other)


def floods(pair, stream):
    def run():
        for _ in range(2000):
            pair.copy(stream.native)

    return run


def leaks(pair, stream):
    lost = []

    def run():
        lost.append(pair.driver.mem_alloc(2**16))
        pair.copy(stream.native)

    return run


def raises(pair, stream):
    raise ValueError("no such size")


def raises_late(pair, stream):
    calls = []

    def run():
        calls.append(1)
        if len(calls) > 20:
            raise ValueError("the pool is empty")
        pair.copy(stream.native)

    return run


def lacks(pair, stream):
    import a_package_that_is_not_there

    return a_package_that_is_not_there.run


def idles(pair, stream):
    return lambda: None


def wrong(pair, stream):
    return lambda: pair.driver.memset_d32_async(int(pair.target), 0x3F800000, COUNT, stream.native)


def unwritten(pair, stream):
    return lambda: pair.driver.memcpy_dtod_async(int(pair.target), int(pair.source), 2 * COUNT, stream.native)


def torch_item(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        x = torch.randn(COUNT, device="cuda")
        out = torch.empty_like(x)
        yield pg.Execution(lambda: torch.mul(x, 2, out=out).sum().item(), outputs=[out], reference=lambda: x + x)


def torch_strays(stream):
    import torch

    x = torch.randn(COUNT, device="cuda")
    out = torch.empty_like(x)
    return pg.Execution(lambda: torch.mul(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def cupy_get(stream):
    import cupy

    with cupy.cuda.ExternalStream(stream.handle):
        x = cupy.ones(COUNT, dtype=cupy.float32)
        out = cupy.empty_like(x)
        yield pg.Execution(lambda: cupy.multiply(x, 2, out=out).get(), outputs=[out], reference=lambda: x + x)


def no_array(stream):
    return pg.Execution(lambda: None, outputs=[np.zeros(4)])


def yields_twice(stream):
    pair = Pair(COUNT)
    for _ in range(2):
        yield pg.Execution(lambda: pair.copy(stream.native), outputs=[pair.output], reference=lambda: pair.values)
