import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.case import Unit
from perfgate.core.run import Block, CaseLaunch
from perfgate.core.summary import (
    block_statistic,
    launch_statistic,
    launch_statistics,
    median_or_none,
    relative_spread,
)
from tests.factories import make_run


def block(*times_s: float, sm_clock_hz: float | None = 2e9, valid: bool = True) -> Block:
    reason = None if valid else "throttled"
    return Block(
        sequence=0,
        started_s=0.0,
        times_s=times_s,
        executions_per_sample=1,
        sm_clock_hz=sm_clock_hz,
        valid=valid,
        reason=reason,
    )


def test_block_statistic__is_the_median_time_or_mean_cycles() -> None:
    one = block(1e-3, 2e-3, 9e-3)
    assert block_statistic(one, Unit.SECONDS) == 2e-3
    assert block_statistic(one, Unit.CYCLES) == pytest.approx(4e-3 * 2e9)
    assert block_statistic(replace(one, sm_clock_hz=None), Unit.CYCLES) is None


def test_launch_statistic__is_the_median_of_the_valid_blocks() -> None:
    launch = CaseLaunch(blocks=(block(1.0), block(5.0), block(2.0), block(99.0, valid=False)))
    assert launch_statistic(launch, Unit.SECONDS) == 2.0
    assert launch_statistic(CaseLaunch(blocks=(block(9.0, valid=False),)), Unit.SECONDS) is None
    unclocked = CaseLaunch(blocks=(block(1.0, sm_clock_hz=None), block(3.0)))
    assert launch_statistic(unclocked, Unit.CYCLES) == pytest.approx(6e9)


def test_launch_statistics__leaves_out_launches_without_the_case() -> None:
    run = make_run({"launch.gap": [1e-6, 2e-6, 3e-6], "launch.graph": [1e-6]})
    assert launch_statistics(run, "launch.gap", Unit.SECONDS) == pytest.approx((1e-6, 2e-6, 3e-6))
    assert launch_statistics(run, "launch.graph", Unit.SECONDS) == pytest.approx((1e-6,))


def test_median_or_none__leaves_out_what_is_unknown() -> None:
    assert median_or_none([None, 3.0, 1.0, None, 2.0]) == 2.0
    assert median_or_none([None]) is None
    assert median_or_none([]) is None


@given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=60).map(tuple))
def test_relative_spread__is_the_coefficient_of_variation(values: tuple[float, ...]) -> None:
    expected = statistics.stdev(values) / statistics.fmean(values)
    assert relative_spread(values) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_relative_spread__of_one_value_is_unknown() -> None:
    assert relative_spread((1.0,)) is None
    assert relative_spread((1.0, 1.0)) == 0.0
