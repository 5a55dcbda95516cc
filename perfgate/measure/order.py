"""What a launch is told: everything that a fresh process needs to measure, and the order of its cases."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfgate.core.plan import CasePlan
from perfgate.core.run import Injection


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
