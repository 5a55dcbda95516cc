"""The roofline as a Mermaid quadrant chart, for comments: pictures cannot be uploaded there.

Mermaid's quadrant charts have linear axes from 0 to 1, so the logarithm is taken here. The table
beside the chart is the source of truth.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    xs, ys = _Axis.around([x for _, x, _ in points]), _Axis.around([y for _, _, y in points])
    lines = [
        "quadrantChart",
        "    title Roofline, both axes logarithmic",
        f'    x-axis "from {xs.low:.2g} FLOP/byte" --> "to {xs.high:.2g} FLOP/byte"',
        f'    y-axis "from {rate_text(ys.low, "FLOP")}" --> "to {rate_text(ys.high, "FLOP")}"',
    ]
    lines += [f'    "{label(name)}": [{xs.place(x):.3f}, {ys.place(y):.3f}]' for name, x, y in points]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """A logarithmic axis: what stands at 0 and at 1."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float]) -> "_Axis":
        """Reach a quarter of the span beyond the values, so that no label is cut off."""
        low, high = math.log10(min(values)), math.log10(max(values))
        beyond = max((high - low) / 4, 0.5)
        return cls(low=10 ** (low - beyond), high=10 ** (high + beyond))

    def place(self, value: float) -> float:
        """Return where a value stands, between 0 and 1."""
        return math.log(value / self.low) / math.log(self.high / self.low)
