"""A change against its base, measured in turn: verdicts, causes, what only one side has, exit codes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfgate.core.against import SAME_CODE, judged_against
from perfgate.core.case import Timing, Work
from perfgate.core.policy import Policy
from perfgate.core.report import CaseResult, MarginSource, Report
from perfgate.core.run import CaseInfo, Health, Launch, Run
from perfgate.core.sides import Sides
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ConfigurationError, ExitCode
from tests.factories import make_case_info, make_run, normal_medians

NOW = "2026-11-30T12:00:00Z"
COPY, SCAN = "own.copy[n=1]", "own.scan"


def paired(base: Run, head: Run) -> tuple[tuple[Launch, Launch], ...]:
    return tuple(zip(base.launches, head.launches, strict=True))


def sides_of(
    base: Mapping[str, Sequence[float]],
    head: Mapping[str, Sequence[float]],
    *,
    head_infos: Mapping[str, CaseInfo] | None = None,
    **changes: Any,
) -> Sides:
    infos = {case_id: make_case_info("own") for case_id in base}
    one = make_run(base, infos=infos)
    other = make_run(head, infos=head_infos or infos)
    return Sides(base=one, head=other, pairs=paired(one, other), base_name="base main", **changes)


def slower(by: float, spread: float = 5e-4, launches: int = 12) -> Sides:
    base = normal_medians(1, launches, spread=spread)
    head = [one * (1 + by) for one in normal_medians(2, launches, spread=spread)]
    return sides_of({COPY: base}, {COPY: head})


def judged(sides: Sides, **policy: Any) -> Report:
    return judged_against(sides, Policy(**policy), NOW)


def only(report: Report) -> CaseResult:
    (result,) = report.cases
    return result


def test_judged_against__finds_half_a_percent_and_blames_the_change() -> None:
    report = judged(slower(0.005))
    result = only(report)
    assert (report.verdict, report.exit_code) == (CheckVerdict.REGRESSED, ExitCode.REGRESSED)
    assert result.verdict is CaseVerdict.REGRESSED
    assert result.change is not None
    assert result.change.low is not None
    assert result.margin is not None
    assert (result.margin.relative, result.margin.source) == (0.003, MarginSource.SAME_SESSION)
    assert result.change.low > 0.003
    assert [cause.code for cause in result.causes] == ["unhashed"]
    assert {cause.who for cause in result.causes} == {"author"}
    assert report.launches == 24


@pytest.mark.parametrize(("by", "verdict"), [(0.0, CaseVerdict.UNCHANGED), (-0.02, CaseVerdict.IMPROVED)])
def test_judged_against__passes_what_is_no_slower(by: float, verdict: CaseVerdict) -> None:
    report = judged(slower(by))
    assert only(report).verdict is verdict
    assert report.exit_code == ExitCode.PASSED


def test_judged_against__a_drift_of_the_machine_is_no_change_of_the_code() -> None:
    """Five percent over the session, in quads: pairs see a fifth of a percent up, then down."""
    places = np.array([0, 1, 3, 2] * 6) + np.repeat(np.arange(6) * 4, 4)
    times = [2e-3 * (1 + 0.002 * place) for place in places]
    base, head = times[0::2], times[1::2]
    assert only(judged(sides_of({COPY: base}, {COPY: head}))).verdict in (
        CaseVerdict.UNCHANGED,
        CaseVerdict.INCONCLUSIVE,
    )


def test_judged_against__noise_alone_arouses_no_suspicion() -> None:
    """Launches that spread by 3 % lie beyond 0.3 % half the time; that proves nothing and fails nothing."""
    verdicts = set()
    for seed in range(40):
        base, head = normal_medians(seed, 12, spread=0.03), normal_medians(seed + 1000, 12, spread=0.03)
        verdicts.add(only(judged(sides_of({COPY: base}, {COPY: head}))).verdict)
    assert verdicts == {CaseVerdict.INCONCLUSIVE}


def test_judged_against__what_is_likely_but_not_proven_is_suspected() -> None:
    base = [2e-3] * 12
    head = [2e-3 * (1.006 if index not in (3, 7) else 1.0) for index in range(12)]
    report = judged(sides_of({COPY: base}, {COPY: head}))
    assert only(report).verdict is CaseVerdict.SUSPECTED
    assert report.exit_code == ExitCode.UNDECIDED


def test_judged_against__uses_the_margin_that_the_policy_gives_a_case() -> None:
    result = only(judged(slower(0.01), margins={"own.*": 0.02}))
    assert result.verdict is CaseVerdict.UNCHANGED
    assert result.margin is not None
    assert (result.margin.relative, result.margin.source) == (0.02, MarginSource.POLICY)


@pytest.mark.parametrize(
    ("changes", "redefined", "cause"),
    [
        ({"source_sha256": "d" * 64, "code_sha256": "e" * 64}, False, "source-changed"),
        ({"code_sha256": "e" * 64}, False, "code-changed"),
        ({}, True, "suite-changed"),
        ({}, False, "unhashed"),
    ],
)
def test_judged_against__says_what_the_change_did(changes: dict[str, Any], redefined: bool, cause: str) -> None:
    sides = slower(0.05)
    head = replace(sides.head, cases={COPY: replace(sides.head.cases[COPY], **changes)})
    result = only(judged(replace(sides, head=head, is_redefined=redefined)))
    assert [one.code for one in result.causes] == [cause]


def test_judged_against__lists_what_it_did_not_compare() -> None:
    info = make_case_info("own")
    sides = replace(
        slower(0.0),
        same={"own.same": info},
        only_head={"own.added": info},
        only_base={"own.removed": info},
        failed={"own.broken": (info, "its set-up raised ValueError")},
    )
    report = judged(sides)
    found = {case.id: (case.verdict, case.reason) for case in report.cases}
    assert found["own.same"] == (CaseVerdict.UNCHANGED, SAME_CODE)
    assert found["own.added"] == (CaseVerdict.NEW, "the base has no such case")
    assert found["own.removed"] == (CaseVerdict.MISSING, "the base has it, the change does not")
    assert found["own.broken"] == (CaseVerdict.INVALID, "its set-up raised ValueError")
    assert found[COPY][0] is CaseVerdict.UNCHANGED
    assert (report.verdict, report.exit_code) == (CheckVerdict.INVALID, ExitCode.UNDECIDED)


def test_judged_against__that_is_the_same_throughout_passes() -> None:
    empty = make_run({})
    report = judged(Sides(base=empty, head=empty, pairs=(), same={COPY: make_case_info("own")}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.PASSED, ExitCode.PASSED)


def test_judged_against__a_base_without_any_of_the_cases_is_no_baseline() -> None:
    empty = make_run({})
    report = judged(Sides(base=empty, head=empty, pairs=(), only_head={COPY: make_case_info("own")}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.NO_BASELINE, ExitCode.NO_BASELINE)


def test_judged_against__another_work_under_the_same_id_is_not_comparable() -> None:
    times = {COPY: [2e-3] * 12}
    infos = {COPY: make_case_info("own", work=Work(read_bytes=1))}
    report = judged(sides_of(times, times, head_infos=infos))
    assert only(report).verdict is CaseVerdict.NOT_COMPARABLE
    assert "work differs" in (only(report).reason or "")
    assert report.exit_code == ExitCode.NO_BASELINE


def test_judged_against__a_wrong_output_of_one_case_leaves_the_others_judged() -> None:
    sides = replace(slower(0.02), wrong_output=(SCAN,), failed={SCAN: (make_case_info("own"), "wrong output")})
    report = judged(sides)
    assert report.exit_code == ExitCode.WRONG_OUTPUT
    assert {case.id: case.verdict for case in report.cases} == {
        COPY: CaseVerdict.REGRESSED,
        SCAN: CaseVerdict.INVALID,
    }


def test_judged_against__slower_beside_another_process_is_invalid() -> None:
    sides = slower(0.02)
    head = replace(sides.head, health_before=Health(), health_after=Health(foreign_processes=("process 7",)))
    assert only(judged(replace(sides, head=head))).verdict is CaseVerdict.INVALID


def test_judged_against__drops_the_pairs_that_lost_a_launch() -> None:
    sides = slower(0.02)
    lost = replace(sides.head.launches[0], cases={}, failures={COPY: "crashed"})
    head = replace(sides.head, launches=(lost, *sides.head.launches[1:]))
    result = only(judged(replace(sides, head=head, pairs=paired(sides.base, head))))
    assert result.verdict is CaseVerdict.REGRESSED
    assert (result.baseline_launches, result.candidate_launches) == (12, 11)
    assert "launches-lost" in {caveat.code for caveat in result.caveats}


def test_judged_against__a_side_without_a_valid_time_is_invalid() -> None:
    sides = slower(0.02)
    launches = tuple(replace(one, cases={}, failures={COPY: "does not compile"}) for one in sides.base.launches)
    base = replace(sides.base, launches=launches)
    result = only(judged(replace(sides, base=base, pairs=paired(base, sides.head))))
    assert result.verdict is CaseVerdict.INVALID
    assert (result.reason or "").startswith("the base: no launch gave a valid time: does not compile")


def test_judged_against__too_few_launches_to_prove_anything_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="6 launches a side could not prove"):
        judged(slower(0.02, launches=6))


def test_judged_against__does_not_judge_what_is_not_gated() -> None:
    times = {COPY: [2e-3] * 12}
    head = {COPY: [3e-3] * 12}
    infos = {COPY: make_case_info("own", timing=Timing.SUBMIT)}
    base_run, head_run = make_run(times, infos=infos), make_run(head, infos=infos)
    report = judged(Sides(base=base_run, head=head_run, pairs=paired(base_run, head_run)))
    assert only(report).verdict is CaseVerdict.NOT_GATED
    assert only(report).change is not None


def test_judged_against__many_cases_are_corrected_for() -> None:
    """At 0.05 uncorrected one of twenty unchanged cases would be accused in two of three checks."""
    ids = [f"own.case{number}" for number in range(20)]
    for seed in range(10):
        base = {case_id: normal_medians(seed * 100 + place, 16) for place, case_id in enumerate(ids)}
        head = {case_id: normal_medians(seed * 100 + 50 + place, 16) for place, case_id in enumerate(ids)}
        report = judged(sides_of(base, head), alpha=0.05)
        assert report.verdict is not CheckVerdict.REGRESSED
