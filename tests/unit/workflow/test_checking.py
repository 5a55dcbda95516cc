"""A check on a fake device: stages, the rest before a confirmation, what is kept when it is interrupted."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.plan import CasePlan
from perfgate.core.policy import Policy
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ConfigurationError, ExitCode
from perfgate.measure.journal import FailureKind
from perfgate.measure.order import LaunchOrder
from perfgate.storage.documents import write_baseline
from perfgate.workflow import checking, measuring
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import (
    Check,
    baseline_plans,
    compared,
    known_plans,
    selected_baseline,
    with_launches,
)
from perfgate.workflow.measuring import InterruptedRunError
from tests.factories import (
    H200,
    PLAN,
    make_baseline,
    make_case_info,
    make_run,
    make_session,
    make_session_case,
    normal_medians,
)
from tests.unit.workflow.fakes import FakeDevice, Launches, Listening, Median, failed

COPY, READ = "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]"
LEVELS_S = {COPY: 2e-3, READ: 2.4e-3}
# The same scatter in every test: 0.01 % between launches.
NOISE = [one / 2e-3 for one in normal_medians(3, 100, spread=1e-4)]


def quiet(order: LaunchOrder, case_id: str) -> float:
    return LEVELS_S[case_id] * NOISE[order.index]


def slower(by: float, until: int = 100) -> Median:
    """The copy is slower, in the launches before ``until``."""

    def median(order: LaunchOrder, case_id: str) -> float:
        is_slower = case_id == COPY and order.index < until
        return quiet(order, case_id) * (1 + by if is_slower else 1)

    return median


class Bench:
    """A check on a fake device against a stored baseline."""

    def __init__(self, launches: Launches, folder: Path) -> None:
        self.launches = launches
        self.device = FakeDevice()
        self.listener = Listening()
        self.pauses: list[float] = []
        self.folder = folder
        medians = [one * LEVELS_S[COPY] for one in NOISE[50:62]], [one * LEVELS_S[READ] for one in NOISE[70:82]]
        session = make_session(
            {},
            cases={
                case_id: make_session_case(launch_medians_s=tuple(values))
                for case_id, values in zip((COPY, READ), medians, strict=True)
            },
        )
        write_baseline(folder / "baseline.json", make_baseline(session))

    def check(self, policy: Policy | None = None, pause: Callable[[float], None] | None = None) -> Any:
        check = Check(
            device=self.device,
            selection=Selection(),
            policy=policy or Policy(),
            listener=self.listener,
            pause=pause or self.pauses.append,
        )
        return check.against(self.folder)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Bench]:
    def made(median: Median = quiet, **settings: Any) -> Bench:
        launches = Launches(median, **settings)
        infos = {case_id: make_case_info() for case_id in LEVELS_S}
        monkeypatch.setattr(measuring, "supervise", launches)
        monkeypatch.setattr(measuring, "described_cases", lambda *_: (infos, {}, "c" * 64))
        return Bench(launches, tmp_path)

    return made


def indexes(launches: Launches) -> list[list[int]]:
    return [[order.index for order in orders] for orders in launches.calls]


def test_check__stops_at_the_first_stage_that_decides(bench: Any) -> None:
    one = bench()
    result = one.check()
    assert result.report.verdict is CheckVerdict.PASSED
    assert indexes(one.launches) == [[0, 1, 2]]
    assert (result.report.launches, result.report.looks, result.confirmation) == (3, 1, None)
    assert one.device.log[0] == "lock, wait=False"
    assert one.device.log[-1] == "unlock"
    assert result.report.measured_s is not None


def test_check__goes_on_where_the_first_stage_leaves_something_open(bench: Any) -> None:
    one = bench(slower(0.005))
    result = one.check()
    assert indexes(one.launches) == [[0, 1, 2], [3, 4, 5]]
    assert result.report.looks == 2
    assert result.report.verdict is not CheckVerdict.REGRESSED


def test_check__confirms_a_regression_after_a_rest(bench: Any) -> None:
    one = bench(slower(0.02))
    result = one.check()
    assert result.report.verdict is CheckVerdict.REGRESSED
    assert indexes(one.launches) == [[0, 1, 2], [3, 4, 5, 6, 7, 8]]  # two cases: three launches prove it
    assert sum(one.pauses) == pytest.approx(60.0)
    assert max(one.pauses) < 1.0  # in short steps, so that a request to end is heard
    assert any("resting 60 s, then confirming with 6 fresh launches" in line for line in one.listener.log)
    assert any(f"slower: {COPY}" in line for line in one.listener.log)
    assert [case.id for case in result.report.cases if case.verdict is CaseVerdict.REGRESSED] == [COPY]
    assert [launch.index for launch in result.confirmation.launches] == [3, 4, 5, 6, 7, 8]


def test_check__a_regression_that_fresh_launches_do_not_show_is_none(bench: Any) -> None:
    one = bench(slower(0.02, until=3))
    result = one.check()
    (case,) = [case for case in result.report.cases if case.id == COPY]
    assert result.report.verdict is not CheckVerdict.REGRESSED
    assert result.report.exit_code != 1
    assert case.confirmed is False
    assert "not confirmed" in (case.reason or "")


@pytest.mark.parametrize(("by", "kept"), [(0.005, 3), (0.02, 3)])
def test_check__interrupted_while_it_judges_keeps_what_was_measured(
    bench: Any, monkeypatch: pytest.MonkeyPatch, by: float, kept: int
) -> None:
    judge = checking.judge

    def interrupted(**arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return judge(**arguments)

    one = bench(slower(by))
    monkeypatch.setattr(checking, "judge", interrupted)
    with pytest.raises(InterruptedRunError) as raised:
        one.check()
    assert raised.value.run is not None
    assert len(raised.value.run.launches) == kept
    assert one.pauses == []


def test_check__interrupted_while_it_comes_to_its_verdict_has_one(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = checking.judge

    def interrupted(**arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return judge(**arguments)

    one = bench()
    monkeypatch.setattr(checking, "judge", interrupted)
    assert one.check().report.verdict is CheckVerdict.PASSED


def test_check__interrupted_in_its_rest_keeps_what_showed_the_regression(bench: Any) -> None:
    one = bench(slower(0.02))

    def pause(duration_s: float) -> None:
        one.pauses.append(duration_s)
        if len(one.pauses) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(InterruptedRunError) as raised:
        one.check(pause=pause)
    assert raised.value.run is not None
    assert len(raised.value.run.launches) == 3
    assert len(one.pauses) == 3
    assert one.device.log[-1] == "unlock"


def test_check__interrupted_in_its_confirmation_keeps_what_showed_the_regression(bench: Any) -> None:
    one = bench(slower(0.02), interrupts_at=5)
    with pytest.raises(InterruptedRunError) as raised:
        one.check()
    assert raised.value.run is not None
    assert [launch.index for launch in raised.value.run.launches] == [0, 1, 2]


def test_check__a_wrong_output_beats_the_verdict_and_leaves_the_other_cases_theirs(bench: Any) -> None:
    wrong = failed(COPY, FailureKind.WRONG_OUTPUT, "wrong output")
    one = bench(lambda order, case_id: wrong if case_id == COPY else quiet(order, case_id))
    result = one.check()
    verdicts = {case.id: case.verdict for case in result.report.cases}
    assert result.report.exit_code == ExitCode.WRONG_OUTPUT
    assert verdicts[COPY] is CaseVerdict.INVALID
    assert verdicts[READ] is CaseVerdict.UNCHANGED
    assert one.device.log[-1] == "unlock"


def test_check__of_another_gpu_holds_and_measures_nothing(bench: Any) -> None:
    one = bench()
    one.device.gpu = replace(H200, board_part_number="another")
    result = one.check()
    assert result.report.verdict is CheckVerdict.NOT_COMPARABLE
    assert result.run is None
    assert one.launches.calls == []
    assert "lock, wait=False" not in one.device.log


def test_check__takes_the_plans_of_the_baseline(bench: Any) -> None:
    one = bench()
    one.check()
    assert all(order.plans == {COPY: PLAN, READ: PLAN} for order in one.launches.orders)


@pytest.mark.parametrize("launches", [1, 2])
def test_check__of_so_few_launches_that_they_prove_nothing_measures_nothing(bench: Any, launches: int) -> None:
    one = bench()
    with pytest.raises(ConfigurationError, match="could not prove any regression") as raised:
        one.check(with_launches(Policy(), launches))
    assert "measure at least 3 launches" in raised.value.hint
    assert one.launches.calls == []


@pytest.mark.parametrize(("launches", "stages"), [(1, (1,)), (6, (3, 6)), (12, (6, 12))])
def test_with_launches__looks_half_way_and_at_the_end(launches: int, stages: tuple[int, ...]) -> None:
    policy = with_launches(Policy(), launches)
    assert (policy.launches, policy.stages) == (launches, stages)


def test_with_launches__left_open_is_the_policys() -> None:
    policy = Policy(launches=8, stages=(2, 4, 8))
    assert with_launches(policy, None) is policy
    with pytest.raises(ConfigurationError):
        with_launches(policy, 0)


def test_selected_baseline__lacks_what_was_not_asked_for() -> None:
    baseline = make_baseline(make_session(LEVELS_S), make_session({COPY: 2e-3}))
    chosen = selected_baseline(baseline, Selection(cases=("bandwidth.read",)))
    assert [set(session.cases) for session in chosen.sessions] == [{READ}, set()]
    assert selected_baseline(baseline, Selection()) == baseline


def test_baseline_plans__are_those_of_this_chips_newest_session() -> None:
    def session(chip: str, day: int, executions: int) -> Any:
        plan = CasePlan(executions_per_sample=executions, samples_per_block=10, blocks=5)
        cases = {COPY: make_session_case(plan=plan)}
        return make_session({}, recorded_utc=f"2026-11-{day}T12:00:00Z", chip=chip, cases=cases)

    baseline = make_baseline(session("own", 10, 1), session("own", 20, 2), session("other", 25, 3))
    assert baseline_plans(baseline, replace(H200, chip="own"))[COPY].executions_per_sample == 2
    assert baseline_plans(baseline, replace(H200, chip="third"))[COPY].executions_per_sample == 3
    assert baseline_plans(baseline, replace(H200, chip=None))[COPY].executions_per_sample == 3


def test_known_plans__without_a_baseline_are_none(tmp_path: Path) -> None:
    assert known_plans(tmp_path / "missing", H200) == {}
    write_baseline(tmp_path / "b.json", make_baseline())
    assert known_plans(tmp_path, H200) == {COPY: PLAN}
    assert known_plans(tmp_path, replace(H200, sm_count=1)) == {}


def test_compared__judges_a_run_that_ended_early_as_its_stage_did() -> None:
    """With three launches a case can be shown to be unchanged; a single look at three could prove nothing slower."""
    baseline = make_baseline(make_session({COPY: 2e-3}))
    early = compared(baseline, "b", make_run({COPY: normal_medians(1, 3, spread=1e-4)}), Policy())
    assert early.verdict is CheckVerdict.PASSED
    assert early.looks == 1
    whole = compared(baseline, "b", make_run({COPY: normal_medians(1, 6, spread=1e-4)}), Policy())
    assert whole.verdict is CheckVerdict.PASSED


def test_compared__shows_the_conditions_of_the_run() -> None:
    report = compared(make_baseline(), "b", make_run({COPY: normal_medians(1, 6)}), Policy())
    assert (report.sm_clock_hz, report.temperature_c) == (1.98e9, 40.0)
    assert report.roofs is not None


def test_rest__of_nothing_pauses_never() -> None:
    checking.rest(0.0, lambda _: pytest.fail("it paused"))
