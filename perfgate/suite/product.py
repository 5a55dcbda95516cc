"""Matrix products C = A B^T of any element types: formats, data, a case around a kernel.

A is m x k, B n x k, C m x n, all row-major ("TN" to BLAS). Which kernel an architecture runs is decided
in ``tensor_gemm``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfgate.core.case import Case, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.filling import POISON, THREADS, covering_grid, poisoning
from perfgate.suite.freivalds import Operands, ProductCheck
from perfgate.suite.sizes import MATRIX_OVER_L2, buffer_sets

# m, n, k.
Shape = tuple[int, int, int]

# Standard deviations that an error, or an element of C, may reach: of 2^26 normal deviates the largest is about 5.7.
_DEVIATIONS = 8.0
# Not a sum of INT8 products before depth 2^17.
_LEAST_INT32 = np.uint32(0x80000000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The types of a product.

    Attributes:
        name: type of A and B in case ids and work, ``"bf16"``.
        operand, result: types of elements.cuh.
        operand_bytes, result_bytes: size of an element.
        pipe: compute unit, ``"bf16-tensor"``.
        significand: bits of the accumulator's significand, None where it is exact.
        step: products that are added to the accumulator at once, at least: it is cut once a step.
        cuts: whether the accumulator is cut (tensor cores) or rounded to nearest.
        result_roundoff: largest relative error of storing a result; 0 where it is stored as accumulated.
        product_deviation: standard deviation of a product of two elements as ``fill_operand`` draws them.
        poison: word that no result has.
    """

    name: str
    operand: str
    result: str
    operand_bytes: int
    result_bytes: int
    pipe: str
    significand: int | None
    step: int = 1
    cuts: bool = True
    result_roundoff: float = 0.0
    product_deviation: float = 1.0 / 3.0
    poison: np.uint32 = POISON

    def accumulator_tolerance(self, depth: int) -> float:
        """Return the largest error of an accumulator, relative to the standard deviation of its result.

        To nearest: adding term i rounds a partial sum of i products, of variance i v, to a relative error
        of at most u = 2^-p, so with variance at most u²/3 (the statistical model of rounding: Higham and
        Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019). The
        sum over i is v u² depth² / 6; the result has variance v depth; their ratio is u² depth / 6. Eight
        standard deviations are 8 u sqrt(depth / 6): 1.2e-5 for FP32 and 4096. Operands cut to TF32 err by
        about 2e-4.

        Cut: tensor cores cut a partial sum once for each ``step`` products (Fasi, Higham, Mikaitis,
        Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7, 2021). A cut takes
        2^(1-p) of the sum at most and half of that on average, always towards zero, so that cuts add up:
        depth / step times 2^-p of the result, which is within eight of its standard deviations.
        """
        if self.significand is None:
            return 0.0
        roundoff = 2.0**-self.significand
        if not self.cuts:
            return _DEVIATIONS * roundoff * math.sqrt(depth / 6)
        return _DEVIATIONS * roundoff * depth / self.step


FP32 = Format(
    name="fp32",
    operand="fp32",
    result="fp32",
    operand_bytes=4,
    result_bytes=4,
    pipe="fp32",
    significand=24,
    cuts=False,
)
TF32 = Format(
    name="tf32",
    operand="tf32",
    result="fp32",
    operand_bytes=4,
    result_bytes=4,
    pipe="tf32-tensor",
    significand=24,
    step=4,
)
BF16 = Format(
    name="bf16",
    operand="bf16",
    result="bf16",
    operand_bytes=2,
    result_bytes=2,
    pipe="bf16-tensor",
    significand=24,
    step=4,
    result_roundoff=2.0**-8,
)
FP16 = Format(
    name="fp16",
    operand="fp16",
    result="fp16",
    operand_bytes=2,
    result_bytes=2,
    pipe="fp16-tensor",
    significand=24,
    step=4,
    result_roundoff=2.0**-11,
)
# Hopper adds 32 products at once and keeps 13 bits after the point (DeepSeek-V3 Technical Report, section 3.5.2).
FP8 = Format(
    name="fp8",
    operand="e4m3",
    result="bf16",
    operand_bytes=1,
    result_bytes=2,
    pipe="fp8-tensor",
    significand=14,
    step=32,
    result_roundoff=2.0**-8,
)
INT8 = Format(
    name="int8",
    operand="int8",
    result="int32",
    operand_bytes=1,
    result_bytes=4,
    pipe="int8-tensor",
    significand=None,
    product_deviation=(256**2 - 1) / 12,
    poison=_LEAST_INT32,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductKernel:
    """A kernel that makes products.

    Attributes:
        source: its file; "" for a library's.
        tile: rows and columns of C that a block makes: the corners of tiles are compared one by one.
        executions: binds it, given the toolbox, the format, the shape and the operands of each buffer set, which
            are filled already; returns one callable a buffer set.
    """

    source: str
    tile: tuple[int, int]
    executions: Callable[[Toolbox, Format, Shape, Sequence[Operands]], tuple[Callable[[], None], ...]]


def product_work(gpu: Gpu, form: Format, shape: Shape, *, times_l2: int = MATRIX_OVER_L2) -> Work:
    """Return the work of a product: 2 m n k operations; A and B read once, C written once.

    Args:
        gpu: of which the L2 says how many buffer sets it takes.
        form: types.
        shape: m, n, k.
        times_l2: how many times the L2 a rotation touches; one that is bound by memory needs more.
    """
    m, n, k = shape
    read_bytes, write_bytes = (m + n) * k * form.operand_bytes, m * n * form.result_bytes
    set_bytes = read_bytes + write_bytes
    return Work(
        work_flop=2 * m * n * k,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        footprint_bytes=buffer_sets(gpu, set_bytes, times_l2, at_least=2) * set_bytes,
        dtype=form.name,
        pipe=form.pipe,
    )


def product_case(
    gpu: Gpu,
    *,
    identity: str,
    version: int,
    form: Format,
    shape: Shape,
    kernel: ProductKernel,
    predicted_s: float | None = None,
    unit: Unit = Unit.CYCLES,
    times_l2: int = MATRIX_OVER_L2,
) -> Case:
    """Return a product by a kernel as a case, whether or not it suits the GPU.

    Large products are limited by power, so that time follows the power budget: they are judged in cycles.
    """
    work = product_work(gpu, form, shape, times_l2=times_l2)
    return Case(
        id=identity,
        version=version,
        work=work,
        prepare=partial(_prepared, form, shape, work.footprint_bytes // work.moved_bytes, kernel),
        sources=tuple(filter(None, (kernel.source, "product_data.cu"))),
        predicted_s=predicted_s,
        unit=unit,
    )


def fill_operand(toolbox: Toolbox, form: Format, buffer: Buffer, seed: int) -> None:
    """Fill A or B: random, as many bits as a significand has, exact in the type; in (-1, 1), or any INT8."""
    count = buffer.size_bytes // form.operand_bytes
    toolbox.kernel("product_data.cu", "fill_operand", defines={"OPERAND": form.operand}).bind(
        grid=covering_grid(count), block=(THREADS, 1, 1), args=(buffer, np.uint64(count), np.uint64(seed))
    )()


def product_check(
    toolbox: Toolbox, form: Format, shape: Shape, tile: tuple[int, int], operands: Sequence[Operands]
) -> ProductCheck:
    """Return the check of a product's results, bound and ready."""
    return ProductCheck(
        toolbox,
        operands,
        shape=shape,
        tile=tile,
        defines={"OPERAND": form.operand, "RESULT": form.result},
        deviation=math.sqrt(shape[2]) * form.product_deviation,
        accumulator_tolerance=form.accumulator_tolerance(shape[2]),
        result_roundoff=form.result_roundoff,
    )


def _prepared(form: Format, shape: Shape, sets: int, kernel: ProductKernel, toolbox: Toolbox) -> Workload:
    m, n, k = shape
    operands: list[Operands] = []
    for index in range(sets):
        a, b = (toolbox.buffer(rows * k * form.operand_bytes) for rows in (m, n))
        c = toolbox.buffer(m * n * form.result_bytes)
        fill_operand(toolbox, form, a, 2 * index)
        fill_operand(toolbox, form, b, 2 * index + 1)
        operands.append((a, b, c))
    return Workload(
        executions=kernel.executions(toolbox, form, shape, operands),
        poison=poisoning(toolbox, [c for _, _, c in operands], form.poison),
        verify=product_check(toolbox, form, shape, kernel.tile, operands).verification,
    )
