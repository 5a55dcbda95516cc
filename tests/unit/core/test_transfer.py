"""Links, transfers and collectives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.report import Bound
from perfgate.core.transfer import (
    Algorithm,
    Collective,
    bus_factor,
    collective,
    link_named,
    transfer,
)
from perfgate.errors import ConfigurationError
from perfgate.storage.gpu_table import read_link_table

TABLE = read_link_table()
NVLINK5, NVLINK4, NDR = (link_named(TABLE, name) for name in ("nvlink5", "nvlink4", "ib-ndr"))
WEIGHTS = 100 * 10**6


def wire_s(prediction) -> float:
    return next(term.time_s for term in prediction.terms if term.name == "wire")


def test_weight_sync__is_a_third_of_a_millisecond_at_wire_speed_and_039_delivered() -> None:
    found = transfer(WEIGHTS, NVLINK5, copies=3)
    assert wire_s(found) * NVLINK5.efficiency == pytest.approx(300e6 / 900e9)
    assert wire_s(found) == pytest.approx(0.392e-3, rel=1e-3)
    assert found.time_s == pytest.approx(wire_s(found) + 1e-6)
    assert "333.3 µs" in found.caveats[0].message
    assert found.limit.bound is Bound.MEMORY


def test_weight_sync__by_multicast_is_sent_once() -> None:
    assert wire_s(transfer(WEIGHTS, NVLINK5, copies=3, multicast=True)) == pytest.approx(
        wire_s(transfer(WEIGHTS, NVLINK5))
    )


def test_ndr__is_50_gb_per_s_in_one_direction_an_eighteenth_of_nvlink_5() -> None:
    assert NDR.bandwidth_bytes_per_s == 50e9
    assert NVLINK5.bandwidth_bytes_per_s / NDR.bandwidth_bytes_per_s == 18
    assert NVLINK5.bandwidth_bytes_per_s / link_named(TABLE, "ib-xdr").bandwidth_bytes_per_s == 9


def test_transfer__small_is_latency_and_adds_up() -> None:
    assert transfer(1000, NDR).limit.bound is Bound.LATENCY
    assert wire_s(transfer(10**6, NDR, items=5)) == pytest.approx(5 * wire_s(transfer(10**6, NDR)))


def test_transfer__senders_share_the_receivers_link() -> None:
    found = transfer(10**9, NVLINK5, senders=4)
    assert wire_s(found) == pytest.approx(4 * wire_s(transfer(10**9, NVLINK5)))
    assert any(caveat.code == "receiver-bound" for caveat in found.caveats)


def test_transfer__without_overlap_adds_reading_and_writing() -> None:
    memory = 3.35e12
    overlapped = transfer(10**9, NVLINK4, memory_bytes_per_s=memory)
    staged = transfer(10**9, NVLINK4, memory_bytes_per_s=memory, overlaps=False)
    assert staged.time_s - overlapped.time_s == pytest.approx(2e9 / memory)


@pytest.mark.parametrize("name", ["size_bytes", "copies", "items", "senders"])
def test_transfer__refuses_sizes_that_are_none(name: str) -> None:
    with pytest.raises(ConfigurationError, match="positive whole number"):
        transfer(**({"size_bytes": 8, "link": NDR} | {name: 0}))


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (Collective.ALL_REDUCE, 2 * 7 / 8),
        (Collective.REDUCE_SCATTER, 7 / 8),
        (Collective.ALL_GATHER, 7 / 8),
        (Collective.ALL_TO_ALL, 7 / 8),
        (Collective.BROADCAST, 1.0),
        (Collective.REDUCE, 1.0),
    ],
)
def test_collective__large_reaches_the_link_as_bus_bandwidth(kind: Collective, factor: float) -> None:
    assert bus_factor(kind, 8) == pytest.approx(factor)
    found = collective(kind, 2**40, 8, NVLINK4)
    assert found.bus_bytes_per_s == pytest.approx(NVLINK4.delivered_bytes_per_s, rel=1e-3)
    assert found.algorithm_bytes_per_s == pytest.approx(found.bus_bytes_per_s / factor)


def test_collective__ring_all_reduce_by_hand() -> None:
    found = collective(Collective.ALL_REDUCE, 2**30, 8, NVLINK4)
    assert found.time_s == pytest.approx(6.6e-6 + 14 * 1e-6 + 1.75 * 2**30 / (450e9 * 0.88))


def test_collective__tree_and_switch() -> None:
    tree = collective(Collective.ALL_REDUCE, 2**30, 8, NVLINK4, algorithm=Algorithm.TREE)
    assert tree.time_s == pytest.approx(6.8e-6 + 6e-6 + 2 * 2**30 / (450e9 * 0.88))
    switch = collective(Collective.ALL_REDUCE, 2**34, 8, NVLINK4, algorithm=Algorithm.SWITCH)
    assert switch.bus_bytes_per_s > NVLINK4.bandwidth_bytes_per_s
    assert any(caveat.code == "in-switch" for caveat in switch.caveats)


def test_collective__small_is_latency() -> None:
    found = collective(Collective.ALL_REDUCE, 32 * 1024, 16, NDR)
    assert found.limit.bound is Bound.LATENCY
    assert found.algorithm_bytes_per_s < 1e9  # as measured across nodes
    assert any(caveat.code == "latency-dominated" for caveat in found.caveats)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Collective.ALL_REDUCE, 8, 1, NVLINK4), "at least 2 ranks"),
        ((Collective.ALL_REDUCE, 0, 8, NVLINK4), "size must be a positive"),
        ((Collective.ALL_REDUCE, 8, -2, NVLINK4), "ranks must be a positive"),
    ],
)
def test_collective__refuses_what_makes_no_sense(arguments: tuple, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        collective(*arguments)


def test_collective__refuses_algorithms_that_it_has_not() -> None:
    with pytest.raises(ConfigurationError, match="has no tree"):
        collective(Collective.BROADCAST, 8, 8, NVLINK4, algorithm=Algorithm.TREE)
    with pytest.raises(ConfigurationError, match="NVLink switch"):
        collective(Collective.ALL_REDUCE, 8, 8, NDR, algorithm=Algorithm.SWITCH)


@given(size=st.integers(1, 2**50), ranks=st.integers(2, 1024), kind=st.sampled_from(Collective))
def test_collective__never_beats_the_wire(size: int, ranks: int, kind: Collective) -> None:
    assert collective(kind, size, ranks, NVLINK4).bus_bytes_per_s < NVLINK4.bandwidth_bytes_per_s


def test_link_named__suggests_near_ids() -> None:
    with pytest.raises(ConfigurationError) as caught:
        link_named(TABLE, "nvlnk4")
    assert "nvlink4" in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        link_named(TABLE, "zzz")
    assert "ib-hdr" in caught.value.hint
    assert link_named(TABLE, " NVLink5 ") is NVLINK5


def test_links__name_known_sources_and_plausible_values() -> None:
    for link in TABLE.links:
        assert set(link.sources) <= set(TABLE.sources), link.id
        assert 0.5 < link.efficiency <= 1, link.id
        assert link.latency_low_s <= link.latency_s <= link.latency_high_s, link.id
    assert {"nvlink2": 150e9, "nvlink3": 300e9, "nvlink4": 450e9, "nvlink5": 900e9}.items() <= {
        link.id: link.bandwidth_bytes_per_s for link in TABLE.links
    }.items()
