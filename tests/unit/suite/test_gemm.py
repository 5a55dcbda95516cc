"""Matrix products: geometry, declared work, and checks that see small errors and no rounding."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification
from perfgate.resources import resource_folder
from perfgate.suite import built_in_suite
from perfgate.suite.freivalds import corner_positions
from perfgate.suite.gemm import THREADS, TILE_COLUMNS, TILE_ROWS
from perfgate.suite.product import FP32
from tests.factories import H200
from tests.unit.suite.builders import case_of, small_case
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import Bind, FakeToolbox

ORDER = 1024


def verified(kernel: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Verification:
    """The verdict on C as ``kernel`` makes it of A and B."""

    def run(bind: Bind) -> None:
        a, b, c = (one.view(np.float32).reshape(ORDER, ORDER) for one in bind.args[:3])
        c[:] = kernel(a, b)

    toolbox = FakeToolbox(gpu=Gpu(name="small"), kernels={"gemm_fp32": run})
    workload = small_case("gemm.fp32").prepare(toolbox)
    workload.poison()
    for execution in workload.executions:
        execution()
    return workload.verify()


def with_changed(row: int, column: int, change: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        c = a @ b.T
        c[row, column] += change
        return c

    return kernel


def test_prepare__blocks_cover_the_product() -> None:
    case = case_of(built_in_suite("default", H200), "gemm.fp32")
    toolbox = FakeToolbox(gpu=H200, emulate=False)
    case.prepare(toolbox)
    binds = [bind for bind in toolbox.binds if bind.function == "gemm_fp32"]
    assert len(binds) == 2
    for bind in binds:
        assert bind.grid == (4096 // TILE_COLUMNS, 4096 // TILE_ROWS, 1)
    assert len({buffer.address for bind in binds for buffer in bind.args[:3]}) == 6


def test_block__is_that_of_the_kernel() -> None:
    text = (resource_folder("kernels") / "gemm.cu").read_text(encoding="utf-8")
    sizes = [int(size) for size in re.findall(r"#define (?:TILE_M|TILE_N|THREADS) (\d+)", text)]
    assert sizes == [TILE_ROWS, TILE_COLUMNS, THREADS]


def test_work__equals_the_header_of_the_kernel() -> None:
    work = case_of(built_in_suite("default", H200), "gemm.fp32").work
    sizes = {"m": 4096, "n": 4096, "k": 4096}
    assert work.work_flop == evaluated(header_formula("gemm.cu", "FLOP"), **sizes)
    assert work.moved_bytes == evaluated(header_formula("gemm.cu", "Bytes"), **sizes)


def test_verify__passes_fp32() -> None:
    right = verified(lambda a, b: a @ b.T)
    assert right.passed
    assert 0 < right.error < right.tolerance


def test_verify__passes_the_plainest_order_of_summation() -> None:
    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        c = a @ b.T
        c[:64] = 0
        for k in range(ORDER):
            c[:64] += np.outer(a[:64, k], b[:, k])
        return c

    assert verified(kernel).passed


def test_verify__refuses_operands_cut_to_tf32() -> None:
    def cut(values: np.ndarray) -> np.ndarray:
        return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    wrong = verified(lambda a, b: cut(a) @ cut(b).T)
    assert not wrong.passed
    assert wrong.error > 10 * wrong.tolerance


def test_verify__refuses_a_term_that_was_left_out() -> None:
    assert not verified(lambda a, b: a[:, 1:] @ b[:, 1:].T).passed


def test_verify__refuses_zeros() -> None:
    assert not verified(lambda a, b: np.zeros((ORDER, ORDER), dtype=np.float32)).passed


@pytest.mark.parametrize(("row", "column"), [(0, 0), (127, 255), (500, 333), (1023, 1023)])
def test_verify__sees_one_wrong_element(row: int, column: int) -> None:
    wrong = verified(with_changed(row, column, 0.05))
    assert not wrong.passed
    assert f"row {row}" in wrong.detail


def test_verify__names_an_element_that_was_not_written() -> None:
    unwritten = verified(with_changed(700, 9, math.nan))
    assert not unwritten.passed
    assert math.isnan(unwritten.error)
    assert "1 elements are unwritten, the first at row 700, column 9 of buffer set 0" in unwritten.detail


def test_verify__counts_infinity_as_wrong() -> None:
    wrong = verified(with_changed(3, 4, math.inf))
    assert not wrong.passed
    assert wrong.error == math.inf


def test_accumulator_tolerance__is_the_derived_one() -> None:
    assert FP32.accumulator_tolerance(4096) == pytest.approx(8 * 2.0**-24 * math.sqrt(4096 / 6))


def test_corner_positions__are_the_corners_of_all_tiles() -> None:
    found = {tuple(place) for place in corner_positions((5, 4), (2, 3)).tolist()}
    rows, columns = {0, 1, 2, 3, 4}, {0, 2, 3}
    assert found == {(row, column) for row in rows for column in columns}
