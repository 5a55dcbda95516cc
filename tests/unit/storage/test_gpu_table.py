"""The tables that ship with perfgate can be read, and damage is reported."""

from pathlib import Path

import pytest

from perfgate.errors import DocumentError
from perfgate.storage import gpu_table


def test_read_gpu_table__reads_what_ships() -> None:
    assert len(gpu_table.read_gpu_table().gpus) >= 39


@pytest.mark.parametrize(
    ("text", "message"), [("{", "cannot be read"), ('{"about": 3}', "missing"), ('{"oops": 1}', "unknown field")]
)
def test_read_gpu_table__names_the_damaged_file(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpus.json").write_text(text)
    monkeypatch.setattr(gpu_table, "data_folder", lambda: tmp_path)
    gpu_table.read_gpu_table.cache_clear()
    try:
        with pytest.raises(DocumentError, match=message):
            gpu_table.read_gpu_table()
    finally:
        gpu_table.read_gpu_table.cache_clear()
