"""Changes of one chip found in one session: launches of a run drawn as baseline and candidate, times multiplied.

    python benchmarks/detection.py RUN.json[.gz] ... [--draws 200] [--json FILE]

Needs no GPU. A run of at least 18 launches is split again and again, whole launches and none twice: 12 are the
baseline, 6 the candidate, whose times are multiplied by 1, 1.01 and 1.02. A planted change counts where the case's
launches spread by at most a quarter of what the change exceeds the margin by.
"""

import argparse
import json
import random
import statistics
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pairs import ACCUSED, NARROW, baseline, slowed

from perfgate.core.gate import judge
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics
from perfgate.core.verdict import CaseVerdict
from perfgate.storage.documents import read_run

BASELINE_LAUNCHES, CANDIDATE_LAUNCHES = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How often a case was found slower.

    Attributes:
        name: what was planted, and the margin.
        case: id.
        spread: standard deviation of the run's launches over their mean; the largest of the runs.
        is_owed: whether the spread allows to ask for it.
    """

    name: str
    case: str
    spread: float
    is_owed: bool
    checks: int
    accused: int
    regressed: int


def split(run: Run, generator: random.Random) -> tuple[Run, Run]:
    """Return a run's launches as a baseline and a candidate that share none."""
    launches = generator.sample(run.launches, BASELINE_LAUNCHES + CANDIDATE_LAUNCHES)
    return (
        replace(run, launches=tuple(launches[:BASELINE_LAUNCHES])),
        replace(run, launches=tuple(launches[BASELINE_LAUNCHES:])),
    )


def spread(run: Run, case_id: str) -> float:
    """Return the standard deviation of a case's launches over their mean."""
    plan = run.cases[case_id]
    values = launch_statistics(run, case_id, plan.unit)
    return statistics.stdev(values) / statistics.fmean(values)


def detections(name: str, runs: list[Run], policy: Policy, factor: float, draws: int) -> list[Detection]:
    """Judge ``draws`` splits of every run; one entry a judged case."""
    generator = random.Random(0)
    checks: Counter[str] = Counter()
    accused: Counter[str] = Counter()
    regressed: Counter[str] = Counter()
    owed: dict[str, bool] = {}
    spreads: dict[str, float] = {}
    for run in runs:
        for _ in range(draws):
            before, after = split(run, generator)
            report = judge(
                baseline=baseline(before),
                candidate=slowed(after, factor),
                policy=policy,
                created_utc="2026-12-01T00:00:00Z",
            )
            for case in report.cases:
                if not case.gated or case.change is None or case.margin is None:
                    continue
                checks[case.id] += 1
                accused[case.id] += case.verdict in ACCUSED
                regressed[case.id] += case.verdict is CaseVerdict.REGRESSED
                spreads[case.id] = max(spreads.get(case.id, 0.0), spread(run, case.id))
                owed[case.id] = spreads[case.id] <= (factor - 1 - case.margin.relative) / 4
    return [
        Detection(
            name=name,
            case=case_id,
            spread=spreads[case_id],
            is_owed=owed[case_id],
            checks=checks[case_id],
            accused=accused[case_id],
            regressed=regressed[case_id],
        )
        for case_id in checks
    ]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs = [read_run(path) for path in options.runs]
    found = [
        *detections("unchanged, default margins", runs, Policy(), 1.0, options.draws),
        *detections("unchanged, margin 0.5 %", runs, NARROW, 1.0, options.draws),
        *detections("x 1.01, margin 0.5 %", runs, NARROW, 1.01, options.draws),
        *detections("x 1.02, default margins", runs, Policy(), 1.02, options.draws),
    ]
    print("| candidate | case | launches spread by | checks | accused | regressed | owed |")
    print("|---|---|---|---|---|---|---|")
    for one in found:
        owed = "-" if one.name.startswith("unchanged") else "yes" if one.is_owed else "no"
        print(
            f"| {one.name} | {one.case} | {one.spread:.3%} | {one.checks} | {one.accused} | {one.regressed} | {owed} |"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
