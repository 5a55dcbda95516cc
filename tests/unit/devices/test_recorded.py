import signal
import statistics
import subprocess
import sys
from dataclasses import replace

import pytest

from perfgate.core.device import Device, DeviceKind, LaunchSession
from perfgate.core.run import Block, CaseLaunch, Fault, Health, Injection, Run
from perfgate.devices.recorded import RecordedDevice, RecordedLaunch, Recording
from perfgate.errors import ConfigurationError, DeviceError, DeviceMemoryError
from tests.factories import H200, make_case_info, make_run

COPY, GEMM = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]"


def block(*times_s: float, sequence: int = 0, sm_clock_hz: float | None = 1.9e9, valid: bool = True) -> Block:
    reason = None if valid else "throttled"
    return Block(
        sequence=sequence,
        started_s=0.0,
        times_s=times_s,
        executions_per_sample=10,
        sm_clock_hz=sm_clock_hz,
        valid=valid,
        reason=reason,
    )


def recorded_run(**changes: object) -> Run:
    """Two launches; every time tells its launch, block and sample apart."""
    run = make_run({COPY: [1.0, 2.0], GEMM: [3.0, 4.0]}, **changes)  # type: ignore[arg-type]
    launches = []
    for launch in run.launches:
        base_s = 1e-3 * (1 + launch.index)
        blocks = (block(base_s, base_s + 1e-6), block(base_s + 1e-4, base_s + 1.01e-4), block(9.0, valid=False))
        case = CaseLaunch(
            blocks=blocks,
            temperature_c=40.0 + launch.index,
            power_w=500.0,
            memory_clock_hz=3.2e9,
            clock_events_s={"sw_power_cap": sum(map(sum, (one.times_s for one in blocks))) * 10 / 4},
        )
        launches.append(replace(launch, cases={COPY: case, GEMM: case}))
    return replace(run, launches=tuple(launches))


@pytest.fixture
def recording() -> Recording:
    return Recording([recorded_run()])


def launched(recording: Recording, index: int = 0, seed: int = 0, fault: Fault | None = None) -> RecordedLaunch:
    injections = (Injection(pattern="bandwidth*", requested=str(fault)),) if fault else ()
    return RecordedLaunch(recording, seed=seed, index=index, injections=injections)


def medians(recording: Recording, seed: int, count: int = 40) -> list[float]:
    found = []
    for index in range(count):
        with launched(recording, index, seed).open_case(COPY) as case:
            found.append(statistics.median(case.time_batch(executions=1, samples=9).intervals_s))
    return found


def test_recorded__keeps_the_protocols(recording: Recording) -> None:
    device: Device = RecordedDevice(recording, source="/somewhere/run.json.gz")
    session: LaunchSession = launched(recording)
    assert (device.kind, device.address) == (DeviceKind.RECORDED, "recorded:/somewhere/run.json.gz")
    assert device.gpu == H200
    assert device.environment == recording.runs[0].environment
    assert (device.health(), device.foreign_processes(1)) == (Health(), ())
    session.self_test()
    with device.lock(wait=False), device.lock(wait=False), session.open_case(COPY) as case:
        case.poison()
        assert case.sets == 1
        assert case.verify().passed


def test_recorded_device__health_is_the_recorded_one() -> None:
    run = replace(recorded_run(), health_before=Health(temperature_c=41.0))
    assert RecordedDevice(Recording([run]), source="x").health() == Health(temperature_c=41.0)


def test_recording__describes_the_recorded_cases(recording: Recording) -> None:
    infos = RecordedDevice(recording, source="x").case_infos()
    assert infos == dict(recorded_run().cases)
    assert launched(recording).code_sha256(COPY) == infos[COPY].code_sha256


def test_time_batch__resamples_one_recorded_block(recording: Recording) -> None:
    blocks = {one.times_s for launch in recording.launches for one in launch.cases[COPY].valid_blocks}
    seen = set()
    for index in range(40):
        with launched(recording, index).open_case(COPY) as case:
            batch = case.time_batch(executions=4, samples=7)
        assert len(batch.intervals_s) == 7
        assert batch.sm_clock_hz == 1.9e9
        (source,) = [times for times in blocks if {time * 4 for time in times} >= set(batch.intervals_s)]
        seen.add(source)
    assert seen == blocks


def test_time_batch__a_launch_stays_with_its_recorded_launch(recording: Recording) -> None:
    for index in range(20):
        with launched(recording, index).open_case(COPY) as case:
            milliseconds = {int(case.time_batch(executions=1, samples=1).intervals_s[0] * 1e3) for _ in range(10)}
        assert len(milliseconds) == 1


def test_time_batch__repeats_by_seed_and_differs_by_launch(recording: Recording) -> None:
    assert medians(recording, seed=3) == medians(recording, seed=3)
    assert medians(recording, seed=3) != medians(recording, seed=4)
    assert len({int(median * 1e3) for median in medians(recording, seed=3)}) == 2


def test_time_batch__does_not_depend_on_the_other_cases(recording: Recording) -> None:
    alone, after = launched(recording), launched(recording)
    with after.open_case(GEMM) as case:
        case.time_batch(executions=1, samples=5)
    with alone.open_case(COPY) as one, after.open_case(COPY) as other:
        assert (
            one.time_batch(executions=2, samples=5).intervals_s == other.time_batch(executions=2, samples=5).intervals_s
        )


def test_time_batch__more_executions_take_longer_by_as_much(recording: Recording) -> None:
    with launched(recording).open_case(COPY) as nominal, launched(recording).open_case(COPY) as slower:
        pairs = zip(
            nominal.time_batch(executions=100, samples=9).intervals_s,
            slower.time_batch(executions=103, samples=9).intervals_s,
            strict=True,
        )
        assert [other / one for one, other in pairs] == pytest.approx([1.03] * 9)


def test_telemetry__time_energy_and_events_pass_in_the_numbers(recording: Recording) -> None:
    session = launched(recording)
    before, before_j = session.telemetry(), session.energy_j()
    assert (before.at_s, before_j, before.clock_events_s) == (0.0, 0.0, {"sw_power_cap": 0.0})
    with session.open_case(COPY) as case:
        first = case.time_batch(executions=100, samples=50)
        second = case.time_batch(executions=100, samples=50)
    after = session.telemetry()
    duration_s = sum(first.intervals_s) + sum(second.intervals_s)
    assert (first.started_s, second.started_s) == (0.0, pytest.approx(sum(first.intervals_s)))
    assert after.at_s == pytest.approx(duration_s)
    assert session.energy_j() == pytest.approx(500.0 * duration_s)
    assert after.clock_events_s == {"sw_power_cap": pytest.approx(duration_s / 4)}
    assert (after.power_w, after.memory_clock_hz) == (500.0, 3.2e9)
    assert after.temperature_c in (40.0, 41.0)


def test_telemetry__what_was_not_recorded_is_not_made_up() -> None:
    run = make_run({COPY: [1e-3]})
    bare = {COPY: replace(run.launches[0].cases[COPY], power_w=None, temperature_c=None)}
    session = launched(Recording([replace(run, launches=(replace(run.launches[0], cases=bare),))]))
    with session.open_case(COPY) as case:
        case.time_batch(executions=1, samples=1)
    telemetry = session.telemetry()
    assert (session.energy_j(), telemetry.temperature_c, telemetry.clock_events_s) == (None, None, {})


def test_throttle__lowers_the_clock_and_says_so(recording: Recording) -> None:
    session = launched(recording, fault=Fault.THROTTLE)
    assert session.telemetry().clock_events_s["hw_thermal"] == 0.0
    with session.open_case(COPY) as case, launched(recording).open_case(COPY) as healthy:
        batch, usual = case.time_batch(executions=1, samples=9), healthy.time_batch(executions=1, samples=9)
    assert batch.sm_clock_hz == pytest.approx(0.6 * 1.9e9)
    assert sum(batch.intervals_s) == pytest.approx(sum(usual.intervals_s) / 0.6)
    telemetry = session.telemetry()
    assert telemetry.clock_events_s["hw_thermal"] == pytest.approx(telemetry.at_s)
    with session.open_case(GEMM) as case:
        assert case.time_batch(executions=1, samples=1).sm_clock_hz == 1.9e9


def test_wrong_output__fails_verification_of_the_case_alone(recording: Recording) -> None:
    session = launched(recording, fault=Fault.WRONG_OUTPUT)
    with session.open_case(COPY) as case:
        verification = case.verify()
    assert not verification.passed
    assert verification.error > verification.tolerance
    with session.open_case(GEMM) as case:
        assert case.verify().passed


def test_out_of_memory__is_an_error_of_the_case_alone(recording: Recording) -> None:
    session = launched(recording, fault=Fault.OUT_OF_MEMORY)
    with pytest.raises(DeviceMemoryError, match="out of memory"), session.open_case(COPY):
        pass
    with session.open_case(GEMM):
        pass


def test_hang__never_returns(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    class StillHangingError(Exception):
        pass

    naps_s = iter((3600, 3600))

    def nap(duration_s: float) -> None:
        if next(naps_s, None) is None:
            raise StillHangingError

    monkeypatch.setattr("time.sleep", nap)
    with launched(recording, fault=Fault.HANG).open_case(COPY) as case, pytest.raises(StillHangingError):
        case.time_batch(executions=1, samples=1)


def test_crash__kills_the_process() -> None:
    script = (
        "from tests.factories import make_run\n"
        "from perfgate.core.run import Injection\n"
        "from perfgate.devices.recorded import RecordedLaunch, Recording\n"
        "injections = (Injection(pattern='*', requested='crash'),)\n"
        "launch = RecordedLaunch(Recording([make_run({'a.b': [1e-3]})]), seed=0, index=0, injections=injections)\n"
        "with launch.open_case('a.b') as case:\n"
        "    case.time_batch(executions=1, samples=1)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGSEGV


def test_open_case__one_that_was_not_recorded_is_named(recording: Recording) -> None:
    with pytest.raises(DeviceError, match=r"gemm\.bf16 was not recorded"), launched(recording).open_case("gemm.bf16"):
        pass


def test_recording__keeps_to_one_chip() -> None:
    other = recorded_run(gpu=replace(H200, chip="other"))
    recording = Recording([recorded_run(), other, recorded_run()])
    assert len(recording.launches) == 4
    assert Recording([recorded_run(), other], chip="other").runs == (other,)
    with pytest.raises(ConfigurationError, match="chip none of these"):
        Recording([recorded_run()], chip="none of these")
    with pytest.raises(ConfigurationError):
        Recording([])


def test_recording__passes_over_launches_without_the_case() -> None:
    run = recorded_run()
    partial = replace(run.launches[0], cases={GEMM: run.launches[0].cases[GEMM]})
    recording = Recording([replace(run, launches=(partial, run.launches[1]))])
    assert {int(median * 1e3) for median in medians(recording, seed=0, count=10)} == {2}


def test_recording__offers_no_case_that_was_never_measured() -> None:
    run = recorded_run()
    launches = tuple(replace(launch, cases={GEMM: launch.cases[GEMM]}) for launch in run.launches)
    assert set(Recording([replace(run, launches=launches)]).cases) == {GEMM}


def test_recording__does_not_mix_versions_of_a_case() -> None:
    first = recorded_run()
    changed = replace(
        recorded_run(),
        cases={**first.cases, COPY: make_case_info(version=2)},
        launches=tuple(
            replace(launch, cases={**launch.cases, COPY: replace(launch.cases[COPY], blocks=(block(5e-3),))})
            for launch in recorded_run().launches
        ),
    )
    recording = Recording([first, changed])
    assert recording.cases[COPY].version == 1
    assert max(medians(recording, seed=0)) < 3e-3
