"""Own suites as files: loaded, and refused by name where they cannot be."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfgate.core.case import AbsentCase
from perfgate.errors import ConfigurationError
from perfgate.workflow.suites import (
    enter_folder,
    is_own,
    joined_suite,
    loaded_suite,
    local_modules,
    refuse_foreign_modules,
)
from tests.factories import H200

GOOD = """
import perfgate.api as pg

def suite(gpu):
    for point in pg.axes(n=(1, 2)):
        yield pg.command_case("own.tool", ["tool"], axes=point)
    yield pg.AbsentCase(id="own.other", reason=f"not on {gpu.name}")
"""


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Loading changes the module path, the modules and the folder; a launch is the only one to see it."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("perfgate_suite_", "beside_")):
            del sys.modules[name]


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_loaded_suite__gives_cases_and_those_that_are_absent(tmp_path: Path) -> None:
    suite = loaded_suite(written(tmp_path / "suite.py", GOOD), H200)
    assert suite.name == "suite.py"
    assert [case.id for case in suite.cases] == ["own.tool[n=1]", "own.tool[n=2]"]
    assert suite.absent == (AbsentCase(id="own.other", reason="not on NVIDIA H200"),)


def test_loaded_suite__may_return_a_suite_or_a_list(tmp_path: Path) -> None:
    case = 'pg.command_case("own.tool", ["tool"])'
    for number, made in enumerate((f"[{case}]", f"pg.Suite(name='x', cases=({case},))")):
        path = written(
            tmp_path / f"suite{number}.py", f"import perfgate.api as pg\ndef suite(gpu):\n    return {made}\n"
        )
        assert [one.id for one in loaded_suite(path, H200).cases] == ["own.tool"]


def test_loaded_suite__finds_modules_beside_it(tmp_path: Path) -> None:
    written(tmp_path / "bench" / "beside_suite.py", "COUNT = 2\n")
    path = written(
        tmp_path / "bench" / "suite.py", GOOD.replace("(1, 2)", "range(COUNT)") + "\nfrom beside_suite import COUNT\n"
    )
    assert len(loaded_suite(path, H200).cases) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def suite(gpu:\n", r"is not Python: .* \(suite.py:1\)"),
        ("import a_package_that_is_not_there\n", r"needs the package a_package_that_is_not_there.*\(suite.py:1\)"),
        ("\n1 / 0\n", r"import raised ZeroDivisionError: division by zero \(suite.py:2\)"),
        ("raise SystemExit('no')\n", "import raised SystemExit: no"),
        ("x = 1\n", r"has no function suite\(gpu\)"),
        ("def suite(gpu):\n    raise KeyError('n')\n", r"suite\(gpu\) raised KeyError: 'n' \(suite.py:2\)"),
        ("def suite(gpu):\n    return [3]\n", "gives a int, not a case"),
        ("def suite(gpu):\n    return []\n", "has no cases"),
        ("def suite(gpu):\n    return 3\n", r"suite\(gpu\) raised TypeError"),
        (GOOD.replace("axes=point", "axes={}"), "defines own.tool more than once"),
        (GOOD.replace("own.tool", "Own"), "no id of a case"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "pointer of Git LFS"),
    ],
)
def test_loaded_suite__names_what_is_wrong_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        loaded_suite(written(tmp_path / "suite.py", text), H200)
    assert "suite.py" in caught.value.message


def test_loaded_suite__that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        loaded_suite(tmp_path / "none.py", H200)


def test_joined_suite__refuses_one_id_in_two_suites(tmp_path: Path) -> None:
    one, two = written(tmp_path / "a" / "suite.py", GOOD), written(tmp_path / "b" / "suite.py", GOOD)
    assert len(joined_suite("default", [str(one)], H200).cases) > 2
    with pytest.raises(ConfigurationError, match=r"own.tool\[n=1\]"):
        joined_suite("", [str(one), str(two)], H200)


def test_local_modules__are_those_that_no_installer_put_there(tmp_path: Path) -> None:
    path = written(tmp_path / "suite.py", "import beside_installed, beside_local\n" + GOOD)
    local = written(tmp_path / "beside_local.py", "")
    written(tmp_path / "venv" / "site-packages" / "beside_installed.py", "")
    sys.path.append(str(tmp_path / "venv" / "site-packages"))
    loaded_suite(path, H200)
    assert set(local_modules(tmp_path)) == {path, local}


def test_refuse_foreign_modules__names_a_module_of_the_other_side(tmp_path: Path) -> None:
    written(tmp_path / "head" / "beside_kernels.py", "")
    path = written(tmp_path / "base" / "suite.py", "import beside_kernels\n" + GOOD)
    sys.path.append(str(tmp_path / "head"))
    loaded_suite(path, H200)
    refuse_foreign_modules("")
    with pytest.raises(ConfigurationError, match="imports beside_kernels"):
        refuse_foreign_modules(str(tmp_path / "head"))


def test_enter_folder__looks_for_modules_there_and_no_longer_here(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    sys.path.insert(0, str(tmp_path))
    enter_folder(str(base))
    assert Path.cwd() == base
    assert sys.path[0] == str(base)
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(("name", "own"), [("default", False), ("full", False), ("suite.py", True), ("a/b", True)])
def test_is_own__tells_paths_from_names(name: str, own: bool) -> None:
    assert is_own(name) is own
