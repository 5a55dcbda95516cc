"""Elementwise, reduction, softmax, normalisation, convolution, access patterns."""

import pytest

from perfgate.core.access import AccessPattern, access
from perfgate.core.gpu_table import gpu_sheet
from perfgate.core.operators import (
    Normalisation,
    SoftmaxAlgorithm,
    conv2d,
    elementwise,
    layernorm,
    reduction,
    softmax,
)
from perfgate.core.report import Bound
from perfgate.core.roofs import sheet_roofs
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_gpu_table

TABLE = read_gpu_table()
H100 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA H100 80GB HBM3"), TABLE)
RTX4090 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA GeForce RTX 4090"), TABLE)
N = 2**28


def test_elementwise__unary_is_a_quarter_and_binary_a_sixth() -> None:
    unary, binary = elementwise(N, dtype="bf16", roofs=H100), elementwise(N, dtype="bf16", reads=2, roofs=H100)
    assert unary.work.moved_bytes == 4 * N
    assert unary.work.intensity_flop_per_byte == 0.25
    assert binary.work.moved_bytes == 6 * N
    assert binary.work.intensity_flop_per_byte == pytest.approx(1 / 6)
    assert unary.limit.bound is Bound.MEMORY
    assert unary.time_s == pytest.approx(1.5e-6 + 4 * N / 3.35e12)
    assert unary.thresholds[0].size is None


def test_elementwise__of_few_elements_is_latency() -> None:
    assert elementwise(1000, dtype="fp32", roofs=H100).limit.bound is Bound.LATENCY


def test_reduction__reads_once() -> None:
    found = reduction(N, dtype="bf16", roofs=H100)
    assert found.work.work_flop == N - 1
    assert found.work.read_bytes == 2 * N
    assert found.work.intensity_flop_per_byte == pytest.approx(0.5, rel=1e-6)
    assert reduction(1, dtype="fp64", roofs=H100).work.work_flop == 0


@pytest.mark.parametrize(("algorithm", "moved"), [("on-chip", 2), ("online", 3), ("safe", 4)])
def test_softmax__moves_two_three_or_four_n_and_does_5_n(algorithm: str, moved: int) -> None:
    found = softmax(2**14, 2**14, dtype="bf16", algorithm=SoftmaxAlgorithm(algorithm), roofs=H100)
    assert found.work.moved_bytes == 2 * moved * N
    assert found.work.work_flop == 5 * N
    assert found.exponentials == N
    assert found.limit.bound is Bound.MEMORY


def test_layernorm__counts_flop_and_parameters() -> None:
    layer = layernorm(100, 4096, dtype="bf16", roofs=H100, saves_statistics=True).work
    assert layer.work_flop == 8 * 100 * 4096
    assert layer.read_bytes == 2 * 100 * 4096 + 2 * 2 * 4096
    assert layer.write_bytes == 2 * 100 * 4096 + 8 * 100
    rms = layernorm(100, 4096, dtype="bf16", roofs=H100, normalisation=Normalisation.RMS).work
    assert (rms.work_flop, rms.read_bytes) == (4 * 100 * 4096, 2 * 100 * 4096 + 2 * 4096)
    assert rms.write_bytes == 2 * 100 * 4096


def conv(**options: object):
    sizes = {"batch": 8, "channels": 64, "height": 56, "width": 56, "out_channels": 128, "kernel": 3, "padding": 1}
    return conv2d(**(sizes | {"dtype": "bf16", "roofs": H100} | options))


def test_conv2d__is_an_implicit_gemm() -> None:
    work = conv().work
    assert work.work_flop == 2 * 8 * 128 * 56 * 56 * 64 * 9
    assert work.moved_bytes == 2 * (8 * 64 * 56 * 56 + 128 * 64 * 9 + 8 * 128 * 56 * 56)
    assert conv(im2col=True).work.moved_bytes - work.moved_bytes == 2 * 2 * 8 * 56 * 56 * 64 * 9


def test_conv2d__groups_divide_the_work() -> None:
    assert conv(groups=64, out_channels=64).work.work_flop == 2 * 8 * 64 * 56 * 56 * 9
    assert conv(stride=2).work.work_flop == 2 * 8 * 128 * 28 * 28 * 64 * 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 3}, "must divide"),
        ({"kernel": 100, "padding": 0}, "does not fit"),
        ({"padding": -1}, "padding must be a whole number, 0 or more"),
        ({"stride": 0}, "stride must be a positive"),
        ({"dtype": "int3"}, "unknown data type"),
    ],
)
def test_conv2d__refuses_what_makes_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        conv(**options)


@pytest.mark.parametrize(("stride", "useful"), [(1, 1.0), (2, 2 / 3), (4, 0.4), (8, 2 / 9), (16, 2 / 9)])
def test_access__a_strided_copy_keeps_what_the_sectors_hold(stride: int, useful: float) -> None:
    found = access(N, roofs=RTX4090, pattern=AccessPattern.STRIDE, stride=stride)
    assert found.useful_bytes / found.work.moved_bytes == pytest.approx(useful)


def test_access__stride_16_with_64_byte_fetches() -> None:
    found = access(N, roofs=RTX4090, pattern=AccessPattern.STRIDE, stride=16, fetch_bytes=64)
    assert found.useful_bytes / found.work.moved_bytes == pytest.approx(8 / 68)


def test_access__one_element_off_costs_a_tenth_and_a_gather_a_sector() -> None:
    coalesced = access(N, roofs=RTX4090)
    offset = access(N, roofs=RTX4090, pattern=AccessPattern.OFFSET)
    assert (coalesced.time_s - 1.5e-6) / (offset.time_s - 1.5e-6) == pytest.approx(0.9)
    assert coalesced.time_s == pytest.approx(1.5e-6 + 8 * N / 1008e9)
    gather = access(N, roofs=RTX4090, pattern=AccessPattern.GATHER)
    assert gather.useful_bytes / gather.work.moved_bytes == pytest.approx(8 / 40)
    # 32 bytes for 4: eight times, not 32.
    assert gather.work.read_bytes / N == 32 + 4


def test_access__refuses_what_makes_no_sense() -> None:
    with pytest.raises(ConfigurationError, match="larger than a fetch"):
        access(8, roofs=RTX4090, element_size_bytes=64)
    with pytest.raises(ConfigurationError, match="stride must be"):
        access(8, roofs=RTX4090, stride=0)


@pytest.mark.parametrize("predict", [elementwise, reduction])
def test_sizes__that_are_none_are_refused(predict) -> None:
    with pytest.raises(ConfigurationError, match="count must be a positive whole number, found 0"):
        predict(0, dtype="bf16", roofs=H100)
    with pytest.raises(ConfigurationError, match="unknown data type 'x'"):
        predict(8, dtype="x", roofs=H100)
