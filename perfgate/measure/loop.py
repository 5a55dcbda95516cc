"""The measuring loop of one launch: settle, sample, judge validity, verify. Knows no vendor.

Every parameter stands in Settings with its reason; docs/measurement.md explains the method.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfgate.core.case import Timing, Unit
from perfgate.core.device import LaunchSession, OpenCase, SampleBatch, Telemetry
from perfgate.core.plan import CasePlan
from perfgate.core.run import Block, CaseLaunch
from perfgate.errors import ConfigurationError, DeviceError, WrongOutputError
from perfgate.measure.injection import injected_executions


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of the loop, each with its reason.

    Attributes:
        sample_s: least length of a timed interval: the event pair's own 1.8-2.9 µs stay under 0.05 %.
        samples_per_block, blocks: 5 x 10 samples of 5 ms: 50 ms a block, long enough for the device clock.
        block_longest_s: a block whose samples are long takes fewer of them, LEAST_SAMPLES at least: an 8192 product
            in FP64 would take 2 s, and its launches agree as well.
        window_s: length of a warm-up window.
        settled_windows: neighbouring window medians that must agree.
        settled_times: relative range of their medians.
        settled_clock: relative range of their clocks.
        settled_cycles: relative range of their cycles, for a case that is judged in them: under a power cap the clock
            of an H200 jumps by up to 12 % within a block of a tensor-core product, its cycles by 0.1 to 0.4 %.
        recovered_clock: share of the clock of an idle GPU that a case of bare launches waits for: after a tensor-core
            product an H200 stays at 80 % of it for 0.05 s and is back after 0.12 s, and a graph's node takes 12 % more.
        warm_up_longest_s: then it goes on, with a caveat.
        clock_event_share: share of a case's time that a hardware slowdown may cover before it is invalid.
        retries: invalid or failed batches that are taken again, in all of a case.
        retry_pause_s: before the first of them; doubles.
        retry_pauses_s: all pauses of a launch; then retries follow at once, so that a GPU that is slowed
            down throughout is found out in bounded time.
    """

    sample_s: float = 5e-3
    samples_per_block: int = 10
    blocks: int = 5
    block_longest_s: float = 0.15
    window_s: float = 20e-3
    settled_windows: int = 3
    settled_times: float = 0.003
    settled_clock: float = 0.005
    settled_cycles: float = 0.005
    recovered_clock: float = 0.99
    warm_up_longest_s: float = 2.0
    clock_event_share: float = 0.01
    retries: int = 5
    retry_pause_s: float = 0.5
    retry_pauses_s: float = 20.0


# Executions of an interval where the method fixes them. Slopes: chains of 64 and 448 links (480 commands
# are queued at most). Host-timed: batches that never fill the queue.
FIXED_EXECUTIONS: Mapping[Timing, int] = {
    Timing.GAP: 384,
    Timing.GRAPH_NODE: 384,
    Timing.GRAPH: 64,
    Timing.SUBMIT: 256,
    Timing.ROUNDTRIP: 64,
    Timing.EVENT_FLOOR: 1,
    Timing.PROGRAM: 1,
}

# Slopes that a GPU does at its highest clock, since they hardly load it.
BARE_LAUNCHES = frozenset({Timing.GAP, Timing.GRAPH_NODE})

# Below it the event pair's own time is more than a percent: too rough to choose executions by.
SHORTEST_INTERVAL_S = 0.2e-3

# A block's median needs at least these.
LEAST_SAMPLES = 3

# Clock events that slow the GPU down against its will; a software power cap is how a GEMM runs, and recorded.
SLOWDOWN_EVENTS = ("hw_thermal", "hw_power_brake", "sw_thermal")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCase:
    """The result of a case, the plan that it was sampled by, and the change that was rehearsed."""

    launch: CaseLaunch
    plan: CasePlan
    effective_change: float = 0.0


class CaseLoop:
    """Measures one case after the other in one launch.

    Args:
        session: the device.
        settings: parameters.
        progress: told case and phase at every step, so that a supervisor sees that the launch lives.
        pause: sleeps; an argument so that tests do not.
        clock: monotonic seconds.
        light_clock_hz: the SM clock of a GPU with next to nothing to do; None where it is not known.
    """

    def __init__(
        self,
        session: LaunchSession,
        settings: Settings,
        progress: Callable[[str, str], None],
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        *,
        light_clock_hz: float | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._progress = progress
        self._pause = pause
        self._clock = clock
        self._pauses_left_s = settings.retry_pauses_s
        self._sequence = 0
        self._light_clock_hz = light_clock_hz

    def measure(
        self,
        case_id: str,
        timing: Timing,
        plan: CasePlan | None = None,
        change: float = 0.0,
        *,
        unit: Unit = Unit.SECONDS,
    ) -> MeasuredCase:
        """Measure one case.

        Args:
            case_id: the case.
            timing: how it is timed.
            plan: the baseline's plan; None to choose one.
            change: rehearsed relative change: that many more executions run than are reported.
            unit: what it is judged in, and so what has to stand still before it is measured.

        Raises:
            CompileError, DeviceError: the case cannot be prepared or the device failed.
            WrongOutputError: its output is wrong.
        """
        self._progress(case_id, "compile")
        with self._session.open_case(case_id) as case:
            case.poison()
            self._progress(case_id, "warm-up")
            begin = self._clock()
            chosen, run_executions = _rehearsed(plan or self._chosen_plan(case, timing), timing, change, case.sets)
            # A program warms up by itself, if at all: every window of ours would be a whole run of it.
            settled = timing is Timing.PROGRAM or self._settle(case, chosen, timing, unit)
            warm_up_s = self._clock() - begin
            before, energy_before_j = self._session.telemetry(), self._session.energy_j()
            blocks, after = self._blocks(case_id, case, chosen, run_executions, before)
            self._progress(case_id, "verify")
            verification = case.verify()
        if not verification.passed:
            raise WrongOutputError(
                f"{case_id}: wrong output: {verification.detail} (error {verification.error:.3g},"
                f" tolerance {verification.tolerance:.3g})",
                hint="its time means nothing until the kernel is right",
            )
        launch = CaseLaunch(
            blocks=tuple(blocks),
            settled=settled,
            warm_up_s=warm_up_s,
            energy_j=self._energy_j(energy_before_j, after.at_s - before.at_s),
            memory_clock_hz=after.memory_clock_hz,
            temperature_c=after.temperature_c,
            power_w=after.power_w,
            clock_events_s=_event_seconds(before, after),
            output_verified=True,
            verification_error=verification.error,
        )
        effective = run_executions / chosen.executions_per_sample - 1
        return MeasuredCase(launch=launch, plan=chosen, effective_change=effective)

    def _chosen_plan(self, case: OpenCase, timing: Timing) -> CasePlan:
        """Executions that fill a sample, a multiple of the buffer sets; grown while an interval is unusable."""
        settings = self._settings
        executions = FIXED_EXECUTIONS.get(timing)
        samples = settings.samples_per_block
        if executions is None:
            execution_s = self._rough_execution_s(case)
            executions = case.sets * max(1, math.ceil(_rounded_up(settings.sample_s / execution_s) / case.sets))
            fitting = math.ceil(settings.block_longest_s / (executions * execution_s))
            samples = min(samples, max(LEAST_SAMPLES, fitting))
        return CasePlan(
            executions_per_sample=executions,
            # A sweep's sample is a pass over all of the memory.
            samples_per_block=LEAST_SAMPLES if timing is Timing.SLOWEST else samples,
            # A run of a program is a block, and may take minutes.
            blocks=1 if timing is Timing.PROGRAM else settings.blocks,
        )

    def _rough_execution_s(self, case: OpenCase) -> float:
        """Time of one execution, from an interval long enough to mean something."""
        executions = case.sets
        reason = None
        for _ in range(5):
            batch = case.time_batch(executions=executions, samples=3)
            interval_s = statistics.median(batch.intervals_s)
            reason = _batch_reason(batch)
            if reason is None and interval_s >= SHORTEST_INTERVAL_S:
                return interval_s / executions
            executions *= 4
        raise DeviceError(
            f"event times stay unusable: {reason or 'intervals stay too short'}",
            hint="does the case enqueue its work on the toolbox's stream, and enough of it?",
        )

    def _settle(self, case: OpenCase, plan: CasePlan, timing: Timing, unit: Unit) -> bool:
        """Run windows until times and clock stand still, or cycles; False when time was up first.

        Host-timed cases never stand still (10-50 % between sessions): they get the windows alone.
        """
        settings = self._settings
        medians: list[float] = []
        means: list[float] = []
        clocks: list[float | None] = []
        samples = 3
        spent_s = 0.0
        late = 0
        while spent_s < settings.warm_up_longest_s:
            begin = self._clock()
            batch = case.time_batch(executions=plan.executions_per_sample, samples=samples)
            if batch.spin_timed_out and late < settings.retries:
                # It took as long as the longest warm-up, and tells nothing: somebody's first calls loaded their code.
                late += 1
                continue
            interval_s = statistics.median(batch.intervals_s)
            # A slope costs the host ten times what it reads: two chains are enqueued for each difference.
            batch_s = max(self._clock() - begin, sum(max(0.0, one) for one in batch.intervals_s))
            spent_s += batch_s
            samples = max(3, min(64, round(settings.window_s * samples / batch_s))) if batch_s > 0 else samples
            medians.append(interval_s)
            means.append(statistics.fmean(batch.intervals_s))
            clocks.append(batch.sm_clock_hz)
            if len(medians) < settings.settled_windows or _batch_reason(batch) is not None:
                continue
            if timing.is_host_timed or self._is_still(medians, clocks, timing):
                return True
            if unit is Unit.CYCLES and self._are_cycles_still(means, clocks):
                return True
        return False

    def _is_still(self, medians: list[float], clocks: list[float | None], timing: Timing) -> bool:
        """Whether the last windows agree in time and clock, and the clock is back from what the case before it drew."""
        settings = self._settings
        known = [clock for clock in clocks[-settings.settled_windows :] if clock is not None]
        waits_for_hz = settings.recovered_clock * (self._light_clock_hz or 0.0) if timing in BARE_LAUNCHES else 0.0
        if known and known[-1] < waits_for_hz:
            return False
        if len(known) >= 2 and _relative_range(known) > settings.settled_clock:
            return False
        return _relative_range(medians[-settings.settled_windows :]) <= settings.settled_times

    def _are_cycles_still(self, means: list[float], clocks: list[float | None]) -> bool:
        """Whether the last windows agree in cycles, or on average with as many before them.

        Averages, since the clock of a product at the power limit jumps by 12 % within milliseconds, and its cycles
        with it by 1 %: they never stand still, but they do not drift.
        """
        windows, bound = self._settings.settled_windows, self._settings.settled_cycles
        recent = zip(means[-2 * windows :], clocks[-2 * windows :], strict=True)
        cycles = [mean_s * clock for mean_s, clock in recent if clock is not None]
        if len(cycles) >= windows and _relative_range(cycles[-windows:]) <= bound:
            return True
        halves = [statistics.fmean(cycles[:windows]), statistics.fmean(cycles[windows:])] if cycles[windows:] else []
        return len(cycles) == 2 * windows and _relative_range(halves) <= bound

    def _blocks(
        self, case_id: str, case: OpenCase, plan: CasePlan, run_executions: int, before: Telemetry
    ) -> tuple[list[Block], Telemetry]:
        """Take blocks until enough are valid or the retries are spent; the counters frame each of them."""
        blocks: list[Block] = []
        retries, pause_s = self._settings.retries, self._settings.retry_pause_s
        after = before
        while sum(block.valid for block in blocks) < plan.blocks:
            self._progress(case_id, "block")
            batch = case.time_batch(executions=run_executions, samples=plan.samples_per_block)
            after = self._session.telemetry()
            slowdown = slowdown_reason(
                _event_seconds(before, after), after.at_s - before.at_s, self._settings.clock_event_share
            )
            reason = _batch_reason(batch) or slowdown
            before = after
            blocks.append(self._block(batch, plan.executions_per_sample, reason))
            if reason is not None:
                if retries == 0:
                    break
                retries -= 1
                # A rest helps a GPU that is hot or busy, not one that waits for its host.
                if slowdown is not None or not batch.host_bound:
                    self._rest(pause_s)
                    pause_s *= 2
        return blocks, after

    def _energy_j(self, before_j: float | None, duration_s: float) -> float | None:
        """Energy of the case; None under a second, since the counter moves about every 100 ms."""
        if before_j is None or duration_s < 1.0:
            return None
        after_j = self._session.energy_j()
        return None if after_j is None else after_j - before_j

    def _rest(self, pause_s: float) -> None:
        pause_s = min(pause_s, self._pauses_left_s)
        if pause_s > 0:
            self._pauses_left_s -= pause_s
            self._pause(pause_s)

    def _block(self, batch: SampleBatch, executions: int, reason: str | None) -> Block:
        self._sequence += 1
        return Block(
            sequence=self._sequence - 1,
            started_s=batch.started_s,
            times_s=tuple(one / executions for one in batch.intervals_s if _is_time(one)),
            executions_per_sample=executions,
            sm_clock_hz=batch.sm_clock_hz,
            valid=reason is None,
            reason=reason,
        )


def _rehearsed(plan: CasePlan, timing: Timing, change: float, sets: int) -> tuple[CasePlan, int]:
    """Return the plan whose executions make a change whole, and the executions to run.

    A sample grows, so fewer are taken; a slope's chain may not grow, since the queue is bounded. The
    event floor has no executions to change.
    """
    if change == 0.0 or timing is Timing.EVENT_FLOOR:
        return plan, plan.executions_per_sample
    if timing is Timing.PROGRAM:
        raise ConfigurationError(
            "a program that times itself cannot be slowed down", hint="leave it out of --inject, or of --case"
        )
    if timing in (Timing.EVENTS, Timing.REPLAY):
        nominal, run = injected_executions(change, plan.executions_per_sample, sets)
    else:
        nominal, run = injected_executions(change, math.floor(plan.executions_per_sample / (1 + max(0.0, change))), 1)
    samples = round(plan.samples_per_block * plan.executions_per_sample / nominal)
    return (
        CasePlan(
            executions_per_sample=nominal,
            samples_per_block=min(plan.samples_per_block, max(LEAST_SAMPLES, samples)),
            blocks=plan.blocks,
        ),
        run,
    )


def _batch_reason(batch: SampleBatch) -> str | None:
    if batch.spin_timed_out:
        return "the queue was released by the device's timeout"
    if batch.host_bound:
        return "the GPU waited for the host: one execution takes less time than its launch"
    unusable = sum(not _is_time(one) for one in batch.intervals_s)
    return f"{unusable} intervals were zero, negative or not finite" if unusable else None


def _is_time(value: float) -> bool:
    return math.isfinite(value) and value > 0


def slowdown_reason(events_s: Mapping[str, float], duration_s: float, longest_share: float) -> str | None:
    """Return why a stretch of time is spoiled by clock events, None when it is not."""
    for name in SLOWDOWN_EVENTS:
        share = events_s.get(name, 0.0) / duration_s if duration_s > 0 else 0.0
        if share > longest_share:
            return f"{name.replace('_', ' ')} slowdown during {share:.0%} of a block"
    return None


def _event_seconds(before: Telemetry, after: Telemetry) -> dict[str, float]:
    known = set(before.clock_events_s) & set(after.clock_events_s)
    return {name: max(0.0, after.clock_events_s[name] - before.clock_events_s[name]) for name in sorted(known)}


def _relative_range(values: list[float]) -> float:
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle > 0 else math.inf


def _rounded_up(count: float) -> int:
    """Round up to two significant bits (1, 2, 3, 4, 6, 8, 12 ...): noise must not choose between neighbours."""
    if count <= 2:
        return max(1, math.ceil(count))
    power: int = 2 ** math.floor(math.log2(count))
    return next(one for one in (power, power * 3 // 2, power * 2) if one >= count)
