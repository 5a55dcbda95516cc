"""A report as CSV for spreadsheets and scripts: one line a case, numbers in SI base units, no scaling.

Every line says which device and which injections it comes from, so that it can be taken out of its file.
"""

import csv
import io

from perfgate.core.report import CaseResult, Report
from perfgate.report import sentences
from perfgate.report.escape import printable

COLUMNS = (
    "case",
    "family",
    "verdict",
    "gated",
    "unit",
    "timing",
    "baseline_s",
    "candidate_s",
    "change",
    "change_low",
    "change_high",
    "confidence",
    "margin",
    "margin_source",
    "p_slower",
    "p_adjusted",
    "p_equivalent",
    "baseline_launches",
    "candidate_launches",
    "confirmed",
    "accepted",
    "work_flop",
    "moved_bytes",
    "bandwidth_bytes_per_s",
    "rate_flop_per_s",
    "intensity_flop_per_byte",
    "bound",
    "roof",
    "of_measured_roof",
    "reason",
    "causes",
    "caveats",
    "check_verdict",
    "gpu",
    "chip",
    "device_kind",
    "injected",
    "created_utc",
)

# Spreadsheets run cells that begin with these as formulas.
_FORMULA = ("=", "+", "-", "@")


def render_csv(report: Report) -> str:
    """Render the cases of a report as CSV (RFC 4180, but lines end with a line feed), headed by names."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in report.cases:
        values = _values(result, report)
        writer.writerow([cell(values[name]) for name in COLUMNS])
    return buffer.getvalue()


def _values(result: CaseResult, report: Report) -> dict[str, object]:
    change, margin, work, position = result.change, result.margin, result.work, result.roofline
    return {
        "case": result.id,
        "family": result.family,
        "verdict": result.verdict.value,
        "gated": result.gated,
        "unit": result.unit.value,
        "timing": result.timing.value,
        "baseline_s": result.baseline_s,
        "candidate_s": result.candidate_s,
        "change": change and change.value,
        "change_low": change and change.low,
        "change_high": change and change.high,
        "confidence": change and change.confidence,
        "margin": margin and margin.relative,
        "margin_source": margin and margin.source.value,
        "p_slower": result.p_slower,
        "p_adjusted": result.p_adjusted,
        "p_equivalent": result.p_equivalent,
        "baseline_launches": result.baseline_launches,
        "candidate_launches": result.candidate_launches,
        "confirmed": result.confirmed,
        "accepted": result.accepted,
        "work_flop": work and work.work_flop,
        "moved_bytes": work and work.moved_bytes,
        "bandwidth_bytes_per_s": position and position.bandwidth_bytes_per_s,
        "rate_flop_per_s": position and position.rate_flop_per_s,
        "intensity_flop_per_byte": position and position.intensity_flop_per_byte,
        "bound": position and position.bound and position.bound.value,
        "roof": position and position.roof,
        "of_measured_roof": position and position.of_measured,
        "reason": result.reason,
        "causes": "; ".join(cause.code for cause in result.causes),
        "caveats": "; ".join(caveat.code for caveat in result.caveats),
        "check_verdict": report.verdict.value,
        "gpu": report.gpu.name,
        "chip": report.gpu.chip,
        "device_kind": report.device_kind,
        "injected": "; ".join(map(sentences.injection_text, report.injected)),
        "created_utc": report.created_utc,
    }


def cell(value: object) -> str:
    """Return a cell that no spreadsheet takes for a formula; nothing for None."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            text = printable(value)
            return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
        case float():
            return f"{value:.9g}"
        case _:
            return str(value)
