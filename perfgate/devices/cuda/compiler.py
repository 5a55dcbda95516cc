"""From a kernel file to machine code: nvcc or NVRTC, behind a cache that two processes may share."""

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perfgate.errors import CompileError, DeviceError
from perfgate.resources import kernel_files

# A kernel of this project compiles in seconds; templates of own suites may take minutes. Less than a supervisor
# waits for, so that the kernel is named and the other cases are measured in the same launch.
COMPILE_TIMEOUT_S = 480.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin:
    """Machine code of one source for one architecture."""

    code: bytes
    sha256: str


class Compiler(Protocol):
    """A CUDA C++ compiler."""

    @property
    def name(self) -> str:
        """Name and version, e.g. ``"nvcc 13.0.88"``: part of the cache key and of the environment."""
        ...

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        """Return the cubin of ``source`` for an architecture such as ``"sm_90a"``.

        Raises:
            CompileError: with the compiler's log.
        """
        ...


class Nvcc:
    """The toolkit's compiler."""

    def __init__(self, path: Path) -> None:
        self._path = path
        output = _output_of([str(path), "--version"])
        found = re.search(r"V(\d+\.\d+\.\d+)", output)
        if not found:
            raise DeviceError(
                f"{path} --version does not answer as nvcc does: {output.strip()[:200]!r}",
                hint="repair or remove this CUDA toolkit, or name another with CUDA_HOME",
            )
        self._version = found[1]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"nvcc {self._version}"

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        """See Compiler."""
        with tempfile.TemporaryDirectory(prefix="perfgate-nvcc-") as folder:
            target = Path(folder) / "kernel.cubin"
            virtual = architecture.replace("sm_", "compute_")
            command = [
                str(self._path),
                "-cubin",
                f"-gencode=arch={virtual},code={architecture}",
                "-std=c++17",
                *options,
                "-o",
                str(target),
                str(source),
            ]
            try:
                finished = subprocess.run(
                    command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired:
                raise CompileError(
                    f"{source.name}: nvcc did not finish within {COMPILE_TIMEOUT_S:.0f} s", hint="simplify the kernel"
                ) from None
            except OSError as error:
                raise CompileError(f"{source.name}: cannot start {self._path}: {error}") from error
            if finished.returncode != 0 or not target.exists():
                raise _compile_error(source, self.name, finished.stderr + finished.stdout)
            return target.read_bytes()


class Nvrtc:
    """The run-time compiler, from its wheel or the toolkit: needs no host compiler."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self._version = f"{major.value}.{minor.value}"

    @property
    def name(self) -> str:
        """Name and version."""
        return f"NVRTC {self._version}"

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        """See Compiler."""
        library = self._library
        program = ctypes.c_void_p()
        text = source.read_bytes()
        self._checked(library.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None))
        try:
            arguments = [f"--gpu-architecture={architecture}", "--std=c++17", f"-I{source.parent}", *options]
            array = (ctypes.c_char_p * len(arguments))(*(one.encode() for one in arguments))
            if library.nvrtcCompileProgram(program, len(arguments), array) != 0:
                size = ctypes.c_size_t()
                library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
                log = ctypes.create_string_buffer(size.value)
                library.nvrtcGetProgramLog(program, log)
                raise _compile_error(source, self.name, log.value.decode(errors="replace"))
            size = ctypes.c_size_t()
            self._checked(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
            code = ctypes.create_string_buffer(size.value)
            self._checked(library.nvrtcGetCUBIN(program, code))
            return code.raw
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _checked(self, status: int) -> None:
        if status != 0:
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise DeviceError(f"{self.name} failed: {self._library.nvrtcGetErrorString(status).decode()}")


@functools.cache
def found_compiler() -> Compiler:
    """Return nvcc when there is one, else NVRTC.

    Raises:
        DeviceError: neither is there; says how to get one.
    """
    nvcc = _nvcc_path()
    if nvcc is not None:
        return Nvcc(nvcc)
    library = _nvrtc_library()
    if library is not None:
        return Nvrtc(library)
    raise DeviceError(
        "no CUDA compiler: nvcc is neither on PATH nor under CUDA_HOME or /usr/local/cuda, and NVRTC is not installed",
        hint="install the CUDA toolkit and put its bin folder on PATH, or: pip install nvidia-cuda-nvrtc",
    )


def _nvcc_path() -> Path | None:
    folders = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    candidates = [folder / "nvcc" for folder in folders]
    on_path = shutil.which("nvcc")
    if on_path:
        candidates.append(Path(on_path))
    candidates.append(Path("/usr/local/cuda/bin/nvcc"))
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def _nvrtc_library() -> ctypes.CDLL | None:
    names = [str(path) for path in _wheel_libraries()] + [f"libnvrtc.so.{major}" for major in (13, 12)]
    return next((library for name in names if (library := _library(name)) is not None), None)


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _wheel_libraries() -> list[Path]:
    found = importlib.util.find_spec("nvidia")
    if found is None or not found.submodule_search_locations:
        return []
    roots = [Path(location) for location in found.submodule_search_locations]
    return sorted((path for root in roots for path in root.glob("*/lib/libnvrtc.so.*")), reverse=True)


class CodeCache:
    """Compiled kernels by source, headers, options, architecture and compiler.

    A file is written beside its place and renamed into it, so two processes that compile the same
    kernel at once both read a whole file; a file whose hash is wrong is compiled again.
    """

    def __init__(self, folder: Path, compiler: Compiler, architecture: str) -> None:
        self._folder = folder
        self._compiler = compiler
        self._architecture = architecture

    def cubin(self, source: str, defines: Mapping[str, int | str], options: Sequence[str] = ()) -> Cubin:
        """Return the machine code of a file of the kernels folder, or of an absolute path.

        Raises:
            CompileError: with the compiler's log.
        """
        try:
            files = kernel_files(source)
        except FileNotFoundError as error:
            raise CompileError(str(error)) from error
        path = files[0]
        options = (*(f"-D{name}={value}" for name, value in sorted(defines.items())), *options)
        key = hashlib.sha256()
        for part in (self._compiler.name, self._architecture, *options):
            key.update(part.encode() + b"\0")
        for file in files:
            key.update(file.read_bytes() + b"\0")
        place = self._folder / f"{path.stem}-{key.hexdigest()[:32]}.cubin"
        kept = _read_kept(place)
        code = kept if kept is not None else self._compiled(path, options, place)
        return Cubin(code=code, sha256=hashlib.sha256(code).hexdigest())

    def _compiled(self, path: Path, options: tuple[str, ...], place: Path) -> bytes:
        code = self._compiler.compile(path, self._architecture, options)
        # A cache that cannot be written costs time, not a verdict.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as folder:
                file = Path(folder) / place.name
                file.write_bytes(hashlib.sha256(code).digest() + code)
                file.replace(place)
        return code


def _read_kept(place: Path) -> bytes | None:
    try:
        content = place.read_bytes()
    except OSError:
        return None
    digest, code = content[:32], content[32:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def _compile_error(source: Path, compiler: str, log: str) -> CompileError:
    trimmed = log.strip().replace(str(source.parent) + os.sep, "")
    lines = trimmed.splitlines()
    shown = "\n".join(lines[:40]) + ("\n..." if len(lines) > 40 else "")
    return CompileError(f"{source.name} does not compile with {compiler}:\n{shown}", hint="fix the kernel")


def _output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
