"""Pages in a real browser: sorting, filtering, pointing, keys, dark systems, paper, accessibility, a thousand cases."""

import functools
from pathlib import Path

import pytest

from perfgate.core.roofs import measured_roofs
from perfgate.report.html_history import render_history_html
from perfgate.report.html_page import render_html
from perfgate.report.html_run import render_run_html
from perfgate.storage.gpu_table import read_gpu_table
from tests.browser import CHROMIUM, grave_faults, seen
from tests.golden import documents
from tests.golden.histories import moved
from tests.golden.reports import REPORTS, regressed
from tests.unit.report.html_reader import run_of
from tests.unit.report.thousand_cases import thousand_cases

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]


@functools.cache
def page_of_report(name: str = "regressed") -> str:
    report = REPORTS[name]()
    return render_html(report, run=run_of(report), history=moved()[0])


def page_of_run() -> str:
    run = documents.run()
    return render_run_html(run, measured_roofs(run, read_gpu_table()))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_page_of_a_report__has_no_grave_fault_of_accessibility(tmp_path: Path, dark: bool, width: int) -> None:
    assert grave_faults(page_of_report(), tmp_path, dark=dark, width=width) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_of_a_history__has_no_grave_fault_of_accessibility(tmp_path: Path, dark: bool) -> None:
    assert grave_faults(render_history_html(moved()), tmp_path, dark=dark) == []


def test_page_of_a_run__has_no_grave_fault_of_accessibility(tmp_path: Path) -> None:
    assert grave_faults(page_of_run(), tmp_path) == []


def test_axe__finds_a_fault_where_there_is_one(tmp_path: Path) -> None:
    page = page_of_report().replace('<label class="search"><span>Filter by name</span>', '<label class="search">')
    found = grave_faults(page.replace("--muted: #59636e", "--muted: #c0c0c0"), tmp_path)
    assert any(one.startswith("label:") for one in found)
    assert any(one.startswith("color-contrast:") for one in found)


def test_table__sorts_by_a_column_and_filters_by_name_and_verdict(tmp_path: Path) -> None:
    probe = """
    const rows = () => [...document.querySelectorAll("table.cases tbody tr:not([hidden]) .id")];
    const shown = () => rows().map((one) => one.textContent);
    const heads = [...document.querySelectorAll("table.cases thead button")];
    const status = document.querySelector("form.controls [role=status]");
    heads[4].click();
    const search = document.querySelector("#filter");
    search.value = "bandwidth";
    search.dispatchEvent(new Event("input", { bubbles: true }));
    const sorted = shown(), direction = heads[4].parentNode.getAttribute("aria-sort"), count = status.textContent;
    search.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    const boxes = [...document.querySelectorAll("form.controls input[type=checkbox]")];
    boxes.filter((one) => one.value !== "regressed").forEach((one) => one.click());
    return { sorted, direction, count, regressed: shown() };
    """
    report = regressed()
    answer = seen(page_of_report(), probe, tmp_path)
    changes = {case.id: case.change.value for case in report.cases if case.change}
    order = [changes[name] for name in answer["sorted"]]
    assert len(order) == 4
    assert order == sorted(order, reverse=True)
    assert (answer["direction"], answer["count"]) == ("descending", "4 of 8 cases shown")
    assert answer["regressed"] == ["gemm.bf16[n=4096]"]


POINT = """
const over = document.querySelector(".plot .u-over"), told = document.querySelector(".told");
const area = over.getBoundingClientRect();
const found = [];
over.dispatchEvent(new MouseEvent("mouseenter", { bubbles: true, clientX: area.left, clientY: area.top }));
for (let x = 4; x < area.width; x += 12)
  for (let y = 4; y < area.height; y += 12) {
    over.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: area.left + x, clientY: area.top + y }));
    if (told.textContent && !found.includes(told.textContent)) found.push(told.textContent);
  }
"""


def test_roofline__tells_the_numbers_of_the_case_that_is_pointed_at(tmp_path: Path) -> None:
    answer = seen(page_of_report(), f"{POINT} return found;", tmp_path)
    assert len(answer) == 2
    told = next(one for one in answer if one.startswith("gemm.bf16[n=4096]"))
    assert "705 TFLOP/s, 194.9 µs, 96 % of measured BF16 tensor, time +3.40 %, regressed" in told
    assert "1365 FLOP/byte" in told
    assert "baseline 729 TFLOP/s" in told


def test_roofline__keys_walk_through_the_cases_and_lead_to_the_row(tmp_path: Path) -> None:
    probe = """
    const plot = document.querySelector(".plot"), told = document.querySelector(".told");
    const press = (key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const heard = [];
    for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"]) {
      press(key);
      heard.push(told.textContent.split(":")[0]);
    }
    press("Enter");
    return { heard, at: document.activeElement.querySelector(".id")?.textContent, plot: plot.tabIndex };
    """
    answer = seen(page_of_report(), probe, tmp_path)
    first, second, again, back = answer["heard"]
    assert first == again != second == back
    assert answer["at"] == second
    assert answer["plot"] == 0


def test_roofline__is_drawn_live_on_a_screen_and_still_on_paper_and_without_scripts(tmp_path: Path) -> None:
    probe = """
    const look = (name) => getComputedStyle(document.querySelector(name)).display;
    const canvas = document.querySelector(".plot canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const painted = pixels.reduce((count, value, place) => count + (place % 4 === 3 && value > 0), 0);
    const rules = [...document.styleSheets].flatMap((one) => [...one.cssRules]);
    const paper = rules.filter((one) => one.media?.mediaText === "print").map((one) => one.cssText).join(" ");
    return { live: look(".live"), still: look(".still"), painted, paper };
    """
    answer = seen(page_of_report(), probe, tmp_path)
    assert (answer["live"], answer["still"]) == ("block", "none")
    assert answer["painted"] > 1000
    assert ".scripted .still { display: block; }" in answer["paper"]
    assert '<div class="live" hidden>' in page_of_report()


def test_page__follows_a_dark_system(tmp_path: Path) -> None:
    probe = "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color];"
    assert seen(page_of_report(), probe, tmp_path, dark=True) == ["rgb(13, 17, 23)", "rgb(230, 237, 243)"]
    assert seen(page_of_report(), probe, tmp_path) == ["rgb(255, 255, 255)", "rgb(31, 35, 40)"]


@pytest.mark.parametrize("width", [360, 1280])
def test_page__is_never_wider_than_its_window(tmp_path: Path, width: int) -> None:
    page = page_of_report("hostile-names")
    probe = "return [document.documentElement.scrollWidth, innerWidth];"
    wide, window = seen(page, probe, tmp_path, width=width)
    assert wide <= window


def test_page_of_a_thousand_cases__opens_and_stays_usable(tmp_path: Path) -> None:
    """benchmarks/report_page.py measures the seconds; here only that nothing is left out or refused."""
    report = thousand_cases()
    page = render_html(report, run=run_of(report, launches=3))
    assert len(page.encode()) <= 5e6
    probe = """
    const search = document.querySelector("#filter");
    search.value = "n=77]";
    search.dispatchEvent(new Event("input", { bubbles: true }));
    return { rows: document.querySelectorAll("table.cases tbody tr").length,
      count: document.querySelector("form.controls [role=status]").textContent,
      live: JSON.parse(document.getElementById("roofline-numbers").textContent).cases.length };
    """
    answer = seen(page, probe, tmp_path)
    assert answer["rows"] == 1000
    assert answer["live"] >= 500
    assert answer["count"] == "1 of 1000 cases shown"
