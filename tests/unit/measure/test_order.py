import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.codec import decode, encode
from perfgate.core.run import Injection
from perfgate.measure.order import LaunchOrder, Side, interleaved, shuffled
from tests.factories import PLAN

IDS = tuple(f"family.case{number}" for number in range(12))


def test_shuffled__repeats_and_differs_by_seed_and_launch() -> None:
    assert shuffled(IDS, 1, 0) == shuffled(IDS, 1, 0)
    assert len({shuffled(IDS, seed, index) for seed in range(4) for index in range(4)}) == 16


def test_shuffled__is_the_same_for_ever() -> None:
    # Recorded sessions repeat only while this does.
    assert shuffled(IDS[:4], 0, 0) == ("family.case1", "family.case2", "family.case0", "family.case3")


@given(st.permutations(IDS), st.integers(0, 10**9), st.integers(0, 100))
def test_shuffled__depends_on_no_order_given_and_loses_nothing(ids: list[str], seed: int, index: int) -> None:
    order = shuffled(ids, seed, index)
    assert order == shuffled(IDS, seed, index)
    assert sorted(order) == sorted(IDS)
    without = shuffled([one for one in ids if one != IDS[0]], seed, index)
    assert without == tuple(one for one in order if one != IDS[0])


def test_shuffled__puts_every_case_at_every_place() -> None:
    firsts = [shuffled(IDS, 7, index)[0] for index in range(1200)]
    assert all(60 <= firsts.count(one) <= 140 for one in IDS)


def test_launch_order__travels_as_json() -> None:
    order = LaunchOrder(
        index=3,
        device="recorded:/somewhere/run.json.gz",
        suite="default",
        own_suites=("suite.py",),
        case_ids=IDS,
        plans={IDS[0]: PLAN},
        injections=(Injection(pattern="*", requested="+3%", effective={IDS[0]: 0.03}),),
        seed=5,
        settings={"sample_s": 5e-3},
        options={"a": "b"},
    )
    assert decode(LaunchOrder, json.loads(json.dumps(encode(order)))) == order


@pytest.mark.parametrize("launches", [2, 12, 20])
def test_interleaved__is_made_of_quads_that_balance_a_drift(launches: int) -> None:
    sides = interleaved(launches, seed=5)
    assert len(sides) == 2 * launches
    places = {side: [place for place, one in enumerate(sides) if one is side] for side in Side}
    assert sum(places[Side.BASE]) == sum(places[Side.HEAD])
    assert all({one, other} == set(Side) for one, other in zip(sides[::2], sides[1::2], strict=True))


def test_interleaved__repeats_with_its_seed_and_differs_between_seeds() -> None:
    assert interleaved(12, 1) == interleaved(12, 1)
    assert len({interleaved(12, seed) for seed in range(20)}) > 5


@pytest.mark.parametrize("launches", [0, 1, 5, -2])
def test_interleaved__refuses_what_fills_no_quads(launches: int) -> None:
    with pytest.raises(ValueError, match="quads"):
        interleaved(launches, 0)
