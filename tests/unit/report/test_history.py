"""A history on a page, in a picture and on a terminal."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from perfgate.report.history_figure import MOST_PICTURED, render_history_svg
from perfgate.report.history_text import render_history
from perfgate.report.html_history import render_history_html
from perfgate.report.html_page import render_html
from tests.golden.histories import DRIFTING, STEADY, STEPPING, moved, single
from tests.golden.reports import passed
from tests.unit.report.html_reader import read_page


def test_page__has_a_card_for_what_moved_and_a_row_for_every_case() -> None:
    (history,) = moved()
    page = read_page(render_history_html([history]))
    assert page.faults == []
    cards = page.all("li", class_="card")
    assert [card.attributes["data-verdict"] for card in cards] == ["regressed", "improved", "suspected"]
    assert "slow drift: +1." in cards[0].text
    assert "the source changed" in cards[2].text
    rows = [row for row in page.all("tr") if row.attributes.get("data-verdict")]
    assert len(rows) == len(history.trends)
    assert page.one("h1").text == "History: 2 drifted, 1 stepped"


def test_page__of_one_session_says_that_there_is_no_trend() -> None:
    page = read_page(render_history_html(single()))
    assert page.one("h1").text == "History: nothing moved"
    assert page.all("li", class_="card") == []
    assert page.all("svg") == []


def test_page__of_a_report_shows_the_history_in_a_section_of_its_own() -> None:
    (history,) = moved()
    page = read_page(render_html(passed(), history=history))
    assert page.faults == []
    assert DRIFTING in page.one("section", id="history").text
    assert read_page(render_html(passed())).all("section", id="history") == []


def test_page__of_many_cases_draws_only_the_first() -> None:
    (history,) = moved()
    many = replace(
        history, trends=tuple(replace(history.trends[0], id=f"case{index}.x") for index in range(400)), sessions=()
    )
    many = replace(many, sessions=history.sessions)
    text = render_history_html([many])
    assert text.count('<svg class="trend"') == 24 + 200
    assert len(text) < 5e6


def test_picture__is_well_formed_and_names_every_case() -> None:
    root = ET.fromstring(render_history_svg(moved()))
    texts = " ".join(root.itertext())
    for case_id in (DRIFTING, STEPPING, STEADY):
        assert case_id in texts
    assert "slow drift" in texts


def test_picture__of_many_cases_says_how_many_are_not_drawn() -> None:
    (history,) = moved()
    steady = next(one for one in history.trends if one.id == STEADY)
    many = replace(history, trends=tuple(replace(steady, id=f"case{index}.x") for index in range(60)))
    assert f"{60 - MOST_PICTURED} more not drawn" in render_history_svg([many])


@pytest.mark.parametrize("name", ["<b>x</b>.y", "a.\x1b[31m", "a.\u202egnp"])
def test_renderings__names_of_cases_are_data(name: str) -> None:
    (history,) = moved()
    hostile = replace(history, trends=(replace(history.trends[0], id=name),))
    page, picture = render_history_html([hostile]), render_history_svg([hostile])
    ET.fromstring(picture)
    assert read_page(page).faults == []
    for text in (page, picture, render_history([hostile])):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<b>x</b>.y" not in page + picture


def test_terminal__lists_few_of_what_did_not_move_unless_asked() -> None:
    (history,) = moved()
    steady = next(one for one in history.trends if one.id == STEADY)
    many = replace(history, trends=tuple(replace(steady, id=f"case{index:02d}.x") for index in range(60)))
    short, whole = render_history([many]), render_history([many], verbose=True)
    assert "case19.x" in short
    assert "case20.x" not in short
    assert "40 more steady or not gated: --verbose lists them" in short
    assert "case59.x" in whole
