"""Every way in which work can be enqueued on a given stream, and a program that times itself."""

import numpy as np
from pycuda_arrays import Pair

import perfgate.api as pg

COUNT = 2**24
MOVED = pg.Work(read_bytes=4 * COUNT, write_bytes=4 * COUNT)


def suite(gpu):
    for setup in (pycuda, cupy_external, cupy_protocol, torch_eager, torch_compiled, numba_external):
        yield pg.callable_case(f"callable.{setup.__name__}", setup, work=MOVED)
    yield pg.callable_case("callable.cuda_core", cuda_core, work=MOVED)
    yield pg.callable_case("graph.torch", torch_small, graph=True)
    n = 2**20
    yield pg.cuda_case(
        gpu,
        "graph.cuda",
        source="kernels.cu",
        function="axpy",
        grid=n // 256,
        block=256,
        args=[pg.Input(n), pg.Output(n), np.float32(2), np.uint32(n)],
        reference=lambda x: 2 * x,
        graph=True,
    )
    yield pg.command_case("program.copy", ["./program"], work=pg.Work(read_bytes=2**28, write_bytes=2**28))


def pycuda(stream):
    pair = Pair(COUNT)
    yield pg.Execution(lambda: pair.copy(stream.native), outputs=[pair.output], reference=lambda: pair.values)
    pair.free()


def cupy_external(stream):
    import cupy

    with cupy.cuda.ExternalStream(stream.handle):
        yield from doubled_by_cupy(cupy)


def cupy_protocol(stream):
    import cupy

    with cupy.cuda.Stream.from_external(stream):
        yield from doubled_by_cupy(cupy)


def doubled_by_cupy(cupy):
    x = cupy.random.default_rng(1).random(COUNT, dtype=cupy.float32)
    out = cupy.empty_like(x)
    yield pg.Execution(lambda: cupy.multiply(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def torch_eager(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        x = torch.randn(COUNT, device="cuda")
        out = torch.empty_like(x)
        yield pg.Execution(lambda: torch.mul(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def torch_compiled(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        x = torch.randn(COUNT, device="cuda")
        out = torch.empty_like(x)
        fused = torch.compile(lambda: out.copy_(x * 2 + 1))
        yield pg.Execution(fused, outputs=[out], reference=lambda: x * 2 + 1)


def torch_small(stream):
    import torch

    with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
        x = torch.randn(2**12, device="cuda")
        out = torch.empty_like(x)
        yield pg.Execution(lambda: torch.mul(x, 2, out=out), outputs=[out], reference=lambda: x + x)


def numba_external(stream):
    # numba-cuda 0.30 overloads np.row_stack, another name of np.vstack that numpy 2.5 has dropped.
    np.row_stack = getattr(np, "row_stack", np.vstack)  # noqa: NPY201 - its fix names np.vstack, which is there
    from numba import cuda

    yield from doubled_by_numba(cuda, cuda.external_stream(stream.handle))


def doubled_by_numba(cuda, stream):
    @cuda.jit
    def double(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + x[i]

    values = np.resize(np.random.default_rng(1).random(2**20, dtype=np.float32), COUNT)
    x, out = cuda.to_device(values), cuda.device_array(COUNT, np.float32)
    cuda.synchronize()
    run = double[COUNT // 256, 256, stream]
    yield pg.Execution(lambda: run(x, out), outputs=[out], reference=lambda: values + values)


def cuda_core(stream):
    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
    device = Device()
    device.set_current()
    queue = device.create_stream(stream)
    code = 'extern "C" __global__ void twice(const float* x, float* out) {'
    code += " const unsigned i = blockIdx.x * blockDim.x + threadIdx.x; out[i] = x[i] + x[i]; }"
    kernel = Program(code, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
    kernel = kernel.compile("cubin").get_kernel("twice")
    pair = Pair(COUNT)
    config = LaunchConfig(grid=COUNT // 256, block=256)
    yield pg.Execution(
        lambda: launch(queue, config, kernel, int(pair.source), int(pair.target)),
        outputs=[pair.output],
        reference=lambda: pair.values + pair.values,
    )
    pair.free()
