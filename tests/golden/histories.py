"""Histories of every kind of trend, as small as they can be."""

from perfgate.core.history import ChipHistory, histories, source_of_baseline
from perfgate.core.policy import Policy
from tests.factories import make_baseline, make_trend_sessions

DRIFTING, STEPPING, STEADY = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]", "bandwidth.read[bytes=4GiB]"
FASTER, ONCE = "launch.graph_node", "bandwidth.new[bytes=1GiB]"


def moved() -> tuple[ChipHistory, ...]:
    """Fourteen sessions: one case drifts, one steps where its source changed, one gets faster, one is new."""
    count = 14
    sessions = make_trend_sessions(
        {
            DRIFTING: [0.0008 * index for index in range(count)],
            STEPPING: [0.02 * (index >= 7) for index in range(count)],
            STEADY: [0.0] * count,
            FASTER: [-0.0012 * index for index in range(count)],
        },
        spread=2e-4,
        steps_source={7: "d" * 64},
    )
    (last,) = make_trend_sessions({ONCE: [0.0]})
    sessions[-1].cases[ONCE] = last.cases[ONCE]  # type: ignore[index]
    return histories([source_of_baseline(make_baseline(*sessions))], Policy())


def single() -> tuple[ChipHistory, ...]:
    """One session."""
    return histories([source_of_baseline(make_baseline())], Policy())
