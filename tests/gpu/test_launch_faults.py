"""Launches that die on a real GPU: the parent names it, keeps the other cases, and ends in a bounded time."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]

KERNELS = r"""
extern "C" __global__ void fine(const float* in, float* out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * in[i];
}

extern "C" __global__ void hang(const float* in, volatile float* out, unsigned n) {
    while (*out != 12345.0f || n == 0) { }
}

extern "C" __global__ void illegal_address(const float* in, float* out, unsigned n) {
    out[(1ull << 40) + threadIdx.x] = in[0] * n;
}

extern "C" __global__ void trap(const float* in, float* out, unsigned n) {
    asm volatile("trap;");
}
"""

SUITE = r"""
import numpy as np
import perfgate.api as pg

N = 2**22

def case(gpu, name, n=N):
    return pg.cuda_case(gpu, f"fault.{name}", source="faults.cu", function=name, grid=n // 256, block=256,
                        args=[pg.Input(n), pg.Output(n), np.uint32(n)],
                        reference=lambda x: 2 * x)

def callable_of(body):
    def setup(stream):
        body()
        yield pg.Execution(lambda: None, outputs=[], reference=None)
    return setup

def segfault():
    import ctypes
    ctypes.string_at(0)

def out_of_memory():
    import pycuda.driver as cuda
    cuda.mem_alloc(2**42)

def abort_at_exit():
    import atexit, os
    atexit.register(os.abort)

def suite(gpu):
    yield case(gpu, "fine")
    for name in ("hang", "illegal_address", "trap"):
        yield case(gpu, name)
    for body in (segfault, out_of_memory, abort_at_exit):
        yield pg.callable_case(f"fault.{body.__name__}", callable_of(body))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its code, what it printed, and the run document that it left."""

    code: int
    text: str
    run: dict[str, Any]

    @property
    def reasons(self) -> dict[str, str]:
        """Why a case has no result, from whichever launch says it last."""
        return {case_id: reason for launch in self.run["launches"] for case_id, reason in launch["failures"].items()}

    def measured(self, case_id: str) -> int:
        """How many launches measured a case."""
        return sum(case_id in launch["cases"] for launch in self.run["launches"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "faults.cu").write_text(KERNELS)
    (tmp_path / "suite.py").write_text(SUITE)
    return tmp_path


def measured(folder: Path, fault: str) -> Ended:
    command = ("run", "run.json", "--suite", "suite.py", "--case", "fault.fine", "--case", f"fault.{fault}")
    ended = subprocess.run(
        [sys.executable, "-m", "perfgate", *command, "--launches", "2"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    text = ended.stdout + ended.stderr
    print(text)
    return Ended(code=ended.returncode, text=text, run=json.loads((folder / "run.json").read_text()))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("hang", ("sign of life",)),
        ("illegal_address", ("illegal", "address")),
        ("trap", ("fail",)),
        ("segfault", ("SIGSEGV",)),
        ("out_of_memory", ("memory",)),
    ],
)
def test_launch__that_dies_is_named_and_costs_its_own_case_only(
    folder: Path, fault: str, words: tuple[str, ...]
) -> None:
    ended = measured(folder, fault)
    assert ended.measured("fault.fine") == 2
    assert ended.measured(f"fault.{fault}") == 0
    reason = ended.reasons[f"fault.{fault}"]
    assert all(word in reason for word in words), reason


def test_launch__that_aborts_after_its_results_counts(folder: Path) -> None:
    ended = measured(folder, "abort_at_exit")
    assert ended.measured("fault.fine") == 2
