"""What all chains of latency.cu share."""

import numpy as np

SOURCE = "latency.cu"
_STEPS_PER_ROUND = 32
# A mask of 0, which the compiler may not know: what it is applied to depends on the step before.
NO_BITS = np.uint32(0)


def rounds(steps: int) -> np.uint32:
    """Return how often the loop of a chain runs, the last argument of its kernel.

    Raises:
        ValueError: the steps are no whole rounds.
    """
    if steps % _STEPS_PER_ROUND:
        message = f"{steps} steps are no whole rounds of {_STEPS_PER_ROUND}"
        raise ValueError(message)
    count: np.uint32 = np.uint32(steps // _STEPS_PER_ROUND)
    return count
