"""From the comparisons of a family of cases to the verdict of each: the rule itself.

On arrays, the family on the last axis, so that a simulation of ten thousand checks runs the very
rule that a check runs. docs/statistics.md derives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfgate.core.comparison import TIE, Booleans, Comparison, Floats
from perfgate.core.multiplicity import holm, holm_levels, is_rejected
from perfgate.core.verdict import CaseVerdict

# The verdicts that a comparison can end in, in order of precedence; the last where none is earned.
VERDICTS = (
    CaseVerdict.REGRESSED,
    CaseVerdict.IMPROVED,
    CaseVerdict.UNCHANGED,
    CaseVerdict.SUSPECTED,
    CaseVerdict.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is concluded of a family; all fields have the shape of the comparisons.

    Attributes:
        verdict: index into VERDICTS.
        p_adjusted: of "slower", after Holm.
        level: at which "slower" was tested in Holm's order; the interval shown is dual to it.
    """

    verdict: NDArray[np.intp]
    p_adjusted: Floats
    level: Floats

    def is_verdict(self, verdict: CaseVerdict) -> Booleans:
        """Tell which cases have a verdict."""
        return np.asarray(self.verdict == VERDICTS.index(verdict))

    def verdicts(self) -> tuple[CaseVerdict, ...]:
        """Return the verdicts of one family, in its order."""
        return tuple(VERDICTS[index] for index in self.verdict)


def decision(family: Comparison, *, level: float, equivalence_level: float) -> Decision:
    """Decide a family.

    Args:
        family: the comparisons of all gated cases, on the last axis.
        level: this look's share of alpha, for the family as a whole; zero proves nothing.
        equivalence_level: this look's share of the error rate of "unchanged", for each case alone:
            that all are unchanged is claimed only when each is, so nothing accumulates.
    """
    adjusted = holm(family.p_slower)
    regressed = is_rejected(adjusted, level)
    improved = is_rejected(holm(family.p_faster), level)
    unchanged = is_rejected(family.p_equivalent, equivalence_level)
    verdict = np.select([regressed, improved, unchanged, is_beyond(family)], [0, 1, 2, 3], default=4)
    return Decision(verdict=verdict, p_adjusted=adjusted, level=holm_levels(family.p_slower, level))


def is_beyond(comparisons: Comparison) -> Booleans:
    """Tell where the estimate itself is slower than the margin; exactly on it is not beyond."""
    return np.asarray(comparisons.shift > comparisons.edge + TIE)


def is_confirmed(comparisons: Comparison, alpha: float) -> Booleans:
    """Tell which accused cases fresh launches accuse again, each at the whole of alpha.

    No correction: only the first measurement searched among many cases.
    """
    return is_rejected(comparisons.p_slower, alpha)


def staged(
    looks: Sequence[Comparison], *, levels: Sequence[float], equivalence_levels: Sequence[float]
) -> tuple[Decision, NDArray[np.intp]]:
    """Decide checks that stop at the first look that settles them, and tell at which look each did.

    A look settles a check when it finds a regression, or when every case is unchanged or improved.
    This is what a check does look by look (``gate.is_decided``), for many checks at once.

    Args:
        looks: comparisons after each look, shape (checks, cases).
        levels: share of alpha of each look.
        equivalence_levels: share of the error rate of "unchanged" of each look.
    """
    last = len(looks) - 1
    decisions = [
        decision(family, level=level, equivalence_level=equivalence)
        for family, level, equivalence in zip(looks, levels, equivalence_levels, strict=True)
    ]
    stopped = np.full(looks[0].shift.shape[:-1], last)
    for index in range(last - 1, -1, -1):
        stopped = np.where(is_settled(decisions[index]), index, stopped)

    def at_stop(name: str) -> Floats:
        values = np.stack([getattr(one, name) for one in decisions])
        return np.asarray(np.take_along_axis(values, stopped[None, :, None], axis=0)[0])

    return (
        Decision(verdict=at_stop("verdict").astype(np.intp), p_adjusted=at_stop("p_adjusted"), level=at_stop("level")),
        stopped,
    )


def is_settled(result: Decision) -> Booleans:
    """Tell which checks need no further launches: a regression is found, or nothing is left open."""
    found = result.is_verdict(CaseVerdict.REGRESSED).any(axis=-1)
    closed = result.is_verdict(CaseVerdict.UNCHANGED) | result.is_verdict(CaseVerdict.IMPROVED)
    return np.asarray(found | closed.all(axis=-1))
