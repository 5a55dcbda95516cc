"""Which architecture multiplies what by mma.sync, FP64 and few rows, and what the headers say of the work."""

from dataclasses import replace

import pytest

from perfgate.core.case import AbsentCase, Case, Unit
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import is_legacy_pipe
from perfgate.suite.gemm_fp64 import default_fp64_cases, fp64_case
from perfgate.suite.gemm_mma import mma_kernel
from perfgate.suite.gemm_skinny import skinny_case, skinny_cases
from perfgate.suite.multistage import Tiling
from perfgate.suite.product import BF16, FP8, FP16, INT8, TF32, Format
from perfgate.suite.sizes import DoesNotFitError
from perfgate.suite.tensor_gemm import tensor_case
from tests.factories import H200
from tests.unit.suite.builders import SMALL, table_gpu
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import FakeToolbox

SHARED_BYTES = {"7.5": 64, "8.0": 163, "8.6": 99, "8.9": 99, "9.0": 227, "10.0": 227, "12.0": 99}
FORMATS = (BF16, FP16, TF32, FP8, INT8)


def gpu(capability: str | None) -> Gpu:
    return replace(SMALL, compute_capability=capability, memory_bytes=2**30)


def has(capability: str, form: Format) -> bool:
    try:
        mma_kernel(gpu(capability), form)
    except DoesNotFitError:
        return False
    return True


@pytest.mark.parametrize(
    ("capability", "names"),
    [
        ("7.5", {"fp16", "int8"}),
        ("8.0", {"bf16", "fp16", "tf32", "int8"}),
        ("8.6", {"bf16", "fp16", "tf32", "int8"}),
        ("8.9", {"bf16", "fp16", "tf32", "int8", "fp8"}),
        ("10.0", {"bf16", "fp16", "tf32", "int8"}),
        ("12.0", {"bf16", "fp16", "tf32", "int8", "fp8"}),
        ("7.0", set()),
    ],
)
def test_mma_kernel__is_there_where_the_architecture_has_the_instruction(capability: str, names: set[str]) -> None:
    assert {form.name for form in FORMATS if has(capability, form)} == names


@pytest.mark.parametrize(
    ("capability", "form", "reason"),
    [
        ("8.0", FP8, "no FP8 unit on compute capability 8.0$"),
        ("10.0", FP8, "it widens FP8 to FP16 and measures that"),
        ("7.5", BF16, "7.5 have no BF16"),
        ("6.1", INT8, "older than 7.5"),
        (None, BF16, "does not tell its compute capability"),
    ],
)
def test_mma_kernel__says_why_not(capability: str | None, form: Format, reason: str) -> None:
    with pytest.raises(DoesNotFitError, match=reason):
        mma_kernel(gpu(capability), form)


@pytest.mark.parametrize("capability", SHARED_BYTES)
def test_kernels__fit_into_shared_memory(capability: str) -> None:
    cases = [
        tensor_case(gpu(capability), FP16, 256),
        fp64_case(gpu(capability), 256),
        skinny_case(gpu(capability), (16, 256, 256)),
    ]
    for case in cases:
        if isinstance(case, AbsentCase):
            assert capability == "7.5"
            continue
        toolbox = FakeToolbox(gpu=gpu(capability), emulate=False)
        case.prepare(toolbox)
        timed = [bind for bind in toolbox.binds if bind.source == case.sources[0]]
        assert timed
        assert all(bind.shared_bytes <= SHARED_BYTES[capability] * 1024 for bind in timed), case.id


def test_tensor_case__by_the_slower_way_is_named() -> None:
    blackwell, ampere = (
        tensor_case(table_gpu("NVIDIA B200"), BF16, 4096),
        tensor_case(table_gpu("NVIDIA A100-SXM4-80GB"), BF16, 4096),
    )
    assert isinstance(blackwell, Case)
    assert isinstance(ampere, Case)
    assert is_legacy_pipe(blackwell.work.pipe)
    assert not is_legacy_pipe(ampere.work.pipe)


@pytest.mark.parametrize(
    ("name", "order", "pipe"),
    [
        ("NVIDIA H200", 4096, "fp64-tensor"),
        ("NVIDIA A100-SXM4-80GB", 4096, "fp64-tensor"),
        ("NVIDIA B200", 4096, "fp64-tensor"),
        ("NVIDIA GeForce RTX 4090", 2048, "fp64"),
        ("Tesla T4", 1024, "fp64"),
        ("NVIDIA L4", 1024, "fp64"),
    ],
)
def test_default_fp64_cases__are_smaller_where_fp64_is_slow(name: str, order: int, pipe: str) -> None:
    (case,) = default_fp64_cases(table_gpu(name))
    assert isinstance(case, Case)
    assert (case.id, case.work.pipe, case.unit) == (f"gemm.fp64[n={order}]", pipe, Unit.CYCLES)


def test_default_fp64_cases__say_why_not() -> None:
    (absent,) = default_fp64_cases(Gpu(name="?"))
    assert isinstance(absent, AbsentCase)
    assert absent.id == "gemm.fp64"
    assert "total memory" in absent.reason


def test_fp64_case__is_absent_where_it_takes_too_long() -> None:
    absent = fp64_case(table_gpu("NVIDIA GeForce RTX 4090"), 8192)
    assert isinstance(absent, AbsentCase)
    assert "longer than 50 ms" in absent.reason


def test_skinny_case__beats_the_cache_as_a_stream_does() -> None:
    (case,) = skinny_cases(H200)
    assert isinstance(case, Case)
    assert case.id == "gemm.bf16[m=16,n=8192,k=8192]"
    assert case.unit is Unit.SECONDS
    assert case.work.footprint_bytes >= 16 * (H200.l2_bytes or 0)


def test_skinny_case__needs_bf16() -> None:
    (absent,) = skinny_cases(table_gpu("Tesla T4"))
    assert isinstance(absent, AbsentCase)
    assert "no BF16" in absent.reason


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_work__equals_the_header_of_the_kernel(form: Format) -> None:
    case = tensor_case(gpu("8.9"), form, 256)
    assert isinstance(case, Case)
    assert case.sources[0] == "gemm_mma.cu"
    sizes = {"m": 256, "n": 256, "k": 256, "e": form.operand_bytes, "r": form.result_bytes}
    assert case.work.work_flop == evaluated(header_formula("gemm_mma.cu", "FLOP"), **sizes)
    assert case.work.moved_bytes == evaluated(header_formula("gemm_mma.cu", "Bytes"), **sizes)


def test_work__of_fp64_and_few_rows_equals_the_headers() -> None:
    fp64, skinny = fp64_case(H200, 4096), skinny_case(H200, (16, 8192, 4096))
    assert isinstance(fp64, Case)
    assert isinstance(skinny, Case)
    for case, source, (m, n, k) in (
        (fp64, "gemm_fp64.cu", (4096, 4096, 4096)),
        (skinny, "gemm_skinny.cu", (16, 8192, 4096)),
    ):
        assert case.work.work_flop == evaluated(header_formula(source, "FLOP"), m=m, n=n, k=k)
        assert case.work.moved_bytes == evaluated(header_formula(source, "Bytes"), m=m, n=n, k=k)


def test_tiling__counts_threads_and_shared_memory() -> None:
    tiling = Tiling(tile=(128, 256), warps=(2, 4), stages=3)
    assert (tiling.threads, tiling.shared_bytes) == (256, 3 * 384 * 128)
