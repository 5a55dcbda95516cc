"""Which tile a product is cut into, and what an H200 took for the products of a library."""

import gzip
import json
import statistics
from pathlib import Path

import pytest

from perfgate.core.case import MemoryLevel
from perfgate.core.gemm import gemm, gemm_work
from perfgate.core.prediction import Prediction
from perfgate.core.report import Bound
from perfgate.core.roofs import Roof, Roofs
from perfgate.core.tiling import RAMP_S, TENSOR_TILE, best_tiling, wave_caveats
from perfgate.errors import ConfigurationError

MEASURED = json.loads(
    gzip.decompress((Path(__file__).parents[2] / "data" / "h200-products.json.gz").read_bytes()).decode()
)
ROOFS = Roofs(
    gpu_name="NVIDIA H200",
    memory=(Roof(key=MemoryLevel.DRAM, label="DRAM", unit="B", measured_per_s=4.706e12),),
    compute=(
        Roof(key="bf16-tensor", label="BF16 tensor", unit="FLOP", measured_per_s=791.9e12),
        Roof(key="fp32", label="FP32", unit="FLOP", measured_per_s=50.68e12),
    ),
    sm_count=132,
    launch_s=1.32e-6,
)


def predicted(m: int, n: int, k: int, dtype: str = "bf16") -> Prediction:
    return gemm(m, n, k, dtype=dtype, roofs=ROOFS)


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_gemm__is_near_what_a_library_takes_on_an_h200(dtype: str) -> None:
    errors = [
        abs(predicted(one["m"], one["n"], one["k"], dtype).time_s / one["time_s"] - 1)
        for one in MEASURED["products"]
        if one["dtype"] == dtype
    ]
    assert len(errors) == 20
    assert statistics.median(errors) < 0.06
    assert max(errors) < 0.35


def test_best_tiling__a_large_product_takes_the_largest_tile() -> None:
    waves = predicted(8192, 8192, 8192).waves
    assert (waves.tile_m, waves.tile_n) == TENSOR_TILE
    assert waves.tile_share == pytest.approx(1.0)


def test_best_tiling__one_more_tile_than_sms_takes_another_tile() -> None:
    full, beyond = predicted(1408, 3072, 4096), predicted(1536, 3072, 4096)
    assert full.waves.factor == 1.0
    assert beyond.waves.factor > 0.9
    assert beyond.time_s < 1.3 * full.time_s


def test_best_tiling__rows_that_pad_are_paid_for() -> None:
    work = gemm_work(100, 4096, 4096, dtype="bf16", pipe="bf16-tensor")
    whole = best_tiling([(128, 4096)], 4096, work=work, roofs=ROOFS, tile=(128, 128)).waves
    padded = best_tiling([(100, 4096)], 4096, work=work, roofs=ROOFS, tile=(128, 128)).waves
    assert padded.tiles == whole.tiles
    assert padded.tile_share == pytest.approx(whole.tile_share * 100 / 128)


def test_best_tiling__a_given_tile_is_never_better_than_the_roof() -> None:
    work = gemm_work(4096, 4096, 4096, dtype="bf16", pipe="bf16-tensor")
    waves = best_tiling([(4096, 4096)], 4096, work=work, roofs=ROOFS, tile=(1024, 1024)).waves
    assert waves.tile_share == pytest.approx(1.0)


def test_best_tiling__a_deep_small_product_splits_k_and_pays_for_adding_up() -> None:
    found = predicted(256, 256, 65536)
    assert found.waves.splits > 1
    (added,) = [term for term in found.terms if term.name == "split"]
    assert added.time_s > RAMP_S
    assert not added.overlaps
    whole = gemm(256, 256, 65536, dtype="bf16", roofs=ROOFS, tile=(64, 64))
    assert whole.waves.splits == 1
    assert found.time_s < whole.time_s / 3


def test_best_tiling__what_fills_the_machine_is_not_split() -> None:
    assert predicted(8192, 8192, 65536).waves.splits == 1


def test_best_tiling__a_vector_is_not_tiled() -> None:
    found = predicted(1, 8192, 8192)
    assert found.waves is None
    assert found.limit.bound is Bound.MEMORY


def test_best_tiling__is_never_slower_with_more_choice() -> None:
    for m, n, k in ((512, 512, 512), (2944, 3072, 4096), (64, 8192, 8192)):
        for tile in ((128, 256), (64, 64), (192, 192)):
            given = gemm(m, n, k, dtype="bf16", roofs=ROOFS, tile=tile)
            assert predicted(m, n, k).time_s <= given.time_s + 1e-12


def test_best_tiling__refuses_a_tile_of_nothing() -> None:
    with pytest.raises(ConfigurationError, match="tile-rows"):
        gemm(8, 8, 8, dtype="bf16", roofs=ROOFS, tile=(0, 8))


def test_wave_caveats__names_tiles_and_waves() -> None:
    waves = gemm(1536, 3072, 4096, dtype="bf16", roofs=ROOFS, tile=TENSOR_TILE).waves
    (caveat,) = wave_caveats(waves)
    assert caveat.message == "144 tiles of 128x256 on 132 SMs use 55% of 2 waves"
    assert wave_caveats(None) == ()
