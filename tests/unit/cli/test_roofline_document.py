"""Every command of docs/roofline.md runs, and its tables say what the code computes."""

import re
import shlex
from pathlib import Path

import pytest

from perfgate.cli.main import run
from perfgate.core.case import MemoryLevel
from perfgate.core.gpu_table import gpu_sheet
from perfgate.core.roofs import sheet_roofs
from perfgate.storage.gpu_table import read_gpu_table

DOCUMENT = (Path(__file__).parents[3] / "docs" / "roofline.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ perfgate (.+)$", DOCUMENT, re.MULTILINE)
TABLE = read_gpu_table()
ROWS = {
    "B200 (HGX, 180 GB)": "NVIDIA B200",
    "H100 SXM": "NVIDIA H100 80GB HBM3",
    "H100 PCIe": "NVIDIA H100 PCIe",
    "H200": "NVIDIA H200",
    "H800 SXM": "NVIDIA H800",
    "H800 PCIe": "NVIDIA H800 PCIe",
    "A100 80GB SXM": "NVIDIA A100-SXM4-80GB",
    "A100 40GB": "NVIDIA A100-SXM4-40GB",
    "A800 80GB PCIe": "NVIDIA A800 80GB PCIe",
    "RTX 3060": "NVIDIA GeForce RTX 3060",
}


def test_document__has_commands_of_every_kind() -> None:
    assert len(COMMANDS) >= 14


@pytest.mark.parametrize("command", COMMANDS)
def test_document__commands_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(command)) == 0
    assert capsys.readouterr().out


def ridge_rows() -> list[tuple[str, str, float, float, float]]:
    found = []
    for pipe, start in (("bf16-tensor", "| GPU | BF16 tensor"), ("fp32", "| GPU | FP32")):
        table = DOCUMENT[DOCUMENT.index(start) :].split("\n\n")[0]
        for line in table.splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] in ROWS:
                found.append((cells[0], pipe, *(float(cell) for cell in cells[1:4])))
    return found


@pytest.mark.parametrize(("label", "pipe", "peak", "bandwidth", "ridge"), ridge_rows())
def test_document__ridge_points_are_those_of_the_table(
    label: str, pipe: str, peak: float, bandwidth: float, ridge: float
) -> None:
    roofs = sheet_roofs(gpu_sheet(TABLE, ROWS[label]), TABLE)
    compute, memory = roofs.compute_roof(pipe), roofs.memory_roof(MemoryLevel.DRAM)
    assert compute.datasheet_per_s == pytest.approx(peak * 1e12)
    assert memory.datasheet_per_s == pytest.approx(bandwidth * 1e12, rel=1e-3)
    assert compute.datasheet_per_s / memory.datasheet_per_s == pytest.approx(ridge, rel=0.005)
