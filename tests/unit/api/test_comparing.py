"""What counts as wrong."""

import math

import numpy as np
import pytest

from perfgate.api.comparing import compared, relative_errors


def test_relative_errors__are_relative_to_the_element_or_to_the_whole_array() -> None:
    expected = np.array([1.0, -1.0, 1e-9])
    errors = relative_errors(expected + np.array([1e-3, 0.0, 1e-3]), expected)
    assert errors == pytest.approx([1e-3, 0.0, 1e-3 / math.sqrt(2 / 3)])


def test_relative_errors__of_integers_are_all_or_nothing() -> None:
    assert list(relative_errors(np.array([1, 2, 3]), np.array([1, 2, 4]))) == [0, 0, math.inf]


def test_relative_errors__take_equal_infinities_and_nan_for_right_and_others_for_wrong() -> None:
    expected = np.array([math.inf, math.nan, math.inf, 1.0, 1.0])
    actual = np.array([math.inf, math.nan, 1.0, math.nan, -math.inf])
    assert list(relative_errors(actual, expected)) == [0, 0, math.inf, math.inf, math.inf]


def test_relative_errors__of_zeros_against_zeros_are_zero() -> None:
    assert list(relative_errors(np.zeros(2), np.zeros(2))) == [0, 0]
    assert list(relative_errors(np.ones(2), np.zeros(2))) == [1, 1]


def test_compared__names_the_first_wrong_element_and_how_many() -> None:
    found = compared([("output 0", np.array([1.0, 2.5, 3.5]), np.array([1.0, 2.0, 3.0]))], 1e-3)
    assert not found.passed
    assert "2 of 3 elements differ from the reference, the first at index 1: 2.5 instead of 2" in found.detail


def test_compared__of_another_size_is_wrong() -> None:
    found = compared([("output 0", np.ones(3), np.ones(4))], 1.0)
    assert not found.passed
    assert "3 elements, the reference 4" in found.detail


def test_compared__tells_the_largest_error_that_it_allowed() -> None:
    found = compared([("output 0", np.array([1.001]), np.array([1.0]))], 1e-2)
    assert found.passed
    assert found.error == pytest.approx(1e-3)
