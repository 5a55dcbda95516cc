"""Recorded H200 sessions: no false alarm between sessions or chips, and true slowdowns found."""

import json
import math
import statistics
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Provenance
from perfgate.core.case import Unit, Work
from perfgate.core.comparison import comparison
from perfgate.core.decision import decision
from perfgate.core.gate import judge
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from tests.factories import H200, make_case_info, make_run

NOW = "2026-11-30T00:00:00Z"
CLOCK_HZ = 1.98e9  # of the factory's launches: cycles become times and cycles again
NOT_FAILING = {CaseVerdict.UNCHANGED, CaseVerdict.IMPROVED, CaseVerdict.INCONCLUSIVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    name: str
    chip: str | None
    board: str | None
    cases: dict[str, tuple[Unit, list[float]]]

    @property
    def launches(self) -> int:
        return len(next(iter(self.cases.values()))[1])

    def run(self) -> Run:
        times_s = {
            case_id: [value / (CLOCK_HZ if unit is Unit.CYCLES else 1.0) for value in values]
            for case_id, (unit, values) in self.cases.items()
        }
        infos = {
            case_id: make_case_info(case_id.split(".", 1)[0], work=Work(), unit=unit)
            for case_id, (unit, _) in self.cases.items()
        }
        return make_run(times_s, infos=infos, gpu=replace(H200, board_part_number=self.board, chip=self.chip))


def sessions() -> list[Session]:
    path = Path(__file__).parent.parent / "data" / "h200-launches.json"
    return [
        Session(
            name=one["name"],
            chip=one["chip"],
            board=one["board_part_number"],
            cases={case_id: (Unit(case["unit"]), case["values"]) for case_id, case in one["cases"].items()},
        )
        for one in json.loads(path.read_text(encoding="utf-8"))["sessions"]
    ]


SESSIONS = sessions()
BATCHED = [one for one in SESSIONS if one.name in ("x1", "x2", "x3", "y1", "y2")]
SINGLE = [one for one in SESSIONS if one not in BATCHED]


def report(one: Session, other: Session, policy: Policy | None = None) -> Report:
    provenance = Provenance(recorded_utc=NOW, reason=one.name, device_kind="cuda", perfgate_version="0")
    return judge(
        baseline=baseline_of(one.run(), provenance), candidate=other.run(), policy=policy or Policy(), created_utc=NOW
    )


def pairs(members: list[Session], *, same_chip: bool) -> list[tuple[Session, Session]]:
    return [(one, other) for one, other in permutations(members, 2) if (one.chip == other.chip) == same_chip]


def verdicts(found: Report) -> set[CaseVerdict]:
    return {case.verdict for case in found.cases}


@pytest.mark.parametrize("pair", pairs(BATCHED, same_chip=True), ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_judge__sessions_of_one_chip_raise_no_alarm(pair: tuple[Session, Session]) -> None:
    assert verdicts(report(*pair)) <= NOT_FAILING


@pytest.mark.parametrize("policy", [Policy(), Policy(margins={"*": 0.005})], ids=["default margins", "0.5 %"])
def test_judge__chips_of_one_board_raise_no_alarm(policy: Policy) -> None:
    for pair in pairs(BATCHED, same_chip=False):
        assert verdicts(report(*pair, policy)) <= NOT_FAILING


def test_judge__chips_whose_board_was_not_read_raise_no_alarm_at_the_margin_between_chips() -> None:
    unread = [one for one in SINGLE if one.board is None]
    for pair in permutations(unread, 2):
        found = report(*pair)
        assert verdicts(found) <= NOT_FAILING
        assert "identity-incomplete" in {caveat.code for caveat in found.caveats}


def test_judge__another_board_or_an_unread_one_is_not_comparable() -> None:
    # Taken as comparable, session d would have been accused of a gather 10 % slower, and rightly so.
    for one, other in permutations(SINGLE, 2):
        if one.board != other.board:
            found = report(one, other)
            assert found.verdict is CheckVerdict.NOT_COMPARABLE
            assert [difference.field for difference in found.identity_differences] == ["board_part_number"]


@pytest.mark.parametrize(("factor", "bandwidth", "gemm"), [(1.01, 0.005, 0.005), (1.02, 0.005, 0.01)])
def test_decision__finds_recorded_times_made_slower(factor: float, bandwidth: float, gemm: float) -> None:
    generator = np.random.default_rng(1)
    draws, found, asked = 500, 0, 0
    for chip in dict.fromkeys(one.chip or one.name for one in SESSIONS):
        members = [one for one in SESSIONS if (one.chip or one.name) == chip]
        cases = list(members[0].cases)
        launches = np.array([np.concatenate([np.log(one.cases[case][1]) for one in members]) for case in cases])
        margins = np.array([gemm if case.startswith("gemm") else bandwidth for case in cases])
        count = launches.shape[1]
        baseline = np.stack([launches[:, generator.integers(0, count, 12)] for _ in range(draws)])
        candidate = np.stack([launches[:, generator.integers(0, count, 6)] for _ in range(draws)])
        for place in range(len(cases)):
            if statistics.stdev(launches[place].tolist()) > (factor - 1 - margins[place]) / 4:
                continue
            slower = candidate.copy()
            slower[:, place] += math.log(factor)
            decided = decision(comparison(slower, baseline, margins), level=0.01, equivalence_level=0.05)
            found += int(decided.is_verdict(CaseVerdict.REGRESSED)[:, place].sum())
            asked += draws
    assert asked >= 35 * draws
    assert found / asked >= 0.99
