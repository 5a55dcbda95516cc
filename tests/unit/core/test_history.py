"""Trends: steps are found where they are, drift is named though no step shows it, noise is neither."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from perfgate.core.baseline import CalibratedMargin
from perfgate.core.case import Timing
from perfgate.core.history import ChipHistory, histories, history_of_check, source_of_baseline, source_of_run
from perfgate.core.policy import Policy
from perfgate.core.run import Injection
from perfgate.core.trend import Movement, Trend
from perfgate.errors import BaselineError
from tests.factories import (
    ENVIRONMENT,
    H200,
    make_baseline,
    make_run,
    make_session,
    make_session_case,
    make_trend_sessions,
)

COPY = "bandwidth.copy[bytes=4GiB]"  # its margin is 0.5 %
GEMM = "gemm.fp32[n=4096]"  # 1 %


def history(*sessions: object, policy: Policy | None = None, **changes: object) -> ChipHistory:
    source = source_of_baseline(make_baseline(*sessions, **changes))  # type: ignore[arg-type]
    (found,) = histories([source], policy or Policy())
    return found


def trend_of(levels: Sequence[float], *, case_id: str = COPY, spread: float = 0.0, seed: int = 0) -> Trend:
    (found,) = history(*make_trend_sessions({case_id: levels}, spread=spread, seed=seed)).trends
    return found


def test_trend__of_one_session_says_nothing_yet() -> None:
    found = trend_of([0.0])
    assert found.movement is Movement.SINGLE
    assert (found.changes, found.drift, found.since_first) == ((), None, 0.0)


def test_trend__of_the_same_level_is_steady() -> None:
    assert trend_of([0.0] * 20).movement is Movement.STEADY


@pytest.mark.parametrize("at", [1, 2, 5, 9])
@pytest.mark.parametrize("size", [-0.02, -0.006, 0.006, 0.02])
def test_trend__a_step_is_found_in_its_session(at: int, size: float) -> None:
    found = trend_of([0.0] * at + [size] * (10 - at), spread=2e-4)
    assert found.movement is Movement.STEPPED
    (step,) = found.steps
    assert step.at == at
    assert step.change.value == pytest.approx(size, abs=3e-4)
    assert step.change.low is not None
    assert step.change.high is not None
    assert step.change.low < size < step.change.high
    assert found.drift is None


def test_trend__two_steps_that_cancel_are_both_found() -> None:
    found = trend_of([0.0] * 4 + [0.03] * 3 + [0.0] * 4, spread=2e-4)
    assert [step.at for step in found.steps] == [4, 7]
    assert found.since_first == pytest.approx(0, abs=5e-4)


@pytest.mark.parametrize("rate", [0.0005, 0.001, 0.002, 0.003, 0.0045, -0.001])
def test_trend__drift_is_named_though_every_step_is_inside_the_margin(rate: float) -> None:
    """At 0.3 % a session even two neighbouring levels of the best partition lie further apart than the margin."""
    found = trend_of([rate * index for index in range(16)], spread=2e-4)
    assert found.movement is Movement.DRIFTED
    assert found.steps == ()
    assert found.drift is not None
    assert found.drift.since == 0
    assert found.drift.change.value == pytest.approx(15 * rate, rel=0.05)
    assert found.drift.largest_step < found.margin.relative


def test_trend__drift_within_the_margin_is_steady() -> None:
    found = trend_of([0.0003 * index for index in range(16)], spread=1e-4)
    assert found.since_first == pytest.approx(0.0045, abs=3e-4)
    assert found.movement is Movement.STEADY


def test_trend__drift_after_a_step_is_seen_against_the_step() -> None:
    found = trend_of([0.0] * 3 + [0.03 + 0.001 * index for index in range(12)], spread=1e-4)
    assert [step.at for step in found.steps] == [3]
    assert found.drift is not None
    assert found.drift.since == 3
    assert found.drift.change.value == pytest.approx(0.011 / 1.03, rel=0.05)


def test_trend__an_accepted_step_is_no_drift() -> None:
    assert trend_of([0.0, 0.0, 0.0, 0.03]).drift is None


def test_trend__a_noisy_newest_session_proves_no_drift() -> None:
    quiet = trend_of([0.0, 0.002, 0.004, 0.006], spread=1e-4)
    sessions = make_trend_sessions({COPY: [0.0, 0.002, 0.004, 0.006]}, spread=2e-2, launches=4, seed=3)
    (noisy,) = history(*sessions).trends
    assert quiet.movement is Movement.DRIFTED
    assert noisy.movement is Movement.STEADY


def test_trend__unchanged_code_is_rarely_accused() -> None:
    """alpha is 1 % for all cases of a history: of 20 sessions with a spread as the default margins assume."""
    generator = np.random.default_rng(11)
    levels = {COPY.replace("copy", f"copy{index}"): 6e-4 * generator.standard_normal(20) for index in range(200)}
    found = history(*make_trend_sessions(levels, spread=3e-4))
    assert sum(bool(one.changes) for one in found.trends) <= 2
    assert not [one for one in found.trends if one.movement is not Movement.STEADY]


def test_trend__says_what_changed_at_a_step() -> None:
    sessions = make_trend_sessions({COPY: [0.0] * 3 + [0.02] * 3}, steps_source={3: "d" * 64})
    sessions[3:] = [replace(one, environment=replace(ENVIRONMENT, driver_version="590.1")) for one in sessions[3:]]
    ((step,),) = (one.steps for one in history(*sessions).trends)
    assert [one.field for one in step.differences] == ["source_sha256", "driver_version"]


def test_trend__a_case_in_cycles_is_followed_in_cycles() -> None:
    from perfgate.core.case import Unit

    def session(day: int, time_s: float) -> object:
        case = make_session_case(time_s, unit=Unit.CYCLES, launch_cycles=(4e6,) * 12)
        return replace(make_session({}, recorded_utc=f"2026-01-0{day}T00:00:00Z"), cases={GEMM: case})

    (found,) = history(session(1, 2e-3), session(2, 2.1e-3)).trends
    assert found.movement is Movement.STEADY
    assert found.points[1].time_s == 2.1e-3


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"version": 2}, "version"), ({"timing": Timing.REPLAY}, "timing"), ({"plan": None}, "sampling plan")],
)
def test_series__of_another_case_version_is_left_out(change: dict[str, object], reason: str) -> None:
    old = make_trend_sessions({COPY: [0.5] * 3})
    if change == {"plan": None}:
        change = {"plan": replace(make_session_case().plan, blocks=9)}
    old = [replace(one, cases={COPY: replace(one.cases[COPY], **change)}) for one in old]  # type: ignore[arg-type]
    new = make_session({COPY: 2e-3}, recorded_utc="2026-02-01T00:00:00Z")
    (found,) = history(*old, new, replace(new, provenance=replace(new.provenance, recorded_utc="2026-02-02"))).trends
    assert len(found.points) == 2
    assert (found.left_out, found.left_out_reason) == (3, reason)


def test_margin__is_that_of_the_policy_then_the_calibration_then_the_default() -> None:
    sessions = make_trend_sessions({COPY: [0.0] * 3, GEMM: [0.0] * 3})
    calibrated = {GEMM: CalibratedMargin(relative=0.004, sessions=9, same_chip=True)}
    found = history(*sessions, policy=Policy(margins={COPY: 0.03}), margins=calibrated).trends
    assert {one.id: one.margin.relative for one in found} == {COPY: 0.03, GEMM: 0.004}
    assert {one.id: one.margin.relative for one in history(*sessions).trends} == {COPY: 0.005, GEMM: 0.01}


def test_histories__never_join_chips_boards_or_recordings() -> None:
    run = make_run({COPY: [2e-3] * 6})
    other_chip = replace(run, gpu=replace(H200, chip="another"))
    other_board = replace(run, gpu=replace(H200, board_part_number="692-2G520-0282-001"))
    recorded = replace(run, device_kind="recorded")
    other_method = replace(run, method=2)
    found = histories(map(source_of_run, (run, other_chip, other_board, recorded, other_method)), Policy())
    assert [len(one.sessions) for one in found] == [1] * 5
    assert found[2].gpu.board_part_number == "692-2G520-0282-001"
    assert {one.device_kind for one in found} == {"cuda", "recorded"}


def test_histories__a_session_in_two_documents_counts_once() -> None:
    run = make_run({COPY: [2e-3] * 12}, created_utc="2026-11-29T12:00:00Z")
    baseline = make_baseline(make_session({COPY: 2e-3}, recorded_utc="2026-11-29T12:00:00Z"))
    (found,) = histories([source_of_baseline(baseline), source_of_run(run)], Policy())
    assert len(found.sessions) == 1


def test_histories__are_in_the_order_of_time_whatever_that_of_the_documents() -> None:
    runs = [make_run({COPY: [2e-3] * 6}, created_utc=f"2026-11-{day:02d}T00:00:00Z") for day in (9, 3, 27)]
    (found,) = histories(map(source_of_run, runs), Policy())
    assert [one.recorded_utc[8:10] for one in found.sessions] == ["03", "09", "27"]


def test_histories__of_some_cases_only() -> None:
    source = source_of_baseline(make_baseline(*make_trend_sessions({COPY: [0.0] * 2, GEMM: [0.0] * 2})))
    (found,) = histories([source], Policy(), ("gemm.*",))
    assert [one.id for one in found.trends] == [GEMM]


def test_source_of_run__refuses_a_rehearsal() -> None:
    rehearsal = replace(make_run({COPY: [2e-3] * 6}), injected=(Injection(pattern="*", requested="+3%"),))
    with pytest.raises(BaselineError, match="rehearsal"):
        source_of_run(rehearsal)


def test_history_of_check__has_the_run_as_its_newest_session() -> None:
    baseline = make_baseline(*make_trend_sessions({COPY: [0.0, 0.001, 0.002]}))
    run = make_run({COPY: [2e-3 * 1.006] * 6})
    found = history_of_check(baseline, run, Policy())
    assert found is not None
    assert found.sessions[-1].recorded_utc == run.created_utc
    assert found.trends[0].movement is Movement.DRIFTED
    rehearsal = replace(run, injected=(Injection(pattern="*", requested="+3%"),))
    alone = history_of_check(baseline, rehearsal, Policy())
    assert alone is not None
    assert len(alone.sessions) == 3


def test_history_of_check__needs_two_sessions_of_the_chip() -> None:
    run = make_run({COPY: [2e-3] * 6})
    stranger = make_baseline(make_session({COPY: 2e-3}, chip="another"), make_session({COPY: 2e-3}, chip=None))
    assert history_of_check(stranger, run, Policy()) is None
    unknown = replace(run, gpu=replace(H200, chip=None))
    assert history_of_check(stranger, unknown, Policy()) is None
