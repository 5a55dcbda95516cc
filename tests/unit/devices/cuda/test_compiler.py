import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.devices.cuda import compiler
from perfgate.devices.cuda.compiler import CodeCache, Nvcc, Nvrtc, found_compiler
from perfgate.errors import CompileError, DeviceError

KERNEL = 'extern "C" __global__ void fill(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = VALUE; }\n'


class FakeCompiler:
    """Compiles to a text that tells what it was told."""

    def __init__(self, name: str = "nvcc 13.0.88") -> None:
        self.name = name
        self.compiled: list[tuple[str, str, tuple[str, ...]]] = []

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        self.compiled.append((source.name, architecture, options))
        return f"{self.name} {source.read_text()} {architecture} {options}".encode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernels" / "fill.cu"
    path.parent.mkdir()
    path.write_text('#include "shape.cuh"\n' + KERNEL)
    (path.parent / "shape.cuh").write_text('#pragma once\n#include "value.cuh"\n')
    (path.parent / "value.cuh").write_text('#include "shape.cuh"\n#define VALUE 1.0f\n')
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "kernels"


def test_cubin__is_compiled_once(source: Path, folder: Path) -> None:
    fake = FakeCompiler()
    first = CodeCache(folder, fake, "sm_90a").cubin(str(source), {"N": 1, "A": "x"})
    assert CodeCache(folder, fake, "sm_90a").cubin(str(source), {"A": "x", "N": 1}) == first
    assert fake.compiled == [("fill.cu", "sm_90a", ("-DA=x", "-DN=1"))]


@pytest.mark.parametrize("changed", ["source", "header", "header of a header", "option", "architecture", "compiler"])
def test_cubin__is_compiled_again_when_anything_of_it_changes(source: Path, folder: Path, changed: str) -> None:
    fake = FakeCompiler()
    CodeCache(folder, fake, "sm_90a").cubin(str(source), {"N": 1})
    files = {"source": "fill.cu", "header": "shape.cuh", "header of a header": "value.cuh"}
    if changed in files:
        file = source.parent / files[changed]
        file.write_text(file.read_text() + "// another\n")
    other = FakeCompiler("nvcc 13.1.0") if changed == "compiler" else fake
    cache = CodeCache(folder, other, "sm_80" if changed == "architecture" else "sm_90a")
    cache.cubin(str(source), {"N": 2} if changed == "option" else {"N": 1})
    assert len(fake.compiled) + (len(other.compiled) if other is not fake else 0) == 2


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 500])
def test_cubin__a_damaged_file_is_compiled_again(source: Path, folder: Path, damage: bytes) -> None:
    fake = FakeCompiler()
    good = CodeCache(folder, fake, "sm_90a").cubin(str(source), {})
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    assert CodeCache(folder, fake, "sm_90a").cubin(str(source), {}) == good
    assert len(fake.compiled) == 2
    assert CodeCache(folder, fake, "sm_90a").cubin(str(source), {}) == good
    assert len(fake.compiled) == 2


def test_cubin__a_truncated_file_is_compiled_again(source: Path, folder: Path) -> None:
    fake = FakeCompiler()
    good = CodeCache(folder, fake, "sm_90a").cubin(str(source), {})
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert CodeCache(folder, fake, "sm_90a").cubin(str(source), {}) == good


def test_cubin__a_folder_that_cannot_be_made_costs_time_only(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    fake = FakeCompiler()
    cache = CodeCache(tmp_path / "file" / "kernels", fake, "sm_90a")
    assert cache.cubin(str(source), {}) == cache.cubin(str(source), {})
    assert len(fake.compiled) == 2


def test_cubin__a_full_disk_leaves_nothing_behind(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert CodeCache(folder, FakeCompiler(), "sm_90a").cubin(str(source), {}).code
    assert list(folder.iterdir()) == []


TWO_PROCESSES = """
import sys, time
from pathlib import Path
from perfgate.devices.cuda.compiler import CodeCache

class Slow:
    name = "slow 1"
    def compile(self, source, architecture, options):
        Path(sys.argv[3]).touch()
        while not Path(sys.argv[4]).exists():
            time.sleep(0.01)
        return b"code" * 100_000

print(CodeCache(Path(sys.argv[1]), Slow(), "sm_90a").cubin(sys.argv[2], {}).sha256)
"""


def test_cubin__two_processes_may_compile_the_same_at_once(source: Path, folder: Path, tmp_path: Path) -> None:
    marks = [str(tmp_path / "first"), str(tmp_path / "second")]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_PROCESSES, str(folder), str(source), mark, other],
            stdout=subprocess.PIPE,
            text=True,
        )
        for mark, other in (marks, marks[::-1])
    ]
    answers = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(answers) == 1
    assert len(list(folder.iterdir())) == 1


def test_cubin__of_a_missing_source_says_where_sources_are(folder: Path) -> None:
    with pytest.raises(CompileError, match=r"nothing\.cu does not exist"):
        CodeCache(folder, FakeCompiler(), "sm_90a").cubin("nothing.cu", {})


def compilers() -> list[Any]:
    """The compilers of this machine."""
    found: list[Any] = []
    path = compiler._nvcc_path()
    if path is not None:
        found.append(pytest.param(lambda: Nvcc(path), id="nvcc"))
    library = compiler._nvrtc_library()
    if library is not None:
        found.append(pytest.param(lambda: Nvrtc(library), id="nvrtc"))
    return found or [pytest.param(None, marks=pytest.mark.skip(reason="no CUDA compiler here"))]


@pytest.mark.parametrize("make", compilers())
def test_compile__makes_machine_code(make: Any, source: Path, folder: Path) -> None:
    made = make()
    code = made.compile(source, "sm_90a", ("-DUNUSED=1",))
    assert code.startswith(b"\x7fELF")
    assert made.compile(source, "sm_90a", ("-DUNUSED=1",)) == code
    assert made.name.split()[0] in ("nvcc", "NVRTC")


@pytest.mark.parametrize("make", compilers())
def test_compile__an_error_shows_file_line_and_what_the_compiler_says(make: Any, source: Path) -> None:
    source.write_text("__global__ void good() {}\n__global__ void bad() { undeclared = 1; }\n")
    with pytest.raises(CompileError) as raised:
        make().compile(source, "sm_90a", ())
    assert "fill.cu does not compile with" in raised.value.message
    assert "fill.cu(2)" in raised.value.message
    assert '"undeclared" is undefined' in raised.value.message
    assert str(source.parent) not in raised.value.message


@pytest.mark.parametrize("make", compilers())
def test_compile__an_endless_log_is_cut(make: Any, source: Path) -> None:
    source.write_text("".join(f"__global__ void f{index}() {{ u{index} = 1; }}\n" for index in range(90)))
    with pytest.raises(CompileError) as raised:
        make().compile(source, "sm_90a", ())
    assert raised.value.message.endswith("\n...")
    assert len(raised.value.message.splitlines()) < 50


@pytest.mark.parametrize("make", compilers())
def test_compile__an_unknown_architecture_is_the_compilers_to_name(make: Any, source: Path) -> None:
    with pytest.raises(CompileError):
        make().compile(source, "sm_999", ())


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


GOOD_NVCC = 'if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.4, V12.4.131"; exit 0; fi'


def test_nvcc__says_its_version(tmp_path: Path) -> None:
    assert Nvcc(script(tmp_path / "nvcc", GOOD_NVCC)).name == "nvcc 12.4.131"


@pytest.mark.parametrize("text", ["echo not a compiler", "exit 3", "exec /nonexistent"])
def test_nvcc__that_is_broken_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DeviceError, match="does not answer as nvcc does") as raised:
        Nvcc(script(tmp_path / "nvcc", text))
    assert "CUDA_HOME" in raised.value.hint


def test_nvcc__that_fails_without_a_word_is_an_error_all_the_same(tmp_path: Path, source: Path) -> None:
    for ending in ("exit 0", "exit 1"):
        with pytest.raises(CompileError, match=r"fill\.cu does not compile with nvcc 12\.4\.131"):
            Nvcc(script(tmp_path / "nvcc", f"{GOOD_NVCC}\n{ending}")).compile(source, "sm_90a", ())


def test_nvcc__that_never_ends_is_stopped(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "COMPILE_TIMEOUT_S", 0.2)
    with pytest.raises(CompileError, match="did not finish"):
        Nvcc(script(tmp_path / "nvcc", f"{GOOD_NVCC}\nexec sleep 60")).compile(source, "sm_90a", ())


def test_nvcc__that_went_away_is_named(tmp_path: Path, source: Path) -> None:
    nvcc = Nvcc(script(tmp_path / "nvcc", GOOD_NVCC))
    (tmp_path / "nvcc").unlink()
    with pytest.raises(CompileError, match="cannot start"):
        nvcc.compile(source, "sm_90a", ())


@pytest.fixture
def no_cache() -> Any:
    found_compiler.cache_clear()
    yield
    found_compiler.cache_clear()


@pytest.mark.usefixtures("no_cache")
def test_found_compiler__takes_the_toolkit_that_is_named_before_that_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "named" / "bin" / "nvcc", GOOD_NVCC)
    script(tmp_path / "path" / "nvcc", GOOD_NVCC.replace("12.4.131", "11.8.89"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert found_compiler().name == "nvcc 11.8.89"
    found_compiler.cache_clear()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "named"))
    assert found_compiler().name == "nvcc 12.4.131"


@pytest.mark.usefixtures("no_cache")
def test_found_compiler__without_nvcc_takes_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_nvcc_path", lambda: None)
    if compiler._nvrtc_library() is None:
        pytest.skip("NVRTC is not installed")
    assert found_compiler().name.startswith("NVRTC ")


@pytest.mark.usefixtures("no_cache")
def test_found_compiler__without_any_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_nvcc_path", lambda: None)
    monkeypatch.setattr(compiler, "_library", lambda name: None)
    with pytest.raises(DeviceError, match="no CUDA compiler") as raised:
        found_compiler()
    assert "pip install nvidia-cuda-nvrtc" in raised.value.hint


def test_nvrtc__a_library_that_fails_is_named(source: Path) -> None:
    class ErrorText:
        """A function of ctypes: takes a result type."""

        restype: Any = None

        def __call__(self, status: int) -> bytes:
            return b"NVRTC_ERROR_OUT_OF_MEMORY"

    def version(major: Any, minor: Any) -> None:
        major._obj.value, minor._obj.value = 13, 0

    library: Any = SimpleNamespace(
        nvrtcVersion=version, nvrtcCreateProgram=lambda *_: 1, nvrtcGetErrorString=ErrorText()
    )
    with pytest.raises(DeviceError, match=r"NVRTC 13\.0 failed: NVRTC_ERROR_OUT_OF_MEMORY"):
        Nvrtc(library).compile(source, "sm_90a", ())
