"""Many checks from few sessions: pairs of recorded sessions drawn again, judged as check --against judges them.

    python benchmarks/own_checks.py FOLDER NAME... [--planted CASE]... [--checks 2000] [--shift 0.005] [--json FILE]

FOLDER holds NAME.base.json and NAME.run.json of sessions that were measured in turn (benchmarks/own_kernels.py). Into
planted cases the change was injected on the GPU. Each check draws as many pairs with replacement as a check has.

Of the cases that were left alone, which are the same code on both sides, three things are told:

- called slower with the sides of each pair drawn at random: the level of the test. Drawn sides favour none, so this
  cannot show that the second of two launches is slower than the first.
- called slower with the sides as they were measured: this could.
- found when --shift is added to the drawn pairs of this case alone: planted by calculation, not on a GPU.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.core.case import Unit
from perfgate.core.decision import decision
from perfgate.core.paired import detectable_shift, paired_comparison
from perfgate.core.policy import Policy
from perfgate.core.sides import Sides, sides_of
from perfgate.core.summary import launch_statistic
from perfgate.core.verdict import CaseVerdict
from perfgate.storage.documents import read_run

QUIET_SPREAD = 8e-4


def differences(sides: Sides, case_id: str) -> np.ndarray:
    """Return log(head / base) of every pair."""
    found = []
    for base, head in sides.pairs:
        one, other = (launch_statistic(side.cases[case_id], Unit.SECONDS) for side in (base, head))
        if one is not None and other is not None:
            found.append(np.log(other / one))
    return np.array(found)


def accused(values: np.ndarray, policy: Policy) -> np.ndarray:
    """Return how often each case is called slower; values are checks x cases x pairs."""
    family = decision(
        paired_comparison(values, policy.margin_floor),
        level=policy.alpha,
        equivalence_level=policy.equivalence_alpha,
    )
    return np.asarray(family.is_verdict(CaseVerdict.REGRESSED).mean(axis=0))


def judged(
    sides: Sides, planted: tuple[str, ...], checks: int, shift: float, random: np.random.Generator
) -> dict[str, Any]:
    """Judge checks of pairs drawn from one session."""
    policy, ids = Policy(), sorted(sides.head.cases)
    columns = [differences(sides, case_id) for case_id in ids]
    count = min(map(len, columns))
    drawn = random.integers(count, size=(checks, count))
    signs = random.choice([-1, 1], size=(checks, len(ids), count))
    # One draw of pairs for all cases, as they were measured: what disturbs a launch disturbs them together.
    measured = np.stack([column[:count][drawn] for column in columns], axis=1)
    is_planted = np.array([case_id in planted for case_id in ids])
    values = np.where(is_planted[None, :, None], measured, measured * signs)
    as_drawn, as_measured = accused(values, policy), accused(measured, policy)

    def shifted(place: int) -> float:
        added = np.zeros(len(ids))
        added[place] = np.log1p(shift)
        return float(accused(values + added[None, :, None], policy)[place])

    return {
        case_id: {
            "planted": bool(is_planted[place]),
            "spread": float(columns[place].std(ddof=1) / np.sqrt(2)),
            "change": float(np.expm1(np.median(columns[place]))),
            "detectable": float(
                np.expm1(detectable_shift(columns[place], policy.margin_floor, policy.alpha / len(ids)))
            ),
            "accused": float(as_drawn[place]),
            "accused_as_measured": float(as_measured[place]),
            "found_shifted": None if is_planted[place] else shifted(place),
        }
        for place, case_id in enumerate(ids)
    }


def main() -> int:
    """Print the rates; exit 1 for false alarms in 1 % of checks, or a change that a quiet case does not show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--planted", action="append", default=[], metavar="CASE")
    parser.add_argument("--checks", type=int, default=2000)
    parser.add_argument("--shift", type=float, default=0.005, help="planted by calculation (default: 0.005)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(20261130)
    found, is_right = {}, True
    for name in options.names:
        sides = sides_of(*(read_run(options.folder / f"{name}.{side}.json") for side in ("base", "run")))
        injected = {case_id for one in sides.head.injected for case_id in one.effective}
        found[name] = judged(sides, tuple(injected | set(options.planted)), options.checks, options.shift, random)
        print(f"\n{name}: {len(sides.pairs)} pairs\n")
        heads = ("case", "planted", "launch spread", "detectable", "called slower", "as measured")
        print(f"| {' | '.join(heads)} | {options.shift:+.1%} found |")
        print("|---|---|---|---|---|---|---|")
        for case_id, one in found[name].items():
            planted = f"{one['change']:+.2%} seen" if one["planted"] else ""
            by_calculation = "" if one["found_shifted"] is None else f"{one['found_shifted']:.1%}"
            print(
                f"| {case_id} | {planted} | {one['spread']:.3%} | {one['detectable']:+.2%} | {one['accused']:.1%} |"
                f" {one['accused_as_measured']:.1%} | {by_calculation} |"
            )
            if one["planted"]:
                is_right &= one["spread"] > QUIET_SPREAD or one["accused"] >= 0.95
            else:
                is_right &= max(one["accused"], one["accused_as_measured"]) < Policy().alpha
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
