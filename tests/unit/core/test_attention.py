"""Attention: what the documents say, corrected, and the third roof."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.attention import attention_decode, attention_decode_latent, attention_prefill
from perfgate.core.gpu_table import gpu_sheet
from perfgate.core.report import Bound
from perfgate.core.roofs import Roof, Roofs, sheet_roofs
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_gpu_table

TABLE = read_gpu_table()
H100 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA H100 80GB HBM3"), TABLE)


def prefill(n: int, **options: object):
    return attention_prefill(**({"heads": 1, "queries": n, "head_dim": 128, "dtype": "bf16", "roofs": H100} | options))


def decode(context: int, **options: object):
    return attention_decode(
        **({"heads": 32, "context": context, "head_dim": 128, "dtype": "bf16", "roofs": H100} | options)
    )


def test_prefill__full_is_4_n_squared_d_over_8_n_d() -> None:
    work = prefill(4096).work
    assert work.work_flop == 4 * 4096**2 * 128
    assert work.moved_bytes == 8 * 4096 * 128
    assert work.intensity_flop_per_byte == pytest.approx(4096 / 2)


def test_prefill__causal_is_half_and_crosses_at_twice_the_size() -> None:
    causal = prefill(4096, causal=True)
    assert causal.work.work_flop == 2 * 4096 * 4097 * 128
    assert causal.thresholds[0].size == 1181
    # With the documents' printed 990 / 3.35 the full form crosses at 592, by the table's 989.4 at 591.
    assert prefill(4096).thresholds[0].size == 591
    printed = Roofs(
        gpu_name="printed",
        memory=(Roof(key="dram", label="DRAM", unit="B", datasheet_per_s=3.35e12),),
        compute=(Roof(key="bf16-tensor", label="BF16 tensor", unit="FLOP", datasheet_per_s=990e12),),
    )
    assert prefill(4096, roofs=printed).thresholds[0].size == 592


@given(n=st.integers(1, 5000), group=st.sampled_from([1, 4, 8]), causal=st.booleans())
def test_prefill__threshold_is_where_the_intensity_reaches_the_ridge(n: int, group: int, causal: bool) -> None:
    found = prefill(n, heads=8, kv_heads=8 // group, causal=causal)
    assert (found.work.intensity_flop_per_byte >= found.ridge_flop_per_byte * (1 - 1e-12)) == (
        n >= found.thresholds[0].size
    )


def test_prefill__of_a_chunk_attends_to_what_came_before() -> None:
    chunk = prefill(100, keys=1000, causal=True).work
    assert chunk.work_flop == 4 * (100 * 1000 - 100 * 99 // 2) * 128
    last, first = prefill(100, keys=200, causal=True).work, prefill(100, causal=True).work
    assert last.work_flop + first.work_flop == prefill(200, causal=True).work.work_flop


def test_prefill__exponentials_are_a_third_roof() -> None:
    found = prefill(8192, heads=32)
    terms = {term.name: term.time_s for term in found.terms}
    # At 1.98 GHz: 0.47 of the tensor time for a head of 128; twice that, and the limit, for one of 32.
    assert terms["exponentials"] / terms["compute"] == pytest.approx(989.4e12 / 512 / (16 * 132 * 1.98e9), rel=1e-6)
    assert prefill(8192, heads=32, head_dim=32).limit.name == "exponentials"
    assert found.exponentials == 32 * 8192**2


def test_prefill__writes_log_sum_exp_where_asked() -> None:
    assert prefill(64, heads=2, log_sum_exp=True).work.write_bytes - prefill(64, heads=2).work.write_bytes == 4 * 2 * 64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_heads": 3, "heads": 4}, "multiple of kv-heads"),
        ({"keys": 10, "causal": True}, "at least as many keys"),
        ({"queries": 0}, "queries must be a positive"),
        ({"head_dim": -128}, "head-dim must be a positive"),
        ({"dtype": "fp8x"}, "unknown data type"),
    ],
)
def test_prefill__refuses_what_makes_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prefill(64, **options)


def test_decode__mha_has_intensity_1_not_one_half() -> None:
    found = decode(100_000, heads=1)
    assert found.work.work_flop == 4 * 100_000 * 128
    assert found.work.intensity_flop_per_byte == pytest.approx(1.0, rel=1e-4)
    assert found.limit.bound is Bound.MEMORY
    # Keys and values of n positions at the bandwidth: 4 N d bytes.
    assert found.time_s == pytest.approx(1.5e-6 + 4 * 100_000 * 128 / 3.35e12, rel=1e-4)


@pytest.mark.parametrize(("kv_heads", "intensity"), [(32, 1), (8, 4), (1, 32)])
def test_decode__grouped_queries_have_intensity_g(kv_heads: int, intensity: float) -> None:
    found = decode(1_000_000, kv_heads=kv_heads)
    assert found.work.intensity_flop_per_byte == pytest.approx(intensity, rel=1e-3)


def test_decode__intensity_does_not_depend_on_batch_and_grows_with_new_tokens() -> None:
    one, many = decode(65536).work, decode(65536, batch=64).work
    assert one.intensity_flop_per_byte == pytest.approx(many.intensity_flop_per_byte)
    assert decode(65536, new_tokens=4).work.intensity_flop_per_byte == pytest.approx(4, rel=1e-3)
    assert decode(65536).thresholds[0].size == 296


def test_decode__latent_of_128_heads_has_intensity_242() -> None:
    found = attention_decode_latent(heads=128, context=1_000_000, dtype="bf16", roofs=H100)
    assert found.work.intensity_flop_per_byte == pytest.approx(241.8, abs=0.2)
    h800_pcie = sheet_roofs(gpu_sheet(TABLE, "NVIDIA H800 PCIe"), TABLE)
    b = attention_decode_latent(heads=128, context=10**6, dtype="bf16", roofs=h800_pcie)
    assert b.limit.bound is Bound.MEMORY
    h200 = sheet_roofs(gpu_sheet(TABLE, "NVIDIA H200"), TABLE)
    assert attention_decode_latent(heads=128, context=10**6, dtype="bf16", roofs=h200).limit.bound is Bound.COMPUTE


def test_decode__refuses_what_makes_no_sense() -> None:
    with pytest.raises(ConfigurationError, match="multiple of kv-heads"):
        decode(64, kv_heads=5)
    with pytest.raises(ConfigurationError, match="latent-dim"):
        attention_decode_latent(heads=8, context=64, latent_dim=0, dtype="bf16", roofs=H100)


def test_decode__names_its_kind() -> None:
    assert decode(64).subject.startswith("MHA")
    assert decode(64, kv_heads=1).subject.startswith("MQA")
    assert decode(64, kv_heads=8).subject.startswith("GQA of 4")
