"""Axes and the ids that they give."""

import pytest

import perfgate.api as pg
from perfgate.core.case import CASE_ID
from perfgate.errors import ConfigurationError


def test_axes__give_every_combination_the_last_one_fastest() -> None:
    points = list(pg.axes(n=(1, 2), dtype=("fp32", "fp16")))
    assert points == [
        {"n": 1, "dtype": "fp32"},
        {"n": 1, "dtype": "fp16"},
        {"n": 2, "dtype": "fp32"},
        {"n": 2, "dtype": "fp16"},
    ]
    assert list(pg.axes()) == [{}]
    assert list(pg.axes(n=())) == []


def test_case_id__is_an_id_with_the_values_in_it() -> None:
    assert pg.case_id("scan.exclusive", {}) == "scan.exclusive"
    text = pg.case_id("scan.exclusive", {"n": 2**20, "shape": (4, 8), "causal": True, "scale": 0.5})
    assert text == "scan.exclusive[n=1048576,shape=4x8,causal=true,scale=0.5]"
    assert CASE_ID.fullmatch(text)


@pytest.mark.parametrize("name", ["scan", "Scan.x", "scan.", "scan.a b", "", "scan.x[n=1]y"])
def test_case_id__refuses_what_is_no_id(name: str) -> None:
    with pytest.raises(ConfigurationError, match="no id of a case"):
        pg.case_id(name, {})


def test_case_id__refuses_a_value_that_cannot_stand_in_one() -> None:
    with pytest.raises(ConfigurationError, match="axis path has the value 'a/b'"):
        pg.case_id("scan.x", {"path": "a/b"})
