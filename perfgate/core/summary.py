"""From samples to the statistic of a launch: the median of its block medians.

The launch is the unit of inference; everything below it only makes its statistic good.
"""

import math
import statistics
from collections.abc import Iterable

from perfgate.core.case import Unit
from perfgate.core.run import Block, CaseLaunch, Run


def block_statistic(block: Block, unit: Unit) -> float | None:
    """Return a block's median time [s], or its SM cycles per execution; None where cycles are unknown.

    Cycles are mean time x mean clock: both are averages over the same interval, since the clock
    falls within a block (median time x mean clock was off by up to 2.6 %).
    """
    if unit is Unit.SECONDS:
        return statistics.median(block.times_s)
    if block.sm_clock_hz is None:
        return None
    return statistics.fmean(block.times_s) * block.sm_clock_hz


def launch_statistic(launch: CaseLaunch, unit: Unit) -> float | None:
    """Return the median of the block statistics of a launch; None without a valid block."""
    values = [value for block in launch.valid_blocks if (value := block_statistic(block, unit)) is not None]
    return statistics.median(values) if values else None


def launch_statistics(run: Run, case_id: str, unit: Unit) -> tuple[float, ...]:
    """Return the statistic of every launch of a run that measured the case."""
    found = (launch_statistic(launch.cases[case_id], unit) for launch in run.launches if case_id in launch.cases)
    return tuple(value for value in found if value is not None)


def median_or_none(values: Iterable[float | None]) -> float | None:
    """Return the median of what is known, None when nothing is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def relative_spread(values: tuple[float, ...]) -> float | None:
    """Return the coefficient of variation (sample standard deviation / mean); None for fewer than two."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    # Not statistics.stdev: its exact fractions take a hundred times as long.
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean
