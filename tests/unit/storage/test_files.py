"""A file is replaced whole or not at all, and only where it was meant to be."""

import errno
import os
import stat
from pathlib import Path

import pytest

from perfgate.errors import ExitCode, OutputError
from perfgate.storage import files
from perfgate.storage.files import LOCK_NAME, locked, write_text


def test_write_text__replaces_and_leaves_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    for text in ("old", "new"):
        write_text(path, text)
    assert path.read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_write_text__honours_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "run.json", "{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, "free some space"), (errno.EDQUOT, "free some space"), (errno.EIO, "check the folder")],
)
@pytest.mark.parametrize("call", ["fsync", "open"])
def test_write_text__keeps_the_old_content_when_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: str, call: str
) -> None:
    path = tmp_path / "run.json"
    write_text(path, "old")

    def fails(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, call, fails)
    with pytest.raises(OutputError) as caught:
        write_text(path, "new")
    monkeypatch.undo()
    assert str(path) in str(caught.value)
    assert os.strerror(number) in str(caught.value)
    assert expected in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_write_text__removes_its_temporary_when_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "run.json", "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_write_text__says_that_a_folder_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"):
        write_text(tmp_path / "run.json", "{}")


def test_write_text__refuses_a_folder_and_a_place_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"):
        write_text(tmp_path, "{}")
    with pytest.raises(OutputError, match="No such file or directory"):
        write_text(tmp_path / "absent" / "run.json", "{}")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Not a directory"):
        write_text(tmp_path / "file" / "run.json", "{}")
    with pytest.raises(OutputError, match=r"null (byte|character)"):
        write_text(tmp_path / "a\0b", "{}")


def test_write_text__refuses_a_link_that_leads_out_of_its_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("precious")
    folder = tmp_path / "results"
    folder.mkdir()
    for name, leads_to in (("up.json", "../outside.json"), ("absolute.json", str(outside)), ("new.json", "../new")):
        (folder / name).symlink_to(leads_to)
        with pytest.raises(OutputError, match="outside its folder"):
            write_text(folder / name, "overwritten")
    assert outside.read_text() == "precious"
    assert not (tmp_path / "new").exists()


def test_write_text__follows_a_link_within_its_folder(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "latest.json").symlink_to("real.json")
    write_text(tmp_path / "latest.json", "new")
    assert (tmp_path / "latest.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_write_text__refuses_links_that_go_round_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    with pytest.raises(OutputError):
        write_text(tmp_path / "a.json", "{}")


def test_locked__removes_what_a_killed_writer_of_this_file_left_and_nothing_else(tmp_path: Path) -> None:
    for name in (".b.json.0123.part", ".other.json.0123.part", ".b.json", "b.json"):
        (tmp_path / name).write_text("")
    with locked(tmp_path / "b.json"):
        pass
    assert {one.name for one in tmp_path.iterdir()} == {".other.json.0123.part", ".b.json", "b.json", LOCK_NAME}


def test_locked__makes_the_folder(tmp_path: Path) -> None:
    with locked(tmp_path / "new" / "baselines" / "b.json"):
        assert (tmp_path / "new" / "baselines").is_dir()


def test_locked__says_who_holds_it_when_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_TIMEOUT_S", 0.05)
    with (
        locked(tmp_path / "b.json"),
        pytest.raises(OutputError, match="another perfgate has been updating"),
        locked(tmp_path / "other.json"),
    ):
        pass
    with locked(tmp_path / "b.json"):
        pass


def test_locked__says_that_it_cannot_lock(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be locked"), locked(tmp_path / "file" / "b.json"):
        pass
