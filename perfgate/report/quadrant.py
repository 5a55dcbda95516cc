"""The roofline as a Mermaid quadrant chart, for comments: pictures cannot be uploaded there.

Mermaid's quadrant charts have linear axes from 0 to 1, so the logarithm is taken here. The table
beside the chart is the source of truth.
"""

import math
from collections.abc import Sequence

from perfgate.core.report import CaseResult
from perfgate.core.units import rate_text
from perfgate.report.escape import label

# More points than this cover each other.
MOST_POINTS = 30


def render_quadrant(results: Sequence[CaseResult]) -> str:
    """Render where cases sit, as the source of a quadrantChart; "" with fewer than two positions."""
    positions = [
        (result.id, result.roofline.intensity_flop_per_byte, result.roofline.rate_flop_per_s)
        for result in results
        if result.roofline is not None
    ]
    points = [(name, x, y) for name, x, y in positions if x and y][:MOST_POINTS]
    if len(points) < 2:
        return ""
    low_x, high_x = _decades([x for _, x, _ in points])
    low_y, high_y = _decades([y for _, _, y in points])
    lines = [
        "quadrantChart",
        "    title Roofline, both axes logarithmic",
        f'    x-axis "{_intensity(low_x)} FLOP/byte" --> "{_intensity(high_x)} FLOP/byte"',
        f'    y-axis "{_rate(low_y)}" --> "{_rate(high_y)}"',
    ]
    lines += [
        f'    "{label(name)}": [{_place(x, low_x, high_x):.3f}, {_place(y, low_y, high_y):.3f}]'
        for name, x, y in points
    ]
    return "\n".join(lines)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around values, at least one decade."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _place(value: float, low: int, high: int) -> float:
    return (math.log10(value) - low) / (high - low)


def _intensity(power: int) -> str:
    return f"{10.0**power:g}"


def _rate(power: int) -> str:
    return rate_text(10.0**power, "FLOP")
