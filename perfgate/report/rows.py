"""One place that turns a case's result into the texts that every table shows, in the order that tables show them."""

from dataclasses import dataclass

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.latency import steps_of
from perfgate.core.peaks import pipe_unit
from perfgate.core.report import Bound, CaseResult, Estimate, MarginSource
from perfgate.core.units import percent_text, rate_text, time_text
from perfgate.core.verdict import CaseVerdict

# What asks for attention first; a case within a group keeps its place in the suite.
VERDICT_ORDER = (
    CaseVerdict.REGRESSED,
    CaseVerdict.SUSPECTED,
    CaseVerdict.INVALID,
    CaseVerdict.MISSING,
    CaseVerdict.NOT_COMPARABLE,
    CaseVerdict.INCONCLUSIVE,
    CaseVerdict.IMPROVED,
    CaseVerdict.NEW,
    CaseVerdict.UNCHANGED,
    CaseVerdict.NOT_GATED,
)

QUIET_VERDICTS = frozenset({CaseVerdict.NEW, CaseVerdict.UNCHANGED, CaseVerdict.NOT_GATED})

# FP64 and FP32 vector units over DRAM reach from 5 to 105 FLOP/byte.
_LOWEST_RIDGE_FLOP_PER_BYTE = 5.0

_MARGIN_SOURCES = {
    MarginSource.POLICY: "policy",
    MarginSource.SAME_CHIP_DEFAULT: "this chip",
    MarginSource.SAME_CHIP_CALIBRATED: "this chip, calibrated",
    MarginSource.CROSS_CHIP_DEFAULT: "other chips",
    MarginSource.CROSS_CHIP_CALIBRATED: "other chips, calibrated",
    MarginSource.SAME_SESSION: "same session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The texts of one case; "" where there is nothing to say.

    Attributes:
        time, rate: of the candidate, e.g. ``"194.9 µs"``, ``"705 TFLOP/s"``.
        baseline_time, baseline_rate: of the baseline.
        change: ``"+3.40 %"``, positive is slower.
        half_width: ``"± 0.20"``, the larger side of the interval, in percent.
        interval: ``"+3.20 to +3.60"``, in percent.
        margin, margin_source: ``"0.5 %"``, ``"this chip"``.
        intensity, of_roof, bound: place on the roofline: ``"1365"``, ``"96 % BF16"``, ``"compute"``.
        was: ``"was 188.5 µs, 729 TFLOP/s"`` for a case that moved.
        confirmation: whether fresh launches confirmed it.
        causes: what may explain the change.
        reasons: why there is this verdict or none, and who accepted it.
        doubts: caveats, and what else a reader should know before believing the numbers.
    """

    result: CaseResult
    id: str
    verdict: str
    time: str
    rate: str
    baseline_time: str
    baseline_rate: str
    change: str
    half_width: str
    interval: str
    margin: str
    margin_source: str
    intensity: str
    of_roof: str
    bound: str
    was: str
    confirmation: str
    causes: tuple[str, ...]
    reasons: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def change_with_interval(self) -> str:
        """The change and its interval: ``"+3.40 % (+3.20 to +3.60)"``."""
        return f"{self.change} ({self.interval})" if self.interval else self.change

    @property
    def notes(self) -> tuple[str, ...]:
        """Causes, reasons and doubts, each said in full."""
        return (*(f"cause: {cause}" for cause in self.causes), *self.reasons, *self.doubts)

    @property
    def margin_with_source(self) -> str:
        """The margin and where it came from: ``"0.5 %, this chip"``."""
        return f"{self.margin}, {self.margin_source}" if self.margin else ""


def row(result: CaseResult) -> Row:
    """Return the texts of one case."""
    position = result.roofline
    return Row(
        result=result,
        id=result.id,
        verdict=verdict_text(result.verdict) + (", accepted" if result.accepted else ""),
        time=time_of(result.candidate_s),
        rate=_rate(result, result.candidate_s),
        baseline_time=time_of(result.baseline_s),
        baseline_rate=_rate(result, result.baseline_s),
        change=change_text(result.change),
        half_width=half_width_text(result.change),
        interval=interval_text(result.change),
        margin=margin_text(result.margin.relative) if result.margin else "",
        margin_source=_MARGIN_SOURCES[result.margin.source] if result.margin else "",
        intensity=intensity_text(position.intensity_flop_per_byte if position else None),
        of_roof=_of_roof(result),
        bound=position.bound.value if position and position.bound else "",
        was=_was(result),
        confirmation=_confirmation(result),
        causes=tuple(cause.message for cause in result.causes),
        reasons=_reasons(result),
        doubts=_doubts(result),
    )


def ordered_rows(results: tuple[CaseResult, ...]) -> tuple[Row, ...]:
    """Return the rows of all cases, what asks for attention first."""
    return tuple(row(result) for result in sorted(results, key=lambda one: VERDICT_ORDER.index(one.verdict)))


def verdict_text(verdict: CaseVerdict) -> str:
    """Render a verdict in words: ``"not comparable"``."""
    return verdict.value.replace("-", " ")


def change_text(change: Estimate | None) -> str:
    """Render a relative change: ``"+3.40 %"``, with one decimal from 10 % on."""
    if change is None:
        return ""
    return percent_text(change.value, signed=True, decimals=2 if abs(change.value) < 0.1 else 1)


def margin_text(relative: float) -> str:
    """Render a margin: ``"0.5 %"``, with a second decimal where it has one, since changes are shown with two."""
    hundredths = round(relative * 10_000)
    return percent_text(relative, decimals=2 if hundredths % 10 else 1)


def half_width_text(change: Estimate | None) -> str:
    """Render the larger side of an interval: ``"± 0.20"``."""
    if change is None or change.low is None or change.high is None:
        return ""
    return f"± {max(change.high - change.value, change.value - change.low) * 100:.2f}"


def interval_text(change: Estimate | None) -> str:
    """Render an interval in percent: ``"+3.20 to +3.60"``."""
    if change is None or change.low is None or change.high is None:
        return ""
    low, high = (percent_text(end, signed=True).removesuffix(" %") for end in (change.low, change.high))
    return f"{low} to {high}"


def time_of(time_s: float | None) -> str:
    """Render a time; "" where there is none."""
    return time_text(time_s) if time_s is not None else ""


def rate_of(work: Work | None, time_s: float | None, bound: Bound | None = None) -> str:
    """Render FLOP/s for what computes, bytes/s for what moves data, nothing for what waits or for no time.

    Where the bound is unknown, a case computes from the lowest ridge point of any GPU on.
    """
    if work is None or not time_s or bound is Bound.LATENCY:
        return ""
    computes = bound is Bound.COMPUTE or (
        bound is None and (work.intensity_flop_per_byte or 0.0) >= _LOWEST_RIDGE_FLOP_PER_BYTE
    )
    if work.work_flop and (computes or not work.moved_bytes):
        return rate_text(work.work_flop / time_s, pipe_unit(work.pipe or ""))
    return rate_text(work.moved_bytes / time_s, "B") if work.moved_bytes else ""


def step_of(case_id: str, time_s: float | None) -> str:
    """Render the time of one step of a case that repeats an operation ``steps`` times; nothing for other cases."""
    steps = steps_of(case_id)
    return "" if not time_s or steps == 1 else f"{time_text(time_s / steps)} a step"


def measured_rate(case_id: str, work: Work, timing: Timing, time_s: float | None) -> str:
    """Render what a case's time says beside itself: of a step, or of its work a second."""
    return step_of(case_id, time_s) or (rate_of(work, time_s) if timing.is_of_work else "")


def _rate(result: CaseResult, time_s: float | None) -> str:
    return step_of(result.id, time_s) or rate_of(
        result.work, time_s, result.roofline.bound if result.roofline else None
    )


def intensity_text(intensity_flop_per_byte: float | None) -> str:
    """Render an arithmetic intensity: ``"1365"``, ``"0.125"``; "" where there is none."""
    if intensity_flop_per_byte is None:
        return ""
    return f"{intensity_flop_per_byte:.0f}" if intensity_flop_per_byte >= 100 else f"{intensity_flop_per_byte:.3g}"


def _of_roof(result: CaseResult) -> str:
    position = result.roofline
    if position is None or position.of_measured is None or position.roof is None:
        return ""
    return f"{percent_text(position.of_measured, decimals=0)} {position.roof}"


def _was(result: CaseResult) -> str:
    if result.verdict in QUIET_VERDICTS or result.baseline_s is None or result.candidate_s is None:
        return ""
    rate = _rate(result, result.baseline_s)
    return f"was {time_of(result.baseline_s)}, {rate}" if rate else f"was {time_of(result.baseline_s)}"


def _confirmation(result: CaseResult) -> str:
    if result.confirmed is None:
        return ""
    return "confirmed by fresh launches" if result.confirmed else "not confirmed by fresh launches"


def _reasons(result: CaseResult) -> tuple[str, ...]:
    accepted = f"accepted: {result.accepted}" if result.accepted else ""
    return tuple(filter(None, (accepted, result.reason)))


def _doubts(result: CaseResult) -> tuple[str, ...]:
    quiet = result.verdict in (CaseVerdict.UNCHANGED, CaseVerdict.NOT_GATED)
    # Three launches often spread three times as much as twelve by chance: worth a line only beside a finding.
    caveats = (one.sentence for one in result.caveats if not (quiet and one.code == "spread-changed"))
    return tuple(filter(None, (_change_of_time(result), *caveats)))


def _change_of_time(result: CaseResult) -> str:
    """What a case that is judged in cycles did in time, where a reader would see two different numbers."""
    if result.unit is not Unit.CYCLES or not result.baseline_s or result.candidate_s is None:
        return ""
    in_time = percent_text(result.candidate_s / result.baseline_s - 1, signed=True)
    return "" if in_time == change_text(result.change) else f"judged in SM cycles; the time changed by {in_time}"
