"""Which baseline launches a case is compared with: like with like."""

import math
from dataclasses import replace
from typing import Any

import pytest

from perfgate.core.baseline import Baseline, BaselineSession, Provenance
from perfgate.core.case import Timing, Unit, Work
from perfgate.core.plan import CasePlan
from perfgate.core.reference import NoReference, Reference, plan_of, reference
from perfgate.core.run import Injection, Run
from tests.factories import (
    ENVIRONMENT,
    H200,
    PLAN,
    make_baseline,
    make_case_info,
    make_run,
    make_session,
    make_session_case,
)

COPY = "bandwidth.copy[bytes=4GiB]"
OTHER_CHIP = "0badc0de"


def session(median_s: float = 2e-3, *, case: dict[str, Any] | None = None, **changes: Any) -> BaselineSession:
    return make_session({}, cases={COPY: make_session_case(median_s, **(case or {}))}, **changes)


def candidate(**changes: Any) -> Run:
    info = changes.pop("info", make_case_info())
    return make_run({COPY: [2e-3] * 6}, infos={COPY: info}, **changes)


def found(baseline: Baseline, run: Run | None = None) -> Reference:
    result = reference(COPY, run or candidate(), baseline)
    assert isinstance(result, Reference)
    return result


def reason(baseline: Baseline, run: Run | None = None) -> str:
    result = reference(COPY, run or candidate(), baseline)
    assert isinstance(result, NoReference)
    return result.reason


def codes(result: Reference) -> set[str]:
    return {caveat.code for caveat in result.caveats}


def test_reference__takes_the_sessions_of_this_chip_alone() -> None:
    result = found(make_baseline(session(), session(3e-3, chip=OTHER_CHIP), session(2.002e-3)))
    assert result.levels.same_chip
    assert len(result.sessions) == 2
    assert len(result.launches) == 24
    assert result.launches == pytest.approx([math.log(2.001e-3)] * 24, abs=1e-6)
    assert result.anchor == pytest.approx(math.log(2e-3))
    assert codes(result) == set()


def test_reference__without_a_session_of_this_chip_takes_the_others_one_level_a_chip() -> None:
    result = found(make_baseline(session(chip="a"), session(2.002e-3, chip="a"), session(2.01e-3, chip="b")))
    assert not result.levels.same_chip
    assert len(result.levels.medians) == 2
    assert result.anchor is None
    assert codes(result) == {"cross-chip"}


def test_reference__an_unknown_chip_equals_no_chip() -> None:
    run = candidate(gpu=replace(H200, chip=None))
    result = found(make_baseline(session(chip=None), session(2.001e-3, chip=None)), run)
    assert not result.levels.same_chip
    assert len(result.levels.medians) == 1


def test_reference__an_identity_with_unknown_fields_proves_no_chip() -> None:
    gpu = replace(H200, board_part_number=None)
    assert not found(make_baseline(session(), gpu=gpu), candidate(gpu=gpu)).levels.same_chip


def test_reference__prefers_this_driver_and_says_when_there_is_none() -> None:
    old = replace(ENVIRONMENT, driver_version="570.1")
    assert len(found(make_baseline(session(environment=old), session())).sessions) == 1
    only_old = found(make_baseline(session(environment=old)))
    assert codes(only_old) == {"driver-differs"}
    assert "570.1 there, 580.159.04 here" in only_old.caveats[0].message
    unknown = replace(ENVIRONMENT, driver_version=None)
    assert codes(found(make_baseline(session()), candidate(environment=unknown))) == set()


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ({"version": 2}, "version differs: 2 in the baseline, 1 here"),
        ({"work": Work(read_bytes=1)}, "work differs: read_bytes 1 in the baseline"),
        ({"timing": Timing.GAP}, "timing differs: gap in the baseline, events here"),
        ({"unit": Unit.CYCLES, "launch_cycles": (1.0,)}, "unit of judgement differs: cycles in the baseline, s here"),
        (
            {"plan": CasePlan(executions_per_sample=8, samples_per_block=10, blocks=5)},
            "sampling plan differs: executions_per_sample 8 in the baseline, 4 here",
        ),
    ],
)
def test_reference__another_version_work_timing_or_plan_is_not_comparable(case: dict[str, Any], text: str) -> None:
    assert text in reason(make_baseline(session(case=case)))
    assert len(found(make_baseline(session(case=case), session())).sessions) == 1


def test_reference__another_method_is_not_comparable() -> None:
    assert reason(make_baseline(session(method=2))) == "method differs: 2 in the baseline, 1 here"


def test_reference__an_injected_case_may_have_another_plan_and_says_so() -> None:
    plan = CasePlan(executions_per_sample=100, samples_per_block=10, blocks=5)
    run = candidate(info=make_case_info(plan=plan), injected=(Injection(pattern="bandwidth.*", requested="+3%"),))
    assert codes(found(make_baseline(session()), run)) == {"injected"}
    elsewhere = replace(run, injected=(Injection(pattern="gemm.*", requested="+3%"),))
    assert "sampling plan differs" in reason(make_baseline(session()), elsewhere)


def test_reference__another_power_limit_stops_compute_cases_only() -> None:
    baseline = make_baseline(session(power_limit_w=500.0))
    assert found(baseline).levels.same_chip
    work = Work(work_flop=10**12, pipe="bf16-tensor")
    compute = make_baseline(session(case={"work": work}, power_limit_w=500.0))
    assert reason(compute, candidate(info=make_case_info(work=work))) == (
        "power limit differs: 500 W in the baseline, 700 W here"
    )


def test_reference__another_cpu_stops_host_timed_cases_only() -> None:
    other = replace(ENVIRONMENT, cpu_model="AMD EPYC")
    assert found(make_baseline(session(environment=other))).levels.same_chip
    host = make_baseline(session(case={"timing": Timing.SUBMIT}, environment=other))
    assert "CPU differs" in reason(host, candidate(info=make_case_info(timing=Timing.SUBMIT)))


def test_reference__cycles_are_not_compared_with_seconds() -> None:
    info = make_case_info(unit=Unit.CYCLES)
    assert "no SM cycles" in reason(make_baseline(session(case={"unit": Unit.CYCLES})), candidate(info=info))


def test_reference__a_recording_does_not_stand_for_a_gpu() -> None:
    recorded = Provenance(recorded_utc="2026-11-29T12:00:00Z", reason="r", device_kind="recorded", perfgate_version="1")
    baseline = make_baseline(session(provenance=recorded))
    assert "recorded device" in reason(baseline)
    assert found(baseline, candidate(device_kind="recorded")).levels.same_chip
    assert found(make_baseline(session()), candidate(device_kind="recorded")).levels.same_chip


def test_reference__a_case_that_the_baseline_never_saw_is_new() -> None:
    result = reference(COPY, candidate(), make_baseline(make_session({"bandwidth.read": 1e-3})))
    assert isinstance(result, NoReference)
    assert result.is_new


def test_reference__an_accepted_slowdown_ends_the_sessions_before_it() -> None:
    slower = {"source_sha256": "d" * 64}
    result = found(make_baseline(session(2e-3), session(2.001e-3), session(2.016e-3, case=slower)))
    assert len(result.sessions) == 1
    assert result.anchor == pytest.approx(math.log(2.016e-3))


def test_reference__the_same_step_of_unchanged_code_is_noise_and_stays() -> None:
    result = found(make_baseline(session(2e-3), session(2.001e-3), session(2.2e-3)))
    assert len(result.sessions) == 3


def test_reference__other_code_within_the_margin_is_no_step() -> None:
    slower = {"code_sha256": "d" * 64}
    assert len(found(make_baseline(session(2e-3), session(2.001e-3, case=slower))).sessions) == 2


def test_reference__of_other_chips_only_those_of_the_newest_source_count_where_its_level_is_another() -> None:
    new = {"source_sha256": "d" * 64}
    old = [session(2e-3, chip=chip) for chip in ("1" * 12, "2" * 12)]
    faster = found(make_baseline(*old, session(1.8e-3, chip="3" * 12, case=new)))
    assert not faster.levels.same_chip
    assert [case.source_sha256 for case in faster.cases] == ["d" * 64]
    alike = found(make_baseline(*old, session(2.002e-3, chip="3" * 12, case=new)))
    assert len(alike.levels.medians) == 3


def test_reference__sessions_of_this_chip_stay_whatever_other_chips_were_given_since() -> None:
    new = {"source_sha256": "d" * 64}
    result = found(make_baseline(session(2e-3), session(1.8e-3, chip="3" * 12, case=new)))
    assert result.levels.same_chip
    assert len(result.sessions) == 1


def test_reference__says_when_the_baseline_had_not_settled() -> None:
    assert codes(found(make_baseline(session(case={"settled": False})))) == {"not-settled"}


def test_plan_of__is_read_from_the_blocks_where_it_is_not_stated() -> None:
    run = make_run({COPY: [2e-3] * 2}, infos={COPY: make_case_info(plan=None)})
    assert plan_of(COPY, run) == PLAN
    empty = replace(run.launches[0], cases={})
    assert plan_of(COPY, replace(run, launches=(empty, run.launches[1]))) == PLAN
    assert plan_of(COPY, replace(run, launches=())) is None
