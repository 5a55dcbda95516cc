"""From a run to an accepted session of a baseline, and the sense checks on both.

Accepting is a decision of people; these functions say what speaks against it.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace

from perfgate.core.baseline import Baseline, BaselineSession, Provenance, SessionCase
from perfgate.core.baseline_change import session_key
from perfgate.core.canonical import significant
from perfgate.core.case import Unit
from perfgate.core.cause import THROTTLED, health_causes, relevant_differences
from perfgate.core.caveat import Caveat
from perfgate.core.gpu import Gpu
from perfgate.core.policy import Policy
from perfgate.core.reference import plan_of
from perfgate.core.run import CaseLaunch, Run
from perfgate.core.summary import launch_statistics, median_or_none, relative_spread
from perfgate.core.units import rate_text
from perfgate.core.validity import BEYOND_THEORETICAL, Unusable, bandwidth_fraction, beyond_text, is_settled, measured
from perfgate.errors import BaselineError

# A streaming case below this fraction of the theoretical bandwidth is a wrong unit or count, not a slow kernel:
# the slowest access patterns in the suites reach an eighth.
_LEAST_FRACTION = 1 / 20
# Sessions, or launches of one session, further apart than this do not describe one case on one GPU.
_CONTRADICTION = 2.0
# A ratio in here is the step from one SI prefix to the next.
_PREFIX_SLIP = (500.0, 2000.0)
# Cycles are mean time x mean clock, times medians: they differ by 2.6 % where the clock falls within a block.
_CYCLES_TOLERANCE = 0.1
# Reasons for lower clocks that are a fault of the machine: heat and supply. The power cap is how compute runs.
_THROTTLES = ("hw_slowdown", "hw_thermal", "sw_thermal", "hw_power_brake")
_THROTTLED_SHARE = 0.01


def accepted_session(run: Run, provenance: Provenance) -> BaselineSession:
    """Return what a baseline keeps of a run: the launch statistics of every case that may be used.

    Raises:
        BaselineError: the run was injected, or no case of it may be used, and nobody forced it.
    """
    if run.injected and provenance.forced is None:
        message = "a rehearsal is no baseline: the run was injected with " + ", ".join(
            f"{one.pattern} {one.requested}" for one in run.injected
        )
        raise BaselineError(message, hint="Measure again without --inject.")
    cases = {case_id: case for case_id in run.cases if (case := _session_case(case_id, run)) is not None}
    if not cases:
        reasons = [side.reason for case_id in run.cases if isinstance(side := measured(case_id, run), Unusable)]
        message = f"no case of the run may be used: {'; '.join(dict.fromkeys(reasons)) or 'it has none'}"
        raise BaselineError(message, hint="Measure again.")
    return BaselineSession(
        chip=run.gpu.chip,
        method=run.method,
        power_limit_w=run.gpu.power_limit_w,
        environment=run.environment,
        provenance=provenance,
        suite_name=run.suite_name,
        suite_sha256=run.suite_sha256,
        cases=cases,
    )


def baseline_of(run: Run, provenance: Provenance) -> Baseline:
    """Return a baseline of one session.

    Raises:
        BaselineError: see ``accepted_session``.
    """
    return Baseline(gpu=replace(run.gpu, chip=None, power_limit_w=None), sessions=(accepted_session(run, provenance),))


def with_session(baseline: Baseline, session: BaselineSession) -> Baseline:
    """Return the baseline with a further session; one of the same chip and time is replaced.

    Older sessions stay as they are: which of them a case is still compared with is found when judging
    (``reference``), so that an accepted slowdown ends them without rewriting what was measured.
    """
    key = (session.chip, session.provenance.recorded_utc)
    kept = (one for one in baseline.sessions if (one.chip, one.provenance.recorded_utc) != key)
    return replace(baseline, sessions=tuple(sorted((*kept, session), key=session_key)))


def with_rows(baseline: Baseline, fresh: BaselineSession) -> Baseline:
    """Return the baseline with the cases of ``fresh`` in the newest session of its chip, whose other cases stay.

    Where they came from is kept beside them (``refreshed``). Without a session of this chip it is added whole.

    Raises:
        BaselineError: the two were measured under different conditions: one session cannot hold both.
    """
    own = [one for one in baseline.sessions if one.chip is not None and one.chip == fresh.chip]
    if not own:
        return with_session(baseline, fresh)
    newest = own[-1]
    if names := _condition_names(newest, fresh):
        raise BaselineError(
            f"the session of {newest.provenance.recorded_utc} was measured under other conditions: "
            f"{', '.join(names)} differs",
            hint="Leave --case away: that adds a session of its own.",
        )
    updated = replace(
        newest,
        suite_sha256=newest.suite_sha256 if newest.suite_sha256 == fresh.suite_sha256 else None,
        cases={**newest.cases, **fresh.cases},
        refreshed={**newest.refreshed, **dict.fromkeys(fresh.cases, fresh.provenance)},
    )
    sessions = (updated if one is newest else one for one in baseline.sessions)
    return replace(baseline, sessions=tuple(sorted(sessions, key=session_key)))


def _condition_names(one: BaselineSession, other: BaselineSession) -> list[str]:
    """Name what differs of two sessions that would move times by itself."""
    names = [name for name in ("method", "power_limit_w") if getattr(one, name) != getattr(other, name)]
    if one.provenance.device_kind != other.provenance.device_kind:
        names.append("device_kind")
    return names + [difference.field for difference in relevant_differences(one.environment, other.environment)]


def unfitness(run: Run, policy: Policy) -> tuple[Caveat, ...]:
    """Return what speaks against accepting a run: too few launches, a busy or throttled GPU, cases that failed."""
    doubts = []
    if run.injected:
        doubts.append(Caveat(code="injected", message="a change was injected: this is a rehearsal"))
    if len(run.launches) < policy.baseline_launches:
        doubts.append(
            Caveat(
                code="too-few-launches",
                message=f"{len(run.launches)} launches, a baseline session needs {policy.baseline_launches}",
                remedy=f"measure with --launches {policy.baseline_launches}",
            )
        )
    doubts += [
        Caveat(code=cause.code, message=cause.message) for cause in health_causes(run.health_before, run.health_after)
    ]
    for case_id in run.cases:
        side = measured(case_id, run)
        if isinstance(side, Unusable):
            code = "wrong-output" if side.is_output_wrong else "invalid"
            doubts.append(Caveat(code=code, message=f"{case_id}: {side.reason}"))
        else:
            doubts += [replace(one, message=f"{case_id}: {one.message}") for one in side.caveats]
    doubts += _throttle_doubts(run)
    if run.environment.dirty:
        doubts.append(Caveat(code="dirty", message="the work tree had changes that no commit holds"))
    return tuple(doubts)


def _throttle_doubts(run: Run) -> Iterator[Caveat]:
    launches = [(case_id, launch) for one in run.launches for case_id, launch in one.cases.items()]
    for reason in _THROTTLES:
        ids = {case_id for case_id, launch in launches if _throttled_share(launch, reason) > _THROTTLED_SHARE}
        if ids:
            named = f"{', '.join(sorted(ids)[:3])}{' and others' if len(ids) > 3 else ''}"
            message = f"the GPU lowered its clocks ({reason.replace('_', ' ')}) during {named}"
            yield Caveat(code=THROTTLED, message=message, remedy="cool it, or look at its power supply")


def _throttled_share(launch: CaseLaunch, reason: str) -> float:
    sampled_s = sum(sum(block.times_s) * block.executions_per_sample for block in launch.blocks)
    lost_s = launch.clock_events_s.get(reason, 0.0)
    return lost_s / sampled_s if sampled_s else float(lost_s > 0)


def implausible(baseline: Baseline, *, gpu: Gpu | None = None, now_utc: str | None = None) -> tuple[Caveat, ...]:
    """Return what cannot be true of a baseline.

    Args:
        baseline: the sessions.
        gpu: a reading of the GPU with its memory clock and bus, for the limits of physics.
        now_utc: ISO 8601; sessions after it are from the future.
    """
    return tuple(_implausible(baseline, gpu or baseline.gpu, now_utc))


def _implausible(baseline: Baseline, gpu: Gpu, now_utc: str | None) -> Iterator[Caveat]:
    seen: set[tuple[str | None, str]] = set()
    for session in baseline.sessions:
        when = session.provenance.recorded_utc
        if (session.chip, when) in seen:
            yield Caveat(code="duplicate-session", message=f"two sessions of one chip were recorded at {when}")
        seen.add((session.chip, when))
        if now_utc is not None and when > now_utc:
            yield Caveat(code="from-the-future", message=f"a session was recorded at {when}, it is {now_utc} now")
        for case_id, case in session.cases.items():
            streams = case_id.split(".", 1)[0] == "bandwidth"  # a kernel of somebody's own may be as slow as it likes
            yield from _impossible_case(f"{case_id} in the session of {when}", case, gpu, streams=streams)
    yield from _copied_sessions(baseline)
    for case_id in dict.fromkeys(case_id for session in baseline.sessions for case_id in session.cases):
        yield from _contradictions(case_id, baseline)


def _impossible_case(where: str, case: SessionCase, gpu: Gpu, *, streams: bool) -> Iterator[Caveat]:
    median_s = statistics.median(case.launch_medians_s)
    fraction = bandwidth_fraction(case.work, case.timing, median_s, gpu)
    if fraction is not None and fraction > BEYOND_THEORETICAL:
        yield Caveat(code="beyond-physics", message=f"{where}: {beyond_text(case.work, median_s, fraction)}")
    if fraction is not None and fraction < _LEAST_FRACTION and streams and not case.work.work_flop:
        rate = rate_text(case.work.moved_bytes / median_s, "B")
        yield Caveat(
            code="below-physics",
            message=f"{where}: {rate} is less than a twentieth of the theoretical bandwidth: wrong unit or count",
        )
    if max(case.launch_medians_s) > _CONTRADICTION * min(case.launch_medians_s):
        yield Caveat(
            code="launches-contradict",
            message=f"{where}: launches differ by more than a factor of {_CONTRADICTION:g}: two chips or two units",
        )
    if case.launch_cycles is not None and case.sm_clock_hz is not None:
        expected = median_s * case.sm_clock_hz
        if abs(statistics.median(case.launch_cycles) - expected) > _CYCLES_TOLERANCE * expected:
            yield Caveat(
                code="cycles-contradict", message=f"{where}: its cycles are not its time multiplied by its clock"
            )


def _copied_sessions(baseline: Baseline) -> Iterator[Caveat]:
    """Two sessions never give the same times to the last digit: one is a copy, maybe under another chip's name."""
    first: dict[tuple[tuple[str, tuple[float, ...]], ...], str] = {}
    for session in baseline.sessions:
        # As they are stored: a session is compared before it is written with others that were.
        stored = ((case_id, tuple(significant(list(case.launch_medians_s)))) for case_id, case in session.cases.items())
        times = tuple(sorted(stored))
        is_constant = all(len(set(values)) == 1 for _, values in times)
        when = session.provenance.recorded_utc
        if times in first and not is_constant:
            yield Caveat(code="copied-session", message=f"the session of {when} repeats that of {first[times]}")
        first.setdefault(times, when)


def _contradictions(case_id: str, baseline: Baseline) -> Iterator[Caveat]:
    """Sessions of one case, of equal version and work, cannot differ by a factor."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for session in baseline.sessions:
        case = session.cases.get(case_id)
        # What is reported only may differ between machines as it likes: an event pair reads 1.3 or 2.9 µs.
        if case is not None and case.gated and not case.timing.is_host_timed:
            key = (session.method, case.version, case.work, case.timing, case.source_sha256)
            groups.setdefault(key, []).append(statistics.median(case.launch_medians_s))
    for medians in groups.values():
        ratio = max(medians) / min(medians)
        if ratio > _CONTRADICTION:
            slip = ": seconds, milliseconds or microseconds were confused" if _is_slip(ratio) else ""
            yield Caveat(
                code="unit-slip" if slip else "sessions-contradict",
                message=f"{case_id}: sessions of the same kernel differ by a factor of {ratio:.3g}{slip}",
            )


def _is_slip(ratio: float) -> bool:
    return any(_PREFIX_SLIP[0] < ratio / 1000**power < _PREFIX_SLIP[1] for power in (0, 1, 2))


def _session_case(case_id: str, run: Run) -> SessionCase | None:
    info, plan, side = run.cases[case_id], plan_of(case_id, run), measured(case_id, run)
    if isinstance(side, Unusable) or plan is None:
        return None
    launches = [launch.cases[case_id] for launch in run.launches if case_id in launch.cases]
    blocks = [block for launch in launches for block in launch.valid_blocks]
    within = median_or_none(relative_spread(block.times_s) for block in blocks)
    return SessionCase(
        version=info.version,
        timing=info.timing,
        unit=info.unit,
        gated=info.gated,
        plan=plan,
        work=info.work,
        launch_medians_s=launch_statistics(run, case_id, Unit.SECONDS),
        launch_cycles=launch_statistics(run, case_id, Unit.CYCLES) or None,
        within_spread=within,
        source_sha256=info.source_sha256,
        code_sha256=info.code_sha256,
        sm_clock_hz=side.sm_clock_hz,
        power_w=median_or_none(launch.power_w for launch in launches),
        temperature_c=median_or_none(launch.temperature_c for launch in launches),
        settled=is_settled(launches),
    )
