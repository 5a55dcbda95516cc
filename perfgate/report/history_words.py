"""What every rendering of a history says: its order, its headline, and each trend in a sentence."""

from collections import Counter
from collections.abc import Iterator, Sequence

from perfgate.core.gpu import Difference
from perfgate.core.history import ChipHistory
from perfgate.core.trend import Drift, LevelChange, Movement, Trend
from perfgate.core.units import percent_text
from perfgate.report.rows import change_text, interval_text, margin_text
from perfgate.report.sentences import counted, difference_text

# What asks for attention first.
MOVEMENT_ORDER = (Movement.DRIFTED, Movement.STEPPED, Movement.STEADY, Movement.SINGLE)
_HASHES = {"source_sha256": "the source changed", "code_sha256": "the machine code changed"}


def ordered_trends(history: ChipHistory) -> tuple[Trend, ...]:
    """Return the trends, what asks for attention first; of those that moved alike the slowest first."""

    def place(one: Trend) -> tuple[bool, int, float]:
        return not one.gated, MOVEMENT_ORDER.index(one.movement), -one.since_first if is_loud(one) else 0.0

    return tuple(sorted(history.trends, key=place))


def is_loud(one: Trend) -> bool:
    """Tell whether a trend asks for attention."""
    return one.movement in (Movement.DRIFTED, Movement.STEPPED)


def tally(history: ChipHistory) -> str:
    """Count the gated cases by movement: ``"1 drifted, 2 stepped, 8 steady"``."""
    count = Counter(one.movement for one in history.trends if one.gated)
    words = {Movement.SINGLE: "with one session"}
    return ", ".join(f"{count[one]} {words.get(one, one.value)}" for one in MOVEMENT_ORDER if count[one]) or "no cases"


def span_text(history: ChipHistory) -> str:
    """Say which sessions there are: ``"12 sessions, 2026-11-01 to 2026-11-30"``."""
    first, last = history.sessions[0].recorded_utc[:10], history.sessions[-1].recorded_utc[:10]
    when = first if first == last else f"{first} to {last}"
    return f"{counted(len(history.sessions), 'session', 'sessions')}, {when}"


def chip_text(history: ChipHistory) -> str:
    """Name the chip; sessions that name none may be of several."""
    return f"chip {history.gpu.chip}" if history.gpu.chip else "sessions that name no chip: they may be of several"


def notes(one: Trend) -> Iterator[str]:
    """Yield what there is to say of a trend beside its numbers, the drift first."""
    if one.drift is not None:
        yield _drift_text(one, one.drift)
    for change in one.steps:
        yield _step_text(one, change)
    if one.left_out:
        older = counted(one.left_out, "session is", "sessions are")
        yield f"{older} left out: another {one.left_out_reason}"


def moved_text(one: Trend) -> str:
    """Render how far the newest session is from the first; "" for one session."""
    return percent_text(one.since_first, signed=True) if len(one.points) > 1 else ""


def _drift_text(one: Trend, drift: Drift) -> str:
    direction = "slower" if drift.change.value > 0 else "faster"
    origin = "the first session" if drift.since == 0 else "the last step"
    return (
        f"slow drift: {change_text(drift.change)} ({interval_text(drift.change)}), {direction}, since {origin} of "
        f"{one.points[drift.since].recorded_utc[:10]}; no session differs from the one before by more than "
        f"{percent_text(drift.largest_step)}, the margin is {margin_text(one.margin.relative)}"
        + _seen(drift.differences)
    )


def _step_text(one: Trend, change: LevelChange) -> str:
    point = one.points[change.at]
    commit = f", commit {point.commit[:12]}" if point.commit else ""
    return (
        f"step: {change_text(change.change)} ({interval_text(change.change)}) in the session of "
        f"{point.recorded_utc[:10]} ({change.at + 1} of {len(one.points)}{commit})" + _seen(change.differences)
    )


def _seen(differences: Sequence[Difference]) -> str:
    words = [_HASHES.get(one.field) or difference_text(one).replace("baseline", "before") for one in differences]
    return f"; {', '.join(words)}" if words else "; neither code nor driver nor toolkit is known to have changed"
