"""The time model and products: worked examples, corrections, and hostile sizes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.case import MemoryLevel
from perfgate.core.estimate import LAUNCH_S, known_ridge, vector_pipe
from perfgate.core.gemm import balanced_tokens, gemm, gemm_work, grouped_gemm, row_crossing, square_crossing
from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import GpuSheet, gpu_sheet
from perfgate.core.operators import elementwise
from perfgate.core.prediction import Prediction, Waves
from perfgate.core.report import Bound
from perfgate.core.roofs import Roof, Roofs, sheet_roofs
from perfgate.core.tiling import RAMP_S, TENSOR_TILE
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_gpu_table

TABLE = read_gpu_table()


def roofs_of(name: str) -> Roofs:
    return sheet_roofs(gpu_sheet(TABLE, name), TABLE)


H100 = roofs_of("NVIDIA H100 80GB HBM3")
PRINTED_H100 = Roofs(  # as the documents print it: 990 TFLOP/s and 3.35 TB/s
    gpu_name="H100 as printed",
    memory=(Roof(key="dram", label="DRAM", unit="B", datasheet_per_s=3.35e12),),
    compute=(Roof(key="bf16-tensor", label="BF16 tensor", unit="FLOP", datasheet_per_s=990e12),),
)
SIZES = st.integers(1, 20_000)


def threshold(prediction: Prediction, part: str) -> int | None:
    return next(one.size for one in prediction.thresholds if part in one.meaning)


def codes(prediction: Prediction) -> set[str]:
    return {caveat.code for caveat in prediction.caveats}


def test_gemm_work__of_2048_in_fp32_is_the_example() -> None:
    work = gemm_work(2048, 2048, 2048, dtype="fp32")
    assert work.read_bytes == 33_554_432
    assert work.write_bytes == 16_777_216
    assert work.moved_bytes == 50_331_648
    assert work.moved_bytes / 1e-3 / 1e9 == pytest.approx(50.33, abs=0.01)
    assert work.work_flop / 1e-3 / 1e12 == pytest.approx(17.18, abs=0.01)


def test_gemm_work__reads_c_when_beta_is_not_zero() -> None:
    plain, added = (gemm_work(8, 16, 32, dtype="bf16", beta=beta) for beta in (False, True))
    assert added.read_bytes - plain.read_bytes == 2 * 8 * 16
    assert added.write_bytes == plain.write_bytes


def test_gemm_work__of_a_square_has_intensity_2n_over_3s() -> None:
    assert gemm_work(768, 768, 768, dtype="bf16").intensity_flop_per_byte == pytest.approx(768 / 3)


def test_gemm__crossing_is_887_for_a_square_and_not_saturation() -> None:
    assert threshold(gemm(4096, 4096, 4096, dtype="bf16", roofs=PRINTED_H100), "cross") == 887
    found = gemm(887, 887, 887, dtype="bf16", roofs=H100)
    assert threshold(found, "cross") == 887
    # 887 squared are 7 x 4 of the largest tiles for 132 SMs, a fifth of the machine: smaller ones, slower, fill it.
    large = gemm(887, 887, 887, dtype="bf16", roofs=H100, tile=TENSOR_TILE)
    assert large.waves.tiles == 28
    assert large.waves.factor == pytest.approx(28 / 132)
    assert "wave-quantisation" in codes(large)
    assert found.waves.factor > 0.9
    assert found.waves.tile_share < 0.7
    assert found.time_s < large.time_s
    assert threshold(found, "busy") == 2048


def test_gemm__tokens_against_weights_cross_at_363_not_887() -> None:
    found = gemm(363, 2048, 7168, dtype="bf16", roofs=H100)
    assert threshold(found, "tokens") == 363
    ridge = known_ridge("bf16-tensor", H100)
    by_formula = 1 / (2 / (2 * float(ridge)) - 1 / 2048 - 1 / 7168)
    assert row_crossing(ridge, 2048, 7168, "bf16", "bf16") == math.ceil(by_formula)
    # Very large weights: the ridge point itself.
    assert row_crossing(ridge, 10**9, 10**9, "bf16", "bf16") == math.ceil(float(ridge) * (1 + 1e-6))


def test_gemm__weights_too_small_to_be_compute_bound_at_any_m() -> None:
    assert threshold(gemm(10**6, 64, 64, dtype="bf16", roofs=H100), "tokens") is None


def test_gemm__of_few_tokens_is_memory_bound_and_of_many_compute_bound() -> None:
    assert gemm(16, 4096, 4096, dtype="bf16", roofs=H100, tile=(16, 32)).limit.bound is Bound.MEMORY
    assert gemm(8192, 8192, 8192, dtype="bf16", roofs=H100).limit.bound is Bound.COMPUTE


def test_gemm__time_is_launch_plus_the_larger_term() -> None:
    found = gemm(4096, 4096, 4096, dtype="bf16", roofs=H100)
    compute_s = 2 * 4096**3 / (989.4e12 * found.waves.factor)
    assert found.time_s == pytest.approx(LAUNCH_S + RAMP_S + compute_s)
    assert found.attainable_per_s == 989.4e12
    assert found.ridge_flop_per_byte == pytest.approx(989.4 / 3.35)
    assert found.ridge_label == "BF16 tensor over DRAM"
    assert "paper-roofs" in codes(found)


def test_gemm__with_measured_roofs_uses_them_and_the_measured_launch() -> None:
    roofs = Roofs(
        gpu_name="mine",
        memory=(Roof(key="dram", label="DRAM", unit="B", measured_per_s=4.5e12, datasheet_per_s=4.8e12),),
        compute=(Roof(key="fp32", label="FP32", unit="FLOP", measured_per_s=48e12, datasheet_per_s=66.9e12),),
        launch_s=1.3e-6,
    )
    found = gemm(4096, 4096, 4096, dtype="fp32", roofs=roofs)
    assert found.time_s == pytest.approx(1.3e-6 + RAMP_S + 2 * 4096**3 / 48e12)
    assert found.waves is None
    assert "paper-roofs" not in codes(found)


def test_gemm__in_l2_says_that_repeating_it_is_faster() -> None:
    assert "cache-resident" in codes(gemm(512, 512, 512, dtype="bf16", roofs=H100))
    l2 = Roof(key=MemoryLevel.L2, label="L2", unit="B", measured_per_s=9.9e12)
    warm = Roofs(gpu_name="x", memory=(*H100.memory, l2), compute=H100.compute, sm_count=132, l2_bytes=2**25)
    found = gemm(512, 512, 512, dtype="bf16", roofs=warm)
    assert any("from L2 it takes" in caveat.message for caveat in found.caveats)


def test_gemm__beyond_64_bit_counts_exactly_and_says_so() -> None:
    found = gemm(2**40, 2**40, 2**30, dtype="bf16", roofs=H100)
    assert found.work.work_flop == 2**111
    assert "beyond-int64" in codes(found)
    assert math.isfinite(found.time_s)
    assert "beyond-int64" not in codes(gemm(4096, 4096, 4096, dtype="bf16", roofs=H100))


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "8"])
@pytest.mark.parametrize("name", ["m", "n", "k", "batch"])
def test_gemm__refuses_sizes_that_are_none(name: str, bad: object) -> None:
    sizes = {"m": 8, "n": 8, "k": 8, "batch": 1} | {name: bad}
    with pytest.raises(ConfigurationError, match=f"{name} must be a positive whole number"):
        gemm(**sizes, dtype="bf16", roofs=H100)  # type: ignore[arg-type]


def test_gemm__refuses_types_that_are_unknown_or_lacking() -> None:
    with pytest.raises(ConfigurationError, match="unknown data type 'bf17'"):
        gemm(8, 8, 8, dtype="bf17", roofs=H100)
    with pytest.raises(ConfigurationError, match="unknown data type"):
        gemm(8, 8, 8, dtype="bf16", out_dtype="half", roofs=H100)
    with pytest.raises(ConfigurationError, match="no BF16 tensor peak is known") as caught:
        gemm(8, 8, 8, dtype="bf16", roofs=roofs_of("Tesla V100-SXM2-16GB"))
    assert caught.value.hint == "types with a known peak: fp64, fp32, fp16"
    with pytest.raises(ConfigurationError) as caught:
        gemm(8, 8, 8, dtype="fp32", roofs=Roofs(gpu_name="x"))
    assert caught.value.hint.endswith("none")


def test_gemm__fp64_takes_the_tensor_pipe_where_there_is_one() -> None:
    assert gemm(64, 64, 64, dtype="fp64", roofs=H100).compute_roof.key == "fp64-tensor"
    assert gemm(64, 64, 64, dtype="fp64", roofs=roofs_of("Tesla V100-SXM2-16GB")).compute_roof.key == "fp64"


def test_prediction__without_a_memory_roof_is_an_error() -> None:
    fp32 = Roof(key="fp32", label="FP32", unit="FLOP", datasheet_per_s=1e12)
    with pytest.raises(ConfigurationError, match="no DRAM bandwidth is known"):
        gemm(8, 8, 8, dtype="fp32", roofs=Roofs(gpu_name="x", compute=(fp32,)))


def test_known_ridge__without_a_compute_roof_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no FP8 tensor peak is known"):
        known_ridge("fp8-tensor", PRINTED_H100)


def test_prediction__without_a_compute_roof_keeps_the_memory_term() -> None:
    found = elementwise(10**9, dtype="fp32", roofs=PRINTED_H100)
    assert "compute-roof-unknown" in codes(found)
    assert found.ridge_flop_per_byte is None
    assert found.limit.name == "memory"


def test_gemm__reads_and_writes_different_types() -> None:
    found = gemm(128, 128, 128, dtype="bf16", out_dtype="fp32", roofs=H100, beta=True, batch=3)
    assert found.work.read_bytes == 3 * (2 * 2 * 128**2 + 4 * 128**2)
    assert "BF16 to FP32, batch 3" in found.subject or "batch 3, BF16 to FP32" in found.subject


@given(m=SIZES, n=SIZES, k=SIZES)
def test_gemm__is_never_faster_than_either_roof(m: int, n: int, k: int) -> None:
    found = gemm(m, n, k, dtype="bf16", roofs=H100)
    assert found.time_s >= max(2 * m * n * k / 989.4e12, found.work.moved_bytes / 3.35e12)
    assert found.work.intensity_flop_per_byte <= min(m, n, k)  # s = 2: 2 MNK over at least 2 MN, 2 MK or 2 KN


@given(n=SIZES, k=SIZES)
def test_row_crossing__is_where_the_intensity_reaches_the_ridge(n: int, k: int) -> None:
    ridge = known_ridge("bf16-tensor", H100)
    rows = row_crossing(ridge, n, k, "bf16", "bf16")
    if rows is None:
        assert gemm_work(10**15, n, k, dtype="bf16").intensity_flop_per_byte <= float(ridge)
        return
    assert gemm_work(rows, n, k, dtype="bf16").intensity_flop_per_byte >= float(ridge) * (1 - 1e-9)
    if rows > 1:
        assert gemm_work(rows - 1, n, k, dtype="bf16").intensity_flop_per_byte < float(ridge)


@given(dtype=st.sampled_from(["fp64", "fp32", "bf16", "fp8"]))
def test_square_crossing__is_where_the_intensity_reaches_the_ridge(dtype: str) -> None:
    ridge = known_ridge("bf16-tensor", H100)
    size = square_crossing(ridge, dtype, dtype)
    assert gemm_work(size, size, size, dtype=dtype).intensity_flop_per_byte >= ridge
    assert gemm_work(size - 1, size - 1, size - 1, dtype=dtype).intensity_flop_per_byte < ridge


@pytest.mark.parametrize(("tiles", "waves", "factor"), [(132, 1, 1.0), (133, 2, 133 / 264), (1, 1, 1 / 132)])
def test_waves__count_the_rounds(tiles: int, waves: int, factor: float) -> None:
    found = Waves(tile_m=128, tile_n=256, tiles=tiles, sm_count=132)
    assert found.waves == waves
    assert found.factor == pytest.approx(factor)


def test_grouped_gemm__reads_the_weights_of_touched_experts_only() -> None:
    found = grouped_gemm((100, 0, 25), 2048, 7168, dtype="bf16", roofs=H100)
    assert found.work.work_flop == 2 * 125 * 2048 * 7168
    assert found.work.moved_bytes == 2 * (2 * 2048 * 7168 + 125 * (2048 + 7168))
    assert found.thresholds[0].size == 363
    large = grouped_gemm((100, 0, 25), 2048, 7168, dtype="bf16", roofs=H100, tile=TENSOR_TILE)
    assert large.waves.tiles == 2 * 8
    assert found.time_s < large.time_s
    assert found.limit.bound is Bound.COMPUTE or found.limit.bound is Bound.MEMORY


@pytest.mark.parametrize(
    ("tokens", "message"), [((), "at least one expert"), ((0, 0), "at least one"), ((-1,), "0 or")]
)
def test_grouped_gemm__refuses_no_tokens(tokens: tuple[int, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        grouped_gemm(tokens, 8, 8, dtype="bf16", roofs=H100)


def test_balanced_tokens__spread_evenly_and_add_up() -> None:
    assert balanced_tokens(10, 4, 1) == (3, 3, 2, 2)
    assert sum(balanced_tokens(4096, 256, 8)) == 4096 * 8
    with pytest.raises(ConfigurationError, match="more than the 2 experts"):
        balanced_tokens(10, 2, 3)


def test_vector_pipe__is_fp64_or_fp32() -> None:
    assert vector_pipe("fp64") == "fp64"
    assert vector_pipe("bf16") == "fp32"
    with pytest.raises(ConfigurationError):
        vector_pipe("fp128")


@pytest.mark.parametrize("sheet", TABLE.gpus, ids=lambda sheet: sheet.id)
def test_sheet_roofs__of_every_row_predict_or_say_what_is_unknown(sheet: GpuSheet) -> None:
    roofs = sheet_roofs(sheet, TABLE)
    known = roofs.compute_roof("fp16-tensor") is not None
    assert known == (sheet.id not in {"rtx3060-laptop", "rtx-pro-6000-server"})
    if known:
        assert gemm(4096, 4096, 4096, dtype="fp16", roofs=roofs).time_s > 0
        return
    with pytest.raises(ConfigurationError, match="no FP16 tensor peak is known"):
        gemm(4096, 4096, 4096, dtype="fp16", roofs=roofs)


def test_sheet_roofs__h200_is_no_h100() -> None:
    assert known_ridge("bf16-tensor", roofs_of("NVIDIA H200")) == pytest.approx(206.1, abs=0.1)
    assert Gpu(name="NVIDIA H200").name == roofs_of("NVIDIA H200").gpu_name
