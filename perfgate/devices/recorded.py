"""A device that replays recorded sessions: resampled, seeded, with rehearsed faults. Needs no GPU.

A launch draws one recorded launch of one chip; a batch draws one of the case's recorded blocks and
resamples its times with replacement, so that the spread within blocks, between blocks and between
launches is the recorded one. Time passes in the numbers only: nothing sleeps.
"""

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from perfgate.core.device import DeviceKind, SampleBatch, Telemetry
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.run import Block, CaseInfo, CaseLaunch, Fault, Health, Injection, Launch, Run
from perfgate.core.selection import is_match
from perfgate.core.toolbox import Verification
from perfgate.errors import ConfigurationError, DeviceError, DeviceMemoryError

# A thermal slowdown as the hardware makes it: about 60 % of the clock, and everything takes longer by that.
_THROTTLED_CLOCK = 0.6
_THROTTLE_EVENT = "hw_thermal"


class Recording:
    """The recorded launches of one chip.

    Args:
        runs: recorded runs; those of other chips are left out.
        chip: which chip; by default that of the run which holds the most results of cases, the first of several.

    Raises:
        ConfigurationError: no launch of that chip was recorded.
    """

    def __init__(self, runs: Sequence[Run], chip: str | None = None) -> None:
        chosen = chip if chip is not None or not runs else max(runs, key=_results).gpu.chip
        self.runs = tuple(run for run in runs if run.gpu.chip == chosen)
        # A case that was changed between two recordings is replayed as it was in the first.
        self.cases: dict[str, CaseInfo] = {}
        for run in self.runs:
            for case_id, info in run.cases.items():
                if _recordings(run.launches, case_id):
                    self.cases.setdefault(case_id, info)
        if not self.cases:
            chips = ", ".join(sorted({str(run.gpu.chip) for run in runs})) or "none"
            raise ConfigurationError(
                f"no case of chip {chosen} was recorded", hint=f"chips in the recordings: {chips}; record with a GPU"
            )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All recorded launches."""
        return tuple(launch for run in self.runs for launch in run.launches)

    def comparable(self, case_id: str) -> tuple[Launch, ...]:
        """Return the launches that ran the same version of a case."""
        version = self.cases[case_id].version
        runs = (run for run in self.runs if case_id in run.cases and run.cases[case_id].version == version)
        return tuple(launch for run in runs for launch in run.launches)


def _results(run: Run) -> int:
    return sum(len(launch.cases) for launch in run.launches)


def _recordings(launches: Sequence[Launch], case_id: str) -> tuple[CaseLaunch, ...]:
    found = (launch.cases.get(case_id) for launch in launches)
    return tuple(one for one in found if one is not None and one.valid_blocks)


class RecordedDevice:
    """The parent's side of a recording.

    Args:
        recording: what is replayed.
        source: file that a launch reads it from again.
    """

    def __init__(self, recording: Recording, *, source: str) -> None:
        self._recording = recording
        self._source = source

    @property
    def kind(self) -> DeviceKind:
        """Recorded."""
        return DeviceKind.RECORDED

    @property
    def address(self) -> str:
        """What a launch needs to open the same recording."""
        return f"{DeviceKind.RECORDED}:{self._source}"

    @property
    def gpu(self) -> Gpu:
        """The GPU that was recorded."""
        return self._recording.runs[0].gpu

    @property
    def environment(self) -> Environment:
        """The environment that was recorded."""
        return self._recording.runs[0].environment

    def case_infos(self) -> dict[str, CaseInfo]:
        """Describe the recorded cases: those of a suite that are not among them cannot be replayed."""
        return dict(self._recording.cases)

    def health(self) -> Health:
        """Return the health that was recorded."""
        return self._recording.runs[0].health_before or Health()

    def foreign_processes(self, own: int) -> tuple[str, ...]:
        """Return nothing: nobody shares a recording."""
        del own
        return ()

    def locked_clocks(self, asked_mhz: int | None) -> AbstractContextManager[float]:
        """Refuse: what was recorded has the clock that it has.

        Raises:
            ConfigurationError: always.
        """
        del asked_mhz
        raise ConfigurationError("the clocks of a recording cannot be locked", hint="leave --lock-clocks away")

    def lock(self, *, wait: bool) -> AbstractContextManager[None]:
        """Hold nothing: any number of checks can replay a recording at once."""
        del wait
        return nullcontext()


class RecordedLaunch:
    """A launch that replays: the LaunchSession of a recording.

    Args:
        recording: what is replayed.
        seed: of the session; with ``index`` it decides every draw.
        index: of the launch.
        injections: faults to rehearse; relative changes are made by the measuring loop, which runs
            more executions.
    """

    def __init__(self, recording: Recording, *, seed: int, index: int, injections: Sequence[Injection] = ()) -> None:
        self._recording = recording
        self._seed = f"{seed}/{index}"
        self._injections = tuple(injections)
        launches = list(recording.launches)
        random.Random(self._seed).shuffle(launches)  # noqa: S311 - repeats by design
        self._launches = launches
        self._now_s = 0.0
        # Counters stand at zero from the start where they were recorded: readers take differences.
        cases = [case for launch in launches for case in launch.cases.values()]
        self._energy_j = 0.0 if any(case.power_w is not None for case in cases) else None
        self._clock_events_s = {reason: 0.0 for case in cases for reason in case.clock_events_s}
        if any(one.fault is Fault.THROTTLE for one in self._injections):
            self._clock_events_s[_THROTTLE_EVENT] = 0.0
        self._last: CaseLaunch | None = None

    @contextmanager
    def open_case(self, case_id: str) -> Iterator["RecordedCase"]:
        """Prepare to replay a case.

        Raises:
            DeviceError: the case was not recorded.
            DeviceMemoryError: an injected fault.
        """
        if case_id not in self._recording.cases:
            raise DeviceError(f"{case_id} was not recorded", hint="leave it out with --case, or record it on a GPU")
        fault = next((one.fault for one in self._injections if one.fault and is_match(case_id, one.pattern)), None)
        if fault is Fault.OUT_OF_MEMORY:
            raise DeviceMemoryError(f"{case_id}: out of memory (rehearsed by --inject {case_id}={fault})")
        # A recorded launch in which the case failed is passed over for the next in the drawn order.
        comparable = self._recording.comparable(case_id)
        drawn = [launch for launch in self._launches if any(launch is one for one in comparable)]
        self._last = _recordings(drawn, case_id)[0]
        yield RecordedCase(self, self._last, fault, random.Random(f"{self._seed}/{case_id}"))  # noqa: S311

    def self_test(self) -> None:
        """Do nothing: the times were taken on a stream that was tested then."""

    def telemetry(self) -> Telemetry:
        """Return the recorded readings, with counters that have grown by the time replayed."""
        last = self._last
        return Telemetry(
            at_s=self._now_s,
            temperature_c=last.temperature_c if last else None,
            memory_clock_hz=last.memory_clock_hz if last else None,
            power_w=last.power_w if last else None,
            clock_events_s=dict(self._clock_events_s),
        )

    def energy_j(self) -> float | None:
        """Return the energy of what was replayed, by the recorded power."""
        return self._energy_j

    def code_sha256(self, case_id: str) -> str | None:
        """Return the recorded hash."""
        return self._recording.cases[case_id].code_sha256

    def pass_time(self, duration_s: float, power_w: float | None, event_shares: Mapping[str, float]) -> float:
        """Let replayed time pass, with power drawn and clock events active for a share of it; return its start."""
        started_s = self._now_s
        self._now_s += duration_s
        if power_w is not None and self._energy_j is not None:
            self._energy_j += power_w * duration_s
        for reason, share in event_shares.items():
            self._clock_events_s[reason] = self._clock_events_s.get(reason, 0.0) + share * duration_s
        return started_s


class RecordedCase:
    """A case that is replayed: the OpenCase of a recording."""

    def __init__(
        self, launch: RecordedLaunch, recorded: CaseLaunch, fault: Fault | None, generator: random.Random
    ) -> None:
        self._launch = launch
        self._recorded = recorded
        self._fault = fault
        self._generator = generator

    @property
    def sets(self) -> int:
        """One: a recording has no buffers to rotate over."""
        return 1

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        """Draw a recorded block and resample its times."""
        if self._fault is Fault.HANG:
            _hang()
        if self._fault is Fault.CRASH:
            os.kill(os.getpid(), signal.SIGSEGV)
        block = self._generator.choice(self._recorded.valid_blocks)
        slowing = 1 / _THROTTLED_CLOCK if self._fault is Fault.THROTTLE else 1.0
        times_s = self._generator.choices(block.times_s, k=samples)
        intervals_s = tuple(time_s * executions * slowing for time_s in times_s)
        started_s = self._launch.pass_time(sum(intervals_s), self._recorded.power_w, self._event_shares())
        clock_hz = block.sm_clock_hz
        return SampleBatch(
            intervals_s=intervals_s,
            sm_clock_hz=clock_hz / slowing if clock_hz is not None else None,
            started_s=started_s,
        )

    def poison(self) -> None:
        """Do nothing: there is no output."""

    def verify(self) -> Verification:
        """Repeat what was found when the case was recorded."""
        if self._fault is Fault.WRONG_OUTPUT:
            detail = "rehearsed by --inject: this output counts as wrong"
            return Verification(passed=False, error=1.0, tolerance=0.0, detail=detail)
        error = self._recorded.verification_error or 0.0
        return Verification(passed=True, error=error, tolerance=error, detail="verified when it was recorded")

    def _event_shares(self) -> dict[str, float]:
        """Share of the recorded time of the case in which each clock event was active."""
        duration_s = sum(map(_block_duration_s, self._recorded.blocks))
        shares = {reason: min(1.0, time / duration_s) for reason, time in self._recorded.clock_events_s.items()}
        return shares | {_THROTTLE_EVENT: 1.0} if self._fault is Fault.THROTTLE else shares


def _block_duration_s(block: Block) -> float:
    return sum(block.times_s) * block.executions_per_sample


def _hang() -> None:
    while True:
        time.sleep(3600)
