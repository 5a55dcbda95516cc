"""Baselines are merged whichever way round, pruned without losing the anchor, and compared in numbers."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfgate.core.baseline import Baseline, BaselineSession, CalibratedMargin, Provenance
from perfgate.core.baseline_change import baseline_difference, merged, pruned, session_key
from perfgate.core.case import Unit
from perfgate.core.plan import CasePlan
from perfgate.errors import BaselineError
from perfgate.storage.documents import parse_baseline, render_baseline_json
from tests.factories import H200, make_baseline, make_session, make_session_case

GAP = "launch.gap"


def session(number: int, *, chip: str | None = "3f9c21aa", day: int | None = None) -> BaselineSession:
    return make_session({GAP: 1e-6 * (1 + number)}, chip=chip, recorded_utc=f"2026-11-{day or number + 1:02}T00:00:00Z")


MARGINS = st.dictionaries(
    st.sampled_from(["launch.gap", "gemm.bf16"]),
    st.builds(
        CalibratedMargin, relative=st.sampled_from([0.01, 0.02]), sessions=st.integers(1, 3), same_chip=st.booleans()
    ),
    max_size=2,
)
EXTENSIONS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)
BASELINES = st.builds(
    lambda numbers, margins, extensions: make_baseline(
        *(session(number) for number in numbers), margins=margins, extensions=extensions
    ),
    st.lists(st.integers(0, 25), min_size=1, max_size=4, unique=True),
    MARGINS,
    EXTENSIONS,
)


@settings(deadline=None)
@given(BASELINES, BASELINES, BASELINES)
def test_merged__does_not_depend_on_who_comes_first(one: Baseline, other: Baseline, third: Baseline) -> None:
    assert merged(one, other) == merged(other, one)
    assert merged(merged(one, other), third) == merged(one, merged(other, third))
    assert merged(merged(one, other), other) == merged(one, other)


@settings(deadline=None)
@given(BASELINES, BASELINES)
def test_merged__has_every_session_once_in_order_of_time(one: Baseline, other: Baseline) -> None:
    sessions = merged(one, other).sessions
    assert {str(item) for item in sessions} == {str(item) for item in (*one.sessions, *other.sessions)}
    assert len(sessions) == len({str(item) for item in sessions})
    times = [item.provenance.recorded_utc for item in sessions]
    assert times == sorted(times)


def test_merged__knows_a_session_again_after_it_was_stored() -> None:
    measured = make_baseline(make_session({GAP: 1.23456789e-6}))
    stored = parse_baseline(render_baseline_json(measured), "b.json")
    assert stored != measured
    assert len(merged(measured, stored).sessions) == 1


def test_merged__keeps_the_margin_that_was_learned_from_more_sessions() -> None:
    few = make_baseline(margins={GAP: CalibratedMargin(relative=0.05, sessions=2, same_chip=True)})
    many = make_baseline(margins={GAP: CalibratedMargin(relative=0.01, sessions=5, same_chip=True)})
    assert merged(few, many).margins[GAP].sessions == 5


def test_merged__refuses_baselines_of_different_gpus() -> None:
    other = make_baseline(gpu=replace(H200, board_part_number="692-2G520-0282-001"))
    with pytest.raises(BaselineError, match="differ in board_part_number"):
        merged(make_baseline(), other)


def test_pruned__keeps_the_newest_of_every_chip_and_the_anchor() -> None:
    sessions = [session(number, chip=chip, day=number + 1) for number, chip in enumerate("aababbaa")]
    kept = pruned(make_baseline(*sessions), 2).sessions
    assert [sessions.index(one) for one in kept] == [0, 2, 4, 5, 6, 7]
    assert pruned(make_baseline(*sessions), 100).sessions == tuple(sessions)


def test_pruned__takes_unknown_chips_for_one() -> None:
    sessions = [session(number, chip=None) for number in range(5)]
    assert pruned(make_baseline(*sessions), 1).sessions == (sessions[0], sessions[4])


def test_pruned__refuses_to_empty_a_baseline() -> None:
    with pytest.raises(ValueError, match="at least one"):
        pruned(make_baseline(), 0)


@settings(deadline=None)
@given(BASELINES)
def test_baseline_difference__is_nothing_between_equal_baselines(baseline: Baseline) -> None:
    assert not baseline_difference(baseline, baseline)
    stored = parse_baseline(render_baseline_json(baseline), "b.json")
    assert not baseline_difference(stored, baseline).sessions_added


def test_baseline_difference__says_what_an_update_adds_and_moves() -> None:
    before = make_baseline(session(1))
    after = make_baseline(session(1), session(3))
    difference = baseline_difference(before, after)
    assert difference.sessions_added == (session(3),)
    assert difference.sessions_removed == ()
    (change,) = difference.cases
    assert change.id == GAP
    assert change.unit is Unit.SECONDS
    assert (change.before, change.after) == pytest.approx((2e-6, 3e-6))
    assert change.relative == pytest.approx(0.5)
    assert baseline_difference(after, before).sessions_removed == (session(3),)


def test_baseline_difference__shows_numbers_that_were_lowered_by_hand() -> None:
    before = make_baseline(make_session({GAP: 1e-6}))
    after = make_baseline(make_session({GAP: 0.9e-6}))
    difference = baseline_difference(before, after)
    assert len(difference.sessions_added) == len(difference.sessions_removed) == 1
    assert difference.cases[0].relative == pytest.approx(-0.1)


def test_baseline_difference__names_new_and_gone_cases_and_new_margins() -> None:
    before = make_baseline(make_session({"launch.old": 1e-6}))
    margin = CalibratedMargin(relative=0.01, sessions=3, same_chip=True)
    after = make_baseline(make_session({"launch.new": 2e-6}), margins={"launch.new": margin})
    difference = baseline_difference(before, after)
    assert [(one.id, one.before, one.after, one.relative) for one in difference.cases] == [
        ("launch.new", None, 2e-6, None),
        ("launch.old", 1e-6, None, None),
    ]
    assert [(one.id, one.before, one.after) for one in difference.margins] == [("launch.new", None, margin)]
    assert baseline_difference(None, after).sessions_added == after.sessions


def test_baseline_difference__says_in_what_a_case_is_another() -> None:
    plan = CasePlan(executions_per_sample=8, samples_per_block=10, blocks=5)
    before, after = (
        make_baseline(make_session({}, cases={GAP: make_session_case(1e-6, **changes)}))
        for changes in ({}, {"plan": plan, "version": 2})
    )
    (change,) = baseline_difference(before, after).cases
    assert change.relative == 0
    assert [one.field for one in change.differences] == ["version", "plan"]


def test_baseline_difference__is_in_cycles_where_every_session_has_them() -> None:
    def in_cycles(cycles: float | None) -> Baseline:
        launch_cycles = None if cycles is None else (cycles,) * 12
        case = make_session_case(1e-3, unit=Unit.CYCLES, launch_cycles=launch_cycles)
        return make_baseline(make_session({}, cases={"gemm.bf16": case}))

    (change,) = baseline_difference(in_cycles(2e6), in_cycles(2.2e6)).cases
    assert (change.unit, change.relative) == (Unit.CYCLES, pytest.approx(0.1))
    assert baseline_difference(in_cycles(None), in_cycles(2e6)).cases == ()


def origin(day: int) -> Provenance:
    return Provenance(
        recorded_utc=f"2026-12-{day:02}T00:00:00Z", reason="again", device_kind="cuda", perfgate_version="0.1.0"
    )


def refreshed(day: int, case_id: str, median_s: float) -> Baseline:
    """The baseline of one session, of which one row was measured again on a day."""
    base = make_session({GAP: 1e-6, "gemm.bf16": 1e-3})
    fresh = replace(
        base,
        cases={**base.cases, case_id: make_session_case(median_s)},
        refreshed={case_id: origin(day)},
    )
    return make_baseline(fresh)


def test_merged__of_rows_that_both_sides_refreshed_keeps_the_later() -> None:
    base = make_baseline(make_session({GAP: 1e-6, "gemm.bf16": 1e-3}))
    early, late, other = refreshed(1, GAP, 2e-6), refreshed(2, GAP, 3e-6), refreshed(1, "gemm.bf16", 2e-3)
    for ancestor in (None, base):
        assert merged(early, late, ancestor) == merged(late, early, ancestor) == late
        assert merged(base, early, ancestor) == merged(early, base, ancestor) == early
    (session,) = merged(merged(early, late, base), other, base).sessions
    assert session == merged(early, merged(other, late)).sessions[0]
    assert session.cases[GAP].launch_medians_s[0] == 3e-6
    assert session.cases["gemm.bf16"].launch_medians_s[0] == 2e-3
    assert session.refreshed == {GAP: origin(2), "gemm.bf16": origin(1)}


@settings(deadline=None)
@given(BASELINES, st.lists(st.integers(0, 25), min_size=1, max_size=4, unique=True), st.data())
def test_merged__lets_sessions_go_that_one_side_removed(
    base: Baseline, numbers: list[int], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(base.sessions), min_size=1, unique_by=str))
    ours = replace(base, sessions=tuple(sorted(kept, key=session_key)))
    theirs = replace(base, sessions=merged(base, make_baseline(*map(session, numbers))).sessions)
    joined = merged(ours, theirs, base)
    assert joined == merged(theirs, ours, base)
    wanted = {str(one) for one in theirs.sessions} - ({str(one) for one in base.sessions} - {str(one) for one in kept})
    assert {str(one) for one in joined.sessions} == wanted


def test_merged__of_sides_that_removed_each_others_sessions_is_refused() -> None:
    base = make_baseline(session(1), session(2))
    with pytest.raises(BaselineError, match="removed every session"):
        merged(make_baseline(session(1)), make_baseline(session(2)), base)


def test_merged__mixes_no_recording_with_a_gpu() -> None:
    recorded = replace(session(2), provenance=replace(session(2).provenance, device_kind="recorded"))
    with pytest.raises(BaselineError, match="a recorded session cannot join"):
        merged(make_baseline(session(1)), make_baseline(recorded))
