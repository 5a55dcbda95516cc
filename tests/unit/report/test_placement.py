"""Geometry of labels: boxes, crossings, free places, spreading."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.report.placement import Box, box_around, free_place, spread

PAGE = Box(left=0, bottom=0, right=400, top=300)


@pytest.mark.parametrize(
    ("segment", "crossed"),
    [
        (((0, 5), (20, 5)), True),
        (((0, 11), (20, 11)), False),
        (((5, 0), (5, 20)), True),
        (((11, 0), (11, 20)), False),
        (((0, 0), (4, 4)), True),
        (((-5, 8), (8, 21)), False),
        (((2, 3), (3, 4)), True),
        (((20, 20), (11, 11)), False),
    ],
)
def test_is_crossed_by__tells_lines_through_from_lines_past(segment, crossed: bool) -> None:
    assert Box(left=0, bottom=0, right=10, top=10).is_crossed_by(segment) is crossed


def test_overlaps__sharing_an_edge_is_not_overlapping() -> None:
    one = Box(left=0, bottom=0, right=10, top=10)
    assert not one.overlaps(Box(left=10, bottom=0, right=20, top=10))
    assert one.overlaps(Box(left=9, bottom=9, right=20, top=20))
    assert not one.contains(Box(left=9, bottom=9, right=20, top=20))


def test_free_place__is_beside_the_anchor_when_nothing_is_in_the_way() -> None:
    place = free_place((100, 100), (50, 10), [], [], PAGE)
    assert place.left > 100
    assert place.bottom < 100 < place.top


def test_free_place__keeps_clear_of_boxes_lines_and_the_edge() -> None:
    blocker = Box(left=105, bottom=80, right=180, top=120)
    roof = ((0, 100), (400, 100))
    place = free_place((100, 100), (50, 10), [blocker], [roof], PAGE)
    assert not place.overlaps(blocker)
    assert not place.is_crossed_by(roof)
    near_edge = free_place((395, 295), (50, 10), [], [], PAGE)
    assert PAGE.contains(near_edge)


def test_free_place__the_tie_to_the_anchor_crosses_no_other_label() -> None:
    wall = Box(left=90, bottom=108, right=110, top=112)
    place = free_place((100, 100), (40, 10), [wall], [((0, 100), (400, 100)), ((0, 95), (400, 95))], PAGE)
    assert place is None or not wall.is_crossed_by(((100, 100), place.nearest((100, 100))))


def test_free_place__is_none_where_everything_is_taken() -> None:
    assert free_place((200, 150), (50, 10), [PAGE], [], PAGE) is None
    assert free_place((200, 150), (5000, 10), [], [], PAGE) is None


@given(wanted=st.lists(st.floats(0, 100), max_size=12), gap=st.floats(0.1, 30))
def test_spread__keeps_order_distance_and_bounds(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap, 0, 100)
    assert len(placed) == len(wanted)
    assert all(-1e-6 <= value <= 100 + 1e-6 for value in placed)
    ordered = sorted(placed)
    effective = min(gap, 100 / max(len(wanted) - 1, 1))
    assert all(b - a >= effective - 1e-6 for a, b in itertools.pairwise(ordered))
    by_wish = [value for _, value in sorted(zip(wanted, placed, strict=True), key=lambda pair: pair[0])]
    assert sorted(by_wish) == ordered


def test_spread__leaves_alone_what_is_far_apart() -> None:
    assert spread([10, 50, 30], 5, 0, 100) == [10, 50, 30]
    assert spread([], 5, 0, 100) == []
    assert spread([50, 50], 10, 0, 100) == [45, 55]


def test_box_around__has_the_point_in_its_middle() -> None:
    assert box_around((5, 6), 1, 2) == Box(left=4, bottom=4, right=6, top=8)
