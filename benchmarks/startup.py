"""How long perfgate keeps a person waiting before and after it measures: help, and the comparison of two runs.

    python benchmarks/startup.py [--repeats 9] [--json FILE] [--markdown FILE]

Every time is that of a fresh process, from its start to its end. The runs are built on the fly: 20
cases, 12 launches, 600 samples a case and launch, as a full suite has them.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from perfgate.core.plan import CasePlan
from perfgate.core.run import Block, CaseLaunch, Launch, Run
from perfgate.storage.documents import write_run
from tests.factories import make_case_info, make_run

CASES, LAUNCHES, BLOCKS, SAMPLES = 20, 12, 12, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured command.

    Attributes:
        name: what was run.
        target_s: what it may take on 2 cores.
        times_s: one a repetition, in order, from start to end.
        cpu_s: the same, of CPU time: what a busy machine leaves alone.
    """

    name: str
    target_s: float
    times_s: tuple[float, ...]
    cpu_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        """Median of the repetitions."""
        return statistics.median(self.times_s)

    @property
    def best_s(self) -> float:
        """Shortest repetition: what a busy machine disturbs least."""
        return min(self.times_s)


def large_run(seed: int) -> Run:
    """A run of 20 cases with 600 samples in each of 12 launches, log-normal, seeded."""
    generator = np.random.default_rng(seed)
    plan = CasePlan(executions_per_sample=4, samples_per_block=SAMPLES, blocks=BLOCKS)
    infos = {f"bandwidth.copy[bytes={index + 1}MiB]": make_case_info(plan=plan) for index in range(CASES)}
    launches = []
    for index in range(LAUNCHES):
        cases = {}
        for case_id in infos:
            times_s = 2e-3 * np.exp(
                5e-4 * generator.standard_normal() + 3e-4 * generator.standard_normal((BLOCKS, SAMPLES))
            )
            cases[case_id] = CaseLaunch(
                blocks=tuple(
                    Block(
                        sequence=place,
                        started_s=0.5 * place,
                        times_s=tuple(block.tolist()),
                        executions_per_sample=4,
                        sm_clock_hz=1.98e9,
                    )
                    for place, block in enumerate(times_s)
                ),
                output_verified=True,
            )
        launches.append(Launch(index=index, started_utc="2026-11-30T12:00:00Z", cases=cases))
    return make_run({}, infos=infos, launches=tuple(launches))


def timed(name: str, target_s: float, arguments: Sequence[str], repeats: int) -> Figure:
    """Run a command some times, once before to have its files in memory."""
    command = [sys.executable, *arguments]
    times_s, cpu_s = [], []
    for _ in range(repeats + 1):
        begin_s, cpu_begin_s = time.perf_counter(), children_cpu_s()
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        times_s.append(time.perf_counter() - begin_s)
        cpu_s.append(children_cpu_s() - cpu_begin_s)
        if finished.returncode != 0:
            sys.exit(f"{name} exited with {finished.returncode}:\n{finished.stderr}")
    return Figure(name=name, target_s=target_s, times_s=tuple(times_s[1:]), cpu_s=tuple(cpu_s[1:]))


def children_cpu_s() -> float:
    """Return the CPU time of all processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def figures(repeats: int) -> tuple[Figure, ...]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        base, candidate = Path(folder, "base.json"), Path(folder, "candidate.json")
        write_run(base, large_run(1))
        write_run(candidate, large_run(2))
        compare = ["-m", "perfgate", "compare", str(base), str(candidate)]
        return (
            timed("python -c pass", 0.15, ["-c", "pass"], repeats),
            timed("perfgate --help", 0.15, ["-m", "perfgate", "--help"], repeats),
            timed("perfgate check --help", 0.15, ["-m", "perfgate", "check", "--help"], repeats),
            timed("perfgate compare (20 cases x 12 launches x 600 samples)", 2.0, compare, repeats),
        )


def render_markdown(measured: Sequence[Figure], machine: str) -> str:
    """Render the table of docs/figures/startup.md."""
    rows = [
        f"| `{one.name}` | {one.best_s:.2f} s | {one.median_s:.2f} s | {statistics.median(one.cpu_s):.2f} s"
        f" | {one.target_s:.2f} s |"
        for one in measured
    ]
    head = [
        "# Time before and after measuring",
        "",
        "How long a fresh process takes from start to end; the first row is Python itself. Made by",
        "`python benchmarks/startup.py --markdown docs/figures/startup.md`.",
        "",
        f"{machine}; best and median of {len(measured[0].times_s)} repetitions, and the median of their CPU time.",
        "",
        "| command | best | median | CPU | target |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def main() -> None:
    """Measure, print a table, write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    measured = figures(options.repeats)
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    text = render_markdown(measured, machine)
    print(text)
    if options.json:
        content = {"machine": machine, "figures": [asdict(one) for one in measured]}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
