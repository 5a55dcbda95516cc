"""What this repository's kernels are measured at. perfgate loads this file in a process of its own."""

import sys
from pathlib import Path

import numpy as np

import perfgate.api as pg

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))


def suite(gpu):
    for point in pg.axes(width=(4096, 8192)):
        yield blur(gpu, **point)
    for point in pg.axes(columns=(1024, 4096)):
        yield softmax(**point)


def blur(gpu, width):
    """A kernel in a .cu file: arguments and launch; work, data and buffer sets follow from them."""
    height = 4096
    image = (height, width)

    def reference(pixels):
        rows = np.pad(pixels.astype(np.float64), ((1, 1), (0, 0)), mode="edge")
        return (rows[:-2] + rows[1:-1] + rows[2:]) / 3

    return pg.cuda_case(
        gpu,
        "image.blur",
        axes={"width": width},
        source=TOP / "kernels" / "blur.cu",
        function="blur",
        grid=(-(-width // 256), height),
        block=256,
        args=[pg.Input(image), pg.Output(image), np.uint32(width), np.uint32(height)],
        reference=reference,
    )


def softmax(columns):
    """A callable: its set-up makes the data on the device and hands over what runs."""
    rows = 2**26 // columns

    def setup(stream, columns):
        import torch

        from kernels.softmax import softmax

        # Open at the yield: everything that runs is enqueued on the stream that is timed.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):
            torch.manual_seed(0)
            values = torch.randn(rows, columns, device="cuda")
            out = torch.empty_like(values)
            yield pg.Execution(
                lambda: softmax(out, values),
                outputs=[out],
                reference=lambda: torch.softmax(values.double(), dim=1),
            )

    moved = 4 * rows * columns
    work = pg.Work(read_bytes=moved, write_bytes=moved, dtype="fp32")
    return pg.callable_case(
        "rows.softmax", setup, axes={"columns": columns}, work=work, sources=[TOP / "kernels" / "softmax.py"]
    )
