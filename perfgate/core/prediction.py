"""A predicted time and everything that it was made from: terms, thresholds, doubts. ``core.estimate`` makes it."""

from dataclasses import dataclass

from perfgate.core.case import Work
from perfgate.core.caveat import Caveat
from perfgate.core.report import Bound
from perfgate.core.roofs import Roof


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term of the time model.

    Attributes:
        name: ``"compute"``, ``"memory"``, ``"exponentials"``, ``"launch"``, ``"ramp"``, ``"split"``,
            ``"wire"``, ``"latency"``.
        formula: with the numbers put in: ``"137.4 GFLOP / (989 TFLOP/s x 0.97)"``.
        overlaps: among the terms of which only the largest counts; the others are added.
    """

    name: str
    time_s: float
    formula: str
    bound: Bound
    overlaps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """How output tiles fill the SMs.

    Attributes:
        tiles: over all parts of K.
        splits: parts that K is cut into.
        tile_share: rate within these tiles over that of the best full ones: rows that pad, operands to load.
        factor: share of the SMs' time that is used: (tiles / SMs) / ceil(tiles / SMs), at most 1.
    """

    tile_m: int
    tile_n: int
    tiles: int
    sm_count: int
    splits: int = 1
    tile_share: float = 1.0

    @property
    def waves(self) -> int:
        """Rounds of at most one tile an SM."""
        return -(-self.tiles // self.sm_count)

    @property
    def factor(self) -> float:
        """Share of the SMs' time that is used."""
        return self.tiles / (self.sm_count * self.waves)

    @property
    def rate_share(self) -> float:
        """Share of the compute roof that the tiling allows."""
        return self.factor * self.tile_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A size from which on something holds.

    Attributes:
        symbol: the size that grows: ``"M = N = K"``.
        size: smallest whole value, None where no size suffices.
        meaning: what holds from there on.
    """

    symbol: str
    size: int | None
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A predicted time and everything that it was made from.

    Attributes:
        subject: sizes and type, for people.
        machine: the GPU, or the link.
        work: FLOP and compulsory bytes; None for transfers.
        time_s: the terms that do not overlap plus the largest of those that do.
        limit: name of the largest term.
        ridge_flop_per_byte: of the two roofs in ``ridge_label``.
        attainable_per_s: min(compute roof, intensity x memory roof).
        compute_roof, memory_roof: what was divided by; ``best_kind`` says whether it was measured.
        useful_bytes: part of the moved bytes that the algorithm asked for, where an access pattern wastes some.
        algorithm_bytes_per_s, bus_bytes_per_s: of a collective, as nccl-tests define them.
    """

    kind: str
    subject: str
    machine: str
    terms: tuple[Term, ...]
    work: Work | None = None
    exponentials: int = 0
    compute_roof: Roof | None = None
    memory_roof: Roof | None = None
    ridge_flop_per_byte: float | None = None
    ridge_label: str = ""
    attainable_per_s: float | None = None
    waves: Waves | None = None
    useful_bytes: int | None = None
    algorithm_bytes_per_s: float | None = None
    bus_bytes_per_s: float | None = None
    thresholds: tuple[Threshold, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    @property
    def time_s(self) -> float:
        """Sum of the terms that do not overlap, plus the largest of those that do."""
        overlapping = [term.time_s for term in self.terms if term.overlaps]
        return sum(term.time_s for term in self.terms if not term.overlaps) + max(overlapping, default=0.0)

    @property
    def limit(self) -> Term:
        """The largest term: what the time is bound by."""
        return max(self.terms, key=lambda term: term.time_s)
