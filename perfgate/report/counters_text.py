"""Declared work beside the GPU's counters, for a person at a terminal."""

from collections.abc import Mapping, Sequence

from perfgate.core.counters import LEAST_STREAM_BYTES, TOLERANCE, CountedCase
from perfgate.core.units import bytes_text, percent_text, rate_text
from perfgate.report.layout import Column, Line, Page

_COLUMNS = (
    Column(heading="case"),
    Column(heading="read", align="right"),
    Column(heading="written", align="right"),
    Column(heading="bytes", align="right"),
    Column(heading="re-read", align="right"),
    Column(heading="FLOP", align="right"),
    Column(heading="SM", align="right"),
    Column(heading="DRAM", align="right"),
    Column(heading="suggests"),
    Column(heading="bound"),
)


def render_counters(
    cases: Sequence[CountedCase],
    *,
    gpu_name: str,
    failures: Mapping[str, str],
    left_out: Sequence[str],
    width: int = 120,
    color: bool = False,
    unicode: bool = True,
) -> str:
    """Render a table: a row a case, what was counted, over what is declared, and the bound by each.

    Args:
        cases: with their counters.
        gpu_name: whose counters they are.
        failures: cases that could not be executed, and why.
        left_out: cases that declare nothing to count.
        width: columns of the terminal.
        color: whether to use ANSI styles.
        unicode: False where the terminal's encoding holds no more than ASCII.
    """
    page = Page(width=width, color=color, unicode=unicode)
    page.line(f"Declared work beside the counters of {gpu_name}, one execution, caches empty at its start", "bold")
    page.blank()
    page.table(_COLUMNS, [_line(case) for case in cases])
    page.blank()
    tolerance, least = percent_text(TOLERANCE, decimals=0), bytes_text(LEAST_STREAM_BYTES)
    page.line(
        f"bytes and FLOP: counted over declared; more than {tolerance} off is an error, of bytes for streams of at"
        f" least {least} (marked *). re-read: DRAM reads over declared reads. suggests: by the counters, latency where"
        " neither SM nor DRAM reaches 60 %. bound: by declared work and roofs."
    )
    for case_id, why in failures.items():
        page.line(f"{case_id} was not executed: {why}", "yellow")
    if left_out:
        page.line(f"without work that counters see: {', '.join(left_out)}", "dim")
    return page.text


def _line(case: CountedCase) -> Line:
    counters = case.counters
    return Line(
        cells=(
            case.id,
            _amount(counters.read_bytes, "B"),
            _amount(counters.write_bytes, "B"),
            _percent(case.bytes_ratio) + (" *" if case.is_stream else "  ") if case.bytes_ratio is not None else "",
            f"{case.reread_factor:.2f}" if case.reread_factor is not None else "",
            _percent(case.flop_ratio),
            _percent(counters.sm_share),
            _percent(counters.dram_share),
            case.counted_bound.value if case.counted_bound is not None else "",
            case.bound.value if case.bound is not None else "",
        ),
        style="red" if case.faults else "",
        notes=tuple((fault, "red") for fault in case.faults),
    )


def _amount(value: int, unit: str) -> str:
    return rate_text(value, unit).removesuffix("/s")


def _percent(value: float | None) -> str:
    return "" if value is None else percent_text(value, decimals=1)
