"""The main job on the GPU at hand, as a person does it: a baseline, checks, rehearsed changes; what each came to.

    python benchmarks/main_job.py [--baselines DIR] [--json FILE]

Without ``--baselines`` a scratch baseline is recorded first (12 launches). The rest before a
confirmation is shortened to 15 s by a policy, so that the whole stays under ten minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

POLICY = "confirmation_pause_s = 15.0\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command and what is expected of it."""

    name: str
    arguments: tuple[str, ...]
    exit_code: int
    regressed: tuple[str, ...] = ()
    improved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a step came to."""

    name: str
    as_expected: bool
    exit_code: int
    duration_s: float
    launches: int
    regressed: tuple[str, ...]
    improved: tuple[str, ...]
    changes: dict[str, float]
    summary: str


SAME_CHIP = (
    Step(name="check 1", arguments=(), exit_code=0),
    Step(name="check 2", arguments=(), exit_code=0),
    Step(name="check 3", arguments=(), exit_code=0),
    Step(
        name="copy +2 %",
        arguments=("--inject", "bandwidth.copy*=+2%"),
        exit_code=1,
        regressed=("bandwidth.copy",),
    ),
    Step(name="gemm.fp32 +2 %", arguments=("--inject", "gemm.fp32*=+2%"), exit_code=1, regressed=("gemm.fp32",)),
    Step(name="copy -2 %", arguments=("--inject", "bandwidth.copy*=-2%"), exit_code=0, improved=("bandwidth.copy",)),
)
STORED = (
    Step(name="check against the stored baseline", arguments=(), exit_code=0),
    Step(
        name="everything +3 %",
        arguments=("--inject", "*=+3%"),
        exit_code=1,
        regressed=("bandwidth.copy", "bandwidth.read", "bandwidth.triad", "bandwidth.write", "gemm.fp32"),
    ),
)


def run(arguments: tuple[str, ...], folder: Path) -> tuple[int, float]:
    """Run perfgate in a folder; return exit code and seconds."""
    began_s = time.monotonic()
    finished = subprocess.run([sys.executable, "-m", "perfgate", *arguments], cwd=folder, check=False)
    return finished.returncode, time.monotonic() - began_s


def outcome(step: Step, baselines: Path, folder: Path) -> Outcome:
    """Run a check and compare what it came to with what is expected."""
    arguments = ("check", "--baseline", str(baselines), "--quiet", *step.arguments)
    code, duration_s = run(arguments, folder)
    report = json.loads((folder / "perfgate-results" / "report.json").read_text(encoding="utf-8"))
    found = {
        verdict: tuple(case["id"].split("[")[0] for case in report["cases"] if case["verdict"] == verdict)
        for verdict in ("regressed", "improved")
    }
    as_expected = (
        code == step.exit_code
        and sorted(found["regressed"]) == sorted(step.regressed)
        and sorted(found["improved"]) == sorted(step.improved)
    )
    return Outcome(
        name=step.name,
        as_expected=as_expected,
        exit_code=code,
        duration_s=round(duration_s, 1),
        launches=report["launches"],
        regressed=found["regressed"],
        improved=found["improved"],
        changes={case["id"]: round(case["change"]["value"], 5) for case in report["cases"] if case["change"]},
        summary=report["summary"],
    )


def main() -> int:
    """Run the steps and print a table; exit 1 when one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baselines", type=Path, help="stored baselines; without, a scratch one is recorded")
    parser.add_argument("--json", type=Path, help="also write what was found there")
    options = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "perfgate.toml").write_text(POLICY, encoding="utf-8")
        baselines = options.baselines.resolve() if options.baselines else folder / "scratch"
        if options.baselines is None:
            update = ("baseline", "update", "--baseline", str(baselines), "--reason", "scratch", "--quiet")
            code, duration_s = run(update, folder)
            print(f"baseline update: exit {code}, {duration_s:.1f} s", flush=True)
        steps = STORED if options.baselines else SAME_CHIP
        outcomes.extend(outcome(step, baselines, folder) for step in steps)
    for one in outcomes:
        mark = "ok  " if one.as_expected else "FAIL"
        print(f"{mark} {one.name}: exit {one.exit_code}, {one.launches} launches, {one.duration_s} s; {one.summary}")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.as_expected for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
