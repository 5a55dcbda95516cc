"""The condensed copy of a run is read in its place, and only where both files are what they were."""

from pathlib import Path

import pytest

from perfgate.core.condensed import condensed
from perfgate.core.fleet import Seat
from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.storage import fleet_folder
from perfgate.storage.documents import write_run
from perfgate.storage.fleet_folder import CONDENSED, StoredRun, read_seat_run, run_path, write_seat_run
from tests.factories import make_run

SEAT = Seat(node="n1", gpu=3)
RUN = make_run({"bandwidth.copy[bytes=4GiB]": [2e-3, 2.1e-3]})


@pytest.fixture
def stored(tmp_path: Path) -> StoredRun:
    write_seat_run(tmp_path, SEAT, RUN)
    return StoredRun(seat=SEAT, path=run_path(tmp_path, SEAT))


def brief(folder: Path) -> Path:
    (found,) = (path for path in (folder / CONDENSED).rglob("*") if path.is_file())
    return found


def test_read_seat_run__reads_the_condensed_copy(
    tmp_path: Path, stored: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_folder, "read_run", lambda path: pytest.fail("the whole run was read"))
    assert read_seat_run(tmp_path, stored) == condensed(RUN)


def test_read_seat_run__reads_the_run_where_another_took_its_place(tmp_path: Path, stored: StoredRun) -> None:
    other = make_run({"bandwidth.copy[bytes=4GiB]": [3e-3]})
    write_run(stored.path, other)
    assert read_seat_run(tmp_path, stored) == other


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "foreign", "binary"])
def test_read_seat_run__reads_the_run_where_its_copy_is_damaged(tmp_path: Path, stored: StoredRun, damage: str) -> None:
    place = brief(tmp_path)
    data = place.read_bytes()
    damaged = {
        "flipped": data.replace(b"0.002", b"0.001"),
        "cut": data[: len(data) // 2],
        "empty": b"",
        "foreign": data.partition(b"\n")[0] + b"\n{}\n",
        "binary": b"\xff\xfe\n" + data,
    }[damage]
    assert damaged != data
    place.write_bytes(damaged)
    assert read_seat_run(tmp_path, stored) == RUN


def test_read_seat_run__a_copy_hides_no_damage_of_the_run(tmp_path: Path, stored: StoredRun) -> None:
    stored.path.write_bytes(stored.path.read_bytes()[:-20])
    with pytest.raises(DocumentError):
        read_seat_run(tmp_path, stored)


def test_read_seat_run__without_a_copy_reads_the_run(tmp_path: Path, stored: StoredRun) -> None:
    brief(tmp_path).unlink()
    found: Run = read_seat_run(tmp_path, stored)
    assert found == RUN
