"""``check --against`` from its arguments to its exit code, in real repositories, on a recording."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.storage.documents import read_report, read_run
from tests.git_repository import git
from tests.integration.conftest import started_command

RESULTS = Path("perfgate-results")
# At an alpha of a tenth four launches a side can prove a change: fewer processes than in earnest.
POLICY = 'alpha = "10%"\nsuites = ["benchmarks/suite.py"]\n'
SUITE = """
import sys
import perfgate.api as pg

def suite(gpu):
    yield pg.command_case("own.tool", [sys.executable, "-S", "tool.py"], sources=["tool.py"])
"""
TOOL = "import random\nfor _ in range(5): print({} * (1 + 1e-4 * random.random()), 'ms')\n"


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of this test alone: nothing of a base is left in it."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.glob("perfgate-base-*"))


@pytest.fixture
def project(workplace: Path, temporary: Path) -> Path:
    """A repository with a suite of one program; its last commit is the base of what a test changes."""
    git(workplace, "init", "--quiet", "--initial-branch=main")
    write(workplace, {"perfgate.toml": POLICY, "benchmarks/suite.py": SUITE, "benchmarks/tool.py": TOOL.format(2)})
    write(workplace, {".gitignore": "perfgate-results\n"})
    commit(workplace)
    return workplace


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def against(perfgate: Callable[..., Any], device: str, project: Path) -> Callable[..., Any]:
    def call(*arguments: object, reference: str = "HEAD", launches: int = 4) -> Any:
        shared = ("check", "--device", device, "--against", reference, "--launches", launches)
        ending = perfgate(*shared, *arguments)
        assert len(git(project, "worktree", "list").splitlines()) == 1
        return ending

    return call


def stored() -> Report:
    return read_report(RESULTS / "report.json")


def verdicts() -> dict[str, CaseVerdict]:
    return {case.id: case.verdict for case in stored().cases}


def test_against__finds_what_the_working_tree_made_slower(against: Any, project: Path) -> None:
    base = git(project, "rev-parse", "HEAD")
    write(project, {"benchmarks/tool.py": TOOL.format(2.02)})
    ending = against()
    assert ending.code == 1, ending.out + ending.err
    report = stored()
    (case,) = report.cases
    assert case.verdict is CaseVerdict.REGRESSED
    assert case.change is not None
    assert case.change.value == pytest.approx(0.01, rel=0.05)
    assert [cause.code for cause in case.causes] == ["source-changed"]
    assert report.baseline is not None
    assert base[:12] in report.baseline.source
    assert "dirty" in {caveat.code for caveat in report.caveats}
    run, other = read_run(RESULTS / "run.json"), read_run(RESULTS / "base.json")
    # The pilots, one a side, then four a side in turn.
    indices = [[launch.index for launch in one.launches] for one in (run, other)]
    assert [len(one) for one in indices] == [5, 5]
    assert (indices[0][0], indices[1][0]) == (1, 0)
    assert sorted(indices[0] + indices[1]) == list(range(10))
    assert (other.environment.commit, other.environment.dirty) == (base, False)


def test_against__compares_two_commits_and_lists_what_only_one_has(against: Any, project: Path) -> None:
    base = git(project, "rev-parse", "HEAD")
    more = SUITE.replace("own.tool", "own.added") + SUITE.split("def suite(gpu):\n")[1]
    write(project, {"benchmarks/suite.py": more, "benchmarks/tool.py": TOOL.format(1.9)})
    commit(project)
    ending = against(reference=base)
    assert ending.code == 0, ending.out + ending.err
    assert verdicts() == {"own.added": CaseVerdict.NEW, "own.tool": CaseVerdict.IMPROVED}
    write(project, {"benchmarks/suite.py": SUITE})
    ending = against(reference="HEAD")
    assert verdicts()["own.added"] is CaseVerdict.MISSING
    assert ending.code == 8


def test_against__measures_nothing_where_nothing_differs_unless_a_control_is_asked_for(
    against: Any, project: Path
) -> None:
    ending = against()
    assert ending.code == 0, ending.out + ending.err
    assert verdicts() == {"own.tool": CaseVerdict.UNCHANGED}
    assert read_run(RESULTS / "base.json").launches == ()
    assert "not measured" in (stored().cases[0].reason or "")
    assert "nothing was measured" in ending.out
    ending = against("--control", launches=6)
    assert ending.code == 0, ending.out + ending.err
    assert verdicts() == {"own.tool": CaseVerdict.UNCHANGED}
    assert stored().cases[0].change is not None


def test_against__of_the_built_in_suite_slows_only_the_change_down(against: Any) -> None:
    copy = "bandwidth.copy[bytes=4GiB]"
    shared = ("--suite", "default", "--case", "bandwidth.copy")
    assert against(*shared).code == 0
    assert read_run(RESULTS / "base.json").launches == ()
    ending = against(*shared, "--inject", "bandwidth.copy=+1%")
    assert ending.code == 1, ending.out + ending.err
    assert verdicts() == {copy: CaseVerdict.REGRESSED}
    run, other = read_run(RESULTS / "run.json"), read_run(RESULTS / "base.json")
    assert (len(run.injected), other.injected) == (1, ())
    assert "not into the base" in " ".join(ending.out.split())


def test_against__tells_what_the_stored_baseline_says_and_decides_by_the_base(
    against: Any, perfgate: Any, device: str, project: Path
) -> None:
    made = perfgate("baseline", "update", "--device", device, "--baseline", "b", "--reason", "r", "--launches", "12")
    assert made.code == 0, made.err
    write(project, {"benchmarks/tool.py": TOOL.format(2.1)})
    commit(project)
    ending = against("--control", "--baseline", "b")
    assert ending.code == 0, ending.out + ending.err
    notice = next(caveat for caveat in stored().caveats if caveat.code == "stored-baseline")
    assert "regressed: own.tool +5" in notice.message


def test_against__a_base_without_the_suite_has_nothing_to_compare(against: Any, project: Path) -> None:
    base = git(project, "rev-parse", "HEAD")
    write(project, {"benchmarks/other.py": SUITE.replace("own.tool", "own.other")})
    commit(project)
    ending = against("--suite", "benchmarks/other.py", reference=base)
    assert ending.code == 4, ending.out + ending.err
    assert verdicts() == {"own.other": CaseVerdict.NEW}
    assert stored().verdict is CheckVerdict.NO_BASELINE
    assert "the base has no benchmarks/other.py" in " ".join(ending.out.split())


def test_against__measures_what_the_bases_policy_names(against: Any, project: Path) -> None:
    write(project, {"perfgate.toml": POLICY + '[margins]\n"own.*" = "50%"\n', "benchmarks/tool.py": TOOL.format(2.1)})
    ending = against()
    assert ending.code == 1, "a change loosened its own gate"


@pytest.mark.parametrize("reference", ["no-such-branch", "--help", "HEAD~7"])
def test_against__a_reference_that_is_not_here_is_named(against: Any, reference: str) -> None:
    ending = against(reference=reference)
    assert ending.code == 2
    assert reference in ending.err


def test_against__a_suite_outside_of_the_repository_has_no_base(against: Any, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write(outside, {"suite.py": SUITE})
    ending = against("--suite", outside / "suite.py")
    assert ending.code == 2
    assert "outside of the repository" in ending.err


def test_against__outside_of_a_repository_says_so(perfgate: Any, device: str, workplace: Path) -> None:
    ending = perfgate("check", "--device", device, "--against", "HEAD")
    assert ending.code == 2
    assert "no git repository" in ending.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "HEAD", "--base-ref", "HEAD"), "exclude each other"),
        (("--control",), "--control is for --against"),
        (("--build", "make"), "--build is for --against"),
    ],
)
def test_check__refuses_options_that_contradict_each_other(
    perfgate: Any, device: str, arguments: tuple[str, ...], message: str
) -> None:
    ending = perfgate("check", "--device", device, *arguments)
    assert ending.code == 2
    assert message in ending.err


def test_against__builds_each_side_in_its_own_folder(against: Any, project: Path) -> None:
    write(project, {"benchmarks/suite.py": SUITE.replace('"tool.py"]', '"../built.py"]', 1)})
    write(project, {"build.sh": "sed s/VALUE/2/ benchmarks/source.py > built.py\n"})
    write(project, {"benchmarks/source.py": TOOL.format("VALUE"), ".gitignore": "perfgate-results\nbuilt.py\n"})
    commit(project)
    write(project, {"build.sh": "sed s/VALUE/2.1/ benchmarks/source.py > built.py\n"})
    ending = against("--build", "sh build.sh")
    assert ending.code == 1, ending.out + ending.err
    assert (project / "built.py").read_text() == TOOL.format(2.1)


def test_against__a_base_that_does_not_build_is_named(against: Any, project: Path) -> None:
    write(project, {"build.sh": "echo no such header; exit 3\n"})
    commit(project)
    write(project, {"build.sh": "exit 0\n"})
    ending = against("--build", "sh build.sh")
    assert ending.code == 5
    assert "the base does not build" in ending.err
    assert "no such header" in ending.err


def test_against__refuses_to_measure_the_working_tree_on_both_sides(
    against: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an editable install does it: the module path leads into the working tree from wherever one looks."""
    write(project, {"source/team_kernels.py": "SECONDS = 2\n"})
    write(project, {"benchmarks/suite.py": "import team_kernels\n" + SUITE})
    commit(project)
    monkeypatch.setenv("PYTHONPATH", str(project / "source"))
    ending = against("--control")
    assert ending.code == 2
    assert "imports source/team_kernels.py from the working tree" in ending.err


def test_against__a_suite_that_git_lfs_did_not_bring_is_named(against: Any, project: Path) -> None:
    base = commit(project)
    write(project, {"benchmarks/suite.py": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"})
    pointer = commit(project)
    write(project, {"benchmarks/suite.py": SUITE})
    commit(project)
    ending = against(reference=pointer)
    assert ending.code == 2
    assert "pointer of Git LFS" in ending.err
    assert against(reference=base).code == 0


def test_against__a_case_that_fails_on_one_side_leaves_the_others_judged(against: Any, project: Path) -> None:
    two = (
        SUITE + '    yield pg.command_case("own.second", [sys.executable, "-S", "second.py"], sources=["second.py"])\n'
    )
    write(project, {"benchmarks/suite.py": two, "benchmarks/second.py": TOOL.format(1)})
    commit(project)
    write(project, {"benchmarks/tool.py": "raise SystemExit('no GPU')\n", "benchmarks/second.py": TOOL.format(1.1)})
    ending = against()
    assert verdicts() == {"own.tool": CaseVerdict.INVALID, "own.second": CaseVerdict.REGRESSED}
    assert ending.code == 1, ending.out + ending.err
    assert "exited with code 1: no GPU" in " ".join(ending.out.split())


def test_against__too_few_launches_are_refused_before_they_are_measured(against: Any, project: Path) -> None:
    write(project, {"benchmarks/tool.py": TOOL.format(2.1)})
    ending = against(launches=2)
    assert ending.code == 2
    assert "could not prove any regression" in ending.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_against__that_is_interrupted_leaves_nothing_behind(
    project: Path, device: str, tmp_path_factory: Any, number: signal.Signals
) -> None:
    temporary = tmp_path_factory.mktemp("interrupted")
    write(project, {"benchmarks/tool.py": TOOL.format(2.1)})
    arguments = ("check", "--device", device, "--against", "HEAD", "--launches", "40")
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = started_command(*arguments, cwd=project, environment=environment)
    end_s = time.monotonic() + 60
    while not list(temporary.glob("perfgate-base-*")) and process.poll() is None and time.monotonic() < end_s:
        time.sleep(0.05)
    time.sleep(2.0)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert not list(temporary.glob("perfgate-base-*"))
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_against__a_suite_that_the_change_breaks_is_named_and_the_others_are_judged(
    against: Any, project: Path
) -> None:
    other = SUITE.replace("own.tool", "own.other")
    write(project, {"benchmarks/other.py": other, "perfgate.toml": POLICY.replace("]", ', "benchmarks/other.py"]')})
    commit(project)
    write(project, {"benchmarks/other.py": "import no_such_package\n" + other, "benchmarks/tool.py": TOOL.format(1.9)})
    ending = against()
    assert ending.code == 2, ending.out + ending.err
    assert verdicts() == {"own.tool": CaseVerdict.IMPROVED, "own.other": CaseVerdict.INVALID}
    assert "needs the package no_such_package" in " ".join(ending.out.split())


def test_against__a_suite_that_the_base_cannot_load_holds_new_cases(against: Any, project: Path) -> None:
    write(project, {"benchmarks/suite.py": "import no_such_package\n" + SUITE})
    commit(project)
    write(project, {"benchmarks/suite.py": SUITE})
    ending = against()
    assert ending.code == 4, ending.out + ending.err
    assert verdicts() == {"own.tool": CaseVerdict.NEW}
    assert "needs the package no_such_package" in " ".join(ending.out.split())


def test_against__sees_the_submodules_of_each_side(against: Any, project: Path, tmp_path_factory: Any) -> None:
    source = tmp_path_factory.mktemp("kernels")
    git(source, "init", "--quiet", "--initial-branch=main")
    write(source, {"tool.py": TOOL.format(2)})
    commit(source)
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(source), "benchmarks/kernels")
    write(project, {"benchmarks/suite.py": SUITE.replace('"tool.py"', '"kernels/tool.py"')})
    commit(project)
    write(project, {"benchmarks/kernels/tool.py": TOOL.format(2.1)})
    ending = against()
    assert ending.code == 1, ending.out + ending.err
    assert verdicts() == {"own.tool": CaseVerdict.REGRESSED}


def test_against__a_source_that_git_lfs_did_not_bring_is_named(against: Any, project: Path) -> None:
    write(project, {"benchmarks/tool.py": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"})
    ending = against()
    assert ending.code == 2
    assert "tool.py is a pointer of Git LFS" in ending.err
