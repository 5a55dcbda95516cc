"""Peaks from attributes against the datasheets of every row."""

from dataclasses import replace
from fractions import Fraction

import pytest

from perfgate.core.gpu import Gpu
from perfgate.core.gpu_table import GpuSheet, gpu_sheet, sheet_of
from perfgate.core.peaks import (
    attribute_bandwidth_bytes_per_s,
    attribute_peak_per_s,
    datasheet_bandwidth_bytes_per_s,
    datasheet_peak_per_s,
    element_bytes,
    exponentials_per_s,
    known_pipes,
    mig_memory_share,
    own_bandwidth_bytes_per_s,
    pipe_rate,
    pipe_text,
    shared_bandwidth_bytes_per_s,
)
from perfgate.storage.gpu_table import read_gpu_table
from tests.factories import H200

TABLE = read_gpu_table()
V100 = Gpu(name="Tesla V100-SXM2-16GB", compute_capability="7.0", memory_clock_hz=0.877e9, memory_bus_bits=4096)
SHEETS = pytest.mark.parametrize("sheet", TABLE.gpus, ids=lambda sheet: sheet.id)


def test_attribute_bandwidth__is_898_gb_per_s_on_v100() -> None:
    # The example of the CUDA C++ Best Practices Guide: 0.877e9 x (4096 / 8) x 2 / 1e9.
    assert attribute_bandwidth_bytes_per_s(V100, TABLE) == pytest.approx(898.048e9, rel=1e-12)


def test_attribute_bandwidth__is_4814_gb_per_s_on_h200() -> None:
    assert attribute_bandwidth_bytes_per_s(H200, TABLE) == pytest.approx(4814.304e9, rel=1e-12)


@SHEETS
def test_attribute_bandwidth__agrees_with_the_datasheet_or_the_row_says_why(sheet: GpuSheet) -> None:
    derived = attribute_bandwidth_bytes_per_s(sheet.gpu(), TABLE)
    if derived is None or sheet.bandwidth_bytes_per_s is None:
        assert sheet.integrated or None in (sheet.memory_clock_hz, sheet.memory_bus_bits, sheet.bandwidth_bytes_per_s)
        return
    agrees = derived == pytest.approx(sheet.bandwidth_bytes_per_s, rel=0.01)
    assert agrees != ("bandwidth" in sheet.disagreements), derived / sheet.bandwidth_bytes_per_s - 1


@SHEETS
def test_attribute_peak__agrees_with_the_datasheet_at_its_clock_or_the_row_says_why(sheet: GpuSheet) -> None:
    assert set(sheet.disagreements) <= set(sheet.peak_per_s) | {"bandwidth"}
    for pipe, printed in sheet.peak_per_s.items():
        # Hopper and Blackwell quote every tensor peak but FP64's at a lower clock.
        quoted = sheet.tensor_clock_hz if "-tensor" in pipe and pipe != "fp64-tensor" else None
        derived = attribute_peak_per_s(sheet.gpu(), TABLE, pipe, quoted)
        if derived is None:
            assert None in (sheet.sm_count, sheet.sm_clock_hz), pipe
            continue
        agrees = derived == pytest.approx(printed, rel=0.01)
        assert agrees != (pipe in sheet.disagreements), (pipe, derived / printed - 1)


def test_attribute_peak__of_h200_tensor_pipes_is_above_the_datasheet() -> None:
    ratio = attribute_peak_per_s(H200, TABLE, "bf16-tensor") / datasheet_peak_per_s(H200, TABLE, "bf16-tensor")
    assert ratio == pytest.approx(1980 / 1830, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "capability", "rate"),
    [
        ("NVIDIA GeForce RTX 4090", "8.9", 512),
        ("NVIDIA GeForce RTX 4080", "8.9", 512),  # not in the table: GeForce in the name is enough
        ("NVIDIA L40", "8.9", 512),
        ("NVIDIA L40S", "8.9", 1024),
        ("NVIDIA L4", "8.9", 1024),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", 1024),
        ("NVIDIA A10", "8.6", 1024),
        ("NVIDIA GeForce RTX 3090", "8.6", 512),
    ],
)
def test_pipe_rate__halves_accumulation_in_fp32_by_name(name: str, capability: str, rate: int) -> None:
    assert pipe_rate(Gpu(name=name, compute_capability=capability), TABLE, "bf16-tensor") == rate


def test_pipe_rate__of_what_a_gpu_lacks_is_none() -> None:
    assert pipe_rate(V100, TABLE, "bf16-tensor") is None
    assert pipe_rate(replace(V100, compute_capability="99.9"), TABLE, "fp32") is None
    assert pipe_rate(replace(V100, compute_capability=None), TABLE, "fp32") is None


def test_attribute_bandwidth__refuses_integrated_gpus() -> None:
    orin = Gpu(name="Orin", memory_clock_hz=1.3e9, memory_bus_bits=256, integrated=True, sm_count=16)
    assert attribute_bandwidth_bytes_per_s(orin, TABLE) is None
    # Even where the attribute "integrated" could not be read: the table knows the part.
    assert attribute_bandwidth_bytes_per_s(replace(orin, integrated=None), TABLE) is None
    assert datasheet_bandwidth_bytes_per_s(orin, TABLE) == 204.8e9


def test_attribute_bandwidth__of_unread_attributes_is_none() -> None:
    assert attribute_bandwidth_bytes_per_s(replace(H200, memory_clock_hz=None), TABLE) is None
    assert attribute_bandwidth_bytes_per_s(replace(H200, memory_bus_bits=0), TABLE) is None


@pytest.mark.parametrize(
    ("profile", "eighths"), [("1g.18gb", 1), ("1g.35gb", 2), ("2g.35gb", 2), ("3g.71gb", 4), ("7g.141gb", 8)]
)
def test_attribute_bandwidth__of_a_partition_is_its_share_of_the_memory_slices(profile: str, eighths: int) -> None:
    part = replace(H200, name=f"NVIDIA H200 MIG {profile}", mig_profile=profile, sm_count=16)
    assert attribute_bandwidth_bytes_per_s(part, TABLE) == pytest.approx(4814.304e9 * eighths / 8)
    assert datasheet_bandwidth_bytes_per_s(part, TABLE) == pytest.approx(4.8e12 * eighths / 8)
    assert datasheet_peak_per_s(part, TABLE, "bf16-tensor") == pytest.approx(989.4e12 * 16 / 132)


@pytest.mark.parametrize("profile", ["nonsense", "1g", "9g.900gb"])
def test_attribute_bandwidth__of_an_unknown_partition_is_none(profile: str) -> None:
    part = replace(H200, mig_profile=profile)
    assert mig_memory_share(part, sheet_of(TABLE, part)) is None
    assert attribute_bandwidth_bytes_per_s(part, TABLE) is None
    assert datasheet_bandwidth_bytes_per_s(part, TABLE) is None


def test_mig_memory_share__of_a_card_outside_the_table_is_none() -> None:
    assert mig_memory_share(Gpu(name="NVIDIA X MIG 1g.5gb"), None) is None
    assert mig_memory_share(replace(H200, mig_profile="1g.18gb"), sheet_of(TABLE, H200)) == Fraction(1, 8)


def test_datasheet__of_an_unknown_gpu_is_none() -> None:
    unknown = Gpu(name="NVIDIA Z999", compute_capability="9.0")
    assert datasheet_bandwidth_bytes_per_s(unknown, TABLE) is None
    assert datasheet_peak_per_s(unknown, TABLE, "fp32") is None
    assert "fp32" in known_pipes(unknown, TABLE)
    assert known_pipes(Gpu(name="NVIDIA Z999"), TABLE) == ()


def test_on_chip_rates__of_h200() -> None:
    assert shared_bandwidth_bytes_per_s(H200) == pytest.approx(128 * 132 * 1.98e9)
    assert exponentials_per_s(replace(H200, sm_clock_max_hz=1.83e9)) == pytest.approx(3.87e12, rel=0.01)
    assert shared_bandwidth_bytes_per_s(replace(H200, sm_count=None)) is None
    assert exponentials_per_s(replace(H200, sm_clock_max_hz=None)) is None


def test_element_bytes__rounds_halves_up_and_survives_any_size() -> None:
    assert element_bytes(3, "fp4") == 2
    assert element_bytes(2**40, "bf16") == 2**41
    assert element_bytes(10**30, "fp64") == 8 * 10**30


def test_pipe_text__reads_as_people_write_it() -> None:
    assert pipe_text("bf16-tensor") == "BF16 tensor"
    assert pipe_text("fp32") == "FP32"
    assert pipe_text("fp16-tensor-acc16") == "FP16 tensor acc16"
    assert pipe_text("fp32-other") == "FP32 other"


def test_h800__has_the_peaks_of_h100_and_its_own_nvlink() -> None:
    sxm, pcie = gpu_sheet(TABLE, "NVIDIA H800"), gpu_sheet(TABLE, "NVIDIA H800 PCIe")
    assert sxm.peak_per_s["bf16-tensor"] / sxm.bandwidth_bytes_per_s == pytest.approx(295, abs=0.5)
    assert pcie.peak_per_s["bf16-tensor"] / pcie.bandwidth_bytes_per_s == pytest.approx(371, abs=0.5)
    assert sxm.nvlink_bytes_per_s == 200e9
    # What the document took for the peak is the rate without tensor cores.
    assert sxm.peak_per_s["bf16"] == 133.8e12


def test_own_bandwidth__is_of_the_attributes_and_refused_where_they_mean_something_else() -> None:
    assert own_bandwidth_bytes_per_s(H200) == pytest.approx(4814.3e9, rel=1e-4)
    assert own_bandwidth_bytes_per_s(replace(H200, integrated=True)) is None
    assert own_bandwidth_bytes_per_s(replace(H200, mig_profile="1g.18gb")) is None
    assert own_bandwidth_bytes_per_s(replace(H200, memory_clock_hz=None)) is None
