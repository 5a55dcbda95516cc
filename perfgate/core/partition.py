"""Where a series changes its level: the partition into stretches of one level that explains it best.

Exact, by the recurrence of Jackson et al., IEEE Signal Processing Letters 12 (2005) 105: squared
deviations from the weighted mean of each stretch, and a price for every stretch but the first.
"""

import numpy as np
from numpy.typing import ArrayLike

from perfgate.core.comparison import Floats


def change_points(values: ArrayLike, variances: ArrayLike, price: float) -> tuple[int, ...]:
    """Return the places at which a new level begins, ascending; empty for one level.

    Splitting one stretch in two pays where the squared difference of the two means, in units of its own
    variance, exceeds ``price``: the square of the quantile that the difference is tested at.

    Args:
        values: shape (n), n of 1 at least.
        variances: of each value, shape (n), positive.
        price: of each further stretch.
    """
    series = np.asarray(values, dtype=float)
    weights = 1 / np.asarray(variances, dtype=float)
    centred = series - series.mean()  # sums of squares of what lies close together keep their digits
    sums = _running(weights), _running(weights * centred), _running(weights * centred**2)
    count = len(series)
    least = np.empty(count + 1)
    least[0] = -price
    begun = np.zeros(count + 1, dtype=np.intp)
    for end in range(1, count + 1):
        weight, first, second = (total[end] - total[:end] for total in sums)
        costs = least[:end] + price + second - first**2 / weight
        begun[end] = np.argmin(costs)
        least[end] = costs[begun[end]]
    found: list[int] = []
    end = int(begun[count])
    while end:
        found.append(end)
        end = int(begun[end])
    return tuple(reversed(found))


def _running(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])
