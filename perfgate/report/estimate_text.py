"""Predicted times as text and as JSON: one column a machine, every term with its numbers."""

from collections.abc import Callable, Sequence
from typing import Any

from perfgate.core.case import Work
from perfgate.core.caveat import Caveat
from perfgate.core.codec import encode
from perfgate.core.prediction import Prediction
from perfgate.core.units import percent_text, rate_text, time_text
from perfgate.report.layout import Column, Line, Page

_COLUMNS_OF_TEXT = 22
_LABEL = 14


def render_predictions(
    predictions: Sequence[Prediction], *, width: int, color: bool, unicode: bool, measured_s: float | None = None
) -> str:
    """Render predictions of one piece of work on several machines.

    Args:
        predictions: at least one, all of the same work.
        width: columns of the terminal; machines that do not fit beside each other follow below.
        color: whether styles become ANSI escapes.
        unicode: whether the terminal shows more than ASCII.
        measured_s: a measured time to compare with.
    """
    page = Page(width=width, color=color, unicode=unicode)
    first = predictions[0]
    page.line(f"{first.kind}: {first.subject}", "bold")
    if first.work is not None:
        page.line(_work_text(first, first.work))
    beside = max(1, (page.width - 24) // _COLUMNS_OF_TEXT)
    for start in range(0, len(predictions), beside):
        page.blank()
        _add_table(page, predictions[start : start + beside], measured_s)
    _add_notes(page, predictions)
    return page.text


def predictions_document(predictions: Sequence[Prediction], measured_s: float | None = None) -> dict[str, Any]:
    """Return predictions as JSON values: their fields, and what is computed from them."""
    return {
        "format": "perfgate.estimate/1",
        "measured_s": measured_s,
        "predictions": [
            {
                **encode(prediction),
                "time_s": prediction.time_s,
                "bound": prediction.limit.bound.value,
                "limit": prediction.limit.name,
                "intensity_flop_per_byte": prediction.work.intensity_flop_per_byte if prediction.work else None,
                "wave_factor": prediction.waves.factor if prediction.waves else None,
            }
            for prediction in predictions
        ],
    }


def _work_text(prediction: Prediction, work: Work) -> str:
    unit = prediction.compute_roof.unit if prediction.compute_roof is not None else "FLOP"
    parts = []
    if work.work_flop:
        parts.append(f"{_amount(work.work_flop, unit)}")
    parts.append(f"{_amount(work.moved_bytes, 'B')} moved ({work.moved_bytes} bytes)")
    if work.intensity_flop_per_byte is not None:
        parts.append(f"{_number(work.intensity_flop_per_byte)} {unit}/byte")
    if prediction.exponentials:
        parts.append(_amount(prediction.exponentials, "exp"))
    return ", ".join(parts)


def _add_table(page: Page, predictions: Sequence[Prediction], measured_s: float | None) -> None:
    columns = [Column(heading=""), *(Column(heading=one.machine, align="right") for one in predictions)]
    lines = [
        _line("predicted time", predictions, lambda one: time_text(one.time_s), "bold"),
        _line("bound by", predictions, _bound),
    ]
    names = list(dict.fromkeys(term.name for one in predictions for term in one.terms))
    lines += [Line(cells=(f"  {name}", *(_term(one, name) for one in predictions))) for name in names]
    lines += [
        _line("intensity", predictions, lambda one: _number(one.work.intensity_flop_per_byte if one.work else None)),
        _line("ridge point", predictions, lambda one: _number(one.ridge_flop_per_byte)),
        _line("attainable", predictions, _attainable),
        _line("predicted rate", predictions, _rate),
        _line("predicted bandwidth", predictions, lambda one: _bandwidth(one, one.time_s)),
        _line("useful bandwidth", predictions, _useful),
        _line("algorithm bandwidth", predictions, lambda one: _optional_rate(one.algorithm_bytes_per_s)),
        _line("bus bandwidth", predictions, lambda one: _optional_rate(one.bus_bytes_per_s)),
        _line("waves", predictions, _waves),
    ]
    if measured_s is not None:
        lines += [
            _line("measured time", predictions, lambda _: time_text(measured_s), "bold"),
            _line("  of the predicted", predictions, lambda one: percent_text(measured_s / one.time_s, decimals=0)),
            _line("  rate", predictions, lambda one: _flop_rate(one, measured_s)),
            _line("  bandwidth", predictions, lambda one: _bandwidth(one, measured_s)),
            _line("  of the compute roof", predictions, lambda one: _share(one, measured_s, compute=True)),
            _line("  of the memory roof", predictions, lambda one: _share(one, measured_s, compute=False)),
        ]
    page.table(columns, [line for line in lines if any(line.cells[1:])])


def _line(name: str, predictions: Sequence[Prediction], text: Callable[[Prediction], str], style: str = "") -> Line:
    return Line(cells=(name, *(text(one) for one in predictions)), style=style)


def _add_notes(page: Page, predictions: Sequence[Prediction]) -> None:
    """Every term with its numbers, thresholds and caveats by machine; caveats of all machines once, at the end."""
    shared = [caveat for caveat in predictions[0].caveats if all(caveat in one.caveats for one in predictions)]
    for one in predictions:
        page.blank()
        page.line(one.machine, "bold")
        for term in one.terms:
            page.labelled(term.name, [f"{time_text(term.time_s)} = {term.formula}"], label_width=_LABEL)
        if one.ridge_label:
            page.labelled(
                "ridge", [f"{_number(one.ridge_flop_per_byte)} FLOP/byte, {one.ridge_label}"], label_width=_LABEL
            )
        for threshold in one.thresholds:
            size = "never" if threshold.size is None else f"{threshold.size}"
            page.labelled("from", [f"{threshold.symbol}: {size}, {threshold.meaning}"], label_width=_LABEL)
        _add_caveats(page, [caveat for caveat in one.caveats if caveat not in shared])
    if shared:
        page.blank()
        _add_caveats(page, shared)


def _add_caveats(page: Page, caveats: Sequence[Caveat]) -> None:
    for caveat in caveats:
        text = f"{caveat.message}; {caveat.remedy}" if caveat.remedy else caveat.message
        page.labelled("note", [text], label_width=_LABEL)


def _bound(prediction: Prediction) -> str:
    bound, name = prediction.limit.bound.value, prediction.limit.name
    return bound if bound == name else f"{bound} ({name})"


def _term(prediction: Prediction, name: str) -> str:
    return next((time_text(term.time_s) for term in prediction.terms if term.name == name), "")


def _attainable(prediction: Prediction) -> str:
    unit = prediction.compute_roof.unit if prediction.compute_roof is not None else "FLOP"
    return "" if prediction.attainable_per_s is None else rate_text(prediction.attainable_per_s, unit)


def _rate(prediction: Prediction) -> str:
    return _flop_rate(prediction, prediction.time_s)


def _flop_rate(prediction: Prediction, time_s: float) -> str:
    unit = prediction.compute_roof.unit if prediction.compute_roof is not None else "FLOP"
    work = prediction.work
    return "" if work is None or not work.work_flop else rate_text(work.work_flop / time_s, unit)


def _bandwidth(prediction: Prediction, time_s: float) -> str:
    work = prediction.work
    return "" if work is None or not work.moved_bytes else rate_text(work.moved_bytes / time_s, "B")


def _useful(prediction: Prediction) -> str:
    useful = prediction.useful_bytes
    return "" if useful is None else rate_text(useful / prediction.time_s, "B")


def _optional_rate(rate_per_s: float | None) -> str:
    return "" if rate_per_s is None else rate_text(rate_per_s, "B")


def _waves(prediction: Prediction) -> str:
    waves = prediction.waves
    return "" if waves is None else f"{waves.waves}, {percent_text(waves.factor, decimals=0)} full"


def _share(prediction: Prediction, time_s: float, *, compute: bool) -> str:
    roof = prediction.compute_roof if compute else prediction.memory_roof
    if prediction.work is None or roof is None or roof.best_per_s is None:
        return ""
    amount = prediction.work.work_flop if compute else prediction.work.moved_bytes
    return percent_text(amount / time_s / roof.best_per_s, decimals=1)


def _amount(amount: int, unit: str) -> str:
    return rate_text(amount, unit).removesuffix("/s")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
