"""The cases of a run that can be compared, as arrays: compared together where their numbers of launches are equal."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from perfgate.core.comparison import Comparison, Floats, comparison, logarithms, shift_interval
from perfgate.core.margin import is_supported
from perfgate.core.reference import Reference
from perfgate.core.report import Estimate, Margin
from perfgate.core.run import CaseInfo
from perfgate.core.validity import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A case that can be compared: what was measured, what with, and at which margin."""

    case_id: str
    info: CaseInfo
    measured: Measured
    reference: Reference
    margin: Margin
    is_gated: bool

    @property
    def is_judged(self) -> bool:
        """Whether it is one of the family: gated, and its sessions allow a margin that a gate may use."""
        return self.is_gated and is_supported(self.margin)

    @property
    def candidate(self) -> Floats:
        """Logarithms of the candidate's launches."""
        return logarithms(self.measured.launches)

    @property
    def baseline(self) -> Floats:
        """Logarithms of the baseline's launches."""
        return np.asarray(self.reference.launches)


def _grouped(subjects: Sequence[Subject]) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
    """Yield the subjects that have the same numbers of launches, as arrays: places, candidates, baselines."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, subject in enumerate(subjects):
        shape = (len(subject.measured.launches), len(subject.reference.launches))
        groups.setdefault(shape, []).append(index)
    for members in groups.values():
        yield (
            np.array(members, dtype=np.intp),
            np.stack([subjects[index].candidate for index in members]),
            np.stack([subjects[index].baseline for index in members]),
        )


def compared(subjects: Sequence[Subject]) -> Comparison:
    """Compare all subjects, each at its margin."""
    margin = np.array([subject.margin.relative for subject in subjects])
    columns: dict[str, NDArray[np.generic]] = {}
    for places, candidate, baseline in _grouped(subjects):
        part = comparison(candidate, baseline, margin[places])
        for field in fields(Comparison):
            values = np.asarray(getattr(part, field.name))
            columns.setdefault(field.name, np.empty(len(subjects), dtype=values.dtype))[places] = values
    return Comparison(**columns)  # type: ignore[arg-type]


def taken(found: Comparison, places: NDArray[np.intp] | int) -> Comparison:
    """Return the comparisons at some places."""
    return Comparison(**{field.name: getattr(found, field.name)[places] for field in fields(Comparison)})


def changes(subjects: Sequence[Subject], found: Comparison, level: Floats, *, fallback: float) -> list[Estimate]:
    """Return each relative change with the interval of the test at its level, at ``fallback`` where that has none."""
    low, high = np.empty(len(subjects)), np.empty(len(subjects))
    used = level.copy()
    for places, candidate, baseline in _grouped(subjects):
        low[places], high[places] = shift_interval(candidate, baseline, level[places])
        lacking = ~np.isfinite(low[places])
        if lacking.any():
            again = places[lacking]
            low[again], high[again] = shift_interval(candidate[lacking], baseline[lacking], fallback)
            used[again] = fallback
    return [
        Estimate(
            value=math.expm1(found.shift[index]),
            low=math.expm1(low[index]),
            high=math.expm1(high[index]),
            confidence=1 - 2 * float(used[index]),
        )
        if math.isfinite(low[index])
        else Estimate(value=math.expm1(found.shift[index]))
        for index in range(len(subjects))
    ]
