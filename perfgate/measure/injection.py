"""Rehearsals: a slowdown made by running more executions than are reported, and faults.

``CASE=+3%`` runs k (1 + 3 %) executions where k are reported: kernel, shape and reference stay the
same. Note: a larger problem is not that much more time (a BF16 GEMM with 1 % more K ran 1.5 % faster).
"""

import math
from collections.abc import Iterable, Sequence

from perfgate.core.device import DeviceKind
from perfgate.core.run import Fault, Injection
from perfgate.core.selection import matching, near_names
from perfgate.core.units import parse_percent
from perfgate.errors import ConfigurationError

_EXAMPLES = "write CASE=CHANGE, e.g. 'bandwidth.copy*=+3%' or '*=-2%', or CASE=FAULT with one of " + ", ".join(Fault)

# The run number of executions is whole, so the change is met only nearly: within this part of itself.
_TOLERANCE = 0.02

# Below half the work nothing is left to time; beyond ten times a rehearsal teaches nothing and takes for ever.
_LEAST_CHANGE = -0.5
_MOST_CHANGE = 9.0

# Smaller changes would need more executions in one interval than a queue can hold.
_SMALLEST_CHANGE = 0.001


def parse_injection(text: str) -> Injection:
    """Parse ``'CASE=+3%'`` or ``'CASE=hang'``; CASE is a glob over case ids.

    Raises:
        ConfigurationError: anything else, with examples.
    """
    # The last "=": ids hold some themselves (bandwidth.copy[bytes=4GiB]=+3%).
    pattern, separator, requested = (part.strip() for part in text.rpartition("="))
    if not separator or not pattern or not requested or requested.endswith("]"):
        raise ConfigurationError(f"--inject {text!r}: no case or no change", hint=_EXAMPLES)
    if requested not in tuple(Fault):
        _check_change(text, requested)
    return Injection(pattern=pattern, requested=requested)


def _check_change(text: str, requested: str) -> None:
    try:
        change = parse_percent(requested)
    except ValueError as error:
        raise ConfigurationError(f"--inject {text!r}: {error}", hint=_EXAMPLES) from None
    if requested[0] not in "+-" or change == 0:
        message = f"--inject {text!r}: say whether slower (+) or faster (-), and not by zero"
        raise ConfigurationError(message, hint=_EXAMPLES)
    if not _LEAST_CHANGE <= change <= _MOST_CHANGE or abs(change) < _SMALLEST_CHANGE:
        raise ConfigurationError(
            f"--inject {text!r}: outside of what can be rehearsed",
            hint="changes between -50% and +900% and no smaller than 0.1% can be rehearsed",
        )


def parse_injections(texts: Iterable[str], case_ids: Sequence[str], kind: DeviceKind) -> tuple[Injection, ...]:
    """Parse all injections of a session and check them against its cases and device.

    Raises:
        ConfigurationError: malformed; a glob that matches no case (with near names); a case that two
            of them change; a fault on a device that is not recorded.
    """
    injections = tuple(parse_injection(text) for text in texts)
    for injection in injections:
        if not matching(case_ids, injection.pattern):
            near = near_names(injection.pattern, case_ids)
            raise ConfigurationError(
                f"--inject: no case matches {injection.pattern!r}",
                hint=f"did you mean {' or '.join(near)}?" if near else "cases: " + ", ".join(case_ids),
            )
        if injection.fault and kind is not DeviceKind.RECORDED:
            raise ConfigurationError(
                f"--inject {injection.pattern}={injection.requested}: faults are rehearsed on recordings only",
                hint="add --device recorded, or inject a change such as +3%",
            )
    for case_id in case_ids:
        requests = [one for one in injections if matching((case_id,), one.pattern)]
        if len(requests) > 1:
            both = " and ".join(f"{one.pattern}={one.requested}" for one in requests)
            raise ConfigurationError(f"--inject: {case_id} is meant by {both}", hint="one injection a case")
    return injections


def injected_change(case_id: str, injections: Iterable[Injection]) -> float:
    """Return the relative change that was asked for of a case; 0 where none was."""
    for injection in injections:
        if injection.fault is None and matching((case_id,), injection.pattern):
            return parse_percent(injection.requested)
    return 0.0


def injected_executions(change: float, least: int, multiple: int) -> tuple[int, int]:
    """Choose how many executions are reported and how many are run to rehearse a change.

    Args:
        change: relative change x, greater than -1; 0 runs what is reported.
        least: smallest number to report.
        multiple: both numbers are multiples of it (buffer sets, which executions rotate over).

    Returns:
        The smallest nominal k >= ``least`` and the run number nearest to k (1 + x), for which
        ``run / k - 1`` is within 2 % of x.
    """
    if change <= -1 or least < 1 or multiple < 1:
        message = f"injection: no executions for change {change}, least {least}, multiple {multiple}"
        raise ValueError(message)
    rotations = math.ceil(least / multiple)
    # Ends at the latest where the rounding to whole rotations, 1/2 at most, is within 2 % of k |x|.
    while True:
        run = max(1, round(rotations * (1 + change)))
        if abs(run / rotations - 1 - change) <= _TOLERANCE * abs(change) + 1e-12:
            return rotations * multiple, run * multiple
        rotations += 1
