"""Simulated checks: noise of sessions and launches goes in, the product's own decisions come out.

Many checks are decided at once by the functions that decide one (``core.comparison``,
``core.decision``, ``core.multiplicity``): what is measured here is the rule itself, not a copy.
Everything is relative and on logarithms; a spread of 0.001 is 0.1 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perfgate.core.comparison import Comparison, comparison, shift_interval
from perfgate.core.decision import Decision, is_confirmed, staged
from perfgate.core.multiplicity import stage_levels
from perfgate.core.verdict import CaseVerdict
from perfgate.shims import StrEnum

_CHUNK = 2_000  # checks decided at once: 20 cases of 12 x 6 pairs are 23 MB


class Shape(StrEnum):
    """How launches of one session scatter around its level, at the same standard deviation."""

    NORMAL = "normal"
    BIMODAL = "bimodal"  # one launch in five lands in a slower mode
    DRIFTING = "drifting"  # warming up: each launch of a session a little slower than the one before
    T3 = "t3"  # heavy tails


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What moves the times of unchanged code.

    Attributes:
        launch: standard deviation between launches of one session.
        session: standard deviation between sessions, independent by case.
        sample: standard deviation of samples within a launch, of which a launch takes the median of 50.
        shape: how launches scatter.
    """

    launch: float = 0.001
    session: float = 0.0
    sample: float = 0.0
    shape: Shape = Shape.NORMAL

    def sessions(self, generator: np.random.Generator, checks: int, cases: int, launches: int) -> NDArray[np.float64]:
        """Draw one session a check: logarithms of launch statistics, shape (checks, cases, launches)."""
        size = (checks, cases, launches)
        level = self.session * generator.standard_normal((checks, cases, 1))
        # The median of n normal values spreads sqrt(pi / 2n) times as much as they do.
        within = self.sample * np.sqrt(np.pi / (2 * 50)) * generator.standard_normal(size)
        return level + within + self.launch * self._scatter(generator, size)

    def _scatter(self, generator: np.random.Generator, size: tuple[int, int, int]) -> NDArray[np.float64]:
        """Draw values of unit variance."""
        match self.shape:
            case Shape.NORMAL:
                return generator.standard_normal(size)
            case Shape.BIMODAL:
                slow = generator.random(size) < 0.2
                return np.where(slow, 2.0, -0.5) * np.sqrt(0.9) + np.sqrt(0.1) * generator.standard_normal(size)
            case Shape.DRIFTING:
                steps = np.linspace(-1.0, 1.0, size[-1]) if size[-1] > 1 else np.zeros(1)
                spread = steps.std() or 1.0
                return np.sqrt(0.5) * steps / spread + np.sqrt(0.5) * generator.standard_normal(size)
            case Shape.T3:
                return generator.standard_t(3, size) / np.sqrt(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One kind of check.

    Attributes:
        change: true relative change of every case that changed.
        changed: how many of the cases changed; the others are unchanged code.
        stages: launches at each look.
    """

    noise: Noise
    change: float = 0.0
    changed: int = 20
    cases: int = 20
    margin: float = 0.005
    alpha: float = 0.01
    equivalence_alpha: float = 0.05
    baseline_launches: int = 12
    stages: tuple[int, ...] = (3, 6)

    def shifts(self) -> NDArray[np.float64]:
        """True shift of each case."""
        return np.where(np.arange(self.cases) < self.changed, np.log1p(self.change), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of many checks.

    Attributes:
        accused: share of checks with any case called regressed, before confirmation.
        confirmed: the same after fresh launches of a session of its own.
        found: share of the changed cases called regressed, before confirmation.
        unchanged: share of the cases called unchanged.
        suspected: share of the changed cases called suspected.
        stopped_early: share of checks that needed no second look.
    """

    checks: int
    accused: float
    confirmed: float
    found: float
    unchanged: float
    suspected: float
    stopped_early: float


def outcome(setting: Setting, *, checks: int, seed: int) -> Outcome:
    """Run checks and count."""
    parts = list(_decided(setting, checks=checks, seed=seed))
    regressed = np.concatenate([one.is_verdict(CaseVerdict.REGRESSED) for one, _, _ in parts])
    confirmed = regressed & np.concatenate([again for _, again, _ in parts])
    changed = np.arange(setting.cases) < setting.changed
    suspected = np.concatenate([one.is_verdict(CaseVerdict.SUSPECTED) for one, _, _ in parts])
    unchanged = np.concatenate([one.is_verdict(CaseVerdict.UNCHANGED) for one, _, _ in parts])
    stopped = np.concatenate([stop for _, _, stop in parts])
    return Outcome(
        checks=checks,
        accused=float(regressed.any(axis=-1).mean()),
        confirmed=float(confirmed.any(axis=-1).mean()),
        found=float(regressed[:, changed].mean()) if changed.any() else 0.0,
        unchanged=float(unchanged.mean()),
        suspected=float(suspected[:, changed].mean()) if changed.any() else 0.0,
        stopped_early=float((stopped < len(setting.stages) - 1).mean()),
    )


def coverage(setting: Setting, *, level: float, checks: int, seed: int) -> float:
    """Return how often the interval at ``level`` on each side holds the true change."""
    generator = np.random.default_rng(seed)
    covered = []
    for count in _chunks(checks):
        baseline = setting.noise.sessions(generator, count, setting.cases, setting.baseline_launches)
        candidate = setting.noise.sessions(generator, count, setting.cases, setting.stages[-1])
        low, high = shift_interval(candidate + setting.shifts()[:, None], baseline, level)
        covered.append((low <= setting.shifts()) & (setting.shifts() <= high))
    return float(np.concatenate(covered).mean())


def largest_session_spread(setting: Setting, *, checks: int, seed: int, limit: float = 0.01) -> float:
    """Return the largest spread between sessions, as a fraction of the margin, that keeps false alarms to ``limit``."""
    low, high = 0.0, 1.0
    while high - low > 0.005:
        middle = (low + high) / 2
        noise = replace(setting.noise, session=middle * setting.margin)
        found = outcome(replace(setting, noise=noise), checks=checks, seed=seed)
        low, high = (middle, high) if found.accused <= limit else (low, middle)
    return low


def _decided(
    setting: Setting, *, checks: int, seed: int
) -> Iterator[tuple[Decision, NDArray[np.bool_], NDArray[np.intp]]]:
    """Yield chunks of decisions, whether fresh launches confirm each case, and the look that each stopped at."""
    generator = np.random.default_rng(seed)
    launches = setting.stages[-1]
    levels = stage_levels(
        setting.alpha, setting.stages, family=setting.cases, baseline_launches=setting.baseline_launches
    )
    equivalence = stage_levels(
        setting.equivalence_alpha, setting.stages, family=1, baseline_launches=setting.baseline_launches
    )
    shift = setting.shifts()[:, None]
    for count in _chunks(checks):
        baseline = setting.noise.sessions(generator, count, setting.cases, setting.baseline_launches)
        candidate = setting.noise.sessions(generator, count, setting.cases, launches) + shift
        fresh = setting.noise.sessions(generator, count, setting.cases, launches) + shift
        looks: list[Comparison] = [
            comparison(candidate[..., :stage], baseline, setting.margin) for stage in setting.stages
        ]
        decided, stopped = staged(looks, levels=levels, equivalence_levels=equivalence)
        yield decided, is_confirmed(comparison(fresh, baseline, setting.margin), setting.alpha), stopped


def _chunks(checks: int) -> Iterator[int]:
    while checks > 0:
        yield min(checks, _CHUNK)
        checks -= _CHUNK
