"""Own kernels on the GPU at hand: frameworks, misuse, controls and planted changes through check --against.

    python benchmarks/own_kernels.py FOLDER [--stage NAME]... [--launches 12]

Makes a repository of the suites in benchmarks/own in a temporary folder and calls the command in it. Writes into FOLDER
after every stage: stages.json with what was found, and the run documents of both sides of every comparison, from which
benchmarks/own_checks.py judges many checks. Exits 1 when a stage is not as expected.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.core.case import Unit
from perfgate.core.summary import launch_statistics, relative_spread
from perfgate.errors import PerfgateError
from perfgate.storage.documents import read_run

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "own-kernels"

# What the reason of each must say, one of these; none where the case must be measured. An allocation may wait.
REASONS: dict[str, tuple[str, ...]] = {
    "behaves": (),
    "synchronizes": ("synchronizes",),
    "strays": ("another stream",),
    "floods": ("enqueues",),
    "leaks": ("leaks memory", "synchronizes"),
    "raises": ("ValueError: no such size",),
    "raises_late": ("the pool is empty",),
    "lacks": ("a_package_that_is_not_there",),
    "idles": ("enqueue its work",),
    "torch_item": ("synchronizes",),
    "torch_strays": ("another stream",),
    "cupy_get": ("synchronizes",),
    "no_array": ("not an array on the device",),
    "yields_twice": ("yields twice",),
    "no_program": ("cannot be started",),
}
WRONG = ("wrong", "unwritten", "short")
PLANTED = ("double.cupy", "product.torch")
STRAIGHT = "const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) {\n        out[i] = scale"
SCATTERED = STRAIGHT.replace(
    "const unsigned i = blockIdx.x * blockDim.x + threadIdx.x",
    "const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t % 8 * 32 + t / 8",
)

Found = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the stages work and what they leave.

    Attributes:
        project: the repository.
        kept: folder of the results.
        launches: of each side.
    """

    project: Path
    kept: Path
    launches: int


def git(folder: Path, *arguments: str) -> None:
    """Run git."""
    identity = ("-c", "user.name=perfgate", "-c", "user.email=perfgate@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def called(folder: Path, *command: str) -> tuple[int, float, str]:
    """Run Python on a module; return exit code, seconds and output, which is shown as it comes, with its time."""
    began_s = time.monotonic()
    print(f"$ {' '.join(command)}", flush=True)
    lines = []
    with subprocess.Popen(
        [sys.executable, "-u", "-m", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.decode("utf-8", "replace"))
            print(f"{time.monotonic() - began_s:7.1f}  {lines[-1]}", end="", flush=True)
    duration_s = time.monotonic() - began_s
    print(f"exit {process.returncode}, {duration_s:.1f} s\n", flush=True)
    return process.returncode, round(duration_s, 2), "".join(lines)


def repository(folder: Path, source: Path) -> Path:
    """Return a repository with a commit of what a folder holds."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    return folder


def frameworks(bench: Bench) -> Found:
    """One launch of everything that can be handed a stream."""
    subprocess.run(["nvcc", "-O2", "-arch=native", "-o", "program", "program.cu"], cwd=bench.project, check=True)
    place = bench.kept / "frameworks.json"
    code, duration_s, _ = called(
        bench.project, "perfgate", "run", str(place), "--suite", "frameworks.py", "--launches", "1"
    )
    (launch,) = read_run(place).launches
    return {"as_expected": code == 0 and not launch.failures, "s": duration_s, "failures": dict(launch.failures)}


def misuse(bench: Bench) -> Found:
    """What misbehaves is refused, each by its reason; a wrong output ends the command."""
    place = bench.kept / "misuse.json"
    options = ("perfgate", "run", str(place), "--suite", "misuse.py", "--launches", "1", "--case")
    chosen = [word for name in REASONS for word in ("--case", f"misuse.{name}")][1:]
    _, duration_s, _ = called(bench.project, *options, *chosen)
    (launch,) = read_run(place).launches
    measured = dict.fromkeys(launch.cases, "measured")
    said = {name: (measured | dict(launch.failures)).get(f"misuse.{name}", "nothing") for name in REASONS}
    strange = [
        name
        for name, reasons in REASONS.items()
        if not (any(one in said[name] for one in reasons) if reasons else said[name] == "measured")
    ]
    chosen = [word for name in WRONG for word in ("--case", f"misuse.{name}")][1:]
    code, _, text = called(bench.project, *options, *chosen)
    said["wrong"] = text
    strange += [name for name in WRONG if code != 6 or f"misuse.{name}: wrong output" not in text]
    return {"as_expected": not strange, "not_as_expected": strange, "s": duration_s, "said": said}


def overhead(bench: Bench) -> Found:
    """What measuring adds to an execution, and what a launch spends its time on."""
    place = bench.kept / "overhead.json"
    code, duration_s, _ = called(bench.project, "overhead", str(place))
    found = json.loads(place.read_text(encoding="utf-8"))
    worst = [sorted(one["ratios"])[len(one["ratios"]) // 2] for one in found["overhead"].values() if "ratios" in one]
    return {"as_expected": code == 0 and max(worst) < 1e-3, "s": duration_s, "worst": worst, **found}


def fixture(bench: Bench) -> Found:
    """The pytest plugin: in one process, and in fresh ones."""
    options = ("pytest", "-q", "-p", "no:cacheprovider", "-p", "perfgate.testing.plugin", "test_ops.py")
    alone = called(bench.project, *options, "--perfgate-run", str(bench.kept / "pytest.json"))
    launched = called(bench.project, *options, "--perfgate-launches", "2")
    is_expected = all(code == 1 and "2 failed, 4 passed" in text for code, _, text in (alone, launched))
    return {"as_expected": is_expected, "s": [alone[1], launched[1]], "said": [alone[2][-3000:], launched[2][-3000:]]}


def example(bench: Bench) -> Found:
    """The example as its page tells: measured once, then with its planted regression."""
    folder = bench.project.parent / "example"
    project = folder if folder.exists() else repository(folder, EXAMPLE)
    once, once_s, _ = called(project, "perfgate", "run", str(bench.kept / "example.json"), "--launches", "1")
    same, same_s, _ = called(project, "perfgate", "check", "--against", "HEAD")
    git(project, "apply", "planted-regression.patch")
    planted = compared("example", bench, project, slower=("image.blur[width=4096]", "image.blur[width=8192]"))
    git(project, "checkout", "kernels")
    is_expected = once == 0 and same == 0 and planted["as_expected"]
    return {**planted, "as_expected": is_expected, "once_s": once_s, "same_s": same_s}


def compared(name: str, bench: Bench, project: Path, *arguments: str, slower: tuple[str, ...]) -> Found:
    """Compare a working tree with its base, and keep both runs."""
    command = (
        "watched" if project == bench.project else "perfgate",
        "check",
        "--against",
        "HEAD",
        "--launches",
        str(bench.launches),
        *arguments,
    )
    code, duration_s, _ = called(project, *command)
    results = project / "perfgate-results"
    report = json.loads((results / "report.json").read_text(encoding="utf-8"))
    spreads = {}
    for side in ("base", "run"):
        if (results / f"{side}.json").exists():
            shutil.copy(results / f"{side}.json", bench.kept / f"{name}.{side}.json")
            run = read_run(results / f"{side}.json")
            spreads[side] = {
                case_id: relative_spread(launch_statistics(run, case_id, Unit.SECONDS)) for case_id in run.cases
            }
    verdicts = {case["id"]: case["verdict"] for case in report["cases"]}
    found = sorted(case_id for case_id, verdict in verdicts.items() if verdict == "regressed")
    others = {verdict for case_id, verdict in verdicts.items() if case_id not in found}
    return {
        "as_expected": found == sorted(slower)
        and others <= {"unchanged", "inconclusive"}
        and code == (1 if slower else 0),
        "exit": code,
        "s": duration_s,
        "measured_s": report.get("measured_s"),
        "launches": report["launches"],
        "verdicts": verdicts,
        "changes": {case["id"]: case["change"]["value"] for case in report["cases"] if case["change"]},
        "spreads": spreads,
    }


def control(bench: Bench) -> Found:
    """Both sides the same, measured all the same: no alarm."""
    return compared("control", bench, bench.project, "--suite", "suite.py", "--control", slower=())


def planted(bench: Bench) -> Found:
    """+0.5 % injected into a bandwidth-bound case and a matrix product of six cases: both found, and nothing else."""
    rehearsed = [word for case_id in PLANTED for word in ("--inject", f"{case_id}=+0.5%")]
    return compared("planted", bench, bench.project, "--suite", "suite.py", "--control", *rehearsed, slower=PLANTED)


def planted_alone(bench: Bench) -> Found:
    """The same of three cases: a session of them takes half as long."""
    chosen = [word for case_id in (*PLANTED, "vector.axpy") for word in ("--case", case_id)]
    rehearsed = [word for case_id in PLANTED for word in ("--inject", f"{case_id}=+0.5%")]
    return compared(
        "planted-alone", bench, bench.project, "--suite", "suite.py", "--control", *chosen, *rehearsed, slower=PLANTED
    )


def edits(bench: Bench) -> Found:
    """Accesses scattered are found; a comment compiles to the same code, which is not measured."""
    source = bench.project / "kernels.cu"
    before = source.read_text(encoding="utf-8")
    options = ("--suite", "suite.py", "--case", "vector.*")
    source.write_text(before.replace("out[i] = scale * x[i];", "out[i] = scale * x[i];  // twice"), encoding="utf-8")
    comment = compared("comment", bench, bench.project, *options, slower=())
    source.write_text(before.replace(STRAIGHT, SCATTERED), encoding="utf-8")
    scattered = compared("scattered", bench, bench.project, *options, slower=("vector.axpy",))
    source.write_text(before, encoding="utf-8")
    return {
        "as_expected": comment["as_expected"] and scattered["as_expected"],
        "comment": comment,
        "scattered": scattered,
    }


STAGES: dict[str, Callable[[Bench], Found]] = {
    one.__name__: one
    for one in (frameworks, misuse, overhead, fixture, example, control, planted, planted_alone, edits)
}


def main() -> int:
    """Run the stages; exit 1 when one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="only these (repeatable)")
    parser.add_argument("--launches", type=int, default=12, help="launches a side")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    stages: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as name:
        project = repository(Path(name) / "project", HERE / "own")
        bench = Bench(project=project, kept=options.folder.resolve(), launches=options.launches)
        for stage in options.stage or list(STAGES):
            try:
                stages[stage] = STAGES[stage](bench)
            except (OSError, ValueError, KeyError, PerfgateError, subprocess.CalledProcessError) as error:
                stages[stage] = {"as_expected": False, "error": f"{type(error).__name__}: {error}"}
            print(f"{stage}: {'as expected' if stages[stage]['as_expected'] else 'NOT AS EXPECTED'}", flush=True)
            (bench.kept / "stages.json").write_text(json.dumps(stages, indent=1) + "\n", encoding="utf-8")
    return 0 if all(one["as_expected"] for one in stages.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
