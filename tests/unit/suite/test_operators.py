"""Operators: the kernels on the CPU at shapes that do not come out even, declared work, checks, absences."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from perfgate.core.case import AbsentCase, Case
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Workload
from perfgate.suite import built_in_suite
from perfgate.suite.attention_decode import Knobs as DecodeKnobs
from perfgate.suite.attention_decode import Shape, attention_decode_case, attention_decode_cases
from perfgate.suite.closeness import BF16_UNIT_ROUNDOFF, bf16_tolerance
from perfgate.suite.elementwise import ADD, GELU, Operation, elementwise_case, elementwise_cases
from perfgate.suite.normalization import Knobs as RowKnobs
from perfgate.suite.normalization import normalization_case, normalization_cases
from perfgate.suite.reduction import Knobs as SumKnobs
from perfgate.suite.reduction import reduction_cases, sum_case, sum_tolerance
from perfgate.suite.sizes import EXECUTION_LIMIT_S
from tests.factories import H200
from tests.unit.suite.builders import SMALL, case_of, gpus, table_gpu
from tests.unit.suite.declarations import evaluated, header_formula
from tests.unit.suite.fake_toolbox import FakeToolbox, random_small_uniform, random_uniform
from tests.unit.suite.host_toolbox import COMPILER, HostBuffer, HostToolbox

on_host = pytest.mark.skipif(COMPILER is None, reason="no g++: the host's compiler is not installed")
# One buffer set, however small the arrays are.
ONE_SET = replace(SMALL, l2_bytes=1)
FEW_THREADS = RowKnobs(block=32)
ROWS = ((3, 1), (5, 7), (4, 8), (33, 9), (7, 250), (9, 249), (6, 256))
DECODES = (
    Shape(batch=1, heads=1, kv_heads=1, context=1),
    Shape(batch=2, heads=8, kv_heads=2, context=16),
    Shape(batch=1, heads=6, kv_heads=2, context=33),
    Shape(batch=1, heads=8, kv_heads=1, context=150),
)


def run(case: Case, *, gpu: Gpu = ONE_SET, backwards: bool = False) -> tuple[HostToolbox, Workload]:
    """Poison, execute twice (a kernel that leaves a counter behind fails then), verify."""
    toolbox = HostToolbox(gpu=gpu, backwards=backwards)
    workload = case.prepare(toolbox)
    workload.poison()
    assert not workload.verify().passed
    for execution in 2 * workload.executions:
        execution()
    found = workload.verify()
    assert found.passed, found
    assert found.error <= found.tolerance
    toolbox.assert_guarded()
    return toolbox, workload


def output_of(toolbox: HostToolbox) -> HostBuffer:
    """What is poisoned first."""
    return next(args[0] for function, args in toolbox.bound if function == "fill_word")


@on_host
@pytest.mark.parametrize("count", [1, 7, 8, 9, 4095, 4096, 4099, 12293])
@pytest.mark.parametrize("operation", [GELU, ADD], ids=lambda one: one.name)
def test_elementwise__is_right_at_any_count(operation: Operation, count: int) -> None:
    toolbox, workload = run(elementwise_case(ONE_SET, operation, count))
    actual = (output_of(toolbox).view(np.uint16)[:count].astype(np.uint32) << 16).view(np.float32)
    inputs = [random_small_uniform(seed, count, 8) for seed in range(operation.inputs)]
    if operation is ADD:
        expected = inputs[0] + inputs[1]
    else:
        x = inputs[0]
        expected = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert (np.abs(actual - expected) <= bf16_tolerance(0) * np.abs(expected)).all()
    output_of(toolbox).view(np.uint16)[count - 1] ^= 4
    wrong = workload.verify()
    assert not wrong.passed
    assert f"1 wrong, the first at index {count - 1} of buffer set 0" in wrong.detail


@on_host
@pytest.mark.parametrize("count", [1, 2, 5, 2047, 2048, 2049, 7 * 2048 + 3])
def test_sum__is_the_exact_one_within_its_rounding(count: int) -> None:
    knobs = SumKnobs(block=64, unroll=8)
    case = sum_case(ONE_SET, count, knobs)
    toolbox, workload = run(case)
    actual = float(output_of(toolbox).view(np.float32)[0])
    assert actual == pytest.approx(random_uniform(0, count).astype(np.float64).sum(), abs=1e-5 * math.sqrt(count))
    other, _ = run(case, backwards=True)
    assert float(output_of(other).view(np.float32)[0]) == actual
    output_of(toolbox).view(np.float32)[0] += np.float32(3e-6 * math.sqrt(count))
    assert "instead of" in workload.verify().detail


def test_sum_tolerance__sees_a_missing_element() -> None:
    """Of the elements 99.9 % are larger than what the sum of 2^30 may be off."""
    deviation = math.sqrt(2**30 / 3)
    assert sum_tolerance(SumKnobs()) * deviation < 0.04


@on_host
@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("name", ["softmax", "layernorm"])
def test_normalization__is_right_at_any_width(name: str, shape: tuple[int, int]) -> None:
    toolbox, workload = run(normalization_case(ONE_SET, name, *shape, FEW_THREADS), backwards=shape[1] % 2 == 0)
    count = shape[0] * shape[1]
    x = random_small_uniform(0, count, 8).reshape(shape)
    if name == "softmax":
        expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    else:
        gamma, beta = (random_small_uniform(seed, shape[1], 8) for seed in (1, 2))
        normalised = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        expected = normalised * gamma + beta
    words = output_of(toolbox).view(np.uint16)[:count].astype(np.uint32) << 16
    actual = words.view(np.float32).reshape(shape)
    assert np.abs(actual - expected).max() <= BF16_UNIT_ROUNDOFF * (np.abs(expected).max() + 1e-3)
    output_of(toolbox).view(np.uint16)[count - 1] ^= 16
    assert f"first at index {count - 1} of buffer set 0" in workload.verify().detail


@on_host
@pytest.mark.parametrize("columns", [519, 1024])
def test_normalization__combines_warps(columns: int) -> None:
    knobs = RowKnobs(block=64, blocks_per_sm=1)
    for name in ("softmax", "layernorm"):
        run(normalization_case(ONE_SET, name, 21, columns, knobs))


@on_host
@pytest.mark.parametrize("shape", DECODES, ids=str)
def test_attention_decode__is_right_at_any_shape(shape: Shape) -> None:
    gpu = replace(ONE_SET, sm_count=4)
    toolbox, workload = run(attention_decode_case(gpu, shape, DecodeKnobs(warps=2)), gpu=gpu)
    q, k, v = (
        random_small_uniform(seed, size // 2, 8).reshape(shape.batch, shape.kv_heads, -1, 128)
        for seed, size in enumerate((shape.query_bytes, shape.cache_bytes, shape.cache_bytes))
    )
    weights = np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(128))
    expected = (weights / weights.sum(axis=-1, keepdims=True)) @ v
    actual = (output_of(toolbox).view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(expected.shape)
    assert np.abs(actual - expected).max() <= 2 * BF16_UNIT_ROUNDOFF * np.abs(v).max()
    output_of(toolbox).view(np.uint16)[-1] = 0x3F80  # 1.0
    assert not workload.verify().passed


def test_decode_knobs__splits_fill_the_gpu_and_leave_every_warp_a_step() -> None:
    knobs = DecodeKnobs(warps=4, blocks_per_sm=3)
    assert knobs.splits(Gpu(name="any", sm_count=132), Shape()) == 6
    assert knobs.splits(Gpu(name="any", sm_count=132), Shape(batch=1, context=100)) == 2
    assert knobs.splits(Gpu(name="any", sm_count=1), Shape()) == 1
    assert knobs.splits(Gpu(name="any"), Shape()) > 1


def formulas(source: str, kernel: str | None = None) -> Callable[..., tuple[int, int]]:
    return lambda **sizes: tuple(
        evaluated(header_formula(source, quantity, kernel), **sizes) for quantity in ("FLOP", "Bytes")
    )


@pytest.mark.parametrize(
    ("name", "declared", "sizes"),
    [
        ("gelu", formulas("elementwise.cu", "gelu"), {"n": 2**31}),
        ("add", formulas("elementwise.cu", "add"), {"n": 2**31}),
        ("sum", formulas("reduction.cu"), {"n": 2**30}),
        ("softmax", formulas("normalization.cu", "softmax"), {"r": 65536, "c": 8192}),
        ("layernorm", formulas("normalization.cu", "layernorm"), {"r": 65536, "c": 8192}),
        ("attention_decode", formulas("attention_decode.cu"), {"b": 8, "h": 32, "g": 8, "n": 16384}),
    ],
)
def test_work__equals_the_header_of_the_kernel(
    name: str, declared: Callable[..., object], sizes: dict[str, int]
) -> None:
    work = case_of(built_in_suite("full", H200), f"operator.{name}").work
    assert (work.work_flop, work.moved_bytes) == declared(**sizes)


def test_attention_decode__is_absent_without_bf16_tensor_cores() -> None:
    for gpu, reason in (
        (table_gpu("Tesla T4"), "tensor cores of compute capability 7.5 have no BF16"),
        (Gpu(name="?", memory_bytes=2**36), "does not tell its compute capability"),
        (replace(H200, memory_bytes=2**20), "too small for arrays beyond the L2 cache"),
    ):
        (absent,) = attention_decode_cases(gpu)
        assert reason in absent.reason


OPERATORS = ("gelu", "add", "sum", "softmax", "layernorm", "attention_decode")


@pytest.mark.parametrize("name", OPERATORS)
def test_prepare__binds_as_many_buffer_sets_as_beat_the_l2(name: str) -> None:
    for gpu in (H200, table_gpu("NVIDIA B200"), table_gpu("NVIDIA GeForce RTX 4090")):
        case = case_of(built_in_suite("full", gpu), f"operator.{name}")
        workload = case.prepare(FakeToolbox(gpu=gpu, emulate=False))
        assert len(workload.executions) == case.work.footprint_bytes // case.work.moved_bytes
        assert case.work.footprint_bytes >= 16 * (gpu.l2_bytes or 0)


@given(gpus())
@settings(max_examples=100, deadline=None)
def test_operators__fit_any_gpu_or_say_why_not(gpu: Gpu) -> None:
    families = (elementwise_cases, reduction_cases, normalization_cases, attention_decode_cases)
    entries = [entry for family in families for entry in family(gpu)]
    assert {entry.id.partition("[")[0].removeprefix("operator.") for entry in entries} == set(OPERATORS)
    for entry in entries:
        if isinstance(entry, AbsentCase):
            assert entry.reason
        else:
            assert entry.predicted_s is not None
            assert entry.predicted_s <= EXECUTION_LIMIT_S
            assert gpu.memory_bytes is not None
            assert 16 * (gpu.l2_bytes or 2**27) <= entry.work.footprint_bytes <= gpu.memory_bytes / 4
