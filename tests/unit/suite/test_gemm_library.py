"""Twins through the vendor's library: the same shapes, data and checks, whatever it chooses."""

import pytest

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.suite import built_in_suite
from perfgate.suite.gemm_library import LIBRARY, default_library_cases, full_library_cases, library_case
from perfgate.suite.product import BF16, FP8, FP16, FP32, INT8, TF32, Format
from tests.factories import H200
from tests.unit.suite.builders import SMALL, table_gpu
from tests.unit.suite.fake_toolbox import FakeToolbox


def test_library_cases__have_a_twin_of_every_product_on_an_h200() -> None:
    cases = {case.id: case for case in built_in_suite("full", H200).cases}
    twins = {name for name in cases if name.startswith("gemm.cublas_")}
    own = {name.replace("gemm.", "gemm.cublas_") for name in cases if name.startswith("gemm.") and name not in twins}
    assert own <= twins
    for name in own:
        case, twin = cases[name.replace("cublas_", "")], cases[name]
        assert (twin.work.work_flop, twin.work.moved_bytes) == (case.work.work_flop, case.work.moved_bytes)
        assert twin.library == LIBRARY


def test_default_library_cases__are_one() -> None:
    (case,) = default_library_cases(H200)
    assert isinstance(case, Case)
    assert (case.id, case.unit) == ("gemm.cublas_bf16[n=4096]", Unit.CYCLES)


@pytest.mark.parametrize("form", [FP32, TF32, BF16, FP16, FP8, INT8], ids=lambda form: form.name)
def test_prepare__verifies_what_the_library_made(form: Format) -> None:
    gpu = Gpu(name="small", compute_capability="9.0", sm_count=4, memory_bytes=2**28, l2_bytes=2**16)
    case = library_case(gpu, form, (64, 96, 128))
    assert isinstance(case, Case)
    assert case.id == f"gemm.cublas_{form.name}[m=64,n=96,k=128]"
    toolbox = FakeToolbox(gpu=gpu)
    workload = case.prepare(toolbox)
    workload.poison()
    for execution in workload.executions:
        execution()
    assert workload.verify().passed
    assert len(toolbox.products) == len(workload.executions) >= 2
    _, _, c = toolbox.products[-1].args[:3]
    c.content[-1] ^= 0x80
    assert not workload.verify().passed


@pytest.mark.parametrize(
    ("name", "form", "reason"),
    [("Tesla T4", BF16, "no BF16"), ("NVIDIA A100-SXM4-80GB", FP8, "no FP8")],
)
def test_library_case__is_absent_where_the_gpu_lacks_the_type(name: str, form: Format, reason: str) -> None:
    absent = library_case(table_gpu(name), form, 4096)
    assert isinstance(absent, AbsentCase)
    assert reason in absent.reason


def test_library_cases__say_why_they_do_not_fit() -> None:
    assert all(isinstance(one, AbsentCase) for one in full_library_cases(SMALL))
