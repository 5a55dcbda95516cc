from collections.abc import Callable
from typing import Any

import pytest

from perfgate.core.plan import CasePlan
from perfgate.errors import ConfigurationError, LaunchError, WrongOutputError
from perfgate.measure.journal import FailureKind
from perfgate.workflow import measuring
from perfgate.workflow.cases import Selection
from perfgate.workflow.measuring import InterruptedRunError, Session, held, measured
from tests.factories import PLAN, make_case_info
from tests.unit.workflow.fakes import FakeDevice, Launches, Listening, Median, failed

COPY, GAP = "bandwidth.copy[bytes=4GiB]", "launch.gap"
INFOS = {COPY: make_case_info(plan=None, code_sha256=None), GAP: make_case_info("launch", plan=None)}
KNOWN = {COPY: PLAN, GAP: CasePlan(executions_per_sample=384, samples_per_block=10, blocks=5)}


class Bench:
    """A session on a fake device."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.device = FakeDevice()
        self.listener = Listening()

    def session(self, selection: Selection | None = None, plans: Any = None, **settings: Any) -> Session:
        return Session(self.device, selection or Selection(seed=7), plans or {}, self.listener, **settings)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def made(median: Median = lambda order, case_id: 1e-3, **settings: Any) -> Bench:
        launches = Launches(median, **settings)
        monkeypatch.setattr(measuring, "supervise", launches)
        monkeypatch.setattr(measuring, "described_cases", lambda *_: (dict(INFOS), {"gemm.fp8": "no"}, "c" * 64))
        monkeypatch.setattr(measuring, "commit_of", lambda folder: ("d" * 40, True))
        return Bench(launches)

    return made


def test_measure_to__an_unknown_plan_is_chosen_by_the_first_launch_for_all(bench: Any) -> None:
    one = bench()
    one.session().measure_to(4)
    assert [[order.index for order in orders] for orders in one.launches.calls] == [[0], [1, 2, 3]]
    assert one.launches.calls[0][0].plans == {}
    assert all(order.plans == {COPY: PLAN, GAP: PLAN} for order in one.launches.calls[1])


def test_measure_to__known_plans_are_kept_in_every_launch(bench: Any) -> None:
    one = bench()
    session = one.session(plans=KNOWN | {"of.another": PLAN})
    session.measure_to(3)
    assert [len(orders) for orders in one.launches.calls] == [3]
    assert all(order.plans == KNOWN for order in one.launches.orders)
    assert {case_id: info.plan for case_id, info in session.run().cases.items()} == KNOWN


def test_measure_to__adds_what_is_missing(bench: Any) -> None:
    one = bench()
    session = one.session(plans=KNOWN)
    session.measure_to(3)
    session.measure_to(6)
    session.measure_to(6)
    assert [order.index for order in one.launches.orders] == [0, 1, 2, 3, 4, 5]
    assert [launch.index for launch in session.run().launches] == [0, 1, 2, 3, 4, 5]


def test_measure_to__a_confirmation_goes_on_where_its_check_ended(bench: Any) -> None:
    one = bench()
    one.session(plans=KNOWN, first_index=6).measure_to(2)
    assert [order.index for order in one.launches.orders] == [6, 7]
    assert [line for line in one.listener.log if line[0].isdigit()] == [
        f"{place}: 0 {order.case_ids[0]} block" for place, order in enumerate(one.launches.orders)
    ]


def test_measure_to__shuffles_the_cases_by_seed_and_launch(bench: Any) -> None:
    def orders(seed: int) -> list[tuple[str, ...]]:
        one = bench()
        one.session(Selection(seed=seed), plans=KNOWN).measure_to(20)
        return [order.case_ids for order in one.launches.orders]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert set(orders(1)) == {(COPY, GAP), (GAP, COPY)}


@pytest.mark.parametrize("launches", [0, -1])
def test_measure_to__of_nothing_is_refused(bench: Any, launches: int) -> None:
    one = bench()
    with pytest.raises(ConfigurationError, match="measure nothing"):
        one.session().measure_to(launches)
    assert one.launches.calls == []


def test_measure_to__a_wrong_output_beats_all_other_results(bench: Any) -> None:
    wrong = failed(COPY, FailureKind.WRONG_OUTPUT, "wrong output")
    one = bench(lambda order, case_id: wrong if case_id == COPY else 1e-6)
    with pytest.raises(WrongOutputError, match=r"bandwidth\.copy.*wrong output"):
        one.session().measure_to(2)


def test_measure_to__a_case_without_results_leaves_the_others(bench: Any) -> None:
    one = bench(lambda order, case_id: failed(case_id) if case_id == COPY else 1e-6)
    session = one.session()
    session.measure_to(2)
    assert all(set(launch.cases) == {GAP} for launch in session.run().launches)
    assert session.run().launches[0].failures == {COPY: f"{COPY}: it failed"}


@pytest.mark.parametrize(
    ("median", "reason"),
    [(lambda order, case_id: failed(case_id), "it failed"), (lambda order, case_id: None, "died of SIGSEGV")],
)
def test_measure_to__without_any_result_says_why(bench: Any, median: Any, reason: str) -> None:
    one = bench(median)
    with pytest.raises(LaunchError, match=reason):
        one.session().measure_to(2)
    assert one.listener.log[-1] == "ends"


def test_measure_to__without_any_result_says_what_the_driver_reported(bench: Any) -> None:
    one = bench(lambda order, case_id: None)
    one.device.xids = (79,)
    with pytest.raises(LaunchError) as raised:
        one.session().measure_to(2)
    assert "Xid 79" in raised.value.hint


def test_measure_to__tells_of_launches_that_died(bench: Any) -> None:
    one = bench(lambda order, case_id: None if order.index == 1 else 1e-3)
    one.session(plans=KNOWN).measure_to(3)
    notices = [line for line in one.listener.log if line.startswith("notice")]
    assert notices == [
        "notice: launch 1: its last output",
        "notice: launch 1 failed: died of SIGSEGV (segmentation fault)",
    ]


@pytest.mark.parametrize(("interrupts_at", "kept"), [(2, 2), (1, 1)])
def test_measure_to__interrupted_holds_what_was_measured(bench: Any, interrupts_at: int, kept: int) -> None:
    one = bench(interrupts_at=interrupts_at)
    with pytest.raises(InterruptedRunError) as raised:
        one.session(plans=KNOWN).measure_to(6)
    assert raised.value.exit_code == 130
    assert raised.value.run is not None
    assert len(raised.value.run.launches) == kept
    assert one.listener.log[-1] == "ends"


def test_measure_to__interrupted_before_any_result_holds_nothing(bench: Any) -> None:
    one = bench(interrupts_at=0)
    with pytest.raises(InterruptedRunError) as raised:
        one.session(plans=KNOWN).measure_to(6)
    assert raised.value.run is None


def test_run__says_what_was_measured_and_how(bench: Any) -> None:
    one = bench()
    session = one.session(Selection(seed=7, inject=("launch.gap=+3%",)))
    session.measure_to(1)
    run = session.run()
    assert (run.device_kind, run.seed, run.suite_name, run.suite_sha256) == ("cuda", 7, "default", "c" * 64)
    assert (run.environment.commit, run.environment.dirty) == ("d" * 40, True)
    assert run.absent == {"gemm.fp8": "no"}
    assert [one.requested for one in run.injected] == ["+3%"]
    assert run.cases[COPY].code_sha256 == "b" * 64
    assert run.health_before is not None
    assert run.health_after is not None
    assert run.health_before.temperature_c != run.health_after.temperature_c


def test_run__a_rehearsed_change_makes_no_plan_for_later_launches(bench: Any) -> None:
    one = bench()
    one.session(Selection(inject=("launch.gap=+3%",))).measure_to(3)
    assert all(order.plans == {} for order in one.launches.orders)


def test_run__names_the_processes_that_were_seen(bench: Any) -> None:
    one = bench()
    one.device.foreign = ("process 7",)
    session = one.session(plans=KNOWN)
    session.measure_to(3)
    assert session.run().health_after is not None
    assert session.run().health_after.foreign_processes == ("process 7",)
    assert one.device.log.count("foreign of 1") == 1  # not at every sign of life


@pytest.mark.parametrize(
    ("clock_hz", "policy", "tier"),
    [
        (1.200e9, "locked at 1.20 GHz", 2),
        (1.195e9, "locked at 1.20 GHz", 2),
        (0.9e9, "locked at 1.20 GHz, ran at 0.90 GHz", 1),
        (None, "locked at 1.20 GHz, not confirmed", 1),
    ],
)
def test_run__says_whether_a_locked_clock_was_held(bench: Any, clock_hz: float | None, policy: str, tier: int) -> None:
    one = bench(sm_clock_hz=clock_hz)
    session = one.session(plans=KNOWN, locked_clock_hz=1.2e9)
    session.measure_to(1)
    environment = session.run().environment
    assert (environment.clock_policy, environment.nvml_tier) == (policy, tier)


def test_held__locks_the_gpu_then_its_clock_and_lets_go_of_both() -> None:
    device = FakeDevice()

    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), held(device, Selection(lock_clocks=True, clock_mhz=1500), wait=True):
        failing()
    assert device.log == ["lock, wait=True", "lock clocks at 1500", "restore clocks", "unlock"]


def test_held__touches_no_clock_unless_asked() -> None:
    device = FakeDevice()
    with held(device, Selection(), wait=False) as clock_hz:
        assert clock_hz is None
    assert device.log == ["lock, wait=False", "unlock"]


def test_measured__is_a_session_under_the_lock(bench: Any) -> None:
    one = bench()
    run = measured(one.device, Selection(), 2, one.listener)
    assert len(run.launches) == 2
    assert (one.device.log[0], one.device.log[-1]) == ("lock, wait=False", "unlock")
