"""The pytest plugin in pytests of its own, with a GPU in numpy."""

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.run import Run
from perfgate.storage.documents import read_run
from perfgate.workflow.benching import node_case_id

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent
IS_INSTALLED = any(one.name == "perfgate" for one in importlib.metadata.entry_points(group="pytest11"))
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.integration.fake_bench import install
install()
"""
TESTS = """
import pytest
import perfgate.api as pg

def test_fast(gpu_benchmark):
    assert gpu_benchmark.stream.handle == 0xF00
    assert gpu_benchmark(lambda: None, work=pg.Work(read_bytes=2**20)) < 1

@pytest.mark.parametrize("n", [1, 2])
def test_sizes(gpu_benchmark, n):
    gpu_benchmark([lambda: None, lambda: None])

def test_other():
    assert True
"""
Runs = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Runs pytest in a folder with the fake GPU and the tests given."""
    # These tests may run side by side: there is no GPU that they could share.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makeconftest(CONFTEST)

    def call(*arguments: str, tests: str = TESTS) -> pytest.RunResult:
        pytester.makepyfile(test_kernels=tests)
        plugin = () if IS_INSTALLED else ("-p", "perfgate.testing.plugin")
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin, *arguments)

    return call


def times(pytester: pytest.Pytester, **values: float) -> None:
    (pytester.path / "time.json").write_text(json.dumps(values))


def stored(pytester: pytest.Pytester) -> Run:
    return read_run(pytester.path / "run.json")


def test_plugin__measures_in_one_launch_beside_other_tests(run: Runs, pytester: pytest.Pytester) -> None:
    result = run("--perfgate-run", "run.json")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*perfgate*", "*test_kernels.test_fast*2.00* ms*"])
    found = stored(pytester)
    assert set(found.cases) == {
        "test_kernels.test_fast",
        "test_kernels.test_sizes[id=1]",
        "test_kernels.test_sizes[id=2]",
    }
    assert len(found.launches) == 1
    assert found.cases["test_kernels.test_fast"].work.read_bytes == 2**20
    assert found.cases["test_kernels.test_fast"].source_sha256 is not None


def test_plugin__measures_in_fresh_processes_and_runs_no_test_twice(run: Runs, pytester: pytest.Pytester) -> None:
    counted = TESTS.replace(
        "def test_fast(gpu_benchmark):", "def test_fast(gpu_benchmark):\n    open('count', 'a').write('.')"
    )
    result = run("--perfgate-launches", "3", "--perfgate-run=run.json", tests=counted)
    result.assert_outcomes(passed=4)
    found = stored(pytester)
    assert len(found.launches) == 3
    assert all(len(launch.cases) == 3 for launch in found.launches)
    assert (pytester.path / "count").read_text() == "..."
    plans = {
        len({launch.cases[one].blocks[0].executions_per_sample for launch in found.launches}) for one in found.cases
    }
    assert plans == {1}


def test_plugin__fails_a_test_that_is_slower_than_its_baseline(
    run: Runs, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perfgate.cli.main import run as run_command

    # At this alpha three launches against four can prove a change: fewer processes than in earnest.
    (pytester.path / "perfgate.toml").write_text('alpha = "10%"\n')
    monkeypatch.chdir(pytester.path)
    run("--perfgate-launches=4", "--perfgate-run=run.json").assert_outcomes(passed=4)
    update = ["baseline", "update", "--from", "run.json", "--baseline", "b", "--reason", "first", "--force", "a test"]
    assert run_command([*update, "-q"]) == 0
    times(pytester, test_fast=2.2e-3)
    result = run("--perfgate-baseline", "b", "--perfgate-launches", "3")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*test_kernels.test_fast: regressed by +10*margin*"])


def test_plugin__a_wrong_output_fails_its_test_alone(run: Runs) -> None:
    wrong = """
import numpy as np
from tests.integration.fake_bench import Tensor

def test_right(gpu_benchmark):
    gpu_benchmark(lambda: None)

def test_raises(gpu_benchmark):
    def broken():
        raise RuntimeError("illegal memory access")
    gpu_benchmark(broken)
"""
    for arguments in ((), ("--perfgate-launches=2",)):
        result = run(*arguments, tests=wrong)
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(["*RuntimeError: illegal memory access*"])


def test_plugin__a_test_that_fails_or_never_measures_is_named(run: Runs) -> None:
    tests = """
def test_fails_first(gpu_benchmark):
    assert 1 == 2

def test_never_calls(gpu_benchmark):
    pass
"""
    result = run("--perfgate-launches=2", tests=tests)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*test_fails_first: not measured: assert 1 == 2*"])


def test_plugin__a_test_that_never_measures_is_named(run: Runs) -> None:
    result = run("--perfgate-launches=2", tests="def test_it(gpu_benchmark):\n    pass\n")
    result.stdout.fnmatch_lines(["*test_it: not measured: the test never called gpu_benchmark*"])


def test_plugin__measures_once_in_a_test(run: Runs) -> None:
    result = run(tests="def test_it(gpu_benchmark):\n    gpu_benchmark(print)\n    gpu_benchmark(print)\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*measures once in a test*"])


def test_plugin__takes_settings_of_the_mark(run: Runs, pytester: pytest.Pytester) -> None:
    tests = """
import pytest

@pytest.mark.gpu_benchmark(gated=False, version=3)
def test_it(gpu_benchmark):
    gpu_benchmark(lambda: None)

@pytest.mark.gpu_benchmark(speed=3)
def test_strange(gpu_benchmark):
    gpu_benchmark(lambda: None)
"""
    result = run("--perfgate-run=run.json", tests=tests)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*mark gpu_benchmark takes gated, graph, version by name*"])
    info = stored(pytester).cases["test_kernels.test_it"]
    assert (info.gated, info.version) == (False, 3)


def test_plugin__without_a_baseline_of_this_gpu_says_how_to_make_one(run: Runs, pytester: pytest.Pytester) -> None:
    (pytester.path / "b").mkdir()
    result = run("--perfgate-baseline=b", "--perfgate-launches=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no baseline for NVIDIA H200*"])


def test_plugin__leaves_a_pytest_without_benchmarks_alone(run: Runs, pytester: pytest.Pytester) -> None:
    result = run("--perfgate-launches=5", "--perfgate-run=run.json", tests="def test_it():\n    pass\n")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / "run.json").exists()


def test_plugin__refuses_no_launches(run: Runs) -> None:
    assert run("--perfgate-launches=0").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("node_id", "case_id"),
    [
        ("tests/test_scan.py::test_it", "tests.test_scan.test_it"),
        ("tests/test_scan.py::TestA::test_it[64-fp32]", "tests.test_scan.testa.test_it[id=64-fp32]"),
        ("test_scan.py::test_it[a/b c]", "test_scan.test_it[id=a_b_c]"),
        ("1x/test.py::test_µ", "t1x.test.test__"),
    ],
)
def test_node_case_id__is_an_id(node_id: str, case_id: str) -> None:
    from perfgate.core.case import CASE_ID

    assert node_case_id(node_id) == case_id
    assert CASE_ID.fullmatch(case_id)
