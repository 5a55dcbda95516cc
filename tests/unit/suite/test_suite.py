"""What every built-in case must keep, on GPUs known and unknown."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from perfgate.core.case import Case, MemoryLevel, Timing
from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.suite import SUITE_NAMES, built_in_suite
from perfgate.suite.latency import latency_cases
from perfgate.suite.peak import peak_cases
from perfgate.suite.sizes import EXECUTION_LIMIT_S
from tests.factories import H200
from tests.unit.suite.builders import gpus, table_gpu
from tests.unit.suite.declarations import CHECKING, signatures
from tests.unit.suite.fake_toolbox import FakeBuffer, FakeToolbox

TYPES = ("fp32", "fp64", "tf32", "bf16", "fp16", "fp8", "int8")
# One a line, as perfgate/suite/__init__.py lists the families.
DEFAULT = (
    *(f"bandwidth.{one}[bytes=4GiB]" for one in ("read", "write", "copy", "triad")),
    "bandwidth.gather[bytes=4GiB]",
    "bandwidth.l2_read[bytes=16MiB]",
    *(f"bandwidth.{one}[bytes=64MiB]" for one in ("h2d", "d2h")),
    "gemm.fp32[n=4096]",
    "gemm.fp64[n=4096]",
    *(f"gemm.{one}[n=4096]" for one in ("bf16", "fp8")),
    "gemm.bf16[m=16,n=8192,k=8192]",
    "gemm.cublas_bf16[n=4096]",
    *(f"launch.{one}" for one in ("gap", "graph_node", "graph", "submit", "roundtrip", "event_floor")),
)
FULL_ONLY = (
    *(f"bandwidth.vector_copy[bytes=4GiB,width={width}]" for width in (1, 2, 4)),
    "bandwidth.misaligned[bytes=4GiB,offset=1]",
    *(f"bandwidth.strided[bytes=4GiB,stride={stride}]" for stride in (2, 4, 8, 16)),
    "bandwidth.shared[bytes=32KiB]",
    "bandwidth.sweep[chunk=1GiB]",
    *(f"gemm.{one}[n=8192]" for one in ("fp32", "fp64")),
    *(f"gemm.{one}[n=4096]" for one in ("fp16", "tf32", "int8")),
    *(f"gemm.{one}[n=8192]" for one in ("bf16", "fp16", "tf32", "fp8", "int8")),
    *(f"gemm.cublas_{one}[n=4096]" for one in TYPES if one != "bf16"),
    *(f"gemm.cublas_{one}[n=8192]" for one in TYPES),
    "gemm.cublas_bf16[m=16,n=8192,k=8192]",
    *(one.id for one in (*peak_cases(H200), *latency_cases(H200)) if isinstance(one, Case)),
    *(f"operator.{one}[bytes=4GiB]" for one in ("gelu", "add", "sum")),
    *(f"operator.{one}[rows=65536,columns={columns}]" for one in ("softmax", "layernorm") for columns in (8192, 8191)),
    "operator.attention_decode[batch=8,heads=32,kv_heads=8,context=16384]",
    *(f"operator.attention_prefill[heads=16,n=8192,causal={causal}]" for causal in (0, 1)),
)
# Between two GPUs, with one visible.
ABSENT_ALONE = (*(f"bandwidth.peer_{one}" for one in ("read", "write", "both")), "latency.peer")
# What needs no knowledge of the GPU.
ANYWHERE = tuple(one for one in DEFAULT if one.startswith(("launch.", "bandwidth.h2d", "bandwidth.d2h")))
# What needs to know the architecture.
TENSOR = ("gemm.bf16", "gemm.fp8", "gemm.bf16", "gemm.cublas_bf16")
# How often executions have to go through the L2 before they find anything there again; other cases say why not.
TIMES_L2 = {"bandwidth": 16, "gemm": 3}


@pytest.mark.parametrize("name", SUITE_NAMES)
def test_built_in_suite__has_every_case_on_an_h200(name: str) -> None:
    suite = built_in_suite(name, H200)
    assert [case.id for case in suite.cases] == [*DEFAULT, *(FULL_ONLY if name == "full" else ())]
    assert [one.id for one in suite.absent] == [*(ABSENT_ALONE if name == "full" else ())]
    assert suite.name == name


def test_built_in_suite__refuses_an_unknown_name() -> None:
    with pytest.raises(ConfigurationError, match="no built-in suite 'fast'"):
        built_in_suite("fast", H200)


@pytest.mark.parametrize(
    ("name", "array", "order"),
    [
        ("Tesla T4", "1GiB", 4096),
        ("NVIDIA A100-SXM4-40GB", "2GiB", 4096),
        ("NVIDIA A100-SXM4-80GB", "4GiB", 4096),
        ("NVIDIA H200", "4GiB", 4096),
        ("NVIDIA GeForce RTX 4090", "1GiB", 4096),
        ("NVIDIA B200", "4GiB", 4096),
        ("NVIDIA L40S", "2GiB", 4096),
        ("NVIDIA GeForce RTX 5090", "2GiB", 4096),
    ],
)
def test_built_in_suite__sizes_of_known_gpus(name: str, array: str, order: int) -> None:
    ids = [case.id for case in built_in_suite("default", table_gpu(name)).cases]
    assert ids[:5] == [f"bandwidth.{one}[bytes={array}]" for one in ("read", "write", "copy", "triad", "gather")]
    assert f"gemm.fp32[n={order}]" in ids


def test_built_in_suite__sizes_do_not_flip_with_what_a_driver_reserves() -> None:
    for sheet in read_gpu_table().gpus:
        if sheet.memory_gb is None:
            continue
        whole = replace(sheet.gpu(), memory_bytes=int(sheet.memory_gb * 2**30))
        ids = {
            tuple(case.id for case in built_in_suite("default", replace(whole, memory_bytes=memory)).cases)
            for memory in (whole.memory_bytes, int((whole.memory_bytes or 0) * 0.985))
        }
        assert len(ids) == 1, f"{sheet.id}: {ids}"


def test_built_in_suite__gives_reasons_where_nothing_is_known() -> None:
    suite = built_in_suite("default", Gpu(name="?"))
    assert [case.id for case in suite.cases] == list(ANYWHERE)
    absent = {one.id.split("[")[0]: one.reason for one in suite.absent}
    assert list(absent) == list(dict.fromkeys(one.split("[")[0] for one in DEFAULT if one not in ANYWHERE))
    assert all("does not tell" in reason for name, reason in absent.items() if name not in TENSOR)


def test_built_in_suite__needs_only_the_memory() -> None:
    suite = built_in_suite("default", Gpu(name="?", memory_bytes=16 * 2**30))
    assert [absent.id.split("[")[0] for absent in suite.absent] == ["bandwidth.l2_read", *TENSOR]


@given(gpus())
@settings(max_examples=300, deadline=None)
def test_built_in_suite__keeps_its_promises_on_any_gpu(gpu: Gpu) -> None:
    suite = built_in_suite("default", gpu)
    names = [one.id.split("[")[0] for one in (*suite.cases, *suite.absent)]
    assert sorted(names) == sorted(one.split("[")[0] for one in DEFAULT)
    for case in suite.cases:
        assert case.predicted_s is not None
        assert case.predicted_s <= EXECUTION_LIMIT_S
        if case.timing is Timing.EVENTS and case.work.memory_level is MemoryLevel.DRAM:
            assert gpu.memory_bytes is not None
            assert case.work.footprint_bytes <= gpu.memory_bytes / 4
            assert case.work.footprint_bytes >= TIMES_L2[case.family] * (gpu.l2_bytes or 2**27)


@pytest.mark.parametrize("gpu", [H200, table_gpu("Tesla T4"), table_gpu("NVIDIA B200")], ids=lambda gpu: gpu.name)
def test_prepare__passes_what_the_kernels_declare(gpu: Gpu) -> None:
    for case in built_in_suite("full", gpu).cases:
        toolbox = FakeToolbox(gpu=gpu, emulate=False)
        workload = case.prepare(toolbox)
        assert toolbox.binds or not case.sources
        for bind in toolbox.binds:
            given_types = tuple("pointer" if isinstance(one, FakeBuffer) else one.dtype.name for one in bind.args)
            assert given_types == signatures(bind.source)[bind.function].parameters, bind.function
            assert max(bind.grid[1:]) < 2**16
            assert bind.grid[0] < 2**31
        assert workload.executions
        assert toolbox.allocated_bytes <= case.work.footprint_bytes + 64 * 2**20


@pytest.mark.parametrize("gpu", [H200, table_gpu("Tesla T4"), table_gpu("NVIDIA B200")], ids=lambda gpu: gpu.name)
def test_prepare__times_only_sources_that_the_case_names(gpu: Gpu) -> None:
    for case in built_in_suite("full", gpu).cases:
        toolbox = FakeToolbox(gpu=gpu, emulate=False)
        case.prepare(toolbox)
        assert {bind.source for bind in toolbox.binds} - CHECKING <= {*case.sources, "data.cu"}
        assert {bind.source for bind in toolbox.binds} >= {*case.sources[:1]}
