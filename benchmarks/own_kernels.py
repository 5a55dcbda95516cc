"""Own kernels on the GPU at hand: controls and planted changes through check --against, callables that misbehave.

    python benchmarks/own_kernels.py [--launches 12] [--repeats 2] [--json FILE]

Makes a repository of six cases (five kernels, one callable of PyCUDA's) in a temporary folder and calls the command in
it. A control must pass; +0.5 % injected into the change must be found in exactly that case; a kernel whose accesses
were scattered must be found; each misbehaving callable must be refused by name, beside one that behaves.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from perfgate.core.case import Unit
from perfgate.core.summary import launch_statistics
from perfgate.storage.documents import read_run

KERNELS = r"""
extern "C" __global__ void axpy(const float* __restrict__ x, float* __restrict__ out, float scale, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = scale * x[i];
    }
}

extern "C" __global__ void transpose(const float* __restrict__ in, float* __restrict__ out, unsigned n) {
    __shared__ float tile[32][33];
    const unsigned x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (unsigned row = 0; row < 32; row += 8) {
        tile[threadIdx.y + row][threadIdx.x] = in[(size_t)(y + row) * n + x];
    }
    __syncthreads();
    const unsigned u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (unsigned row = 0; row < 32; row += 8) {
        out[(size_t)(v + row) * n + u] = tile[threadIdx.x][threadIdx.y + row];
    }
}

extern "C" __global__ void gather(const float* __restrict__ in, const int* __restrict__ index, float* __restrict__ out,
                                  unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = in[index[i]];
    }
}

extern "C" __global__ void polynomial(const float* __restrict__ x, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float value = x[i], sum = 0.0f;
        for (int step = 0; step < 256; ++step) {
            sum = sum * value + 0.5f;
        }
        out[i] = sum;
    }
}
"""

SUITE = r"""
import numpy as np
import perfgate.api as pg

def polynomial(x):
    total, value = np.zeros_like(x), x
    for _ in range(256):
        total = total * value + np.float32(0.5)
    return total

def suite(gpu):
    shared = {"source": "kernels.cu", "block": 256}
    for n in (2**20, 2**26):
        yield pg.cuda_case(gpu, "vector.axpy", axes={"n": n}, function="axpy", grid=n // 256, **shared,
                           args=[pg.Input(n), pg.Output(n), np.float32(2), np.uint32(n)],
                           reference=lambda x: 2 * x, graph=n == 2**20)
    n = 8192
    yield pg.cuda_case(gpu, "matrix.transpose", axes={"n": n}, source="kernels.cu", function="transpose",
                       grid=(n // 32, n // 32), block=(32, 8), args=[pg.Input((n, n)), pg.Output((n, n)), np.uint32(n)],
                       reference=lambda x: x.T)
    n = 2**25
    yield pg.cuda_case(gpu, "vector.gather", axes={"n": n}, function="gather", grid=n // 256, **shared,
                       args=[pg.Input(n), pg.Input(n, "int32", below=n), pg.Output(n), np.uint32(n)],
                       reference=lambda x, index: x[index])
    yield pg.cuda_case(gpu, "vector.polynomial", axes={"n": n}, function="polynomial", grid=n // 256, **shared,
                       args=[pg.Input(n), pg.Output(n), np.uint32(n)], reference=polynomial, tolerance=1e-3,
                       work_flop=512 * n, pipe="fp32")
    yield pg.callable_case("copy.pycuda", copy, work=pg.Work(read_bytes=2**30, write_bytes=2**30))

class Raw:
    def __init__(self, allocation, count):
        self.allocation = allocation
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (int(allocation), False),
                                         "version": 3}

def arrays(count):
    import pycuda.driver as cuda

    values = np.random.default_rng(1).random(count, dtype=np.float32)
    source, target = cuda.mem_alloc(4 * count), cuda.mem_alloc(4 * count)
    cuda.memcpy_htod(source, values)
    return cuda, values, source, target

def copy(stream):
    cuda, values, source, target = arrays(2**28)
    yield pg.Execution(lambda: cuda.memcpy_dtod_async(int(target), int(source), 2**30, stream.native),
                       outputs=[Raw(target, 2**28)], reference=lambda: values)
    source.free()
    target.free()
"""

MISUSE = (
    SUITE.partition("def suite(gpu):")[0]
    + "class Raw:"
    + SUITE.partition("class Raw:")[2]
    + r"""
COUNT = 2**22

def case(body):
    def setup(stream):
        cuda, values, source, target = arrays(COUNT)
        def enqueue(where=stream.native):
            cuda.memcpy_dtod_async(int(target), int(source), 4 * COUNT, where)
        yield pg.Execution(body(cuda, stream, enqueue), outputs=[Raw(target, COUNT)], reference=lambda: values)
    return setup

def behaves(cuda, stream, enqueue):
    return enqueue

def synchronizes(cuda, stream, enqueue):
    def run():
        enqueue()
        stream.native.synchronize()
    return run

def strays(cuda, stream, enqueue):
    other = cuda.Stream(1)
    return lambda: enqueue(other)

def floods(cuda, stream, enqueue):
    def run():
        for _ in range(2000):
            enqueue()
    return run

def leaks(cuda, stream, enqueue):
    lost = []
    def run():
        lost.append(cuda.mem_alloc(2**16))
        enqueue()
    return run

def raises(cuda, stream, enqueue):
    raise ValueError("no such size")

def lacks(cuda, stream, enqueue):
    import a_package_that_is_not_there
    return enqueue

def idles(cuda, stream, enqueue):
    return lambda: None

def suite(gpu):
    for body in (behaves, synchronizes, strays, floods, leaks, raises, lacks, idles):
        yield pg.callable_case(f"misuse.{body.__name__}", case(body))
    n = 2**22
    yield pg.cuda_case(gpu, "misuse.short", source="kernels.cu", function="axpy", grid=1, block=256,
                       args=[pg.Input(n), pg.Output(n), np.float32(2), np.uint32(n)], reference=lambda x: 2 * x)
"""
)
# What the reason of each must say, one of these; none where the case must be measured. An allocation may wait.
REASONS: dict[str, tuple[str, ...]] = {
    "misuse.behaves": (),
    "misuse.synchronizes": ("synchronizes",),
    "misuse.strays": ("another stream",),
    "misuse.floods": ("enqueues",),
    "misuse.leaks": ("leaks memory", "synchronizes"),
    "misuse.raises": ("ValueError: no such size",),
    "misuse.lacks": ("a_package_that_is_not_there",),
    "misuse.idles": ("enqueue its work",),
    "misuse.short": ("left unwritten", "exit 6"),
}
STRAIGHT = "const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) {\n        out[i] = scale"
SCATTERED = STRAIGHT.replace(
    "const unsigned i = blockIdx.x * blockDim.x + threadIdx.x",
    "const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t % 8 * 32 + t / 8",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a step came to."""

    name: str
    as_expected: bool
    exit_code: int
    duration_s: float
    launches: int
    verdicts: dict[str, str]
    changes: dict[str, float]
    spreads: dict[str, float]


def git(folder: Path, *arguments: str) -> None:
    """Run git."""
    identity = ("-c", "user.name=perfgate", "-c", "user.email=perfgate@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def called(folder: Path, *arguments: str) -> tuple[int, float]:
    """Call perfgate; return exit code and seconds."""
    began_s = time.monotonic()
    finished = subprocess.run([sys.executable, "-m", "perfgate", *arguments], cwd=folder, check=False)
    return finished.returncode, time.monotonic() - began_s


def pair_spreads(folder: Path) -> dict[str, float]:
    """Return the standard deviation between launches of each case of the change, relative to the median."""
    run = read_run(folder / "perfgate-results" / "run.json")
    values = {case_id: launch_statistics(run, case_id, Unit.SECONDS) for case_id in run.cases}
    return {case_id: float(np.std(one, ddof=1) / np.median(one)) for case_id, one in values.items() if len(one) > 1}


def against(name: str, folder: Path, arguments: tuple[str, ...], *, slower: tuple[str, ...]) -> Outcome:
    """Compare the working tree with its base; what is slower is named by the first part of its id."""
    code, duration_s = called(folder, "check", "--against", "HEAD", "--suite", "suite.py", "--quiet", *arguments)
    report = json.loads((folder / "perfgate-results" / "report.json").read_text(encoding="utf-8"))
    verdicts = {case["id"]: case["verdict"] for case in report["cases"]}
    found = sorted({case_id for case_id, verdict in verdicts.items() if verdict == "regressed"})
    others = {verdict for case_id, verdict in verdicts.items() if case_id not in found}
    return Outcome(
        name=name,
        as_expected=found == sorted(slower)
        and others <= {"unchanged", "inconclusive"}
        and code == (1 if slower else 0),
        exit_code=code,
        duration_s=round(duration_s, 1),
        launches=report["launches"],
        verdicts=verdicts,
        changes={case["id"]: case["change"]["value"] for case in report["cases"] if case["change"]},
        spreads=pair_spreads(folder),
    )


def misused(folder: Path) -> tuple[bool, dict[str, str]]:
    """Measure the callables that misbehave; tell what was said of each, and whether it was what is expected."""
    (folder / "misuse.py").write_text(MISUSE, encoding="utf-8")
    code, duration_s = called(folder, "run", "misuse.json", "--suite", "misuse.py", "--launches", "1", "--quiet")
    print(f"misuse: exit {code}, {duration_s:.1f} s", flush=True)
    # A wrong output ends the command; the journal's reasons are in the run where there is one.
    place = folder / "misuse.json"
    if not place.exists():
        arguments = [one for case_id in REASONS if case_id != "misuse.short" for one in ("--case", case_id)]
        called(folder, "run", "misuse.json", "--suite", "misuse.py", "--launches", "1", "--quiet", *arguments)
    (launch,) = read_run(place).launches
    said = {
        case_id: launch.failures.get(case_id, "measured" if case_id in launch.cases else "?") for case_id in REASONS
    }
    if code == 6:
        said["misuse.short"] = "wrong output (exit 6)"
    is_expected = all(
        said[case_id] == "measured" if not reasons else any(reason in said[case_id] for reason in reasons)
        for case_id, reasons in REASONS.items()
    )
    return is_expected, said


def main() -> int:
    """Run all steps; exit 1 when one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=12, help="launches a side")
    parser.add_argument("--repeats", type=int, default=2, help="A/A controls")
    parser.add_argument("--json", type=Path, help="also write what was found there")
    options = parser.parse_args()
    launches = ("--launches", str(options.launches))
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        git(folder, "init", "--quiet")
        (folder / "kernels.cu").write_text(KERNELS, encoding="utf-8")
        (folder / "suite.py").write_text(SUITE, encoding="utf-8")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", "base")
        is_refused, said = misused(folder)
        for case_id, reason in said.items():
            print(f"  {case_id}: {reason}")
        outcomes.extend(
            against(f"A/A control {index + 1}", folder, ("--control", *launches), slower=())
            for index in range(options.repeats)
        )
        for case_id in ("matrix.transpose[n=8192]", "vector.polynomial[n=33554432]"):
            injected = ("--control", "--inject", f"{case_id}=+0.5%", *launches)
            outcomes.append(against(f"{case_id} +0.5 %", folder, injected, slower=(case_id,)))
        source = folder / "kernels.cu"
        source.write_text(KERNELS.replace(STRAIGHT, SCATTERED), encoding="utf-8")
        slower = ("vector.axpy[n=67108864]",)
        outcomes.append(against("axpy scattered", folder, launches, slower=slower))
        source.write_text(
            KERNELS.replace("out[i] = scale * x[i];", "out[i] = scale * x[i];  // twice"), encoding="utf-8"
        )
        outcomes.append(against("a comment", folder, launches, slower=()))
    print("\n| step | as expected | exit | launches | s | verdicts |\n|---|---|---|---|---|---|")
    for one in outcomes:
        verdicts = ", ".join(f"{key.split('[')[0]} {value}" for key, value in one.verdicts.items())
        mark = "yes" if one.as_expected else "NO"
        print(f"| {one.name} | {mark} | {one.exit_code} | {one.launches} | {one.duration_s} | {verdicts} |")
        for case_id, change in one.changes.items():
            print(f"|  | {case_id} | {change:+.4%} | sd {one.spreads.get(case_id, float('nan')):.4%} |  |  |")
    if options.json:
        document = {"misuse": said, "steps": [asdict(one) for one in outcomes]}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if is_refused and all(one.as_expected for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
