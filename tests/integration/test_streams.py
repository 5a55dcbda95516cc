"""Where results are printed to changes no exit code: readers that go away, full disks, narrow and old terminals."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfgate.storage.documents import write_run
from tests.factories import H200, make_run, normal_medians

NAME = "NVIDIA µ-200™ 測試"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with base.json and slower.json, of a GPU whose name no narrow encoding has."""
    from dataclasses import replace

    folder, gpu = tmp_path_factory.mktemp("documents"), replace(H200, name=NAME)
    write_run(folder / "base.json", make_run({"launch.graph": normal_medians(1, 12)}, gpu=gpu))
    slower = [1.1 * one for one in normal_medians(2, 6)]
    write_run(folder / "slower.json", make_run({"launch.graph": slower}, gpu=gpu))
    return folder


COMPARE = f"{sys.executable} -m perfgate compare base.json slower.json"


def shell(script: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    known = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=known | environment, capture_output=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "redirection",
    ["| head -1; exit ${PIPESTATUS[0]}", "| true; exit ${PIPESTATUS[0]}", ">/dev/full", ">&-", ">&- 2>&-"],
)
@pytest.mark.parametrize("form", ["", "--json"])
def test_stdout__what_becomes_of_it_keeps_the_verdict(documents: Path, redirection: str, form: str) -> None:
    finished = shell(f"{COMPARE} {form} {redirection}", documents)
    assert finished.returncode == 1, finished.stderr
    assert b"Traceback" not in finished.stderr
    assert b"Exception ignored" not in finished.stderr


def test_stdout__that_is_full_is_told(documents: Path) -> None:
    assert b"the result cannot be printed: No space left on device" in shell(f"{COMPARE} >/dev/full", documents).stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_stderr__what_becomes_of_it_keeps_the_code_of_an_error(documents: Path, redirection: str) -> None:
    finished = shell(f"{sys.executable} -m perfgate compare base.json missing.json {redirection}", documents)
    assert finished.returncode == 3


def test_help__whose_reader_is_gone_does_not_exit_as_a_regression(documents: Path) -> None:
    finished = shell(f"{sys.executable} -m perfgate --help | true; exit ${{PIPESTATUS[0]}}", documents)
    assert finished.returncode in (0, 130)
    assert b"Traceback" not in finished.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_stdout__of_any_encoding_shows_the_report(documents: Path, encoding: str) -> None:
    finished = shell(COMPARE, documents, PYTHONIOENCODING=encoding)
    text = finished.stdout.decode(encoding)
    assert finished.returncode == 1, finished.stderr
    assert "REGRESSED" in text
    assert (NAME in text) is (encoding == "utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_stdout__of_any_encoding_gives_the_same_json(documents: Path, encoding: str) -> None:
    finished = shell(f"{COMPARE} --json", documents, PYTHONIOENCODING=encoding)
    assert json.loads(finished.stdout.decode(encoding))["gpu"]["name"] == NAME


@pytest.mark.parametrize("columns", ["40", "200", "-5", "9" * 5000])
def test_columns__of_any_value_are_taken_or_left(documents: Path, columns: str) -> None:
    finished = shell(COMPARE, documents, COLUMNS=columns)
    assert finished.returncode == 1, finished.stderr


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
)
def test_terminal__colour_follows_what_it_can_and_what_is_wanted(
    documents: Path, environment: dict[str, str], is_coloured: bool
) -> None:
    # `script` gives the command a terminal of its own.
    finished = shell(f"script -qec '{COMPARE}' /dev/null", documents, **environment)
    if finished.returncode == 127:
        pytest.skip("needs script(1)")
    assert finished.returncode == 1, finished.stdout
    assert (b"\x1b[" in finished.stdout) is is_coloured


def test_pipe__has_no_colour(documents: Path) -> None:
    assert b"\x1b[" not in shell(COMPARE, documents, TERM="xterm-256color").stdout
