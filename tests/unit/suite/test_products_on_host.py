"""The products by mma.sync, in FP64 and of few rows, run on the CPU at shapes that come out even nowhere."""

import numpy as np
import pytest

from perfgate.suite.filling import poisoning
from perfgate.suite.gemm_fp64 import FP64
from perfgate.suite.gemm_skinny import skinny_kernel
from perfgate.suite.multistage import Tiling, multistage_kernel
from perfgate.suite.product import (
    BF16,
    FP8,
    FP16,
    INT8,
    TF32,
    Format,
    ProductKernel,
    Shape,
    fill_operand,
    product_check,
)
from tests.unit.suite.builders import SMALL
from tests.unit.suite.host_toolbox import COMPILER, HostToolbox

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")

# As many warps as divide both ways, and a ring that goes round within the smallest depths.
TILING = Tiling(tile=(64, 64), warps=(2, 2), stages=3)
SHAPES = [(64, 64, 64), (1, 1, 1), (65, 131, 33), (70, 66, 160)]


def check(form: Format, kernel: ProductKernel, shape: Shape, *, backwards: bool = False) -> None:
    toolbox = HostToolbox(gpu=SMALL, backwards=backwards)
    m, n, k = shape
    a, b = (toolbox.buffer(rows * k * form.operand_bytes) for rows in (m, n))
    # Poisoning fills whole words.
    size = m * n * form.result_bytes
    c = toolbox.buffer(-(-size // 4) * 4)
    fill_operand(toolbox, form, a, 1)
    fill_operand(toolbox, form, b, 2)
    (execute,) = kernel.executions(toolbox, form, shape, [(a, b, c)])
    verify = product_check(toolbox, form, shape, kernel.tile, [(a, b, c)]).verification
    poison = poisoning(toolbox, [c], form.poison)
    poison()
    assert "unwritten" in verify().detail
    execute()
    found = verify()
    assert found.passed, found
    # An element's sign is the last byte's highest bit in every type: a wrong last element is seen.
    c.view(np.uint8)[size - 1] ^= 0x80
    assert not verify().passed
    toolbox.assert_guarded()


@pytest.mark.parametrize("form", [FP64, BF16, FP16, TF32, FP8, INT8], ids=lambda form: form.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_multistage_product__is_right_at_any_shape(form: Format, shape: Shape) -> None:
    check(form, multistage_kernel("gemm_fp64.cu" if form is FP64 else "gemm_mma.cu", TILING), shape)


@pytest.mark.parametrize("source", ["gemm_fp64.cu", "gemm_mma.cu"])
def test_multistage_product__waits_wherever_warps_could_overtake_each_other(source: str) -> None:
    """Threads that run in the other order see what is missing a barrier."""
    check(FP64 if source == "gemm_fp64.cu" else BF16, multistage_kernel(source, TILING), (128, 70, 192), backwards=True)


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("shape", [(64, 64, 16), (64, 192, 144)])
def test_multistage_product__rings_of_any_length_are_right(stages: int, shape: Shape) -> None:
    check(FP64, multistage_kernel("gemm_fp64.cu", Tiling(tile=(64, 64), warps=(2, 2), stages=stages)), shape)


@pytest.mark.parametrize("shape", [(16, 64, 64), (1, 1, 1), (3, 70, 9), (17, 65, 1000), (16, 128, 4096)])
def test_skinny_product__is_right_at_any_shape(shape: Shape) -> None:
    check(BF16, skinny_kernel(), shape)


def test_skinny_product__adds_in_one_order() -> None:
    shape = m, n, k = 16, 64, 2048
    results = []
    for backwards in (False, True):
        toolbox = HostToolbox(gpu=SMALL, backwards=backwards)
        a, b, c = (toolbox.buffer(2 * size) for size in (m * k, n * k, m * n))
        fill_operand(toolbox, BF16, a, 1)
        fill_operand(toolbox, BF16, b, 2)
        skinny_kernel().executions(toolbox, BF16, shape, [(a, b, c)])[0]()
        results.append(c.view(np.uint16).copy())
    assert (results[0] == results[1]).all()
