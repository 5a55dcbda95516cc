"""The table of latencies and times made of serial steps."""

from dataclasses import replace

import pytest

from perfgate.core.case import Timing, Work
from perfgate.core.latency import (
    LatencyUnit,
    latency_named,
    measured_latency_cycles,
    measured_latency_s,
    serial,
    steps_of,
)
from perfgate.core.report import Bound
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_latency_table
from tests.factories import make_case_info, make_run

TABLE = read_latency_table()


def run_with(case_id: str, time_s: float):
    info = make_case_info(case_id.split(".", maxsplit=1)[0], work=Work(), timing=Timing.GAP)
    return make_run({case_id: (time_s,) * 3}, infos={case_id: info})


def steps(**counts: int):
    return [(latency_named(TABLE, name.replace("_", "-")), count) for name, count in counts.items()]


def test_warp_sum__by_shuffle_is_twice_and_a_half_as_fast_not_a_hundred_times() -> None:
    # A100: shuffle 25 and add 4 cycles, five times; store 19, barrier 23, load 23 and add 4, five times.
    shuffles, tree = 5 * (25 + 4), 5 * (19 + 23 + 23 + 4)
    assert (shuffles, tree) == (145, 345)
    assert tree / shuffles == pytest.approx(2.4, abs=0.05)
    clock_hz = 1.41e9
    by_shuffle = serial(steps(shuffle=5, add=5), clock_hz=clock_hz, machine="A100", launch_s=1e-12)
    by_memory = serial(
        steps(shared_store=5, syncthreads=5, shared=5, add=5), clock_hz=clock_hz, machine="A100", launch_s=1e-12
    )
    assert by_shuffle.time_s == pytest.approx(145 / clock_hz, rel=1e-3)
    assert 2 < by_memory.time_s / by_shuffle.time_s < 3


def test_serial__adds_the_launch_and_is_latency_bound() -> None:
    found = serial(steps(syncthreads=10), clock_hz=1.83e9, machine="H100")
    assert found.time_s == pytest.approx(1.5e-6 + 10 * 23 / 1.83e9)
    assert found.limit.bound is Bound.LATENCY
    assert serial([], clock_hz=1e9, machine="x", launch_s=2e-6).time_s == 2e-6


def test_serial__takes_measured_latencies_first() -> None:
    run = run_with("latency.shuffle[steps=4096]", 4096 * 12e-9)
    found = serial(steps(shuffle=5), clock_hz=1.98e9, machine="H200", launch_s=1e-9, run=run)
    assert found.terms[1].time_s == pytest.approx(60e-9)
    assert "measured" in found.terms[1].formula


def test_serial__refuses_what_nobody_published_or_makes_no_sense() -> None:
    unknown = replace(latency_named(TABLE, "shared-atomic"), typical=None)
    with pytest.raises(ConfigurationError, match="no latency of shared memory atomicAdd is published"):
        serial([(unknown, 1)], clock_hz=1e9, machine="x")
    with pytest.raises(ConfigurationError, match="must be a positive whole number"):
        serial(steps(shuffle=0), clock_hz=1e9, machine="x")
    with pytest.raises(ConfigurationError) as caught:
        latency_named(TABLE, "shuffl")
    assert "shuffle" in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        latency_named(TABLE, "???")
    assert "syncthreads" in caught.value.hint


def test_measured_latency__is_per_step_and_of_its_case_only() -> None:
    gap, dram = latency_named(TABLE, "launch-gap"), latency_named(TABLE, "dram")
    assert measured_latency_s(gap, run_with("launch.gap", 1.31e-6)) == pytest.approx(1.31e-6)
    assert measured_latency_s(dram, run_with("latency.dram[bytes=1GiB,steps=1000]", 350e-6)) == pytest.approx(350e-9)
    assert measured_latency_s(dram, run_with("latency.dram_far[steps=10]", 1.0)) is None
    assert measured_latency_s(latency_named(TABLE, "grid-sync"), run_with("launch.gap", 1.0)) is None


def test_measured_latency__is_of_the_axes_that_the_table_names() -> None:
    barrier = latency_named(TABLE, "syncthreads")
    assert barrier.case == "latency.barrier[warps=1]"
    assert measured_latency_s(barrier, run_with("latency.barrier[steps=100,warps=1]", 1e-6)) == pytest.approx(1e-8)
    assert measured_latency_s(barrier, run_with("latency.barrier[steps=100,warps=16]", 1e-6)) is None
    assert measured_latency_s(barrier, run_with("latency.barrier", 1e-6)) is None


def test_measured_latency__in_cycles_is_by_the_clock_of_the_run() -> None:
    shuffle = latency_named(TABLE, "shuffle")
    run = run_with("latency.shuffle[steps=100]", 100 * 13e-9)
    assert measured_latency_cycles(shuffle, run) == pytest.approx(13e-9 * 1.98e9)
    assert measured_latency_cycles(latency_named(TABLE, "dram"), run) is None


@pytest.mark.parametrize(
    ("case_id", "count"), [("a.b", 1), ("a.b[steps=8]", 8), ("a.b[n=4,steps=16]", 16), ("a.b[steps=x]", 1)]
)
def test_steps_of__reads_the_axis(case_id: str, count: int) -> None:
    assert steps_of(case_id) == count


def test_table__covers_the_documents_and_names_known_sources() -> None:
    ids = {latency.id for latency in TABLE.latencies}
    assert ids >= {
        "add", "shuffle", "shared", "l1", "syncthreads", "syncwarp", "shared-atomic", "dsmem",
        "l2-near", "l2-far", "dram", "global-atomic", "cas-handoff",
        "launch-gap", "launch-submit", "memcpy-async", "stream-synchronize", "device-synchronize", "nvlink",
        "pcie-copy", "threadfence-system", "rdma",
    }  # fmt: skip
    assert len(ids) == len(TABLE.latencies)
    for latency in TABLE.latencies:
        assert all(one.source in TABLE.sources and one.low <= one.high for one in latency.published), latency.id
        if latency.typical is not None:
            low = min(one.low for one in latency.published)
            high = max(one.high for one in latency.published)
            assert low <= latency.typical <= high, latency.id


def test_table__corrects_the_far_l2_hit_and_the_shuffle() -> None:
    assert latency_named(TABLE, "l2-far").typical == 414
    assert latency_named(TABLE, "l2-far").typical / latency_named(TABLE, "l2-near").typical == pytest.approx(
        1.6, abs=0.01
    )
    assert latency_named(TABLE, "shuffle").typical == 25


def test_typical__in_seconds_needs_the_clock_for_cycles_only() -> None:
    shuffle, gap = latency_named(TABLE, "shuffle"), latency_named(TABLE, "launch-gap")
    assert shuffle.unit is LatencyUnit.CYCLES
    assert shuffle.typical_s(2.5e9) == pytest.approx(10e-9)
    assert gap.typical_s(1.0) == 1.5e-6
    assert replace(shuffle, typical=None).typical_s(1e9) is None
