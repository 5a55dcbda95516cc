"""Judges every pair of recorded runs of one identity: false alarms between chips, and a planted 1 % found.

    python benchmarks/pairs.py RUN.json[.gz] ... [--json FILE]

Needs no GPU. A candidate is six launches drawn whole from another run; unchanged, and with its times
multiplied by 1.01 and 1.02. What differs between the two runs is the chip, the machine and the hour.
"""

import argparse
import itertools
import json
import random
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.gate import judge
from perfgate.core.gpu import identity_differences
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict
from perfgate.storage.documents import read_run

LAUNCHES = 6
DRAWS = 40
NARROW = Policy(margins={"bandwidth.*": 0.005, "gemm.*": 0.005})
ACCUSED = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How often something happened to the judged cases of all checks."""

    name: str
    checks: int
    cases: int
    accused: int
    regressed: int


def baseline(run: Run) -> Baseline:
    """Return a run as the only session of a baseline."""
    provenance = Provenance(recorded_utc=run.created_utc, reason="pair", device_kind="cuda", perfgate_version="0")
    return baseline_of(run, provenance)


def slowed(run: Run, factor: float) -> Run:
    """Return a run whose times are longer by a factor."""
    launches = tuple(
        replace(
            launch,
            cases={
                case_id: replace(
                    case,
                    blocks=tuple(
                        replace(block, times_s=tuple(time_s * factor for time_s in block.times_s))
                        for block in case.blocks
                    ),
                )
                for case_id, case in launch.cases.items()
            },
        )
        for launch in run.launches
    )
    return replace(run, launches=launches)


def drawn(run: Run, generator: random.Random) -> Run:
    """Return six launches of a run, drawn whole and without replacement."""
    return replace(run, launches=tuple(generator.sample(run.launches, min(LAUNCHES, len(run.launches)))))


def counted(name: str, runs: list[Run], policy: Policy, factor: float, only: tuple[str, ...], draws: int) -> Count:
    """Judge candidates of every ordered pair of comparable runs of different chips."""
    generator = random.Random(0)
    tally: dict[str, int] = defaultdict(int)
    for base, other in itertools.permutations(runs, 2):
        if identity_differences(base.gpu, other.gpu) or base.gpu.chip == other.gpu.chip:
            continue
        for _ in range(draws):
            candidate = slowed(drawn(other, generator), factor)
            report = judge(
                baseline=baseline(base), candidate=candidate, policy=policy, created_utc="2026-12-01T00:00:00Z"
            )
            judged = [case for case in report.cases if case.gated and case.change and case.id.startswith(only)]
            tally["checks"] += 1
            tally["cases"] += len(judged)
            tally["accused"] += sum(case.verdict in ACCUSED for case in judged)
            tally["regressed"] += sum(case.verdict is CaseVerdict.REGRESSED for case in judged)
    return Count(
        name=name,
        checks=tally["checks"],
        cases=tally["cases"],
        accused=tally["accused"],
        regressed=tally["regressed"],
    )


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs = [read_run(path) for path in options.runs]
    timed = ("bandwidth.", "gemm.")
    counts = [
        counted("unchanged, margins between chips", runs, Policy(), 1.0, ("",), DRAWS),
        counted("unchanged, margin 0.5 %", runs, NARROW, 1.0, timed, DRAWS),
        counted("times x 1.01, margin 0.5 %", runs, NARROW, 1.01, timed, DRAWS),
        counted("times x 1.02, margins between chips", runs, Policy(), 1.02, timed, DRAWS),
    ]
    print("| candidate | checks | cases judged | accused | regressed |")
    print("|---|---|---|---|---|")
    for one in counts:
        print(f"| {one.name} | {one.checks} | {one.cases} | {one.accused} | {one.regressed} |")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in counts], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
