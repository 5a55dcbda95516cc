"""The measuring loop on a device that does what a test tells it."""

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from perfgate.core.case import Timing, Unit
from perfgate.core.device import LaunchSession, SampleBatch, Telemetry
from perfgate.core.plan import CasePlan
from perfgate.core.toolbox import Verification
from perfgate.errors import ConfigurationError, DeviceError, WrongOutputError
from perfgate.measure.loop import FIXED_EXECUTIONS, CaseLoop, MeasuredCase, Settings
from tests.factories import PLAN

GOOD = Verification(passed=True, error=1e-7, tolerance=1e-5, detail="x")


@dataclass
class FakeDevice:
    """A session with one case; ``interval`` gives the seconds of one interval, by batch number and executions."""

    interval: Callable[[int, int], float] = lambda batch, executions: executions * 1e-3
    clock_hz: Callable[[int], float | None] = lambda batch: 1.98e9
    timed_out: Callable[[int], bool] = lambda batch: False
    event_share: Callable[[int], float] = lambda batch: 0.0
    event: str = "hw_thermal"
    sets: int = 1
    verification: Verification = GOOD
    log: list[str] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    now_s: float = 0.0
    events_s: float = 0.0

    @contextmanager
    def open_case(self, case_id: str) -> Iterator["FakeDevice"]:
        self.log.append(f"open {case_id}")
        yield self
        self.log.append("close")

    def self_test(self) -> None: ...

    def code_sha256(self, case_id: str) -> str | None:
        return None

    def telemetry(self) -> Telemetry:
        events = {self.event: self.events_s, "sw_power_cap": 0.0}
        return Telemetry(at_s=self.now_s, temperature_c=45.0, clock_events_s=events)

    def energy_j(self) -> float:
        return 600 * self.now_s

    def poison(self) -> None:
        self.log.append("poison")

    def verify(self) -> Verification:
        self.log.append("verify")
        return self.verification

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        number = len(self.asked)
        self.asked.append((executions, samples))
        interval_s = self.interval(number, executions)
        started_s, spent_s = self.now_s, max(1e-6, interval_s if math.isfinite(interval_s) else 0.0) * samples
        self.now_s += spent_s
        self.events_s += spent_s * self.event_share(number)
        return SampleBatch(
            intervals_s=(interval_s,) * samples,
            sm_clock_hz=self.clock_hz(number),
            started_s=started_s,
            spin_timed_out=self.timed_out(number),
        )


def measure(
    device: FakeDevice,
    plan: CasePlan | None = PLAN,
    *,
    timing: Timing = Timing.EVENTS,
    change: float = 0.0,
    unit: Unit = Unit.SECONDS,
    pauses: list[float] | None = None,
    light_clock_hz: float | None = None,
    **settings: float,
) -> MeasuredCase:
    session: LaunchSession = device
    rests: list[float] = [] if pauses is None else pauses
    given = Settings(**settings)  # type: ignore[arg-type]
    loop = CaseLoop(
        session, given, lambda case_id, phase: device.log.append(phase), rests.append, light_clock_hz=light_clock_hz
    )
    return loop.measure("family.a", timing, plan, change, unit=unit)


def test_measure__goes_through_its_phases_in_order() -> None:
    device = FakeDevice()
    measured = measure(device)
    steps = ["compile", "open family.a", "poison", "warm-up", *["block"] * PLAN.blocks, "verify", "verify", "close"]
    assert device.log == steps
    assert measured.launch.settled
    assert measured.launch.output_verified
    assert [block.sequence for block in measured.launch.blocks] == list(range(PLAN.blocks))
    assert measured.plan == PLAN


def test_measure__times_are_per_execution() -> None:
    (block, *_) = measure(FakeDevice()).launch.blocks
    assert block.times_s == pytest.approx((1e-3,) * PLAN.samples_per_block)
    assert (block.executions_per_sample, block.sm_clock_hz) == (PLAN.executions_per_sample, 1.98e9)


@pytest.mark.parametrize(
    ("execution_s", "sets", "executions"),
    [
        (10e-3, 1, 1),
        (3e-3, 1, 2),
        (1e-3, 1, 6),
        (1e-3, 4, 8),
        (2e-3, 2, 4),
        (60e-6, 1, 96),
        (2e-6, 3, 3072),
        (1.0, 2, 2),
    ],
)
def test_measure__chooses_executions_that_fill_a_sample(execution_s: float, sets: int, executions: int) -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * execution_s, sets=sets)
    plan = measure(device, None).plan
    assert plan.executions_per_sample == executions
    assert executions % sets == 0
    assert executions * execution_s >= 5e-3 or plan.executions_per_sample == sets


def test_measure__noise_does_not_choose_between_plans() -> None:
    chosen = {
        measure(FakeDevice(interval=lambda _, count, factor=factor: count * 0.9e-3 * factor), None).plan  # type: ignore[misc]
        for factor in (0.97, 0.99, 1.0, 1.01, 1.03)
    }
    assert len(chosen) == 1


@pytest.mark.parametrize("broken_s", [0.0, -1e-6, math.nan, math.inf])
def test_measure__unusable_first_times_make_executions_grow(broken_s: float) -> None:
    device = FakeDevice(interval=lambda batch, executions: broken_s if batch < 2 else executions * 1e-3)
    plan = measure(device, None).plan
    assert [executions for executions, _ in device.asked[:3]] == [1, 4, 16]
    assert plan.executions_per_sample == 6


@pytest.mark.parametrize("interval_s", [0.0, math.nan, 5e-6])
def test_measure__times_that_stay_unusable_are_an_error(interval_s: float) -> None:
    device = FakeDevice(interval=lambda batch, executions: interval_s)
    with pytest.raises(DeviceError, match="stay unusable"):
        measure(device, None)
    assert len(device.asked) == 5


def test_measure__samples_of_no_duration_are_refused_not_averaged() -> None:
    # superbenchmark#773: 5.2 us intervals through floor-to-ms arithmetic read 0.
    device = FakeDevice(interval=lambda batch, executions: 0.0 if batch == 4 else executions * 1e-3)
    blocks = measure(device).launch.blocks
    assert [block.valid for block in blocks] == [True, False, True, True, True, True]
    assert blocks[1].reason == "10 intervals were zero, negative or not finite"
    assert blocks[1].times_s == ()


def test_measure__a_queue_released_by_the_device_is_taken_again() -> None:
    blocks = measure(FakeDevice(timed_out=lambda batch: batch == 3)).launch.blocks
    assert [block.valid for block in blocks] == [False, *[True] * PLAN.blocks]
    assert "timeout" in (blocks[0].reason or "")


def test_measure__a_case_that_never_settles_goes_on_and_says_so() -> None:
    # triton#2306: 11.23 ms after a short warm-up, then 8.79 ms.
    device = FakeDevice(interval=lambda batch, executions: executions * 1e-3 * (1.01 if batch % 2 else 1.0))
    measured = measure(device)
    assert not measured.launch.settled
    assert len(measured.launch.valid_blocks) == PLAN.blocks
    assert sum(executions * samples for executions, samples in device.asked) * 1e-3 < 2 * 2.0


def test_measure__settles_only_after_the_drift_has_ended() -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * 1e-3 * max(1.0, 1.3 - 0.05 * batch))
    measured = measure(device)
    assert measured.launch.settled
    assert statistics.median(measured.launch.blocks[0].times_s) == pytest.approx(1e-3)


def swinging(batch: int) -> float:
    """A clock under a power cap: 5 % up and down for as long as it runs."""
    return 1.5e9 * (1 + 0.05 * math.sin(2.4 * batch))


def test_measure__cycles_stand_still_where_the_clock_swings() -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * 1.5e6 / swinging(batch), clock_hz=swinging)
    assert not measure(replace(device)).launch.settled
    in_cycles = measure(replace(device, log=[], asked=[]), unit=Unit.CYCLES)
    assert in_cycles.launch.settled
    assert in_cycles.launch.warm_up_s is not None


@pytest.mark.parametrize(("late", "settled"), [(1, True), (5, True), (10**6, False)])
def test_measure__a_window_that_waited_for_the_spins_timeout_is_no_part_of_the_warm_up(
    late: int, settled: bool
) -> None:
    device = FakeDevice(
        interval=lambda batch, executions: 0.7 if batch < late else executions * 1e-3,
        timed_out=lambda batch: batch < late,
    )
    assert measure(device, retries=0 if late > 5 else 5).launch.settled is settled


def test_measure__cycles_that_drift_are_not_settled() -> None:
    device = FakeDevice(
        interval=lambda batch, executions: executions * 1.5e6 * 1.01**batch / swinging(batch),
        clock_hz=swinging,
    )
    assert not measure(device, unit=Unit.CYCLES).launch.settled


def test_measure__cycles_of_an_unknown_clock_are_not_settled() -> None:
    device = FakeDevice(
        interval=lambda batch, executions: executions * 1.5e6 / swinging(batch), clock_hz=lambda batch: None
    )
    assert not measure(device, unit=Unit.CYCLES).launch.settled


def test_measure__cycles_that_jump_with_the_clock_are_settled_once_their_mean_does_not_drift() -> None:
    # Windows alternate between two clocks, and cycles follow them by 1 %: no three neighbours agree.
    clocks = (1.4e9, 1.6e9, 1.5e9, 1.6e9, 1.4e9, 1.5e9)
    cycles = {1.4e9: 0.993e6, 1.5e9: 1.0e6, 1.6e9: 1.007e6}

    def interval(batch: int, executions: int) -> float:
        clock_hz = clocks[batch % 6]
        return executions * cycles[clock_hz] / clock_hz

    device = FakeDevice(interval=interval, clock_hz=lambda batch: clocks[batch % 6])
    measured = measure(device, unit=Unit.CYCLES)
    assert measured.launch.settled
    assert device.log.count("block") == PLAN.blocks
    assert len(device.asked) == 6 + PLAN.blocks


@pytest.mark.parametrize("timing", [Timing.GAP, Timing.GRAPH_NODE])
def test_measure__bare_launches_wait_until_the_clock_is_back(timing: Timing) -> None:
    # After a product at the power limit the clock stays low for a while, as still as can be.
    device = FakeDevice(
        interval=lambda batch, executions: executions * (1.1e-6 if batch < 9 else 1e-6),
        clock_hz=lambda batch: 1.575e9 if batch < 9 else 1.965e9,
    )
    measured = measure(device, timing=timing, light_clock_hz=1.98e9)
    assert measured.launch.settled
    assert {time_s for block in measured.launch.blocks for time_s in block.times_s} == {1e-6}


def test_measure__a_clock_that_does_not_come_back_is_not_settled() -> None:
    device = FakeDevice(clock_hz=lambda batch: 1.575e9)
    assert not measure(device, timing=Timing.GAP, light_clock_hz=1.98e9).launch.settled
    # Work that loads the GPU runs at the clock that its power allows.
    assert measure(replace(device, log=[], asked=[]), light_clock_hz=1.98e9).launch.settled


def test_measure__a_moving_clock_is_not_settled() -> None:
    device = FakeDevice(clock_hz=lambda batch: 1.98e9 - min(batch, 8) * 3e7)
    assert measure(device).launch.settled
    assert len(device.asked) >= 8 + PLAN.blocks


def test_measure__an_unknown_clock_does_not_stand_in_the_way() -> None:
    measured = measure(FakeDevice(clock_hz=lambda batch: None))
    assert measured.launch.settled
    assert measured.launch.blocks[0].sm_clock_hz is None


def test_measure__a_slowdown_on_every_block_ends_in_bounded_time_as_invalid() -> None:
    # nvbench#231: clocks at 757-847 MHz of 1410 on every trial, and no end to it.
    pauses: list[float] = []
    launch = measure(FakeDevice(event_share=lambda batch: 0.9), pauses=pauses).launch
    assert launch.valid_blocks == ()
    assert len(launch.blocks) == 6
    assert launch.blocks[0].reason == "hw thermal slowdown during 90% of a block"
    assert sum(pauses) < 20


def test_measure__the_pauses_of_a_launch_are_bounded_over_its_cases() -> None:
    device, pauses = FakeDevice(event_share=lambda batch: 0.9), list[float]()
    loop = CaseLoop(device, Settings(), lambda case_id, phase: None, pauses.append)
    for _ in range(20):
        loop.measure("family.a", Timing.EVENTS, PLAN)
    assert sum(pauses) == pytest.approx(20.0)


@pytest.mark.parametrize(("event", "valid"), [("hw_power_brake", 0), ("sw_thermal", 0), ("sw_power_cap", 5)])
def test_measure__a_software_power_cap_is_recorded_not_invalid(event: str, valid: int) -> None:
    launch = measure(FakeDevice(event=event, event_share=lambda batch: 0.5)).launch
    assert len(launch.valid_blocks) == valid


def test_measure__a_slowdown_of_less_than_a_percent_is_let_pass() -> None:
    launch = measure(FakeDevice(event_share=lambda batch: 0.009)).launch
    assert len(launch.valid_blocks) == len(launch.blocks) == PLAN.blocks
    assert launch.clock_events_s["hw_thermal"] > 0


def test_measure__energy_only_where_the_counter_means_something() -> None:
    assert measure(FakeDevice()).launch.energy_j is None
    long = FakeDevice(interval=lambda batch, executions: executions * 10e-3)
    assert measure(long).launch.energy_j == pytest.approx(600 * 5 * 10 * 4 * 10e-3)


def test_measure__a_wrong_output_beats_any_time() -> None:
    wrong = Verification(passed=False, error=math.nan, tolerance=1e-5, detail="C[0, 3] was not written")
    device = FakeDevice(verification=wrong)
    with pytest.raises(WrongOutputError, match=r"family\.a: wrong output: C\[0, 3\] was not written"):
        measure(device)


@pytest.mark.parametrize("change", [0.03, -0.02, 0.005, 0.5])
@pytest.mark.parametrize("sets", [1, 2])
def test_measure__a_rehearsed_change_runs_more_than_it_reports(change: float, sets: int) -> None:
    device = FakeDevice(sets=sets)
    measured = measure(device, change=change)
    assert measured.effective_change == pytest.approx(change, rel=0.021)
    assert statistics.median(measured.launch.blocks[0].times_s) == pytest.approx(1e-3 * (1 + measured.effective_change))
    executions, samples = device.asked[-1]
    assert executions % sets == measured.plan.executions_per_sample % sets == 0
    assert samples >= 3


def test_measure__a_program_is_one_block_that_cannot_be_slowed_down() -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * 1e-5)
    measured = measure(device, None, timing=Timing.PROGRAM)
    assert (len(measured.launch.valid_blocks), measured.plan.executions_per_sample) == (1, 1)
    with pytest.raises(ConfigurationError, match="cannot be slowed down"):
        measure(device, None, timing=Timing.PROGRAM, change=0.03)


@pytest.mark.parametrize("timing", sorted(set(FIXED_EXECUTIONS) - {Timing.PROGRAM}))
@pytest.mark.parametrize("change", [0.0, 0.03, -0.02, 9.0, -0.5, 0.001])
def test_measure__every_timing_bears_every_change_within_the_queue(timing: Timing, change: float) -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * 1e-5)
    measured = measure(device, None, timing=timing, change=change)
    assert len(measured.launch.valid_blocks) == 5
    if timing is Timing.EVENT_FLOOR:
        assert (measured.effective_change, device.asked[-1][0]) == (0.0, 1)
    elif timing is Timing.GAP and abs(change) >= 0.02:
        # The long chain has 64 links more, and all of it is queued while the device waits.
        assert max(executions for executions, _ in device.asked) + 64 <= 480


def test_measure__a_sweep_goes_through_the_memory_as_seldom_as_a_median_allows() -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * 2e-4, sets=126)
    plan = measure(device, None, timing=Timing.SLOWEST).plan
    assert (plan.executions_per_sample, plan.samples_per_block) == (126, 3)


@pytest.mark.parametrize(("execution_s", "samples"), [(5e-3, 10), (14e-3, 10), (43e-3, 4), (0.2, 3), (3.0, 3)])
def test_measure__a_block_of_long_samples_takes_fewer(execution_s: float, samples: int) -> None:
    device = FakeDevice(interval=lambda batch, executions: executions * execution_s)
    plan = measure(device, None).plan
    assert (plan.executions_per_sample, plan.samples_per_block) == (1, samples)
