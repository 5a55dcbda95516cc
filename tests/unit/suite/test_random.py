"""The generator: a known sequence, and the statistics that the tolerances rest on."""

import numpy as np

from tests.unit.suite.fake_toolbox import random_bits, random_normal_patterns, random_uniform


def test_random_bits__is_splitmix64() -> None:
    # The test vector of the reference implementation (Vigna, splitmix64.c) for seed 1234567.
    assert random_bits(1234567, 3).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_random_uniform__has_the_moments_that_the_tolerance_assumes() -> None:
    values = random_uniform(1, 2**20).astype(np.float64)
    assert np.abs(values).max() < 1
    assert np.abs(values).min() > 0
    assert abs(values.mean()) < 5 / np.sqrt(3 * 2**20)
    assert abs(values.var() - 1 / 3) < 5 * np.sqrt(4 / 45 / 2**20)


def test_random_normal_patterns__are_normal_and_use_all_exponents() -> None:
    values = random_normal_patterns(1, 2**20).view(np.float32)
    assert np.isfinite(values).all()
    assert np.abs(values).min() >= np.finfo(np.float32).tiny
    exponents = values.view(np.uint32) >> 23 & 0xFF
    assert np.unique(exponents).tolist() == list(range(1, 255))
