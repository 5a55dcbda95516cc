"""Accepting a run as a baseline session, and what speaks against a run or a baseline."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfgate.core.acceptance import accepted_session, baseline_of, implausible, unfitness, with_rows, with_session
from perfgate.core.baseline import Baseline, BaselineSession, Provenance, SessionCase
from perfgate.core.case import Timing, Unit, Work
from perfgate.core.policy import Policy
from perfgate.core.run import CaseLaunch, Health, Injection, Run
from perfgate.errors import BaselineError
from tests.factories import (
    ENVIRONMENT,
    H200,
    PLAN,
    make_baseline,
    make_case_info,
    make_case_launch,
    make_run,
    make_session,
    make_session_case,
    normal_medians,
)

COPY = "bandwidth.copy[bytes=4GiB]"
PROVENANCE = Provenance(
    recorded_utc="2026-11-29T12:00:00Z", reason="first", device_kind="cuda", perfgate_version="0.1.0"
)


def session(case: SessionCase, **changes: Any) -> BaselineSession:
    return make_session({}, cases={COPY: case}, **changes)


def at(recorded_utc: str, **changes: Any) -> BaselineSession:
    return make_session({COPY: 2e-3}, recorded_utc=recorded_utc, **changes)


def codes(baseline: Baseline, **arguments: Any) -> list[str]:
    return [caveat.code for caveat in implausible(baseline, **arguments)]


def spoiled(run: Run, case: CaseLaunch) -> Run:
    return replace(run, launches=tuple(replace(launch, cases={COPY: case}) for launch in run.launches))


def test_accepted_session__keeps_what_judging_needs() -> None:
    run = make_run({COPY: [2e-3, 2.1e-3, 2.2e-3]})
    found = accepted_session(run, PROVENANCE)
    assert (found.chip, found.method, found.power_limit_w) == (H200.chip, 1, 700.0)
    assert (found.suite_name, found.environment, found.provenance) == ("default", ENVIRONMENT, PROVENANCE)
    case = found.cases[COPY]
    assert case.launch_medians_s == (2e-3, 2.1e-3, 2.2e-3)
    assert case.launch_cycles == pytest.approx([2e-3 * 1.98e9, 2.1e-3 * 1.98e9, 2.2e-3 * 1.98e9])
    assert (case.plan, case.version, case.within_spread) == (PLAN, 1, 0.0)
    assert (case.sm_clock_hz, case.power_w, case.temperature_c, case.settled) == (1.98e9, 500.0, 40.0, True)


def test_accepted_session__without_a_clock_has_no_cycles() -> None:
    run = make_run({COPY: [2e-3]})
    found = accepted_session(spoiled(run, make_case_launch(2e-3, sm_clock_hz=None)), PROVENANCE)
    assert found.cases[COPY].launch_cycles is None


def test_accepted_session__leaves_out_cases_that_failed() -> None:
    run = make_run({COPY: [2e-3] * 3, "bandwidth.read": []})
    assert set(accepted_session(run, PROVENANCE).cases) == {COPY}


def test_accepted_session__refuses_a_run_of_which_nothing_may_be_used() -> None:
    wrong = spoiled(make_run({COPY: [2e-3]}), replace(make_case_launch(2e-3), output_verified=False))
    with pytest.raises(BaselineError, match="its output is wrong"):
        accepted_session(wrong, PROVENANCE)
    with pytest.raises(BaselineError, match="it has none"):
        accepted_session(make_run({}), PROVENANCE)


def test_accepted_session__refuses_a_rehearsal_unless_forced() -> None:
    run = make_run({COPY: [2e-3]}, injected=(Injection(pattern="*", requested="+3%"),))
    with pytest.raises(BaselineError, match=r"injected with \* \+3%"):
        accepted_session(run, PROVENANCE)
    assert accepted_session(run, replace(PROVENANCE, forced="a test of the gate")).cases


def test_baseline_of__names_no_chip_and_no_power_limit() -> None:
    baseline = baseline_of(make_run({COPY: [2e-3]}), PROVENANCE)
    assert baseline.gpu == replace(H200, chip=None, power_limit_w=None)
    assert len(baseline.sessions) == 1


def test_with_session__keeps_the_order_of_time_and_replaces_the_same_session() -> None:
    first, second, third = (at(f"2026-11-{day}T12:00:00Z") for day in (10, 11, 12))
    baseline = with_session(with_session(make_baseline(first), third), second)
    assert [one.provenance.recorded_utc[8:10] for one in baseline.sessions] == ["10", "11", "12"]
    again = with_session(baseline, replace(second, power_limit_w=600.0))
    assert [one.power_limit_w for one in again.sessions] == [700.0, 600.0, 700.0]
    other_chip = with_session(baseline, replace(second, chip="0badc0de"))
    assert len(other_chip.sessions) == 4


def test_unfitness__of_a_good_run_is_none() -> None:
    assert unfitness(make_run({COPY: normal_medians(1, 12)}), Policy()) == ()


def test_unfitness__names_everything_that_speaks_against_a_run() -> None:
    run = make_run(
        {COPY: [2e-3] * 6, "bandwidth.read": []},
        injected=(Injection(pattern="*", requested="+3%"),),
        environment=replace(ENVIRONMENT, dirty=True),
        health_after=Health(foreign_processes=("python 123",)),
    )
    run = spoiled(run, replace(make_case_launch(2e-3), settled=False))
    found = {caveat.code: caveat.message for caveat in unfitness(run, Policy())}
    assert set(found) == {"injected", "too-few-launches", "foreign-process", "not-settled", "invalid", "dirty"}
    assert found["too-few-launches"] == "6 launches, a baseline session needs 12"
    assert found["not-settled"].startswith(COPY)


def test_unfitness__wrong_output_is_named_as_such() -> None:
    run = spoiled(make_run({COPY: [2e-3] * 12}), replace(make_case_launch(2e-3), output_verified=False))
    assert [caveat.code for caveat in unfitness(run, Policy())] == ["wrong-output"]


def test_implausible__of_a_sound_baseline_is_nothing() -> None:
    quiet, later = make_session_case(), make_session_case(2.0344e-3)
    baseline = make_baseline(session(quiet), session(later, recorded_utc="2026-11-30T12:00:00Z"))
    assert codes(baseline, gpu=H200, now_utc="2026-12-01T00:00:00Z") == []


def test_implausible__a_bandwidth_beyond_physics_or_far_below_it() -> None:
    assert codes(make_baseline(session(make_session_case(1.6e-3)))) == ["beyond-physics"]
    assert codes(make_baseline(session(make_session_case(40e-3)))) == ["below-physics"]
    compute = Work(work_flop=10**12, read_bytes=2**20, pipe="fp32")
    assert codes(make_baseline(session(make_session_case(40e-3, work=compute)))) == []


def test_implausible__a_unit_slip_is_told_from_other_contradictions() -> None:
    cache = Work()  # no bytes: nothing to hold against physics

    def pair(one: float, other: float, **changes: Any) -> Baseline:
        return make_baseline(
            session(make_session_case(one, work=cache)),
            session(make_session_case(other, work=cache, **changes), recorded_utc="2026-11-30T12:00:00Z"),
        )

    assert codes(pair(2e-3, 2.0)) == ["unit-slip"]
    assert codes(pair(2e-3, 2e3)) == ["unit-slip"]
    # 127500 MB/s beside 1462500: no power of a thousand, still not one kernel.
    assert codes(pair(1 / 127500, 1 / 1462500)) == ["sessions-contradict"]
    assert codes(pair(2e-3, 3e-3)) == []
    assert codes(pair(2e-3, 2.0, version=2)) == []
    assert codes(pair(2e-3, 2.0, source_sha256="d" * 64)) == []


def test_implausible__host_timed_cases_may_differ_between_machines() -> None:
    slow = make_session_case(30e-6, work=Work(), timing=Timing.SUBMIT)
    fast = make_session_case(5e-6, work=Work(), timing=Timing.SUBMIT)
    assert codes(make_baseline(session(slow), session(fast, recorded_utc="2026-11-30T12:00:00Z"))) == []


def test_implausible__what_is_only_reported_may_differ_between_machines() -> None:
    slow = make_session_case(2.9e-6, work=Work(), timing=Timing.EVENT_FLOOR, gated=False)
    fast = make_session_case(1.28e-6, work=Work(), timing=Timing.EVENT_FLOOR, gated=False)
    assert codes(make_baseline(session(slow), session(fast, recorded_utc="2026-11-30T12:00:00Z"))) == []


def test_implausible__launches_of_two_chips_or_units_in_one_session() -> None:
    mixed = make_session_case(launch_medians_s=(2e-3, 2e-3, 5e-3))
    assert codes(make_baseline(session(mixed))) == ["launches-contradict"]


def test_implausible__cycles_that_are_not_time_times_clock() -> None:
    def cycles(value: float) -> Baseline:
        return make_baseline(
            session(make_session_case(2e-3, unit=Unit.CYCLES, launch_cycles=(value,), sm_clock_hz=1.98e9))
        )

    assert codes(cycles(2e-3 * 1.98e9 * 1.02)) == []
    assert codes(cycles(2e-3 * 1.98e9 / 1000)) == ["cycles-contradict"]


def test_implausible__duplicates_copies_and_the_future() -> None:
    twice = make_baseline(at("2026-11-29T12:00:00Z"), at("2026-11-29T12:00:00Z"))
    assert codes(twice) == ["duplicate-session"]
    noisy = make_session_case(launch_medians_s=tuple(normal_medians(1, 12)))
    copied = make_baseline(session(noisy), session(noisy, chip="0badc0de", recorded_utc="2026-11-30T12:00:00Z"))
    assert codes(copied) == ["copied-session"]
    assert codes(make_baseline(at("2026-11-29T12:00:00Z")), now_utc="2026-11-28T00:00:00Z") == ["from-the-future"]


@pytest.mark.parametrize("bad", [(), (0.0,), (-1.0,), (float("nan"),), (float("inf"),)])
def test_session_case__refuses_what_is_no_time(bad: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="finite and positive"):
        make_session_case(launch_medians_s=bad)
    with pytest.raises(ValueError, match="finite and positive"):
        make_session_case(launch_cycles=bad)


def test_accepted_session__reads_the_plan_from_the_blocks() -> None:
    run = make_run({COPY: [2e-3] * 2}, infos={COPY: make_case_info(plan=None)})
    assert accepted_session(run, PROVENANCE).cases[COPY].plan == PLAN


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 9))
def test_with_session__twice_is_as_once(days: list[int], day: int) -> None:
    def session(number: int) -> BaselineSession:
        return make_session({COPY: 2e-3 + number * 1e-6}, recorded_utc=f"2026-11-{number:02}T00:00:00Z")

    baseline = make_baseline(session(days[0]))
    for number in days:
        baseline = with_session(baseline, session(number))
    once = with_session(baseline, session(day))
    assert with_session(once, session(day)) == once
    assert [one.provenance.recorded_utc for one in once.sessions] == sorted(
        f"2026-11-{number:02}T00:00:00Z" for number in {*days, day}
    )
    rows = make_session({COPY: 3e-3}, recorded_utc="2026-11-10T00:00:00Z")
    assert with_rows(with_rows(once, rows), rows) == with_rows(once, rows)


def test_with_rows__refreshes_the_newest_session_of_this_chip() -> None:
    old, new = (
        make_session({COPY: 2e-3, "launch.gap": 1e-6}, recorded_utc=f"2026-11-0{day}T00:00:00Z") for day in "12"
    )
    other = replace(make_session({COPY: 2e-3}, recorded_utc="2026-11-03T00:00:00Z"), chip="other")
    fresh = make_session({COPY: 3e-3}, recorded_utc="2026-11-04T00:00:00Z", suite_sha256="d" * 64)
    changed = with_rows(make_baseline(old, new, other), fresh)
    assert (changed.sessions[0], changed.sessions[2]) == (old, other)
    session = changed.sessions[1]
    assert (session.cases[COPY], session.cases["launch.gap"]) == (fresh.cases[COPY], new.cases["launch.gap"])
    assert (session.refreshed, session.suite_sha256) == ({COPY: fresh.provenance}, None)
    unknown = replace(fresh, chip=None)
    assert with_rows(make_baseline(old, new), unknown).sessions[-1] == unknown


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"method": 2}, "method"),
        ({"power_limit_w": 500.0}, "power_limit_w"),
        ({"provenance": replace(PROVENANCE, device_kind="recorded")}, "device_kind"),
        ({"environment": replace(ENVIRONMENT, compiler="nvcc 14")}, "compiler"),
        ({"environment": replace(ENVIRONMENT, clock_policy="locked")}, "clock_policy"),
    ],
)
def test_with_rows__refuses_rows_of_other_conditions(changes: dict[str, Any], name: str) -> None:
    fresh = replace(make_session({COPY: 3e-3}, recorded_utc="2026-11-30T00:00:00Z"), **changes)
    with pytest.raises(BaselineError, match=f"other conditions: {name} differs"):
        with_rows(make_baseline(make_session({COPY: 2e-3})), fresh)


def test_implausible__knows_a_copy_before_it_is_rounded() -> None:
    digits = make_session({COPY: 2e-3}), make_session({COPY: 2e-3}, recorded_utc="2026-11-30T00:00:00Z")
    cases = ((0.00203412, 0.00203517), (0.002034118, 0.002035173))
    sessions = (
        replace(one, cases={COPY: replace(one.cases[COPY], launch_medians_s=medians)})
        for one, medians in zip(digits, cases, strict=True)
    )
    assert [one.code for one in implausible(make_baseline(*sessions))] == ["copied-session"]


@pytest.mark.parametrize(
    ("events", "is_throttled"),
    [({"hw_thermal": 0.1}, True), ({"hw_power_brake": 0.1}, True), ({"sw_power_cap": 9.0}, False), ({}, False)],
)
def test_unfitness__is_throttled_by_heat_and_supply_not_by_the_power_cap(
    events: dict[str, float], is_throttled: bool
) -> None:
    run = make_run({COPY: [2e-3] * 12})
    launches = (
        replace(launch, cases={COPY: replace(launch.cases[COPY], clock_events_s=events)}) for launch in run.launches
    )
    codes = [doubt.code for doubt in unfitness(replace(run, launches=tuple(launches)), Policy())]
    assert codes == (["throttled"] if is_throttled else [])


def test_implausible__takes_a_clock_of_nothing_for_what_it_is() -> None:
    case = make_session_case(2e-3, launch_cycles=(4e6,) * 12, sm_clock_hz=0.0)
    assert codes(make_baseline(session(case))) == ["cycles-contradict"]


@pytest.mark.parametrize("times_s", [(1e-320,), (1e-3, 1e308), (math.nan,), (0.0,)])
def test_session_case__refuses_times_out_of_all_reason(times_s: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="finite and positive"):
        make_session_case(launch_medians_s=times_s)
