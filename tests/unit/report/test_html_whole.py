"""Whole pages, pictures and all: well-formed, harmless, self-contained."""

import base64
import functools
import hashlib
import re
from collections import Counter
from dataclasses import replace

import pytest

from perfgate.core.report import Report
from perfgate.report import html_roofline
from perfgate.report.html_blocks import data
from perfgate.report.html_page import render_html
from tests.golden.reports import HOSTILE, REPORTS, UNCHANGED, passed, regressed
from tests.unit.report.html_reader import read_page, run_of, table_rows

_ADDRESSES = ("href", "src", "xlink:href", "srcset", "action", "data", "poster", "formaction")


@functools.cache
def page_of(name: str) -> str:
    report = REPORTS[name]()
    return render_html(report, run=run_of(report))


@pytest.fixture(params=REPORTS)
def situation(request: pytest.FixtureRequest) -> tuple[Report, str]:
    return REPORTS[request.param](), page_of(request.param)


def test_page__is_well_formed_and_has_one_heading_of_the_first_rank(situation: tuple[Report, str]) -> None:
    report, text = situation
    page = read_page(text)
    assert page.faults == []
    heading = page.one("h1").text
    assert report.gpu.name[:3] in heading
    assert page.one("html").attributes["lang"] == "en"
    assert len(page.all("main")) == 1


def test_page__has_a_row_for_every_case(situation: tuple[Report, str]) -> None:
    report, text = situation
    rows = table_rows(read_page(text))
    assert Counter(row["data-verdict"] for row in rows) == Counter(case.verdict.value for case in report.cases)


def test_page__ids_are_unique_and_what_they_are_referred_by_exists(situation: tuple[Report, str]) -> None:
    page = read_page(situation[1])
    ids = Counter(one.attributes["id"] for one in page.elements if "id" in one.attributes)
    assert [one for one, count in ids.items() if count > 1] == []
    referred = {value[1:] for one in page.elements for name in _ADDRESSES if (value := one.attributes.get(name, ""))}
    assert referred <= set(ids)


def test_page__asks_nothing_of_the_network(situation: tuple[Report, str]) -> None:
    page = read_page(situation[1])
    for one in page.elements:
        assert one.tag not in ("link", "img", "iframe", "object", "embed", "base", "image"), one
        for name, value in one.attributes.items():
            assert name not in _ADDRESSES or value.startswith("#"), one
            assert not re.search(r"url\((?!#)", value), one
    for one in page.all("style"):
        assert "url(" not in one.text
        assert "@import" not in one.text


def test_page__lets_its_own_script_run_and_no_other(situation: tuple[Report, str]) -> None:
    page = read_page(situation[1])
    policy = page.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    digest = base64.b64encode(hashlib.sha256(page.all("script")[-1].text.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert [one for one in page.elements for name in one.attributes if name.startswith("on")] == []


def test_page__shows_hostile_text_as_text() -> None:
    text = page_of("hostile-names")
    page = read_page(text)
    assert "<img" not in text
    own = ('<script type="application/json" id="roofline-numbers">', "<script>")
    assert "<script" not in functools.reduce(lambda left, tag: left.replace(tag, "", 1), own, text)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert page.all("a") == []
    shown = data(HOSTILE)
    assert text.count(shown) > 10
    assert any("<img src=x onerror=alert(1)>" in one.text for one in page.all("th"))


def test_roofline__names_each_case_at_its_mark() -> None:
    page = read_page(page_of("regressed"))
    figure = page.all("figure", class_="roofline")[0].text
    assert "gemm.bf16[n=4096]: 705 TFLOP/s, 194.9 µs, 96 % of measured" in figure
    assert "time +3.40 %, regressed" in figure


def test_roofline__draws_what_asks_for_attention_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_roofline, "MOST_PICTURED", 2)
    section = read_page(render_html(regressed())).one("section", id="roofline").text
    assert "gemm.bf16[n=4096]: " in section
    assert "Not in the still pictures: " in section


def test_roofline__is_left_out_where_nothing_was_measured() -> None:
    bare = tuple(replace(case, candidate_s=None) for case in UNCHANGED)
    assert read_page(render_html(replace(passed(), cases=bare, roofs=None))).all("section", id="roofline") == []


def test_roofline__without_measured_roofs_has_no_line_about_them() -> None:
    section = read_page(render_html(replace(passed(), roofs=None))).one("section", id="roofline")
    assert "Measured roofs" not in section.text
