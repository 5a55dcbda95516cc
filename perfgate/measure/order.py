"""What a launch is told, the order of its cases, and the order of launches where two sides are compared."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfgate.core.plan import CasePlan
from perfgate.core.run import Injection
from perfgate.shims import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """The order of one launch; travels to its process as JSON by ``core.codec``.

    Attributes:
        index: place of the launch in its session, from 0.
        device: address that opens the device, e.g. ``"cuda:GPU-..."`` or ``"recorded:/path/run.json.gz"``.
        suite: name of the built-in suite.
        own_suites: paths of users' own suites.
        case_ids: in the order in which they are to be measured; see ``shuffled``.
        plans: sampling plans that are fixed already, by case; the launch chooses the others.
        injections: rehearsed slowdowns and faults.
        seed: of the session.
        settings: numbers of the measuring loop, by name.
        options: text settings of the device, by name.
    """

    index: int
    device: str
    suite: str
    case_ids: tuple[str, ...]
    seed: int
    own_suites: tuple[str, ...] = ()
    plans: Mapping[str, CasePlan] = field(default_factory=dict)
    injections: tuple[Injection, ...] = ()
    settings: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


def shuffled(case_ids: Iterable[str], seed: int, index: int) -> tuple[str, ...]:
    """Return the cases in the random order of one launch.

    Sorted by a hash of session seed, launch index and id: the order repeats on every machine and
    Python version, differs from launch to launch, and does not depend on the order given, so that
    leaving a case out moves no other case past a third.
    """
    return tuple(sorted(case_ids, key=lambda case_id: hashlib.sha256(f"{seed}/{index}/{case_id}".encode()).digest()))


class Side(StrEnum):
    """The two states of a repository that are compared."""

    BASE = "base"
    HEAD = "head"


_QUADS = (
    (Side.BASE, Side.HEAD, Side.HEAD, Side.BASE),
    (Side.HEAD, Side.BASE, Side.BASE, Side.HEAD),
)


def interleaved(launches_a_side: int, seed: int) -> tuple[Side, ...]:
    """Return the side of each launch: quads ABBA or BAAB at random, so that no drift favours a side.

    Two neighbours, from the first on, are a pair: one launch of each side.

    Raises:
        ValueError: an odd number of launches, or none.
    """
    if launches_a_side < 2 or launches_a_side % 2:
        message = f"{launches_a_side} launches a side do not fill quads: an even number from 2 up"
        raise ValueError(message)
    draws = [hashlib.sha256(f"{seed}/quad/{index}".encode()).digest()[0] % 2 for index in range(launches_a_side // 2)]
    return tuple(side for draw in draws for side in _QUADS[draw])
