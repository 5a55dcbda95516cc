import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.partition import change_points


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0], ()),
        ([0.0, 0.0, 0.0], ()),
        ([0.0, 1.0], (1,)),
        ([0.0, 0.0, 1.0, 1.0], (2,)),
        ([0.0, 0.0, 1.0, 1.0, 0.0], (2, 4)),
        ([5.0, 0.0, 0.0, 0.0, 7.0], (1, 4)),
    ],
)
def test_change_points__finds_every_level(values: list[float], expected: tuple[int, ...]) -> None:
    assert change_points(values, [0.01] * len(values), 9.0) == expected


def test_change_points__splits_where_the_difference_exceeds_its_price() -> None:
    # The difference of two means of two values each has the variance of one.
    below, above = ([0.0, 0.0, shift, shift] for shift in (2.99, 3.01))
    assert change_points(below, [1.0] * 4, 9.0) == ()
    assert change_points(above, [1.0] * 4, 9.0) == (2,)


def test_change_points__trusts_a_noisy_session_less() -> None:
    assert change_points([0.0, 0.0, 1.0], [0.01, 0.01, 0.01], 9.0) == (2,)
    assert change_points([0.0, 0.0, 1.0], [0.01, 0.01, 1.0], 9.0) == ()


def test_change_points__is_the_best_of_all_partitions() -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        values = np.cumsum(generator.normal(size=7) * (generator.random(7) < 0.4)) + 0.3 * generator.normal(size=7)
        variances = generator.uniform(0.05, 0.2, 7)

        def cost(places: tuple[int, ...], values: np.ndarray = values, variances: np.ndarray = variances) -> float:
            parts = np.split(np.arange(7), places)
            means = [np.average(values[part], weights=1 / variances[part]) for part in parts]
            return 6.0 * len(places) + sum(
                (((values[part] - mean) ** 2) / variances[part]).sum() for part, mean in zip(parts, means, strict=True)
            )

        every = [tuple(index + 1 for index in range(6) if mask >> index & 1) for mask in range(64)]
        assert cost(change_points(values, variances, 6.0)) == pytest.approx(min(map(cost, every)))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.floats(-5, 5))
def test_change_points__do_not_mind_where_zero_is(values: list[float], shift: float) -> None:
    rounded = np.round(values, 3)
    moved = change_points(np.round(rounded + round(shift, 3), 3), np.full(len(values), 0.01), 8.7)
    assert moved == change_points(rounded, np.full(len(values), 0.01), 8.7)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_change_points__of_a_dear_price_there_are_none(values: list[float]) -> None:
    assert change_points(values, [1.0] * len(values), 1e6) == ()
