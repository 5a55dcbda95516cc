"""Robust outliers among GPUs: what is found, and what is not accused."""

import math

import numpy as np
import pytest

from perfgate.core.peers import LEAST_PEERS, peer_test, robust_spread, slow_groups

NO_ERROR = 0.0


def adjusted(values: np.ndarray, error: float = NO_ERROR) -> np.ndarray:
    test = peer_test(values, np.full(values.shape, error))
    return np.asarray(test.p_values * values.size)


def test_peer_test__says_nothing_with_fewer_than_three_others() -> None:
    for count in range(1, LEAST_PEERS + 1):
        assert adjusted(np.linspace(0, 1, count)).min() >= 1


def test_peer_test__finds_one_of_eight_that_is_far_beyond_the_others() -> None:
    values = np.random.default_rng(1).normal(0, 2e-4, 8)
    values[3] += math.log(1.03)
    p_values = adjusted(values)
    assert p_values[3] < 0.01
    assert np.delete(p_values, 3).min() > 0.05


def test_peer_test__deviation_is_from_the_median_of_the_others() -> None:
    test = peer_test(np.array([0.0, 0.0, 0.0, 0.0, 0.5]), np.zeros(5))
    assert test.deviations[4] == pytest.approx(0.5)
    assert test.deviations[0] == 0.0


def test_peer_test__a_noisy_measurement_is_its_own_excuse() -> None:
    values = np.zeros(100)
    values[:50] = 1e-4
    values[7] = 0.02
    errors = np.zeros(100)
    assert peer_test(values, errors).p_values[7] < 1e-6
    errors[7] = 0.02
    assert peer_test(values, errors).p_values[7] > 0.05


@pytest.mark.parametrize("count", [8, 64, 65, 512])
def test_peer_test__family_of_normal_gpus_is_accused_no_more_than_alpha(count: int) -> None:
    generator = np.random.default_rng(2)
    checks = 400 if count < 100 else 1000
    accused = sum(bool(adjusted(generator.normal(0, 1e-3, count)).min() <= 0.05) for _ in range(checks))
    # Binomial, four standard deviations above 5 %.
    assert accused <= 0.05 * checks + 4 * math.sqrt(0.05 * 0.95 * checks)


def test_peer_test__without_any_reference_there_is_no_deviation() -> None:
    test = peer_test(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2, dtype=bool))
    assert list(test.deviations) == [0.0, 0.0]
    assert list(test.p_values) == [1.0, 1.0]


def test_robust_spread__is_the_deviation_of_normal_values() -> None:
    assert robust_spread(np.random.default_rng(3).normal(0, 0.01, 20000)) == pytest.approx(0.01, rel=0.03)
    assert robust_spread(np.array([1.0])) == 0.0


def fleet(nodes: int, gpus: int = 8) -> tuple[np.ndarray, list[str]]:
    return np.random.default_rng(4).normal(0, 3e-4, nodes * gpus), [f"n{i // gpus:03}" for i in range(nodes * gpus)]


def test_slow_groups__names_a_node_and_nothing_else() -> None:
    values, nodes = fleet(16)
    values[24:32] += math.log(1.05)
    (group,) = slow_groups(values, {"node": nodes}, margin=0.01, alpha=1e-4)
    assert (group.attribute, group.value) == ("node", "n003")
    assert group.members == tuple(range(24, 32))
    assert math.expm1(group.deviation) == pytest.approx(0.05, abs=0.002)


def test_slow_groups__one_slow_gpu_is_no_group() -> None:
    values, nodes = fleet(16)
    values[24] += math.log(1.5)
    assert slow_groups(values, {"node": nodes}, margin=0.01, alpha=1e-4) == ()


def test_slow_groups__half_a_fleet_with_another_driver_is_found_and_its_nodes_are_not_named_again() -> None:
    values, nodes = fleet(16)
    values[:64] += math.log(1.03)
    drivers = ["590" if index < 64 else "580" for index in range(128)]
    (group,) = slow_groups(values, {"driver": drivers, "node": nodes}, margin=0.01, alpha=1e-4)
    assert (group.attribute, group.value, len(group.members)) == ("driver", "590", 64)


def test_slow_groups__says_what_else_the_same_gpus_share() -> None:
    values, nodes = fleet(16)
    values[:8] += math.log(1.03)
    drivers = ["590" if index < 8 else "580" for index in range(128)]
    (group,) = slow_groups(values, {"driver": drivers, "node": nodes}, margin=0.01, alpha=1e-4)
    assert group.also == (("node", "n000"),)


def test_slow_groups__two_slow_nodes_are_both_named() -> None:
    values, nodes = fleet(16)
    values[:16] += math.log(1.05)
    found = slow_groups(values, {"node": nodes}, margin=0.01, alpha=1e-4)
    assert {group.value for group in found} == {"n000", "n001"}


def test_slow_groups__a_shift_within_the_margin_is_none() -> None:
    values, nodes = fleet(16)
    values[:8] += math.log(1.009)
    assert slow_groups(values, {"node": nodes}, margin=0.01, alpha=1e-4) == ()


def test_slow_groups__unknown_values_and_values_that_all_share_are_no_groups() -> None:
    values, _ = fleet(2)
    values[:8] += 1.0
    shared = {"driver": ["580"] * 16, "rack": [""] * 16}
    assert slow_groups(values, shared, margin=0.01, alpha=0.01) == ()
