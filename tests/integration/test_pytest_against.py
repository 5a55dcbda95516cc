"""``pytest --perfgate-against`` in repositories of its own, with a GPU in numpy."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.storage.documents import read_run
from tests.git_repository import git
from tests.integration.test_pytest_plugin import CONFTEST, IS_INSTALLED, ROOT

pytest_plugins = ["pytester"]

TESTS = """
def test_fast(gpu_benchmark):
    gpu_benchmark(lambda: None)

def test_slow(gpu_benchmark):
    gpu_benchmark(lambda: None)

def test_other():
    assert True
"""
ADDED = "\ndef test_added(gpu_benchmark):\n    gpu_benchmark(lambda: None)\n"
# At an alpha of a tenth four launches a side can prove a change of one of two cases.
POLICY = 'alpha = "20%"\n'
Runs = Callable[..., pytest.RunResult]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose last commit is the base."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    # What pytester keeps in its folder is not part of the project.
    (pytester.path / ".gitignore").write_text("__pycache__\n.pytest_cache\n*.json.out\nrunpytest-*\nstdout\nstderr\n")
    pytester.makeconftest(CONFTEST)
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests/test_kernels.py").write_text(TESTS)
    (pytester.path / "perfgate.toml").write_text(POLICY)
    times(pytester.path)
    git(pytester.path, "init", "--quiet", "--initial-branch=main")
    commit(pytester.path)
    return pytester.path


def times(folder: Path, **values: float) -> None:
    (folder / "time.json").write_text(json.dumps(values))


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


@pytest.fixture
def run(pytester: pytest.Pytester, project: Path) -> Runs:
    def call(*arguments: str, launches: int = 4) -> pytest.RunResult:
        plugin = () if IS_INSTALLED else ("-p", "perfgate.testing.plugin")
        told = ("--perfgate-against", "HEAD", f"--perfgate-launches={launches}", "--perfgate-run=run.json.out")
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin, *told, *arguments)
        assert len(git(project, "worktree", "list").splitlines()) == 1
        return result

    return call


def test_against__fails_the_test_that_the_change_made_slower(run: Runs, project: Path) -> None:
    times(project, test_slow=2.1e-3)
    result = run("tests")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*tests.test_kernels.test_slow: regressed by +*margin 0.3*", "*measured in turn*"])
    document = read_run(project / "run.json.out")
    assert len(document.launches) == 5


def test_against__measures_nothing_where_nothing_differs_but_runs_every_test_once(run: Runs, project: Path) -> None:
    result = run()
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*nothing was measured in turn*"])
    assert [launch.index for launch in read_run(project / "run.json.out").launches] == [1]


def test_against__a_control_measures_all_the_same(run: Runs, project: Path) -> None:
    result = run("--perfgate-control", "tests", launches=6)
    result.assert_outcomes(passed=3)
    assert len(read_run(project / "run.json.out").launches) == 7


def test_against__lists_what_is_new_and_fails_for_what_is_gone(run: Runs, project: Path) -> None:
    path = project / "tests/test_kernels.py"
    path.write_text(TESTS.replace("test_slow", "test_renamed"))
    result = run()
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*missing (1)*", "*test_slow*", "*new (1)*", "*test_renamed*"])


def test_against__a_file_that_the_base_has_not_got_is_new(run: Runs, project: Path) -> None:
    (project / "tests/test_more.py").write_text(ADDED)
    result = run("tests/test_more.py::test_added")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*The base has none of these cases*"])


def test_against__a_single_test_is_compared_alone(run: Runs, project: Path) -> None:
    times(project, test_slow=2.1e-3)
    result = run("tests/test_kernels.py::test_fast")
    result.assert_outcomes(passed=1)
    assert set(read_run(project / "run.json.out").cases) == {"tests.test_kernels.test_fast"}


def test_against__a_test_that_fails_on_one_side_leaves_the_others_judged(run: Runs, project: Path) -> None:
    path = project / "tests/test_kernels.py"
    path.write_text(TESTS.replace("gpu_benchmark(lambda: None)", "gpu_benchmark(lambda: 1 / 0)", 1))
    times(project, test_slow=2.1e-3)
    result = run()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*perfgate*", "*test_slow*2.100 ms*", "*invalid (1)*", "*ZeroDivisionError*"])


def test_against__refuses_to_measure_the_working_tree_on_both_sides(
    run: Runs, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "source").mkdir()
    (project / "source/team_kernels.py").write_text("SECONDS = 2\n")
    (project / "tests/test_kernels.py").write_text("import team_kernels\n" + TESTS)
    commit(project)
    times(project, test_slow=2.1e-3)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(project / "source"), os.environ["PYTHONPATH"]]))
    result = run()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*imports source/team_kernels.py from the working tree*"])


def test_against__a_reference_that_is_not_here_is_named(pytester: pytest.Pytester, project: Path) -> None:
    plugin = () if IS_INSTALLED else ("-p", "perfgate.testing.plugin")
    result = pytester.runpytest_subprocess(*plugin, "--perfgate-against=v9", "tests")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'v9' names no commit here*"])


def test_against__a_side_that_does_not_build_is_named(run: Runs, project: Path) -> None:
    (project / "perfgate.toml").write_text(POLICY + 'build = "false"\n')
    commit(project)
    result = run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the base does not build*"])


def test_against__a_file_that_the_base_cannot_collect_is_named(run: Runs, project: Path) -> None:
    path = project / "tests/test_kernels.py"
    path.write_text("import no_such_package\n" + TESTS)
    commit(project)
    path.write_text(TESTS)
    result = run()
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*base's tests/test_kernels.py cannot be collected*", "*No module named*"])
