"""The right baseline for a GPU is found, the wrong one is named, and no update is lost."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from perfgate.core.baseline import Baseline
from perfgate.core.gpu import Gpu
from perfgate.errors import DocumentError
from perfgate.storage import baselines
from perfgate.storage.baselines import (
    baseline_path,
    baseline_target,
    find_baseline,
    list_baselines,
    rewritten_baseline,
    update_baseline,
)
from perfgate.storage.documents import read_baseline, render_baseline_json, write_baseline, write_run
from perfgate.storage.files import LOCK_NAME
from tests.factories import H200, make_baseline, make_run, make_session
from tests.unit.storage.strategies import GPUS

OTHER_BOARD = replace(H200, board_part_number="692-2G520-0282-001")
A100 = replace(H200, name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", sm_count=108, board_part_number=None)
L4 = replace(H200, name="NVIDIA L4", compute_capability="8.9", sm_count=58, memory_bytes=24 * 10**9)
MIG = replace(H200, mig_profile="1g.18gb", sm_count=16, memory_bytes=18 * 2**30)


def test_baseline_path__is_made_of_name_board_and_partition() -> None:
    assert baseline_path(Path("b"), H200) == Path("b/nvidia-h200_692-2g520-0282-000.json")
    assert baseline_path(Path("b"), A100) == Path("b/nvidia-a100-sxm4-80gb_unknown-board.json")
    assert baseline_path(Path("b"), MIG) == Path("b/nvidia-h200_692-2g520-0282-000_mig-1g.18gb.json")


@settings(deadline=None)
@given(GPUS)
def test_baseline_path__stays_in_its_folder_whatever_a_driver_calls_a_gpu(gpu: Gpu) -> None:
    path = baseline_path(Path("b"), gpu)
    assert path.parent == Path("b")
    assert path.name.isascii()
    assert not path.name.startswith(".")
    assert len(path.name) <= 130


def test_baseline_path__survives_a_hostile_name() -> None:
    for name in ("../../etc/passwd", "..", "/", "", "\x00", "名前"):
        path = baseline_path(Path("b"), Gpu(name=name))
        assert path.parent == Path("b")
        assert path.name.endswith(".json")


def test_find_baseline__finds_by_identity_not_by_file_name(tmp_path: Path) -> None:
    write_baseline(tmp_path / "anything.json", make_baseline())
    write_baseline(tmp_path / "other.json.gz", make_baseline(gpu=OTHER_BOARD))
    for gpu, name in ((H200, "anything.json"), (OTHER_BOARD, "other.json.gz")):
        search = find_baseline(tmp_path, gpu)
        assert search.found is not None
        assert search.found.path == tmp_path / name
        assert search.nearest is None
        assert search.reason == ""
    assert find_baseline(tmp_path / "anything.json", H200).found is not None


def test_find_baseline__names_the_nearest_and_what_differs(tmp_path: Path) -> None:
    write_baseline(tmp_path / "a100.json", make_baseline(gpu=A100))
    write_baseline(tmp_path / "h200.json", make_baseline())
    search = find_baseline(tmp_path, OTHER_BOARD)
    assert search.found is None
    assert search.nearest is not None
    assert search.nearest.path == tmp_path / "h200.json"
    assert [one.field for one in search.differences] == ["board_part_number"]
    assert "692-2G520-0282-001 here and 692-2G520-0282-000 in the baseline" in search.reason
    assert find_baseline(tmp_path / "a100.json", OTHER_BOARD).found is None


def test_find_baseline__does_not_take_an_a100_for_an_l4(tmp_path: Path) -> None:
    write_baseline(tmp_path / "a100.json", make_baseline(gpu=A100))
    assert find_baseline(tmp_path, L4).found is None


def test_find_baseline__does_not_take_an_unread_board_for_a_wildcard(tmp_path: Path) -> None:
    write_baseline(tmp_path / "h200.json", make_baseline())
    search = find_baseline(tmp_path, replace(H200, board_part_number=None))
    assert search.found is None
    assert "unknown here" in search.reason


def test_find_baseline__ignores_what_does_not_survive_a_reboot(tmp_path: Path) -> None:
    write_baseline(tmp_path / "h200.json", make_baseline())
    moved = replace(H200, memory_clock_hz=3.2011e9, memory_bus_bits=6144, power_limit_w=650.0, chip="ffff0000")
    slightly = replace(moved, memory_bytes=int((H200.memory_bytes or 0) * 0.99))
    assert find_baseline(tmp_path, slightly).found is not None


def test_find_baseline__finds_nothing_in_an_empty_or_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("about baselines")
    (tmp_path / ".hidden.json").write_text("{}")
    for place in (tmp_path, tmp_path / "absent", tmp_path / "absent.json"):
        search = find_baseline(place, H200)
        assert search.found is None
        assert search.nearest is None
        assert search.searched == ()
        assert str(place) in search.reason


@pytest.mark.parametrize("content", ["", "{", '{"format": "perfgate.baseline/2"}'])
def test_find_baseline__names_a_broken_file_and_skips_none(tmp_path: Path, content: str) -> None:
    write_baseline(tmp_path / "h200.json", make_baseline())
    (tmp_path / "zzz.json").write_text(content)
    with pytest.raises(DocumentError, match=r"zzz\.json"):
        find_baseline(tmp_path, H200)


def test_list_baselines__refuses_a_run_among_baselines(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json", make_run({"launch.gap": [1e-6]}))
    with pytest.raises(DocumentError, match=r"run\.json.*is a run \(perfgate\.run/1\), but a baseline is wanted"):
        list_baselines(tmp_path)


def test_list_baselines__refuses_a_folder_named_like_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "h200.json").mkdir()
    with pytest.raises(DocumentError, match="is a directory"):
        list_baselines(tmp_path)


def test_list_baselines__is_sorted_by_file_name(tmp_path: Path) -> None:
    for name, gpu in (("b.json", H200), ("a.json", A100), ("c.json.gz", L4)):
        write_baseline(tmp_path / name, make_baseline(gpu=gpu))
    assert [one.path.name for one in list_baselines(tmp_path)] == ["a.json", "b.json", "c.json.gz"]


def test_find_baseline__refuses_two_of_one_gpu(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        write_baseline(tmp_path / name, make_baseline())
    with pytest.raises(DocumentError, match=r"b\.json: is a baseline of the same GPU as .*a\.json"):
        find_baseline(tmp_path, H200)


def test_baseline_target__is_the_found_one_else_a_free_name(tmp_path: Path) -> None:
    assert baseline_target(tmp_path / "absent", H200) == baseline_path(tmp_path / "absent", H200)
    assert baseline_target(tmp_path / "mine.json", H200) == tmp_path / "mine.json"
    write_baseline(tmp_path / "anything.json", make_baseline())
    assert baseline_target(tmp_path, H200) == tmp_path / "anything.json"
    write_baseline(baseline_path(tmp_path, OTHER_BOARD), make_baseline(gpu=OTHER_BOARD))
    without_ecc = replace(OTHER_BOARD, ecc_enabled=False)
    assert baseline_target(tmp_path, without_ecc).name == "nvidia-h200_692-2g520-0282-001-2.json"


def test_baseline_target__is_the_file_that_another_update_makes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two updates of a new GPU at once: both belong into one file, whoever is first."""
    real = baselines.find_baseline

    def overtaken(place: Path, gpu: Gpu) -> baselines.BaselineSearch:
        search = real(place, gpu)
        write_baseline(baseline_path(tmp_path, H200), make_baseline())
        return search

    monkeypatch.setattr(baselines, "find_baseline", overtaken)
    assert baseline_target(tmp_path, H200) == baseline_path(tmp_path, H200)


def test_update_baseline__gives_what_is_there_and_stores_what_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "h200.json"
    seen: list[Baseline | None] = []

    def change(before: Baseline | None) -> Baseline:
        seen.append(before)
        return make_baseline(make_session({"launch.gap": 1.23456789e-6}))

    stored = update_baseline(path, change)
    assert seen == [None]
    assert stored == read_baseline(path)
    assert stored.sessions[0].cases["launch.gap"].launch_medians_s[0] == 1.23457e-6
    update_baseline(path, change)
    assert seen[1] == stored


def test_update_baseline__changes_nothing_when_the_change_fails(tmp_path: Path) -> None:
    path = tmp_path / "h200.json"
    write_baseline(path, make_baseline())
    before = path.read_bytes()

    def fails(_: Baseline | None) -> Baseline:
        raise ZeroDivisionError

    for change, error in ((fails, ZeroDivisionError), (lambda _: replace(make_baseline(), sessions=()), DocumentError)):
        with pytest.raises(error):
            update_baseline(path, change)
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"h200.json", LOCK_NAME}
    update_baseline(path, lambda old: old or make_baseline())  # the lock is free again


def test_update_baseline__refuses_to_replace_what_is_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    with pytest.raises(DocumentError, match=r"notes\.json"):
        update_baseline(tmp_path / "notes.json", lambda _: make_baseline())
    assert (tmp_path / "notes.json").read_text() == '{"mine": 1}'


def test_update_baseline__loses_no_session_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "h200.json"

    def add(number: int) -> None:
        session = make_session({"launch.gap": 1e-6}, chip=f"{number:08x}")
        update_baseline(path, lambda old: make_baseline(*(old.sessions if old else ()), session))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert {session.chip for session in read_baseline(path).sessions} == {f"{number:08x}" for number in range(12)}


def test_baselines__name_a_place_that_cannot_be_read(tmp_path: Path) -> None:
    place = tmp_path / ("x" * 300 + ".json")
    with pytest.raises(DocumentError, match="cannot be listed: File name too long"):
        list_baselines(place)
    with pytest.raises(DocumentError, match=r"cannot be (read|listed): .*File name too long"):
        find_baseline(place, H200)


def test_list_baselines__reads_nothing_outside_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "baselines"
    write_baseline(tmp_path / "outside.json", make_baseline())
    write_baseline(folder / "inside.json", make_baseline())
    (folder / "b.json").symlink_to("inside.json")
    assert len(list_baselines(folder)) == 2
    (folder / "c.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(DocumentError, match=r"c\.json: is a symbolic link that leads out of its folder"):
        list_baselines(folder)


def test_list_baselines__does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DocumentError, match="no regular file"):
        list_baselines(tmp_path)


def test_rewritten_baseline__changes_what_is_not_canonical_only(tmp_path: Path) -> None:
    for name in ("b.json", "b.json.gz"):
        path = tmp_path / name
        write_baseline(path, make_baseline())
        before = path.read_bytes()
        assert not rewritten_baseline(path)
        document = json.loads(render_baseline_json(read_baseline(path)))
        path.write_text(json.dumps(document))
        assert rewritten_baseline(path)
        assert path.read_bytes() == before


def test_write_baseline__orders_sessions_by_chip_and_reads_them_by_time(tmp_path: Path) -> None:
    one, two, three = (
        make_session({"launch.gap": 1e-6 * day}, chip=chip, recorded_utc=f"2026-11-0{day}T00:00:00Z")
        for day, chip in ((1, "bb"), (2, "aa"), (3, "bb"))
    )
    write_baseline(tmp_path / "b.json", make_baseline(one, two, three))
    stored = json.loads((tmp_path / "b.json").read_text())
    assert [session["chip"] for session in stored["sessions"]] == ["aa", "bb", "bb"]
    assert read_baseline(tmp_path / "b.json").sessions == (one, two, three)
