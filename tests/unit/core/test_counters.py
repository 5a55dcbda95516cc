"""Declared work beside counters: what is held to 5 %, what only shows a factor."""

from dataclasses import replace

import pytest

from perfgate.core.case import MemoryLevel, Timing, Work
from perfgate.core.counters import Counters, counted_case, suggested_bound, summed
from perfgate.core.report import Bound
from perfgate.core.roofs import Roof, Roofs
from perfgate.core.run import CaseInfo

GIB = 2**30
ROOFS = Roofs(
    gpu_name="x",
    memory=(Roof(key=MemoryLevel.DRAM, label="DRAM", unit="B", datasheet_per_s=4.8e12),),
    compute=(Roof(key="fp32", label="FP32", unit="FLOP", datasheet_per_s=66.9e12),),
)
COUNTED = Counters(
    read_bytes=4 * GIB, write_bytes=4 * GIB, duration_s=2e-3, work_flop=0, sm_share=0.17, dram_share=0.89
)


def info(work: Work) -> CaseInfo:
    return CaseInfo(family="bandwidth", work=work, version=1, timing=Timing.EVENTS, gated=True)


COPY = Work(read_bytes=4 * GIB, write_bytes=4 * GIB)


def faults(case_id: str, work: Work, counters: Counters) -> tuple[str, ...]:
    return counted_case(case_id, info(work), counters, ROOFS).faults


def test_counted_case__a_copy_that_moves_what_it_declares() -> None:
    found = counted_case("bandwidth.copy[bytes=4GiB]", info(COPY), COUNTED, ROOFS)
    assert found.is_stream
    assert found.bytes_ratio == 1.0
    assert found.reread_factor == 1.0
    assert found.flop_ratio is None
    assert (found.counted_bound, found.bound) == (Bound.MEMORY, Bound.MEMORY)
    assert found.faults == ()


def test_counted_case__what_stays_dirty_in_the_l2_is_no_fault() -> None:
    assert (
        faults("a.write", Work(write_bytes=4 * GIB), replace(COUNTED, read_bytes=0, write_bytes=4 * GIB - 60 * 2**20))
        == ()
    )


@pytest.mark.parametrize("share", [0.94, 1.06])
def test_counted_case__bytes_of_a_stream_beyond_five_percent_are_a_fault(share: float) -> None:
    counters = replace(COUNTED, read_bytes=round(4 * GIB * share), write_bytes=round(4 * GIB * share))
    assert faults("a.copy", COPY, counters) == (
        f"a.copy: the counters saw {share:.1%} of the declared bytes".replace("%", " %"),
    )


@pytest.mark.parametrize(
    "name", ["access.gather", "access.stride[step=2]", "l2.read", "latency.dram_cache", "a.offset"]
)
def test_counted_case__patterns_and_caches_only_show_their_factor(name: str) -> None:
    found = counted_case(name, info(COPY), replace(COUNTED, read_bytes=32 * GIB), ROOFS)
    assert found.faults == ()
    assert not found.is_stream
    assert found.reread_factor == 8.0


def test_counted_case__short_streams_are_not_held_to_it() -> None:
    work = Work(read_bytes=2 * GIB - 1, write_bytes=2 * GIB)
    assert faults("a.copy", work, COUNTED) == ()


def test_counted_case__a_product_is_held_to_its_flop_not_to_its_bytes() -> None:
    work = Work(work_flop=2 * 4096**3, read_bytes=2**27, write_bytes=2**26, pipe="fp32", dtype="fp32")
    counters = Counters(
        read_bytes=3 * 2**27,
        write_bytes=2**26,
        duration_s=2.7e-3,
        work_flop=2 * 4096**3,
        sm_share=0.82,
        dram_share=0.03,
    )
    found = counted_case("gemm.fp32", info(work), counters, ROOFS)
    assert found.reread_factor == 3.0
    assert found.faults == ()
    assert (found.counted_bound, found.bound) == (Bound.COMPUTE, Bound.COMPUTE)
    half = replace(counters, work_flop=4096**3)
    assert faults("gemm.fp32", work, half) == ("gemm.fp32: the counters saw 50.0 % of the declared FLOP",)
    assert faults("gemm.fp32", work, replace(counters, work_flop=None)) == ()


@pytest.mark.parametrize(
    ("sm", "dram", "bound"),
    [(0.9, 0.2, Bound.COMPUTE), (0.3, 0.9, Bound.MEMORY), (0.59, 0.59, Bound.LATENCY), (None, 0.9, None)],
)
def test_suggested_bound__is_the_busier_or_latency(sm: float | None, dram: float, bound: Bound | None) -> None:
    assert suggested_bound(replace(COUNTED, sm_share=sm, dram_share=dram)) is bound


def test_summed__adds_amounts_and_weights_shares_by_time() -> None:
    short = Counters(read_bytes=1, write_bytes=2, duration_s=1.0, work_flop=5, sm_share=1.0, dram_share=0.1)
    long = Counters(read_bytes=10, write_bytes=20, duration_s=3.0, work_flop=7, sm_share=0.2, dram_share=None)
    found = summed([short, long])
    assert (found.read_bytes, found.write_bytes, found.work_flop, found.duration_s) == (11, 22, 12, 4.0)
    assert found.sm_share == pytest.approx(0.4)
    assert found.dram_share == pytest.approx(0.1)
    assert summed([short, replace(long, work_flop=None)]).work_flop is None
    assert summed([long]).dram_share is None


def test_summed__refuses_nothing() -> None:
    with pytest.raises(ValueError, match="no kernel"):
        summed([])
