"""``perfgate init``: what it writes works, and nothing is overwritten."""

from pathlib import Path
from typing import Any

import pytest

from perfgate.resources import data_folder, resource_folder
from perfgate.shims import tomllib
from perfgate.storage.policy import read_policy
from perfgate.workflow.describing import Question, description
from tests.factories import H200
from tests.git_repository import git

FILES = {"perfgate.toml", "benchmarks/suite.py", "benchmarks/axpy.cu", ".github/workflows/perfgate.yml"}


@pytest.fixture
def repository(workplace: Path) -> Path:
    git(workplace, "init", "--quiet", "--initial-branch=main")
    return workplace


def written(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix() for path in paths}


def test_init__writes_policy_suite_kernel_and_workflow(perfgate: Any, repository: Path) -> None:
    ending = perfgate("init")
    assert ending.code == 0, ending.err
    assert written(repository) == FILES
    assert all(f"wrote {name}" in ending.out for name in FILES)
    assert read_policy(None, repository).suites == ("benchmarks/suite.py",)
    found = description(Question(suites=(str(repository / "benchmarks/suite.py"),), gpu=H200))
    assert set(found.cases) == {"vector.axpy[n=1048576]", "vector.axpy[n=67108864]"}
    assert found.absent == {}


def test_init__in_a_folder_below_writes_at_the_top(
    perfgate: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "below").mkdir()
    monkeypatch.chdir(repository / "below")
    assert perfgate("init").code == 0
    assert written(repository) >= FILES


def test_init__overwrites_nothing(perfgate: Any, repository: Path) -> None:
    for name in FILES:
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# mine\n")
    ending = perfgate("init")
    assert ending.code == 0, ending.err
    assert {(repository / name).read_text() for name in FILES} == {"# mine\n"}
    assert all(f"kept {name}: it exists" in ending.out for name in FILES)
    assert "wrote" not in ending.out


def test_init__twice_changes_nothing(perfgate: Any, repository: Path) -> None:
    perfgate("init")
    before = {name: (repository / name).read_bytes() for name in FILES}
    assert perfgate("init").code == 0
    assert {name: (repository / name).read_bytes() for name in FILES} == before


def test_init__keeps_a_policy_that_stands_in_pyproject(perfgate: Any, repository: Path) -> None:
    (repository / "pyproject.toml").write_text("[tool.perfgate]\nlaunches = 8\n")
    assert perfgate("init").code == 0
    assert not (repository / "perfgate.toml").exists()


def test_init__leaves_no_example_kernel_beside_a_suite_of_ones_own(perfgate: Any, repository: Path) -> None:
    (repository / "benchmarks").mkdir()
    (repository / "benchmarks/suite.py").write_text("# mine\n")
    assert perfgate("init").code == 0
    assert not (repository / "benchmarks/axpy.cu").exists()


def test_init__finds_kernels_and_the_default_branch(perfgate: Any, repository: Path) -> None:
    (repository / "src").mkdir()
    (repository / "src" / "scan.cu").write_text(
        'extern "C" __global__ void __launch_bounds__(256) scan(float* x) {}\n__global__ void hidden() {}\n'
    )
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "kernels")
    git(repository, "update-ref", "refs/remotes/origin/trunk", "HEAD")
    git(repository, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    ending = perfgate("init")
    assert "src/scan.cu: scan" in ending.out
    assert "hidden" not in ending.out
    assert "--against origin/trunk" in ending.out


def test_init__outside_of_a_repository_says_so(perfgate: Any, workplace: Path) -> None:
    ending = perfgate("init")
    assert ending.code == 2
    assert "no git repository" in ending.err
    assert written(workplace) == set()


def test_init__that_cannot_write_says_where(perfgate: Any, repository: Path) -> None:
    (repository / "benchmarks").write_text("a file\n")
    ending = perfgate("init")
    assert ending.code == 2
    assert "benchmarks/suite.py cannot be written" in ending.err


def test_example__is_described_and_its_regression_applies(repository: Path) -> None:
    import shutil

    example = resource_folder("kernels").parent / "examples" / "own-kernels"
    shutil.copytree(example, repository / "copy")
    git(repository / "copy", "init", "--quiet", "--initial-branch=main")
    git(repository / "copy", "apply", "--check", "planted-regression.patch")
    found = description(Question(suites=(str(repository / "copy/benchmarks/suite.py"),), gpu=H200))
    assert set(found.cases) == {
        "image.blur[width=4096]",
        "image.blur[width=8192]",
        "rows.softmax[columns=1024]",
        "rows.softmax[columns=4096]",
    }
    assert all(info.source_sha256 for info in found.cases.values())


def test_example__and_templates_do_not_drift_apart() -> None:
    example = resource_folder("kernels").parent / "examples" / "own-kernels"
    templates = data_folder() / "templates"
    workflow = (example / ".github/workflows/perfgate.yml").read_text()
    # The example's suite needs a framework, so it prepares an environment; all else is the template's.
    begin, _, rest = workflow.partition("      # What the suite needs")
    _, uses, end = rest.partition("      - uses: org/perfgate@v1")
    end = end.replace("          python: ${{ runner.temp }}/perfgate\n", "")
    assert (templates / "perfgate.yml").read_text() == begin + uses + end
    assert (templates / "perfgate.toml").read_text() == (example / "perfgate.toml").read_text()
    assert tomllib.loads((templates / "perfgate.toml").read_text()) == {"suites": ["benchmarks/suite.py"]}
