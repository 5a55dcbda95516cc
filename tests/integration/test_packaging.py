"""What is installed is whole: from a wheel, from an editable install, from a plain checkout."""

import email
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

import perfgate
from perfgate.shims import tomllib

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Folders that stand beside the package in the repository, and inside it in a wheel.
FOLDERS = ("kernels", "schemas", "baselines")


def command(*arguments: object, cwd: Path, **environment: str) -> str:
    """Run a command without what this process's own environment says of Python."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    finished = subprocess.run(
        [str(one) for one in arguments], cwd=cwd, env=known | environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, f"{arguments}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made of it; built once for all test processes."""
    own = tmp_path_factory.getbasetemp()
    # The parent is that of this run where there are several processes, and of every run where there is one.
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "dist"
    with FileLock(shared / "dist.lock"):
        if not folder.exists():
            made = shared / "dist-in-the-making"
            command(sys.executable, "-m", "build", "--no-isolation", "--outdir", made, ROOT, cwd=shared)
            made.rename(folder)
    return folder


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def tracked(*folders: str) -> set[str]:
    """The repository's own files in some folders."""
    return set(command("git", "ls-files", "--", *folders, cwd=ROOT).split())


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that sees the packages of this one, but no perfgate."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    # A line of a .pth file adds a folder, but does not follow the .pth files in it: no editable install of this one.
    lines = "\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{lines}\n", encoding="utf-8")
    return folder


@pytest.fixture
def installed(wheel: Path, environment: Path, tmp_path: Path) -> Path:
    """The Python of an environment that has the wheel, and not the repository."""
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    command(*pip, wheel, cwd=tmp_path)
    return python


LOOK = """
import json
from pathlib import Path
import perfgate
from perfgate.resources import data_folder, resource_folder
from perfgate.storage.gpu_table import read_gpu_table
from perfgate.storage.schema import published_schema
read_gpu_table()
published_schema("run")
found = {name: resource_folder(name) for name in ("kernels", "schemas", "baselines")} | {"data": data_folder()}
print(json.dumps({
    "package": str(Path(perfgate.__file__).parent),
    "folders": {name: str(folder) for name, folder in found.items()},
    "files": {name: sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
              for name, folder in found.items()},
}))
"""


def refuse_incomplete(python: Path, cwd: Path, *, package: Path, beside: bool, **environment: str) -> None:
    """See whether what is installed finds all that it needs, and works."""
    seen = json.loads(command(python, "-c", LOOK, cwd=cwd, **environment))
    assert Path(seen["package"]) == package
    for name in FOLDERS:
        assert Path(seen["folders"][name]) == (package.parent if beside else package) / name
        missing = {path.partition("/")[2] for path in tracked(name)} - set(seen["files"][name])
        assert not missing
    data = {path.removeprefix("perfgate/data/") for path in tracked("perfgate/data")}
    assert data <= set(seen["files"]["data"])
    said = command(python, "-m", "perfgate", "--version", cwd=cwd, **environment)
    assert said == f"perfgate {PROJECT['version']}\n"


def test_version__is_stated_once(wheel: Path) -> None:
    assert perfgate.__version__ == PROJECT["version"]
    assert wheel.name.startswith(f"perfgate-{PROJECT['version']}-")


def test_wheel__is_pure_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in members(wheel) if name.endswith((".so", ".pyd", ".pyc", ".cubin"))]


def test_wheel__holds_the_package_and_what_stands_beside_it_and_nothing_else(wheel: Path) -> None:
    found = members(wheel)
    wanted = tracked("perfgate") | {f"perfgate/{path}" for path in tracked(*FOLDERS)}
    assert not wanted - found
    assert {name.split("/")[0] for name in found} == {"perfgate", f"perfgate-{PROJECT['version']}.dist-info"}
    assert not [name for name in found if "/tests/" in name or "__pycache__" in name]
    assert wheel.stat().st_size < 5e6


def test_sdist__holds_what_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for path in ("pyproject.toml", "README.md", "LICENSE", "tests/factories.py", "kernels/timing.cu", "docs/cli.md"):
        assert path in names
    assert not [name for name in names if name.startswith((".venv", "perfgate-results", ".git/"))]


def test_metadata__says_what_pyproject_says(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        place = f"perfgate-{PROJECT['version']}.dist-info"
        metadata = email.message_from_bytes(archive.read(f"{place}/METADATA"))
        entry_points = archive.read(f"{place}/entry_points.txt").decode()
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])
    required = metadata.get_all("Requires-Dist") or []
    for extra, packages in PROJECT["optional-dependencies"].items():
        for package in packages:
            name = package.partition(">")[0]
            assert any(one.startswith(name) and f"extra == '{extra}'" in one for one in required), package
    assert not [one for one in required if one.startswith("pycuda") and "extra" not in one]
    assert "perfgate = perfgate.__main__:main" in entry_points


def test_wheel__works_when_it_is_installed(installed: Path, tmp_path: Path) -> None:
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    refuse_incomplete(installed, tmp_path, package=site / "perfgate", beside=False)
    assert command(installed.with_name("perfgate"), "--help", cwd=tmp_path).startswith("Usage: perfgate")
    # Schemas, GPU table, renderers and the launches of a real check are there.
    command(
        installed.with_name("perfgate"),
        *("run", "run.json", "--launches", "1", "--case", "launch.gap", "--quiet"),
        *("--device", f"recorded:{ROOT / 'tests' / 'data' / 'h200-run.json.gz'}"),
        cwd=tmp_path,
    )
    assert (tmp_path / "run.json").is_file()


def test_editable_install__finds_what_stands_beside_the_package(environment: Path, tmp_path: Path) -> None:
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    command(*pip, "--no-build-isolation", "--editable", ROOT, cwd=tmp_path)
    refuse_incomplete(python, tmp_path, package=ROOT / "perfgate", beside=True)


def test_plain_checkout__finds_what_stands_beside_the_package(environment: Path, tmp_path: Path) -> None:
    python = environment / "bin" / "python"
    refuse_incomplete(python, tmp_path, package=ROOT / "perfgate", beside=True, PYTHONPATH=str(ROOT))


def test_imports__of_everything_but_cuda_need_no_extra(environment: Path, tmp_path: Path) -> None:
    """A plain machine has neither PyCUDA nor NVML: every module must come in without them."""
    script = (
        "import sys, pkgutil, importlib, perfgate\n"
        "sys.modules['pycuda'] = sys.modules['pynvml'] = None\n"
        "for one in pkgutil.walk_packages(perfgate.__path__, 'perfgate.'):\n"
        "    if not one.name.endswith('__main__'):\n"
        "        importlib.import_module(one.name)\n"
    )
    command(environment / "bin" / "python", "-c", script, cwd=tmp_path, PYTHONPATH=str(ROOT))


def test_distributions__are_what_the_index_and_pip_expect(built: Path, wheel: Path, tmp_path: Path) -> None:
    command(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=tmp_path)
    command(sys.executable, "-m", "check_wheel_contents", wheel, cwd=tmp_path)


def test_types__what_a_user_writes_is_checked_against_the_wheel_without_a_complaint(
    installed: Path, tmp_path: Path
) -> None:
    assert "perfgate/py.typed" in {path.relative_to(ROOT).as_posix() for path in ROOT.glob("perfgate/py.typed")}
    for source in (ROOT / "tests" / "data" / "user").glob("*.py"):
        (tmp_path / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.10",
        "include": ["*.py"],
        "reportMissingTypeStubs": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    pyright = Path(sys.executable).with_name("basedpyright")
    said = json.loads(command(pyright, "--outputjson", "--pythonpath", installed, "--project", tmp_path, cwd=tmp_path))
    assert [(one["file"], one["message"]) for one in said["generalDiagnostics"]] == []
    assert said["summary"]["filesAnalyzed"] == 2


def test_types__a_users_mistake_is_found(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        'from perfgate import library\nlibrary.measure("recorded", launches="six")\n', encoding="utf-8"
    )
    pyright = Path(sys.executable).with_name("basedpyright")
    ended = subprocess.run(
        [pyright, "--pythonpath", str(installed), "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "launches" in ended.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion__names_commands_and_options(installed: Path, tmp_path: Path, shell: str) -> None:
    perfgate_command = installed.with_name("perfgate")
    script = command(perfgate_command, cwd=tmp_path, _PERFGATE_COMPLETE=f"{shell}_source")
    assert "_PERFGATE_COMPLETE" in script
    words = {"bash": ("perfgate ca", "1"), "zsh": ("perfgate ca", "1"), "fish": ("perfgate ca", "ca")}[shell]
    given = {"COMP_WORDS": words[0], "COMP_CWORD": words[1], "_PERFGATE_COMPLETE": f"{shell}_complete"}
    said = command(perfgate_command, cwd=tmp_path, **given)
    assert "calibrate" in said
    options = {"COMP_WORDS": "perfgate check --dev", "COMP_CWORD": "--dev" if shell == "fish" else "2"}
    assert "--device" in command(perfgate_command, cwd=tmp_path, **(given | options))


def test_completion__of_bash_completes_a_line_as_typed(installed: Path, tmp_path: Path) -> None:
    """The page's own line, in a shell."""
    line = 'eval "$(_PERFGATE_COMPLETE=bash_source perfgate)"'
    assert line in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    script = (
        f'{line}; COMP_WORDS=(perfgate base); COMP_CWORD=1; _perfgate_completion perfgate; echo "${{COMPREPLY[@]}}"'
    )
    path = f"{installed.parent}:{os.environ['PATH']}"
    assert command("bash", "-c", script, cwd=tmp_path, PATH=path).strip() == "baseline"
