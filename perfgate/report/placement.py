"""Placing labels so that they do not collide: boxes, lines and free places, in any one unit of length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Segment = tuple[Point, Point]

# Where a label may stand around what it names: right, left, then above and below, slid sideways by shares of its width.
_SLIDES = (0.0, 0.25, -0.25, 0.5, -0.5)
_NEAREST, _FURTHER = 9.0, 1.45


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An upright rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        """Tell whether two boxes share any area."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def contains(self, other: "Box") -> bool:
        """Tell whether the other box lies wholly inside."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )

    def nearest(self, point: Point) -> Point:
        """Return the point of the box that is nearest to another."""
        return min(max(point[0], self.left), self.right), min(max(point[1], self.bottom), self.top)

    def is_crossed_by(self, segment: Segment) -> bool:
        """Tell whether a segment runs through the box (Liang-Barsky clipping)."""
        (x0, y0), (x1, y1) = segment
        start, end = 0.0, 1.0
        for delta, low, high in (
            (x1 - x0, self.left - x0, self.right - x0),
            (y1 - y0, self.bottom - y0, self.top - y0),
        ):
            if delta == 0:
                if low > 0 or high < 0:
                    return False
                continue
            near, far = sorted((low / delta, high / delta))
            start, end = max(start, near), min(end, far)
            if start > end:
                return False
        return True


def box_around(center: Point, half_width: float, half_height: float) -> Box:
    """Return the box around a point."""
    x, y = center
    return Box(left=x - half_width, bottom=y - half_height, right=x + half_width, top=y + half_height)


def free_place(
    anchor: Point,
    size: Point,
    boxes: Sequence[Box],
    segments: Sequence[Segment],
    within: Box,
    *,
    reach: float = 84.0,
    tied: bool = True,
) -> Box | None:
    """Return a near place for a label that covers nothing; None where there is none.

    Args:
        anchor: what the label names.
        size: width and height of the label.
        boxes: what it may not cover.
        segments: lines that it may not cover.
        within: where it has to be.
        reach: how far away it may be.
        tied: the straight line from there to the anchor may cover no box either.
    """
    distance = _NEAREST
    while distance <= reach:
        for center in _centers(anchor, size, distance):
            place = box_around(center, size[0] / 2, size[1] / 2)
            if not within.contains(place) or any(place.overlaps(box) for box in boxes):
                continue
            tie = (anchor, place.nearest(anchor))
            if tied and any(box.is_crossed_by(tie) for box in boxes):
                continue
            if not any(place.is_crossed_by(segment) for segment in segments):
                return place
        distance *= _FURTHER
    return None


def _centers(anchor: Point, size: Point, distance: float) -> Iterator[Point]:
    x, y = anchor
    width, height = size
    yield x + distance + width / 2, y
    yield x - distance - width / 2, y
    for slide in _SLIDES:
        for up in (-1, 1):
            yield x + slide * (width + distance), y + up * (distance + height / 2)
    for side in (1, -1):
        for up in (-1, 1):
            yield x + side * (distance + width / 2), y + up * (distance + height / 2)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions at least ``gap`` apart, in the same order, each as near to where it is wanted as that allows.

    Groups that touch share their mean displacement (pool adjacent violators). Between ``low`` and
    ``high`` where they fit there; evenly over that range where they do not.
    """
    count = len(wanted)
    if count == 0:
        return []
    if (count - 1) * gap > high - low:
        gap = (high - low) / max(count - 1, 1)
    order = sorted(range(count), key=lambda index: wanted[index])
    groups: list[list[float]] = []  # sum of (wanted - own place in the group), number of members
    for index in order:
        groups.append([wanted[index], 1])
        while len(groups) > 1 and _start(groups[-2]) + groups[-2][1] * gap > _start(groups[-1]):
            later, earlier = groups.pop(), groups.pop()
            groups.append([earlier[0] + later[0] - later[1] * earlier[1] * gap, earlier[1] + later[1]])
    placed = [_start(group) + place * gap for group in groups for place in range(int(group[1]))]
    placed = [
        min(max(value, low + place * gap), high - (count - 1 - place) * gap) for place, value in enumerate(placed)
    ]
    result = [0.0] * count
    for index, value in zip(order, placed, strict=True):
        result[index] = value
    return result


def _start(group: list[float]) -> float:
    return group[0] / group[1]
