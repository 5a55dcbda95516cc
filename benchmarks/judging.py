"""How good the judging is: error rates and power by simulation and on recordings, beside the rules of other tools.

    python -m benchmarks.judging RECORDINGS [--quick] [--output FOLDER] [--document FILE]

RECORDINGS holds the folders ``h200-batched`` and ``h200-sessions`` of recorded sessions. Writes
``judging.json``, and its tables into docs/statistics.md. Everything is seeded; the full figures take
five minutes.
"""

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recordings import Recording, read_recordings
from benchmarks.rules import RULES, Sides
from benchmarks.simulated import Noise, Setting, Shape, coverage, largest_session_spread, outcome
from benchmarks.throughput import throughput
from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.comparison import comparison
from perfgate.core.decision import decision
from perfgate.core.gate import judge
from perfgate.core.margin import margin_defaults
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict

NOW = "2026-11-30T00:00:00Z"
_ACCUSED = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED)
_TABLE = Mapping[str, Any]
_BEGIN = "<!-- made by benchmarks/judging.py: begin -->"
_END = "<!-- made by benchmarks/judging.py: end -->"


def main() -> None:
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--document", type=Path, default=Path("docs/statistics.md"), help="holds the tables")
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    batched = read_recordings(arguments.recordings / "h200-batched")
    single = read_recordings(arguments.recordings / "h200-sessions")
    results = {
        "simulated": simulated(checks=40_000 // scale),
        "recorded": recorded(batched, single, draws=2_000 // scale),
        "rules": rules(batched, single, draws=max(40 // scale, 4)),
        "throughput": throughput(),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "judging.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    document = arguments.document.read_text(encoding="utf-8")
    arguments.document.write_text(with_tables(document, markdown(results)), encoding="utf-8")


def with_tables(document: str, tables: str) -> str:
    """Return the document with the tables between its two markers."""
    before, _, rest = document.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{tables}\n{_END}{after}"


def simulated(checks: int) -> _TABLE:
    """Error rates, power and coverage on simulated noise: 20 cases, 12 baseline and 6 candidate launches."""
    quiet = Setting(noise=Noise())
    boundary = replace(quiet, change=quiet.margin)
    alike = {
        f"A/A, session spread a fifth of the margin, {shape} launches": replace(
            quiet, noise=Noise(session=quiet.margin / 5, shape=shape)
        )
        for shape in Shape
    }
    settings = {
        "every case exactly at the margin, staged": boundary,
        "every case exactly at the margin, one look": replace(boundary, stages=(6,)),
        "every case exactly at the margin, 36 baseline launches, staged": replace(boundary, baseline_launches=36),
        "every case exactly at the margin, samples of 0.5 % within launches": replace(
            boundary, noise=Noise(sample=0.005)
        ),
        **alike,
        **{
            f"one case slower, (effect - margin) = {times:g} launch spreads": replace(
                quiet, change=quiet.margin + times * quiet.noise.launch, changed=1
            )
            for times in (3, 3.5, 4)
        },
        "every case slower by 1.5 margins": replace(quiet, change=1.5 * quiet.margin),
    }
    return {
        "outcomes": {name: asdict(outcome(setting, checks=checks, seed=20)) for name, setting in settings.items()},
        "coverage": {
            f"{1 - 2 * level:g}": coverage(quiet, level=level, checks=checks, seed=21) for level in (0.05, 0.025, 0.005)
        },
        "largest_session_spread": {
            str(shape): largest_session_spread(replace(quiet, noise=Noise(shape=shape)), checks=checks // 4, seed=22)
            for shape in Shape
        },
    }


def recorded(batched: Sequence[Recording], single: Sequence[Recording], draws: int) -> _TABLE:
    """False alarms between recorded sessions and detection of recorded times made slower, by the product."""
    tight = Policy(margins={"*": 0.005})
    return {
        "false_alarms": {
            "sessions of one chip": _alarms(_pairs(batched, same_chip=True), Policy()),
            "chips of one board, default margins": _alarms(_pairs(batched, same_chip=False), Policy()),
            "chips of one board, 0.5 %": _alarms(_pairs(batched, same_chip=False), tight),
            "boards unread, one execution to an event pair": _alarms(_unread(single), Policy()),
        },
        "not_comparable": _not_comparable(single),
        "found": {
            "x 1.01 at 0.5 %": _found((*batched, *single), 1.01, lambda _: 0.005, draws),
            "x 1.02 at the default margins": _found(
                (*batched, *single), 1.02, lambda case_id: margin_defaults(case_id).same_chip, draws
            ),
        },
    }


def rules(batched: Sequence[Recording], single: Sequence[Recording], draws: int) -> _TABLE:
    """The same questions put to the rules of other tools; cases called slower of cases asked about."""
    groups = {
        "same_chip": list(_pairs(batched, same_chip=True)),
        "same_board": list(_pairs(batched, same_chip=False)),
        "unread_boards": list(_unread(single)),
        "other_boards": list(_across_boards(single)),
    }
    table: dict[str, dict[str, Any]] = {}
    for name, rule in RULES.items():
        table[name] = {
            group: _share(rule(sides) for one, other in pairs for sides in _sides(one, other))
            for group, pairs in groups.items()
        }
    table["perfgate"] = {group: _alarms(pairs, Policy())["of_cases"] for group, pairs in groups.items()}
    for factor, margin in ((1.01, lambda _: 0.005), (1.02, lambda case_id: margin_defaults(case_id).same_chip)):
        column = f"found_{factor}"
        for name, rule in RULES.items():
            table[name][column] = _share(
                rule(sides) for sides in _drawn_sides((*batched, *single), factor, margin, draws)
            )
        table["perfgate"][column] = _found((*batched, *single), factor, margin, draws)["of_draws"]
    return table


def _baseline(recording: Recording) -> Baseline:
    provenance = Provenance(recorded_utc=NOW, reason=recording.name, device_kind="recorded", perfgate_version="0")
    return baseline_of(recording.run, provenance)


def _report(one: Recording, other: Recording, policy: Policy) -> Report:
    return judge(baseline=_baseline(one), candidate=other.run, policy=policy, created_utc=NOW)


_Pair = tuple[Recording, Recording]


def _pairs(recordings: Sequence[Recording], *, same_chip: bool) -> Iterator[_Pair]:
    return ((one, other) for one, other in permutations(recordings, 2) if (one.chip == other.chip) == same_chip)


def _unread(recordings: Sequence[Recording]) -> Iterator[_Pair]:
    return permutations((one for one in recordings if one.board is None), 2)


def _across_boards(recordings: Sequence[Recording]) -> Iterator[_Pair]:
    return ((one, other) for one, other in permutations(recordings, 2) if one.board != other.board)


def _alarms(pairs: Iterable[_Pair], policy: Policy) -> dict[str, Any]:
    """Count the checks of unchanged code that fail: regressed and suspected cases, and the largest change seen."""
    verdicts: Counter[str] = Counter()
    checks, largest = 0, 0.0
    for one, other in pairs:
        report = _report(one, other, policy)
        checks += 1
        verdicts.update(case.verdict.value for case in report.cases)
        largest = max([largest, *(abs(case.change.value) for case in report.cases if case.change is not None)])
    accused = sum(verdicts[verdict.value] for verdict in _ACCUSED)
    return {
        "checks": checks,
        "cases": dict(verdicts),
        "largest_change": largest,
        "of_cases": {"slower": accused, "of": sum(verdicts.values())},
    }


def _not_comparable(recordings: Sequence[Recording]) -> dict[str, Any]:
    fields: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for one, other in _across_boards(recordings):
        report = _report(one, other, Policy())
        verdicts[report.verdict.value] += 1
        fields.update(difference.field for difference in report.identity_differences)
    assert set(verdicts) == {CheckVerdict.NOT_COMPARABLE.value}
    return {"checks": dict(verdicts), "fields": dict(fields)}


def _chips(recordings: Sequence[Recording]) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    """Yield each chip's cases and the logarithms of all its launches, shape (cases, launches)."""
    by_chip: dict[str, list[Recording]] = {}
    for one in recordings:
        by_chip.setdefault(one.chip, []).append(one)
    for members in by_chip.values():
        cases = list(members[0].run.cases)
        yield cases, np.array([np.concatenate([np.log(one.statistics(case)) for one in members]) for case in cases])


def _eligible(launches: NDArray[np.float64], effect: float, margin: float) -> bool:
    """Tell whether a chip's launches are quiet enough: their spread is at most (effect - margin) / 4."""
    return statistics.stdev(launches.tolist()) <= (effect - margin) / 4


def _draw(generator: np.random.Generator, launches: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw 12 baseline and 6 candidate launches, whole: all cases of a launch stay together."""
    return generator.integers(0, launches, 12), generator.integers(0, launches, 6)


def _found(
    recordings: Sequence[Recording], factor: float, margin_of: Callable[[str], float], draws: int
) -> dict[str, Any]:
    """Slow one case at a time of recorded launches, judge the family of all, count what is found."""
    found, asked, worst = 0, 0, 1.0
    generator = np.random.default_rng(30)
    for cases, launches in _chips(recordings):
        margins = np.array([margin_of(case) for case in cases])
        drawn = [_draw(generator, launches.shape[1]) for _ in range(draws)]
        baseline = np.stack([launches[:, one] for one, _ in drawn])
        candidate = np.stack([launches[:, other] for _, other in drawn])
        for place, case in enumerate(cases):
            if not _eligible(launches[place], factor - 1, margin_of(case)):
                continue
            slower = candidate.copy()
            slower[:, place] += math.log(factor)
            decided = decision(comparison(slower, baseline, margins), level=0.01, equivalence_level=0.05)
            hits = decided.is_verdict(CaseVerdict.REGRESSED)[:, place]
            found, asked = found + int(hits.sum()), asked + draws
            worst = min(worst, float(hits.mean()))
    return {"share": found / asked, "worst_case": worst, "of_draws": {"slower": found, "of": asked}}


def _sides(one: Recording, other: Recording) -> Iterator[Sides]:
    for seed, case in enumerate(one.run.cases):
        yield Sides(
            baseline=one.samples[case],
            candidate=other.samples[case],
            baseline_clock_hz=one.clocks_hz[case],
            candidate_clock_hz=other.clocks_hz[case],
            family=len(one.run.cases),
            seed=seed,
        )


def _drawn_sides(
    recordings: Sequence[Recording], factor: float, margin_of: Callable[[str], float], draws: int
) -> Iterator[Sides]:
    """Yield what other rules are asked about: the same chips, the same cases, drawn in the same way."""
    by_chip: dict[str, list[Recording]] = {}
    for one in recordings:
        by_chip.setdefault(one.chip, []).append(one)
    generator = np.random.default_rng(30)
    for members in by_chip.values():
        cases = list(members[0].run.cases)
        samples = {case: np.concatenate([one.samples[case] for one in members]) for case in cases}
        clocks = {case: np.concatenate([one.clocks_hz[case] for one in members]) for case in cases}
        for case in cases:
            launches = np.concatenate([np.log(one.statistics(case)) for one in members])
            if not _eligible(launches, factor - 1, margin_of(case)):
                continue
            for seed in range(draws):
                baseline, candidate = _draw(generator, launches.size)
                yield Sides(
                    baseline=samples[case][baseline],
                    candidate=samples[case][candidate] * factor,
                    baseline_clock_hz=clocks[case][baseline],
                    candidate_clock_hz=clocks[case][candidate],
                    family=len(cases),
                    seed=seed,
                )


def _share(answers: Iterable[bool]) -> dict[str, int]:
    found = list(answers)
    return {"slower": sum(found), "of": len(found)}


def markdown(results: _TABLE) -> str:
    """Render the results as tables."""
    parts = ["### Simulated checks", ""]
    checks = next(iter(results["simulated"]["outcomes"].values()))["checks"]
    parts += [f"{checks:,} checks a row; 20 cases, 12 baseline and 6 candidate launches unless said otherwise,"]
    parts += ["margin 0.5 %, spread between launches 0.1 %, alpha 1 %.", ""]
    parts += _table(
        ("", "checks that accuse", "after confirmation", "slower cases found", "cases unchanged"),
        (
            (name, *(_percent(row[key]) for key in ("accused", "confirmed", "found", "unchanged")))
            for name, row in results["simulated"]["outcomes"].items()
        ),
    )
    parts += ["", "Interval of the change, no session noise: share that holds the truth.", ""]
    parts += _table(
        ("confidence", "coverage"),
        ((_percent(float(name)), _percent(value)) for name, value in results["simulated"]["coverage"].items()),
    )
    parts += ["", "Largest spread between sessions, as a part of the margin, with at most 1 % false alarms.", ""]
    parts += _table(
        ("launches", "session spread / margin"),
        ((name, f"{value:.2f}") for name, value in results["simulated"]["largest_session_spread"].items()),
    )
    recordings = results["recorded"]
    parts += ["", "### Recorded H200 sessions", ""]
    parts += _table(
        ("unchanged code", "checks", "cases called slower", "of", "largest change seen"),
        (
            (
                name,
                str(row["checks"]),
                str(row["of_cases"]["slower"]),
                str(row["of_cases"]["of"]),
                _percent(row["largest_change"]),
            )
            for name, row in recordings["false_alarms"].items()
        ),
    )
    boards = recordings["not_comparable"]
    parts += [
        "",
        f"Another board, or an unread one against a read one: {_counts(boards['checks'])}.",
        f"Fields named: {_counts(boards['fields'])}.",
        "",
    ]
    parts += _table(
        ("recorded times made slower, 12 + 6 launches of one chip", "found", "worst case"),
        ((name, _percent(row["share"]), _percent(row["worst_case"])) for name, row in recordings["found"].items()),
    )
    parts += ["", "### Beside the rules of other tools", ""]
    parts += ["Cases called slower, of cases asked about, on the same recordings.", ""]
    columns = {
        "same_chip": "false: one chip",
        "same_board": "false: chips of a board",
        "unread_boards": "false: chips and hosts, board unread",
        "other_boards": "false: other boards",
        "found_1.01": "found: x 1.01",
        "found_1.02": "found: x 1.02",
    }
    ordered = ["perfgate", *(name for name in results["rules"] if name != "perfgate")]
    parts += _table(
        ("rule", *columns.values()),
        ((name, *(_part(results["rules"][name][column]) for column in columns)) for name in ordered),
    )
    parts += ["", "### Time to judge", ""]
    parts += _table(
        ("cases, 12 + 12 launches", "seconds"),
        ((name, f"{value:.2f}") for name, value in results["throughput"].items()),
    )
    return "\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _part(count: Mapping[str, int]) -> str:
    share = 100 * count["slower"] / count["of"]
    return f"{count['slower']} of {count['of']} ({share:.3g} %)"


if __name__ == "__main__":
    main()
