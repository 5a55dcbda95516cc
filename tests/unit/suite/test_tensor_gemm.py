"""Products on tensor cores: who runs what, how it is launched, and checks that see errors and no rounding."""

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification
from perfgate.resources import resource_folder
from perfgate.suite import gemm_wgmma
from perfgate.suite.gemm_wgmma import wgmma_kernel
from perfgate.suite.product import BF16, FP8, FP16, FP32, INT8, TF32, Format, Shape, product_case
from perfgate.suite.sizes import DoesNotFitError
from perfgate.suite.tensor_gemm import default_tensor_cases, full_tensor_cases, tensor_case
from tests.factories import H200
from tests.unit.suite.declarations import evaluated, header_formula, signatures
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox, numbers, patterns

FORMATS = (BF16, FP16, TF32, FP8, INT8)
SHAPE = (192, 528, 512)
HOPPER = Gpu(name="small", compute_capability="9.0", sm_count=5, memory_bytes=2**30, l2_bytes=2**16)

Made = Callable[[np.ndarray, np.ndarray], np.ndarray]
each_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def case_of_shape(form: Format, shape: Shape) -> Case:
    return product_case(
        HOPPER, identity="gemm.any", version=1, form=form, shape=shape, kernel=wgmma_kernel(form, shape)
    )


def verified(form: Format, made: Made, shape: Shape = SHAPE) -> Verification:
    """The verdict on C as ``made`` makes it, in FP64, of the numbers of A and B."""
    m, n, k = shape
    toolbox = FakeToolbox(gpu=HOPPER)

    def run(bind: Bind) -> None:
        a, b, c = (toolbox.maps[one.address][0] for one in bind.args[:3])
        sums = made(numbers(a, form.operand).reshape(m, k), numbers(b, form.operand).reshape(n, k))
        stored = patterns(np.asarray(sums), form.result).reshape(-1)
        c.view(stored.dtype)[:] = stored

    toolbox.kernels[f"gemm_{form.name}"] = run
    workload = case_of_shape(form, shape).prepare(toolbox)
    workload.poison()
    for execution in workload.executions:
        execution()
    return workload.verify()


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def cut(values: np.ndarray, bits: int) -> np.ndarray:
    fractions, exponents = np.frexp(values)
    return np.ldexp(np.trunc(fractions * 2.0**bits), exponents - bits)


def as_tensor_cores(form: Format) -> Made:
    """The sum cut after every step, as coarsely as the tolerance allows for."""

    def made(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(a), len(b)))
        for at in range(0, a.shape[1], form.step):
            sums += a[:, at : at + form.step] @ b[:, at : at + form.step].T
            sums = cut(sums, form.significand) if form.significand else sums
        return sums

    return made


@each_format
def test_verify__passes_a_sum_that_is_cut_step_by_step(form: Format) -> None:
    right = verified(form, as_tensor_cores(form))
    assert right.passed
    assert right.error <= right.tolerance / 2
    assert (right.error == 0) == (form is INT8)


@each_format
def test_verify__sees_a_step_in_depth_that_was_left_out(form: Format) -> None:
    step = gemm_wgmma.ROW_BYTES // form.operand_bytes // 4
    assert not verified(form, lambda a, b: product(a[:, step:], b[:, step:])).passed


@each_format
def test_verify__sees_a_swizzle_that_swapped_two_rows(form: Format) -> None:
    def made(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums = product(a, b)
        sums[[70, 71]] = sums[[71, 70]]
        return sums

    assert not verified(form, made).passed


@each_format
@pytest.mark.parametrize(("row", "column"), [(0, 0), (127, 255), (128, 256), (191, 527)])
def test_verify__sees_a_wrong_corner_of_a_tile(form: Format, row: int, column: int) -> None:
    def made(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums = product(a, b)
        sums[row, column] += 1 if form is INT8 else 0.25 * math.sqrt(SHAPE[2]) * form.product_deviation
        return sums

    wrong = verified(form, made)
    assert not wrong.passed
    assert f"row {row}" in wrong.detail


@each_format
def test_verify__names_an_element_that_was_not_written(form: Format) -> None:
    def made(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums = product(a, b)
        sums[100, 9] = -(2.0**31) if form is INT8 else math.nan
        return sums

    unwritten = verified(form, made)
    assert not unwritten.passed
    assert "1 elements are unwritten, the first at row 100, column 9 of buffer set 0" in unwritten.detail


def test_verify__takes_no_sum_of_int8_products_for_unwritten() -> None:
    assert 2**17 * 128**2 == 2**31
    assert verified(INT8, product).error == 0


def test_verify__refuses_bf16_sums_in_bf16() -> None:
    """An accumulator as coarse as the result."""

    def made(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(a), len(b)))
        for at in range(0, a.shape[1], 16):
            sums = numbers_of_bf16(sums + a[:, at : at + 16] @ b[:, at : at + 16].T)
        return sums

    assert not verified(BF16, made).passed


def numbers_of_bf16(values: np.ndarray) -> np.ndarray:
    return (patterns(values, "bf16").astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("form", [*FORMATS, FP32], ids=lambda form: form.name)
def test_accumulator_tolerance__grows_with_the_depth_unless_sums_are_exact(form: Format) -> None:
    shallow, deep = form.accumulator_tolerance(1024), form.accumulator_tolerance(4096)
    if form is INT8:
        assert shallow == deep == 0
    else:
        assert deep / shallow == (4 if form.cuts else 2)


@each_format
def test_operands__vary_in_all_bits_of_a_significand(form: Format) -> None:
    toolbox = FakeToolbox(gpu=HOPPER)
    case_of_shape(form, SHAPE).prepare(toolbox)
    a, _, _ = next(iter(toolbox.maps.values()))
    values = numbers(a, form.operand)
    assert values.std() == pytest.approx(math.sqrt(form.product_deviation), rel=0.01)
    bits = {"bf16": 8, "fp16": 11, "tf32": 11, "e4m3": 4, "int8": 8}[form.operand]
    assert len(np.unique(values)) == 2**bits


@each_format
def test_work__equals_the_header_of_the_kernel(form: Format) -> None:
    work = tensor_case(H200, form, 4096)
    assert isinstance(work, Case)
    sizes = {"m": 4096, "n": 4096, "k": 4096, "e": form.operand_bytes, "r": form.result_bytes}
    assert work.work.work_flop == evaluated(header_formula(gemm_wgmma.SOURCE, "FLOP"), **sizes)
    assert work.work.moved_bytes == evaluated(header_formula(gemm_wgmma.SOURCE, "Bytes"), **sizes)
    assert work.work.footprint_bytes >= 2 * work.work.moved_bytes
    assert work.unit is Unit.CYCLES


def test_cases__of_an_h200() -> None:
    default, full = default_tensor_cases(H200), full_tensor_cases(H200)
    assert [case.id for case in default] == ["gemm.bf16[n=4096]", "gemm.fp8[n=4096]"]
    assert [case.id for case in full] == [
        *(f"gemm.{one}[n=4096]" for one in ("fp16", "tf32", "int8")),
        *(f"gemm.{one}[n=8192]" for one in ("bf16", "fp16", "tf32", "fp8", "int8")),
    ]
    assert all(isinstance(case, Case) for case in (*default, *full))


def test_tensor_case__is_absent_where_the_memory_is_too_small() -> None:
    absent = tensor_case(replace(H200, memory_bytes=2**28), BF16, 8192)
    assert isinstance(absent, AbsentCase)
    assert "more than a quarter of the memory" in absent.reason


def test_tensor_case__is_absent_where_it_takes_too_long() -> None:
    absent = tensor_case(replace(H200, sm_count=1), BF16, 8192)
    assert isinstance(absent, AbsentCase)
    assert "longer than 50 ms" in absent.reason


def test_wgmma__is_as_the_kernel_defines_it() -> None:
    text = (resource_folder("kernels") / gemm_wgmma.SOURCE).read_text(encoding="utf-8")
    defined = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)$", text, re.MULTILINE)}
    assert defined["TILE_M"] == gemm_wgmma.TILE_ROWS
    assert defined["TILE_N"] == gemm_wgmma.TILE_COLUMNS
    assert (defined["MAKERS"] + 1) * defined["WARPGROUP"] == gemm_wgmma.THREADS
    for name in ("MAKERS", "ROW_BYTES", "STAGES", "SLOTS", "CLUSTER"):
        assert defined[name] == getattr(gemm_wgmma, name)
    assert defined["ROWS"] == gemm_wgmma.BOX_ROWS
    most_of_a_block_on_hopper = 227 * 1024
    assert most_of_a_block_on_hopper >= gemm_wgmma.SHARED_BYTES


@each_format
def test_wgmma__maps_the_operands_and_fills_the_sms_with_whole_clusters(form: Format) -> None:
    toolbox = FakeToolbox(gpu=HOPPER)
    case_of_shape(form, SHAPE).prepare(toolbox)
    binds = [bind for bind in toolbox.binds if bind.function == f"gemm_{form.name}"]
    assert len(binds) == 2
    m, n, k = SHAPE
    for bind in binds:
        assert bind.grid == (4, 1, 1)
        assert [int(one) for one in bind.args[3:]] == [m, n, k]
        boxes = [toolbox.maps[one.address][1:] for one in bind.args[:3]]
        deep, wide = 128 // form.operand_bytes, 128 // form.result_bytes
        assert boxes == [((m, k), (128, deep)), ((n, k), (128, deep)), ((m, n), (64, wide))]
        given = tuple("pointer" if hasattr(one, "address") else one.dtype.name for one in bind.args)
        assert given == signatures(bind.source)[bind.function].parameters


def test_wgmma__needs_rows_that_a_map_can_describe() -> None:
    with pytest.raises(DoesNotFitError, match="multiples of 16 bytes"):
        wgmma_kernel(BF16, (128, 256, 68))
    with pytest.raises(DoesNotFitError, match="multiples of 16 bytes"):
        wgmma_kernel(FP8, (128, 260, 64))


@pytest.mark.slow
def test_wgmma__is_compiled_without_spills_and_keeps_its_products_in_flight(tmp_path: Path) -> None:
    """Where ptxas cannot keep sums in registers between products it waits after each of them, and only tells so."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc on PATH: the CUDA toolkit is not installed")
    source = resource_folder("kernels") / gemm_wgmma.SOURCE
    options = ["-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-Xptxas", "-v"]
    command = [nvcc, *options, "-o", str(tmp_path / "cubin"), str(source)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    text = told.stdout + told.stderr
    assert text.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(FORMATS)
    assert "wgmma" not in text.replace("gemm_wgmma", "")
