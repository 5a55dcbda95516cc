"""Names in the table of GPUs: exact first, no prefix ever, near names for the rest."""

from dataclasses import replace

import pytest

from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import gpu_sheet, near_names, sheet_of
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_gpu_table
from tests.factories import H200

TABLE = read_gpu_table()


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("NVIDIA L4", "l4"),
        ("L4", "l4"),
        ("L40", "l40"),
        ("nvidia l40s", "l40s"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("RTX 4090", "rtx4090"),
        ("h200-sxm", "h200-sxm"),
        ("NVIDIA H200 MIG 1g.18gb", "h200-sxm"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2"),
    ],
)
def test_gpu_sheet__matches_exactly_first(name: str, row: str) -> None:
    assert gpu_sheet(TABLE, name).id == row


@pytest.mark.parametrize("name", ["A100", "H100", "NVIDIA H100", "NVIDIA A10G", "L", "", "GTX 9999", "NVIDIA L40SX"])
def test_gpu_sheet__refuses_what_is_only_a_prefix_or_unknown(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no GPU named"):
        gpu_sheet(TABLE, name)


def test_near_names__lists_the_parts_that_a_short_name_could_mean() -> None:
    assert set(near_names(TABLE, "H100")) >= {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3"}
    with pytest.raises(ConfigurationError) as caught:
        gpu_sheet(TABLE, "NVIDIA A100")
    assert "A100-SXM4-80GB" in caught.value.hint


def test_near_names__of_nonsense_are_none() -> None:
    assert near_names(TABLE, "qqqqqqqq") == ()


def test_sheet_of__h200_is_not_an_h100() -> None:
    sheet = sheet_of(TABLE, H200)
    assert sheet is not None
    assert sheet.bandwidth_bytes_per_s == 4.8e12


def test_sheet_of__another_part_of_the_same_name_is_unknown() -> None:
    orin = Gpu(name="Orin", compute_capability="8.7", sm_count=8, integrated=True)
    assert sheet_of(TABLE, orin) is None
    narrow = Gpu(name="NVIDIA GeForce RTX 3060", sm_count=28, memory_bytes=8_589_934_592)
    assert sheet_of(TABLE, narrow) is None
    assert sheet_of(TABLE, replace(narrow, memory_bytes=12_884_901_888)) is not None


def test_sheet_of__a_partition_sees_its_share_and_is_still_that_part() -> None:
    part = replace(H200, name="NVIDIA H200 MIG 1g.18gb", mig_profile="1g.18gb", sm_count=16, memory_bytes=18 * 10**9)
    sheet = sheet_of(TABLE, part)
    assert sheet is not None
    assert sheet.id == "h200-sxm"


def test_table__every_row_names_known_sources_and_real_fields() -> None:
    fields = set(TABLE.gpus[0].__slots__)
    for sheet in TABLE.gpus:
        assert sheet.sources, sheet.id
        assert set(sheet.sources) <= set(TABLE.sources), sheet.id
        assert set(sheet.unconfirmed) <= fields | set(sheet.peak_per_s), sheet.id
        assert all(value > 0 for value in sheet.peak_per_s.values()), sheet.id
    names = [name for sheet in TABLE.gpus for name in sheet.names]
    assert len(names) == len(set(names))
    assert len(TABLE.gpus) >= 39
