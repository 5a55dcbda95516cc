"""The page of a report: whole, harmless, self-contained, and with the verdict first."""

import re
from dataclasses import replace

import pytest

from perfgate.core.caveat import Caveat
from perfgate.core.verdict import CaseVerdict
from perfgate.report import html_cases, html_roofline
from perfgate.report.html_blocks import asset, data, facts
from perfgate.report.html_page import render_html
from tests.golden.reports import (
    REPORTS,
    UNCHANGED,
    not_comparable,
    passed,
    regressed,
)
from tests.unit.report.html_reader import read_page, run_of, table_rows
from tests.unit.report.thousand_cases import thousand_cases


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and says nothing here: test_html_whole has pages with their pictures."""
    monkeypatch.setattr(html_roofline, "render_roofline_svg", lambda chart: "<svg></svg>")


@pytest.mark.parametrize("name", REPORTS)
def test_verdict__stands_first_with_who_acts(name: str) -> None:
    report = REPORTS[name]()
    page = read_page(render_html(report))
    head = page.one("header").text
    assert data(report.summary) in render_html(report)
    assert "Who acts" in head
    expected = "calm" if report.exit_code == 0 else "bad" if report.exit_code == 1 else "doubtful"
    assert page.one("header").attributes["data-mood"] == expected
    assert ("nobody" in head) == (report.exit_code == 0)


def test_verdict__says_that_it_is_a_rehearsal() -> None:
    page = read_page(render_html(REPORTS["recorded-injected"]()))
    assert "RECORDED INJECTED" in page.one("h1").text
    assert "a rehearsal, not a measurement" in page.one("header").text


def test_cards__show_what_moved_and_why() -> None:
    page = read_page(render_html(regressed()))
    cards = page.all("li", class_="card")
    assert [one.attributes["data-verdict"] for one in cards] == ["regressed", "inconclusive", "improved"]
    assert "+3.40 %" in cards[0].text
    assert "same source, other machine code" in cards[0].text
    assert "confirmed by fresh launches" in cards[0].text
    assert "was 188.5" in cards[0].text


def test_cards__are_absent_where_nothing_asks_for_attention() -> None:
    assert read_page(render_html(passed())).all("section", id="attention") == []
    assert read_page(render_html(not_comparable())).all("section", id="attention") == []


def test_cards__of_very_many_leave_the_rest_to_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_cases, "MOST_CARDS", 2)
    page = read_page(render_html(regressed()))
    assert len(page.all("li", class_="card")) == 2
    assert "1 more case: see the table." in page.one("section", id="attention").text


def test_card__of_a_missing_case_has_no_figures() -> None:
    gone = replace(
        UNCHANGED[0],
        verdict=CaseVerdict.MISSING,
        candidate=None,
        candidate_s=None,
        change=None,
        reason="not in the run",
    )
    page = read_page(render_html(replace(passed(), cases=(gone,))))
    card = page.one("li", class_="card")
    assert "now" not in card.text
    assert "not in the run" in card.text


def test_table__says_what_its_columns_are_and_can_be_sorted_by_value() -> None:
    page = read_page(render_html(regressed()))
    assert page.one("table", class_="cases").attributes["role"] == "table"
    heads = page.all("th", role="columnheader")
    assert [one.text for one in heads][:2] == ["case", "verdict"]
    assert all(one.attributes["scope"] == "col" for one in heads)
    cells = page.all("td", data_label="change")
    assert float(cells[0].attributes["data-value"]) == pytest.approx(0.034)


def test_table__has_a_choice_for_each_verdict_in_it() -> None:
    page = read_page(render_html(regressed()))
    boxes = [one.attributes["value"] for one in page.all("input", type="checkbox")]
    assert boxes == ["regressed", "inconclusive", "improved", "unchanged", "not-gated"]
    assert "hidden" in page.one("form").attributes


def test_page__without_cases_says_so() -> None:
    page = read_page(render_html(replace(passed(), cases=())))
    assert "There are no cases." in page.one("section", id="cases").text
    assert page.all("section", id="roofline") == []


def test_page__lists_differences_policy_environment_and_how_to_repeat() -> None:
    page = read_page(render_html(regressed()))
    assert "CUDA toolkit" in page.one("section", id="differences").text
    details = page.one("section", id="details").text
    assert "580.159.04" in details
    assert "margin floor" in details
    assert "perfgate check --case 'gemm.bf16[n=4096]'" in page.one("pre").text
    assert "1a2b3c4d5e6f with uncommitted changes" in page.one("header").text


def test_page__with_its_run_has_launches_and_what_is_absent() -> None:
    report = regressed()
    with_run, without = render_html(report, run=run_of(report)), render_html(report)
    assert 'class="launches"' in with_run
    assert 'class="launches"' not in without
    assert read_page(without).all("section", id="session") == []
    assert "SM clock" in read_page(with_run).one("section", id="session").text
    assert "gemm.fp8[n=4096]" in read_page(with_run).one("section", id="details").text


def test_page__lists_caveats_and_causes_of_the_whole_check() -> None:
    caveat = Caveat(code="x", message="The GPU was warm.", remedy="Cool it.")
    head = read_page(render_html(replace(REPORTS["invalid"](), caveats=(caveat,)))).one("header").text
    assert "The GPU was warm. Cool it." in head
    assert "cause: another process used this GPU" in head


def test_page__without_a_commit_names_none() -> None:
    report = passed()
    page = read_page(render_html(replace(report, environment=replace(report.environment, commit=None))))
    assert "Commit" not in page.one("header").text
    assert "At commit" not in page.one("section", id="reproduce").text


def test_page__of_a_thousand_cases_stays_small() -> None:
    report = thousand_cases()
    text = render_html(report, run=run_of(report, launches=6))
    assert len(text.encode()) < 5_000_000
    page = read_page(text)
    assert len(table_rows(page)) == 1000
    assert len(page.all("svg", class_="strip")) == html_cases.MOST_STRIPS
    assert f"Only the first {html_cases.MOST_STRIPS} cases have a picture." in page.one("table", class_="cases").text


def test_facts__without_any_are_nothing() -> None:
    assert facts([("name", "")]) == ""


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2, definition "relative luminance")."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dress", [0, 1], ids=["light", "dark"])
def test_style__text_is_readable_on_both_grounds(dress: int) -> None:
    roots = re.findall(r":root \{(.*?)\}", asset("report.css"), re.DOTALL)
    palette = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", roots[dress]))
    for ground in ("paper", "raised"):
        for name in set(palette) - {"paper", "raised", "line"}:
            light, dark = sorted((luminance(palette[name]), luminance(palette[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)
