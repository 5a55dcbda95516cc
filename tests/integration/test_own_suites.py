"""Suites of one's own through the command line, on a recording: programs run in earnest, kernels need a GPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.storage.documents import read_report, read_run

PROGRAM = "import random; print(*[f'{2 * (1 + 1e-4 * random.random())} ms' for _ in range(10)], sep='\\n')\n"
SUITE = """
import sys
import perfgate.api as pg

def suite(gpu):
    yield pg.command_case("own.tool", [sys.executable, "tool.py"], work=pg.Work(read_bytes=2**20), sources=["tool.py"])
    yield pg.cuda_case(
        gpu, "own.axpy", source="axpy.cu", function="axpy", grid=1, block=1, args=[pg.Output(4)], reference=None
    )
"""


@pytest.fixture
def suite(workplace: Path) -> Path:
    folder = workplace / "benchmarks"
    folder.mkdir()
    (folder / "suite.py").write_text(SUITE)
    (folder / "tool.py").write_text(PROGRAM)
    (folder / "axpy.cu").write_text('extern "C" __global__ void axpy(float* out) {}\n')
    return folder / "suite.py"


def test_run__measures_the_cases_of_an_own_suite_alone(perfgate: Any, device: str, suite: Path) -> None:
    ending = perfgate("run", "run.json", "--device", device, "--suite", "benchmarks/suite.py", "--launches", "2")
    assert ending.code == 0, ending.err
    run = read_run(Path("run.json"))
    assert run.suite_name == "suite.py"
    assert set(run.cases) == {"own.tool"}
    assert run.absent == {"own.axpy": "it was not recorded: own kernels need a GPU"}
    assert run.cases["own.tool"].source_sha256 is not None
    for launch in run.launches:
        (block,) = launch.cases["own.tool"].blocks
        assert block.times_s == pytest.approx([2e-3] * 10, rel=1e-3)


def test_run__measures_built_in_and_own_cases_together(perfgate: Any, device: str, suite: Path) -> None:
    arguments = ("--suite", "default", "--suite", suite, "--case", "own.tool", "--case", "bandwidth.copy")
    ending = perfgate("run", "run.json", "--device", device, "--launches", "1", *arguments)
    assert ending.code == 0, ending.err
    run = read_run(Path("run.json"))
    assert set(run.launches[0].cases) == {"own.tool", "bandwidth.copy[bytes=4GiB]"}
    assert run.suite_name == "default + suite.py"


def test_check__judges_an_own_case_against_its_stored_baseline(perfgate: Any, device: str, suite: Path) -> None:
    shared = ("--device", device, "--suite", suite)
    made = perfgate("baseline", "update", *shared, "--baseline", "b", "--reason", "first", "--launches", "12")
    assert made.code == 0, made.err
    ending = perfgate("check", *shared, "--baseline", "b")
    assert ending.code == 0, ending.out + ending.err
    (suite.parent / "tool.py").write_text(PROGRAM.replace("2 * (", "2.2 * ("))
    ending = perfgate("check", *shared, "--baseline", "b")
    assert ending.code == 1, ending.out + ending.err
    report = read_report(Path("perfgate-results/report.json"))
    case = next(one for one in report.cases if one.id == "own.tool")
    assert report.verdict is CheckVerdict.REGRESSED
    assert case.verdict is CaseVerdict.REGRESSED
    assert "source-changed" in {cause.code for cause in case.causes}


def test_check__a_program_that_fails_is_invalid_and_the_others_are_judged(
    perfgate: Any, device: str, suite: Path, baselines: Path
) -> None:
    (suite.parent / "tool.py").write_text("import sys; sys.exit('no GPU here')\n")
    arguments = ("--suite", "default", "--suite", suite, "--case", "own.tool", "--case", "bandwidth.copy")
    ending = perfgate("check", "--device", device, "--baseline", baselines, *arguments)
    report = read_report(Path("perfgate-results/report.json"))
    verdicts = {case.id: case.verdict for case in report.cases}
    assert verdicts["bandwidth.copy[bytes=4GiB]"] is CaseVerdict.UNCHANGED
    assert verdicts["own.tool"] is CaseVerdict.INVALID
    assert "exited with code 1: no GPU here" in " ".join(ending.out.split())
    assert ending.code == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import a_package_that_is_not_there\n", "needs the package a_package_that_is_not_there"),
        ("def suite(gpu):\n    raise ValueError('no size')\n", "raised ValueError: no size (suite.py:2)"),
        ("import os\nos._exit(9)\n", "the process that loads the suites died"),
        ("import os\nos.abort()\n", "the process that loads the suites died"),
    ],
)
def test_check__a_suite_that_cannot_be_loaded_is_named_before_anything_is_measured(
    perfgate: Any, device: str, suite: Path, baselines: Path, text: str, message: str
) -> None:
    suite.write_text(text)
    ending = perfgate("check", "--device", device, "--baseline", baselines, "--suite", suite)
    assert message in ending.err
    assert ending.code == (5 if "died" in message else 2)
    assert "Traceback" not in ending.err


def test_check__two_built_in_suites_are_refused(perfgate: Callable[..., Any], device: str) -> None:
    ending = perfgate("check", "--device", device, "--suite", "default", "--suite", "full")
    assert ending.code == 2
    assert "default and full" in ending.err
