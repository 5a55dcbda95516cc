"""What may be used of a run: failures, wrong output and physics come before statistics."""

from dataclasses import replace
from typing import Any

import pytest

from perfgate.core.case import MemoryLevel, Timing, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.peaks import legacy_pipe
from perfgate.core.run import Block, CaseLaunch, Launch, Run
from perfgate.core.validity import Measured, Unusable, bandwidth_fraction, measured
from tests.factories import H200, make_case_info, make_case_launch, make_run

COPY = "bandwidth.copy[bytes=4GiB]"
# 8 GiB at the H200's attribute bandwidth of 4814.3 GB/s takes 1.784 ms.
THEORETICAL_S = 2**33 / (3.201e9 * 6016 / 8 * 2)


def with_case(run: Run, index: int, case: CaseLaunch | None, **changes: Any) -> Run:
    launches = list(run.launches)
    cases = {} if case is None else {COPY: case}
    launches[index] = replace(launches[index], cases=cases, **changes)
    return replace(run, launches=tuple(launches))


def usable(run: Run) -> Measured:
    side = measured(COPY, run)
    assert isinstance(side, Measured)
    return side


def refused(run: Run) -> Unusable:
    side = measured(COPY, run)
    assert isinstance(side, Unusable)
    return side


def test_measured__gives_a_statistic_a_launch() -> None:
    side = usable(make_run({COPY: [2e-3, 3e-3, 2.5e-3]}))
    assert side.launches == (2e-3, 3e-3, 2.5e-3)
    assert side.median_s == 2.5e-3
    assert side.sm_clock_hz == 1.98e9
    assert side.caveats == ()


def test_measured__in_cycles_where_the_case_is_judged_in_them() -> None:
    info = make_case_info(unit=Unit.CYCLES)
    assert usable(make_run({COPY: [2e-3] * 3}, infos={COPY: info})).launches == pytest.approx([2e-3 * 1.98e9] * 3)


def test_measured__cycles_without_a_clock_are_refused() -> None:
    run = make_run({COPY: [2e-3]}, infos={COPY: make_case_info(unit=Unit.CYCLES)})
    assert "SM clock was not measured" in refused(with_case(run, 0, make_case_launch(2e-3, sm_clock_hz=None))).reason


def test_measured__wrong_output_beats_any_time() -> None:
    run = make_run({COPY: [2e-3] * 6})
    side = refused(with_case(run, 3, replace(make_case_launch(2e-3), output_verified=False)))
    assert side.is_output_wrong
    assert "wrong in 1 of 6 launches" in side.reason


def test_measured__nothing_to_verify_is_not_wrong() -> None:
    run = make_run({COPY: [2e-3]})
    assert usable(with_case(run, 0, replace(make_case_launch(2e-3), output_verified=None)))


def test_measured__names_each_failure_once() -> None:
    run = make_run({COPY: [2e-3] * 3})
    run = with_case(run, 0, None, failures={COPY: "out of memory"})
    run = with_case(run, 1, None, failures={COPY: "out of memory"})
    run = with_case(run, 2, None, failure="the GPU fell off the bus")
    assert refused(run).reason == "no launch gave a valid time: out of memory; the GPU fell off the bus"


def test_measured__names_why_blocks_are_invalid() -> None:
    block = Block(sequence=0, started_s=0, times_s=(), executions_per_sample=1, valid=False, reason="thermal slowdown")
    run = make_run({COPY: [2e-3]})
    assert "thermal slowdown" in refused(with_case(run, 0, CaseLaunch(blocks=(block,)))).reason


def test_measured__of_a_run_without_launches_is_refused() -> None:
    assert "no reason was recorded" in refused(replace(make_run({COPY: [2e-3]}), launches=())).reason


def test_measured__half_of_the_launches_will_do_with_a_doubt_fewer_will_not() -> None:
    run = make_run({COPY: [2e-3] * 4})
    run = with_case(with_case(run, 0, None, failures={COPY: "hang"}), 1, None, failures={COPY: "hang"})
    side = usable(run)
    assert [caveat.code for caveat in side.caveats] == ["launches-lost"]
    assert side.caveats[0].message == "2 of 4 launches gave a valid time: hang"
    assert refused(with_case(run, 2, None)).reason.startswith("only 1 of 4 launches")


def test_measured__says_when_most_launches_had_not_settled() -> None:
    run = make_run({COPY: [2e-3] * 3})
    loose = replace(make_case_launch(2e-3), settled=False)
    assert usable(with_case(run, 0, loose)).caveats == ()
    assert usable(with_case(with_case(run, 0, loose), 1, loose)).caveats[0].code == "not-settled"


def test_measured__says_when_tensor_cores_were_reached_by_the_slower_way() -> None:
    run = make_run({COPY: [2e-3] * 3})
    slower = replace(run.cases[COPY], work=replace(run.cases[COPY].work, pipe=legacy_pipe("bf16-tensor")))
    assert [one.code for one in usable(replace(run, cases={COPY: slower})).caveats] == ["legacy-pipe"]


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.93, None), (0.999, None), (1.03, "beyond-roof"), (1.049, "beyond-roof")]
)
def test_measured__warns_where_boost_could_explain_it(fraction: float, expected: str | None) -> None:
    codes = [caveat.code for caveat in usable(make_run({COPY: [THEORETICAL_S / fraction] * 3})).caveats]
    assert codes == ([expected] if expected else [])


def test_measured__a_bandwidth_beyond_physics_is_invalid_not_an_improvement() -> None:
    side = refused(make_run({COPY: [THEORETICAL_S / 1.144] * 3}))
    assert "114.4 % of the theoretical bandwidth" in side.reason
    assert "cache" in side.reason


def test_bandwidth_fraction__of_a_fill_from_the_cache() -> None:
    # 2^24 bytes in 8.182 us on a GPU of 1.792 TB/s: a published result of 114.4 %.
    gpu = Gpu(name="NVIDIA GeForce RTX 5090", memory_clock_hz=14e9, memory_bus_bits=512, integrated=False)
    fraction = bandwidth_fraction(Work(write_bytes=2**24), Timing.EVENTS, 8.182e-6, gpu)
    assert fraction == pytest.approx(1.144, abs=0.001)


@pytest.mark.parametrize(
    ("work", "timing", "gpu"),
    [
        (Work(), Timing.EVENTS, H200),
        (Work(read_bytes=1, memory_level=MemoryLevel.L2), Timing.EVENTS, H200),
        (Work(read_bytes=1), Timing.GAP, H200),
        (Work(read_bytes=1), Timing.EVENTS, Gpu(name="unknown")),
        (Work(read_bytes=1), Timing.EVENTS, replace(H200, integrated=True)),
    ],
)
def test_bandwidth_fraction__is_unknown_where_the_attributes_do_not_say(work: Work, timing: Timing, gpu: Gpu) -> None:
    assert bandwidth_fraction(work, timing, 1e-3, gpu) is None


def test_measured__a_case_that_no_launch_holds_and_nothing_explains() -> None:
    empty = Launch(index=0, started_utc="2026-11-30T12:00:00Z", cases={})
    run = replace(make_run({COPY: [2e-3]}), launches=(empty,))
    assert refused(run).reason == "no launch gave a valid time: no reason was recorded"
