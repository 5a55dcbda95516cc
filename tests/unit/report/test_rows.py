"""The texts of a case are made in one place: units, intervals, signs, order."""

from dataclasses import replace

import pytest

from perfgate.core.case import Timing, Unit, Work
from perfgate.core.caveat import Caveat
from perfgate.core.report import Bound, CaseResult, Estimate, Margin, MarginSource, RooflinePosition
from perfgate.core.verdict import CaseVerdict
from perfgate.report.rows import (
    VERDICT_ORDER,
    change_text,
    half_width_text,
    interval_text,
    margin_text,
    measured_rate,
    ordered_rows,
    rate_of,
    row,
    step_of,
    verdict_text,
)
from tests.golden.reports import REGRESSED_GEMM, SUBMIT, UNCHANGED, copy_work, gemm_case, gemm_work

BARE = CaseResult(id="a.b", family="a", verdict=CaseVerdict.NEW)


def test_row__tells_a_regressed_case_in_full() -> None:
    texts = row(REGRESSED_GEMM)
    assert (texts.time, texts.rate) == ("194.9 µs", "705 TFLOP/s")
    assert (texts.baseline_time, texts.baseline_rate) == ("188.5 µs", "729 TFLOP/s")
    assert texts.change_with_interval == "+3.40 % (+3.20 to +3.60)"
    assert texts.half_width == "± 0.20"
    assert texts.margin_with_source == "1.0 %, this chip, calibrated"
    assert (texts.intensity, texts.of_roof, texts.bound) == ("1365", "96 % BF16 tensor", "compute")
    assert texts.was == "was 188.5 µs, 729 TFLOP/s"
    assert texts.confirmation == "confirmed by fresh launches"
    assert texts.notes == ("cause: same source, other machine code (CUDA toolkit 13.0 to 13.1)",)


def test_row__tells_the_time_of_one_step_of_a_chain() -> None:
    chain = replace(UNCHANGED[0], id="latency.l2[bytes=4MiB,steps=16384]", work=Work(), candidate_s=2.4e-3)
    assert row(chain).rate == "146.5 ns a step"
    assert measured_rate(chain.id, chain.work, Timing.EVENTS, 2.4e-3) == "146.5 ns a step"
    assert measured_rate("a.b", copy_work(2**30), Timing.GAP, 1e-3) == ""
    assert step_of("a.b[steps=8]", None) == step_of("a.b", 1.0) == ""


def test_rate_of__counts_exponentials_as_operations() -> None:
    work = Work(work_flop=10**9, dtype="fp32", pipe="exponential")
    assert rate_of(work, 1e-3) == "1.00 TOP/s"


def test_row__says_nothing_of_what_is_unknown() -> None:
    texts = row(BARE)
    shown = {name: getattr(texts, name) for name in type(texts).__slots__ if name not in ("result", "id", "verdict")}
    assert set(shown.values()) == {"", ()}
    assert texts.margin_with_source == texts.change_with_interval == ""


def test_row__tells_what_was_only_of_cases_that_moved() -> None:
    assert row(UNCHANGED[0]).was == ""
    assert row(replace(UNCHANGED[0], verdict=CaseVerdict.IMPROVED)).was == "was 1.895 ms, 4.53 TB/s"
    assert row(replace(UNCHANGED[3], verdict=CaseVerdict.INCONCLUSIVE)).was == "was 1.258 µs"
    assert row(replace(UNCHANGED[0], verdict=CaseVerdict.MISSING, candidate_s=None)).was == ""


def test_row__says_that_fresh_launches_did_not_confirm() -> None:
    assert row(replace(REGRESSED_GEMM, confirmed=False)).confirmation == "not confirmed by fresh launches"


def test_row__names_the_change_of_time_where_cycles_are_judged_and_differ() -> None:
    slower_clock = replace(REGRESSED_GEMM, candidate_s=REGRESSED_GEMM.baseline_s * 1.05, causes=())  # type: ignore[operator]
    assert row(slower_clock).notes == ("judged in SM cycles; the time changed by +5.00 %",)
    assert row(replace(slower_clock, unit=Unit.SECONDS)).notes == ()
    assert row(replace(slower_clock, baseline_s=None)).notes == ()
    assert row(replace(slower_clock, baseline_s=0.0)).notes == ()


def test_row__lists_acceptance_reason_and_caveats_after_causes() -> None:
    doubted = replace(
        REGRESSED_GEMM,
        accepted="agreed",
        reason="because",
        caveats=(Caveat(code="x", message="Doubtful.", remedy="Look."), Caveat(code="y", message="Odd.")),
    )
    assert row(doubted).verdict == "regressed, accepted"
    assert row(doubted).notes[1:] == ("accepted: agreed", "because", "Doubtful. Look.", "Odd.")
    assert row(doubted).causes == ("same source, other machine code (CUDA toolkit 13.0 to 13.1)",)
    assert row(doubted).reasons == ("accepted: agreed", "because")
    assert row(doubted).doubts == ("Doubtful. Look.", "Odd.")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (MarginSource.POLICY, "0.5 %, policy"),
        (MarginSource.SAME_CHIP_DEFAULT, "0.5 %, this chip"),
        (MarginSource.CROSS_CHIP_DEFAULT, "0.5 %, other chips"),
        (MarginSource.CROSS_CHIP_CALIBRATED, "0.5 %, other chips, calibrated"),
    ],
)
def test_row__says_where_a_margin_comes_from(source: MarginSource, text: str) -> None:
    assert row(replace(BARE, margin=Margin(relative=0.005, source=source))).margin_with_source == text


def test_margin_source__each_has_words() -> None:
    for source in MarginSource:
        assert row(replace(BARE, margin=Margin(relative=0.01, source=source))).margin_source


@pytest.mark.parametrize(
    ("relative", "text"), [(0.005, "0.5 %"), (0.0048, "0.48 %"), (0.1, "10.0 %"), (0.00301, "0.3 %")]
)
def test_margin_text__has_the_decimals_that_a_change_is_compared_with(relative: float, text: str) -> None:
    assert margin_text(relative) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.034, "+3.40 %"),
        (-0.0002, "-0.02 %"),
        (-1e-9, "+0.00 %"),
        (0.0999, "+9.99 %"),
        (0.21, "+21.0 %"),
        (1100 / 990 - 1, "+11.1 %"),
        (-0.5, "-50.0 %"),
        (12.0, "+1200.0 %"),
    ],
)
def test_change_text__is_signed_and_slower_is_positive(value: float, text: str) -> None:
    assert change_text(Estimate(value=value)) == text


def test_interval__is_left_out_where_there_is_none() -> None:
    for change in (Estimate(value=0.1), Estimate(value=0.1, low=0.0)):
        assert interval_text(change) == half_width_text(change) == ""
    assert interval_text(None) == half_width_text(None) == change_text(None) == ""


def test_half_width__is_the_larger_side() -> None:
    assert half_width_text(Estimate(value=0.01, low=0.005, high=0.03)) == "± 2.00"
    assert half_width_text(Estimate(value=0.01, low=-0.02, high=0.02)) == "± 3.00"


def test_rate_of__follows_the_bound() -> None:
    work = gemm_work()
    assert rate_of(work, 1e-3, Bound.COMPUTE) == "137 TFLOP/s"
    assert rate_of(work, 1e-3, Bound.MEMORY) == "101 GB/s"
    assert rate_of(work, 1e-3, Bound.LATENCY) == ""
    assert rate_of(work, 1e-3) == "137 TFLOP/s"


def test_rate_of__tells_bytes_of_what_streams_and_operations_of_integer_pipes() -> None:
    assert rate_of(replace(copy_work(), work_flop=2**30), 2e-3) == "4.29 TB/s"
    assert rate_of(Work(work_flop=10**12, pipe="int32"), 1.0) == "1.00 TOP/s"
    assert rate_of(Work(work_flop=10**12, pipe="fp32"), 1.0, Bound.MEMORY) == "1.00 TFLOP/s"


def test_rate_of__divides_by_no_time() -> None:
    assert rate_of(copy_work(), None) == rate_of(copy_work(), 0.0) == rate_of(None, 1.0) == rate_of(Work(), 1.0) == ""


@pytest.mark.parametrize(("value", "text"), [(0.1667, "0.167"), (5.0, "5"), (99.96, "100"), (1365.3, "1365")])
def test_intensity__has_three_digits(value: float, text: str) -> None:
    assert row(replace(BARE, roofline=RooflinePosition(intensity_flop_per_byte=value))).intensity == text


def test_of_roof__needs_a_measured_roof() -> None:
    assert row(replace(BARE, roofline=RooflinePosition(roof="DRAM"))).of_roof == ""
    assert row(replace(BARE, roofline=RooflinePosition(of_measured=0.5))).of_roof == ""


def test_ordered_rows__puts_first_what_asks_for_attention() -> None:
    results = (SUBMIT, *UNCHANGED, gemm_case(verdict=CaseVerdict.IMPROVED), REGRESSED_GEMM)
    verdicts = [one.result.verdict for one in ordered_rows(results)]
    assert verdicts == [
        CaseVerdict.REGRESSED,
        CaseVerdict.IMPROVED,
        *(CaseVerdict.UNCHANGED,) * 4,
        CaseVerdict.NOT_GATED,
    ]
    assert [one.id for one in ordered_rows(results)][2:6] == [one.id for one in UNCHANGED]


def test_verdict_order__has_every_verdict_once() -> None:
    assert sorted(VERDICT_ORDER) == sorted(CaseVerdict)
    assert verdict_text(CaseVerdict.NOT_COMPARABLE) == "not comparable"
