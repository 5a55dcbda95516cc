"""Declared work beside counters, from the command to its exit code; ncu is a script that answers from a table."""

import contextlib
import json
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.cli.main import run
from perfgate.core.device import DeviceKind
from perfgate.core.gpu import Environment
from perfgate.errors import ExitCode
from perfgate.workflow import devices
from tests.factories import H200

RECORDED = Path(__file__).parents[2] / "data" / "h200-ncu.csv"
# What was counted there.
RECORDED_CASES = [
    *(f"--case=bandwidth.{one}[bytes=4GiB]" for one in ("read", "write", "copy", "triad")),
    "--case=gemm.fp32*",
    "--case=launch.*",
    "--case=bandwidth.h2d*",
]

PLAYED = """#!{python}
import json, pathlib, shutil, sys
arguments = sys.argv[1:]
order, told = map(pathlib.Path, arguments[-2:])
cases = json.loads(order.read_text())["case_ids"]
failed = {failed!r}
told.write_text(json.dumps({{"executed": [one for one in cases if one not in failed], "failures": failed}}))
shutil.copy({table!r}, arguments[arguments.index("--log-file") + 1])
"""


class Board:
    """An H200 that nobody computes on."""

    kind = DeviceKind.CUDA
    address = "cuda:0"
    gpu = H200
    environment = Environment()

    @contextlib.contextmanager
    def lock(self, *, wait: bool) -> Iterator[None]:
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(devices, "opened_device", lambda _: Board())
    return tmp_path


def play(folder: Path, table: str, failed: dict[str, str] | None = None) -> None:
    """Put an ncu on the path that answers with a table."""
    (folder / "table").write_text(table, encoding="utf-8")
    script = folder / "ncu"
    script.write_text(
        PLAYED.format(python=sys.executable, failed=failed or {}, table=str(folder / "table")), encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def test_verify__the_suite_declares_what_an_h200_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(folder, RECORDED.read_text(encoding="utf-8"))
    assert run(["roofline", "--verify", *RECORDED_CASES, "--json"]) == ExitCode.PASSED
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "perfgate.counters/1"
    cases = {one["id"]: one for one in document["cases"]}
    assert len(cases) == 5
    assert all(one["faults"] == [] for one in cases.values())
    streams = {one["id"]: one["bytes_ratio"] for one in document["cases"] if one["is_stream"]}
    assert len(streams) == 4
    assert streams == pytest.approx(dict.fromkeys(streams, 1.0), abs=0.02)
    product = cases["gemm.fp32[n=4096]"]
    assert product["flop_ratio"] == pytest.approx(1.0, abs=1e-3)
    assert product["reread_factor"] > 1
    assert (product["counted_bound"], product["bound"]) == ("compute", "compute")
    assert {"launch.gap", "bandwidth.h2d[bytes=64MiB]"} <= set(document["left_out"])


def test_verify__shows_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(folder, RECORDED.read_text(encoding="utf-8"))
    assert run(["roofline", "--verify", *RECORDED_CASES]) == ExitCode.PASSED
    out = capsys.readouterr().out
    assert "bandwidth.copy[bytes=4GiB]" in out
    assert "counters of NVIDIA H200" in out


def test_verify__of_some_cases_leaves_nothing_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    play(folder, "\n".join(lines[:-10] + lines[-2:]))
    assert run(["roofline", "--verify", "--case", "gemm.fp32*"]) == ExitCode.PASSED
    assert "without work that counters see" not in capsys.readouterr().out


def test_verify__a_declaration_that_is_off_is_an_error_of_the_suite(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = RECORDED.read_text(encoding="utf-8")
    (read_bytes,) = re.findall(r'"bandwidth_read".*?"(42949\d+)"', text)
    play(folder, text.replace(f'"{read_bytes}"', f'"{3 * 2**30}"'))
    assert run(["roofline", "--verify", *RECORDED_CASES]) == ExitCode.USAGE
    streams = capsys.readouterr()
    assert "bandwidth.read[bytes=4GiB]: the counters saw 75" in streams.err
    assert "of the declared bytes" in streams.out


def test_verify__a_case_that_fails_is_named_and_the_others_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    place = next(index for index, line in enumerate(lines) if '"bandwidth_write"' in line)
    del lines[place - 1 : place + 1]
    play(folder, "\n".join(lines), {"bandwidth.write[bytes=4GiB]": "out of memory"})
    assert run(["roofline", "--verify", *RECORDED_CASES]) == ExitCode.PASSED
    assert "bandwidth.write[bytes=4GiB] was not executed: out of memory" in capsys.readouterr().out


def test_verify__executions_that_were_not_counted_are_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(folder, "\n".join(RECORDED.read_text(encoding="utf-8").splitlines()[:-2]))
    assert run(["roofline", "--verify", *RECORDED_CASES]) == ExitCode.DEVICE
    assert "ncu counted 4 of 5 executions" in capsys.readouterr().err


def test_verify__without_ncu_the_remedy_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfgate.devices.cuda.ncu._PLACES", ())
    assert run(["roofline", "--verify", *RECORDED_CASES]) == ExitCode.USAGE
    assert "install it" in capsys.readouterr().err


def test_verify__cases_that_declare_nothing_cannot_be_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(folder, "")
    assert run(["roofline", "--verify", "--case", "launch.*"]) == ExitCode.USAGE
    assert "declares work" in capsys.readouterr().err


def test_verify__a_recording_has_no_counters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", "--verify", "--device", "recorded"]) == ExitCode.USAGE
    assert "a recording has none" in capsys.readouterr().err
