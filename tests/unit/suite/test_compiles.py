"""Every kernel compiles without a warning for every architecture, with nvcc and with NVRTC from its wheel."""

import ctypes
import functools
import importlib.util
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.devices.cuda.compiler import Nvrtc
from perfgate.resources import resource_folder
from perfgate.suite import built_in_suite
from tests.factories import H200
from tests.unit.suite.declarations import kernel_files
from tests.unit.suite.fake_toolbox import FakeToolbox

ARCHITECTURES = ("75", "80", "86", "89", "90a", "100", "120")
# Warnings come from the front end, so nvcc need not optimise; NVRTC below compiles as it does in earnest.
QUICKLY = ("-Xcicc", "-O1", "-Xptxas", "-O1")

each_file = pytest.mark.parametrize("source", kernel_files(), ids=lambda path: path.name)


@each_file
def test_nvcc__compiles_for_every_architecture(source: Path, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc on PATH: the CUDA toolkit is not installed")
    targets = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in ARCHITECTURES]
    options = ["-fatbin", "-std=c++17", "-Werror", "all-warnings", "--threads", "2", *QUICKLY]
    command = [nvcc, *targets, *options, "-o", str(tmp_path / "fatbin"), str(source)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


@functools.cache
def nvrtc() -> Nvrtc | None:
    found = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in found.submodule_search_locations or ()] if found else []
    libraries = sorted(path for root in roots for path in root.glob("*/lib/libnvrtc.so.*"))
    return Nvrtc(ctypes.CDLL(str(libraries[-1]))) if libraries else None


@each_file
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc__compiles_without_any_header_of_the_toolkit(source: Path, architecture: str) -> None:
    compiler = nvrtc()
    if compiler is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    assert compiler.compile(source, f"sm_{architecture}", ()).startswith(b"\x7fELF")


def bandwidth_knobs() -> list[tuple[str, tuple[str, ...]]]:
    """Sources and options of all bandwidth cases, with another GPU in reach."""
    found = set()
    for case in built_in_suite("full", replace(H200, peer_link="pcie")).cases:
        if case.family == "bandwidth":
            toolbox = FakeToolbox(gpu=H200, emulate=False)
            case.prepare(toolbox)
            found |= {
                (one.source, tuple(f"-D{key}={value}" for key, value in one.defines.items())) for one in toolbox.binds
            }
    return sorted((source, options) for source, options in found if options)


@pytest.mark.parametrize("architecture", ["75", "90a", "120"])
@pytest.mark.parametrize(("source", "options"), bandwidth_knobs(), ids=str)
def test_nvrtc__compiles_the_knobs_of_bandwidth_cases(source: str, options: tuple[str, ...], architecture: str) -> None:
    compiler = nvrtc()
    if compiler is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    code = compiler.compile(resource_folder("kernels") / source, f"sm_{architecture}", options)
    assert code.startswith(b"\x7fELF")
