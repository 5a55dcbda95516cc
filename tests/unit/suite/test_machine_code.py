"""What loops of kernels are in machine code: the steps that are claimed, and of chains nothing else that takes time."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from perfgate.resources import resource_folder

ARCHITECTURES = ("75", "80", "90a", "100", "120")
# What counts the rounds, in the shadow of the steps, and moves registers between them.
MOST_OTHERS = 12
STEPS = 32

LATENCIES = {
    "latency_l1": {"LDG": STEPS},
    "latency_global": {"LDG": STEPS},
    "latency_shared": {"LDS": STEPS},
    "latency_shuffle": {"SHFL": STEPS},
    "latency_barrier": {"BAR": STEPS},
    "latency_atomic_shared": {"ATOMS": STEPS},
    "latency_atomic_global": {"ATOMG": STEPS},
    "latency_atomic_shared_contended": {"ATOMS": STEPS, "LOP3": STEPS},
    "latency_atomic_global_contended": {"ATOMG": STEPS, "LOP3": STEPS},
    "latency_fence_system": {"STG": STEPS, "MEMBAR": STEPS, "ERRBAR": STEPS, "CCTL": STEPS},
}
PEAKS = {
    "peak_fma_fp32": {"FFMA": 1024},
    "peak_fma_fp64": {"DFMA": 1024},
    "peak_fma_fp16x2": {"HFMA2": 1024},
    "peak_ex2": {"MUFU": 1024},
}


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on PATH: the CUDA toolkit is not installed")
    return found


def loops(source: str, architecture: str, folder: Path) -> dict[str, list[Counter[str]]]:
    """The instructions of all loops of every kernel, by their first word."""
    cubin = folder / "cubin"
    kernel = resource_folder("kernels") / source
    subprocess.run(
        [tool("nvcc"), "-cubin", "-std=c++17", f"-arch=sm_{architecture}", "-o", str(cubin), str(kernel)], check=True
    )
    text = subprocess.run([tool("cuobjdump"), "-sass", str(cubin)], check=True, capture_output=True, text=True).stdout
    found = {}
    for part in text.split("Function : ")[1:]:
        code = [
            (int(place, 16), re.sub(r"^@!?U?P\w+\s+", "", instruction))
            for place, instruction in re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", part, re.MULTILINE)
        ]
        branches = [(int(to[1], 16), at) for at, one in code if (to := re.match(r"BRA\S*\s.*?(0x[0-9a-f]+)", one))]
        found[part.split()[0]] = [
            Counter(re.split(r"[.\s]", one)[0] for at, one in code if begin <= at <= end)
            for begin, end in branches
            if begin < end
        ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("source", "expected"), [("latency.cu", LATENCIES), ("peak.cu", PEAKS)])
def test_loops__hold_the_steps_that_are_claimed(
    source: str, expected: dict[str, dict[str, int]], architecture: str, tmp_path: Path
) -> None:
    found = loops(source, architecture, tmp_path)
    for function, steps in expected.items():
        whole = max(found[function], key=lambda one: one[next(iter(steps))])
        claimed = {name: whole.pop(name) for name in steps}
        if "LOP3" in steps and architecture in ("75", "80"):
            claimed["LOP3"] //= 2  # the mask in two instructions
        assert claimed == steps, function
        # A fence's count, and its barrier among the blocks of a cluster, are steps of their own.
        beside = 2 * STEPS if function == "latency_fence_system" else 0
        del whole["NOP"]
        assert sum(whole.values()) <= MOST_OTHERS + beside, f"{function}: {whole}"


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_onchip_shared__loads_in_every_pass(architecture: str, tmp_path: Path) -> None:
    """Four passes of four loads each: an assembler that knows memory to be unchanged would load once for all four."""
    found = loops("onchip.cu", architecture, tmp_path)["onchip_shared"]
    assert max(one["LDS"] for one in found) == 16
