"""The picture: complete, deterministic, never clipped, no label over another."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from perfgate.core.case import Work
from perfgate.core.gpu import Gpu
from perfgate.core.roofs import Roof, Roofs, measured_roofs
from perfgate.core.run import Injection
from perfgate.core.verdict import CaseVerdict
from perfgate.report import roofline_figure, roofline_labels
from perfgate.report.figure_style import DARK, VERDICT_COLORS, broken_id, family_shapes
from perfgate.report.placement import Box, free_place
from perfgate.report.roofline_chart import RooflineChart, chart_of_report, chart_of_roofs, chart_of_run
from perfgate.report.roofline_figure import render_roofline_png, render_roofline_svg
from perfgate.report.roofline_page import render_roofline_page
from tests.unit.report.roofline_reports import CROWDED, MOVES, SMALL, TABLE, make_placed_report, make_session

GOLDEN = Path(__file__).parents[2] / "golden" / "roofline"
CROWDED_MOVES = MOVES | {
    "gemm.fp8[n=8192]": (CaseVerdict.REGRESSED, 0.24),
    "attention.prefill[n=4096]": (CaseVerdict.IMPROVED, -0.31),
}


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture(scope="module")
def small() -> str:
    return render_roofline_svg(chart_of_report(make_placed_report()))


@pytest.fixture(scope="module")
def crowded() -> str:
    return render_roofline_svg(chart_of_report(make_placed_report(CROWDED, CROWDED_MOVES)))


def test_svg__names_every_roof_with_value_and_unit_and_says_what_it_is_of(small: str) -> None:
    joined = "\n".join(texts(small))
    assert "DRAM 4.57 TB/s measured, 95 % of 4.81 TB/s theoretical" in joined
    assert "BF16 tensor 735 TFLOP/s measured" in joined
    assert "74 % of 989 TFLOP/s datasheet" in joined
    assert "FP32 48.0 TFLOP/s measured" in joined
    assert "ridge FP32 10.5" in joined
    assert "ridge BF16 tensor 161" in joined


def test_svg__shows_every_case_its_rate_and_its_move(small: str) -> None:
    joined = "\n".join(texts(small))
    for case_id in SMALL:
        assert case_id in joined
    assert "735 TFLOP/s, 100 % of roof" in joined
    assert "time +3.4 %" in joined
    assert "launch.gap" in joined
    assert "1.310 µs" in joined


def test_svg__footer_says_what_was_measured_where(small: str) -> None:
    joined = "\n".join(texts(small))
    for part in (
        "NVIDIA H200", "board 692-2G520-0282-000", "SM 1.98 GHz while measuring", "ECC on", "driver 580.159.04",
        "commit 1a2b3c4d5e with changes", "2026-11-30T12:00:00Z", "CUDA 13.0",
    ):  # fmt: skip
        assert part in joined


def test_svg__is_the_same_every_time_and_carries_no_date_of_its_own(small: str) -> None:
    again = render_roofline_svg(chart_of_report(make_placed_report()))
    assert again == small
    assert "<dc:date" not in small


def test_svg__is_the_golden_picture(small: str, update_golden: bool) -> None:
    """Text, its place and its colour; outlines of markers vary with the version of the drawing library."""
    words = "\n".join(texts(small)) + "\n"
    path = GOLDEN / "words.txt"
    if update_golden:
        path.write_text(words, encoding="utf-8")
    assert words == path.read_text(encoding="utf-8")


def test_svg__is_readable_in_light_and_dark(small: str) -> None:
    assert "prefers-color-scheme: dark" in small
    for light, dark in DARK.items():
        assert f'[style*="fill: {light}"]{{fill:{dark} !important}}' in small
        assert light in small
    used = set(re.findall(r"#[0-9a-f]{6}", small)) - set(DARK) - set(DARK.values())
    assert used <= set(VERDICT_COLORS.values())


@pytest.mark.parametrize("color", [*VERDICT_COLORS.values()])
@pytest.mark.parametrize("paper", ["#ffffff", DARK["#ffffff"]])
def test_verdict_colors__contrast_with_both_papers(color: str, paper: str) -> None:
    def luminance(code: str) -> float:
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(color), luminance(paper)))
    assert (high + 0.05) / (low + 0.05) >= 3.0  # WCAG 2.2, 1.4.11 Non-text Contrast


def test_labels__do_not_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[Box] = []

    def recording(anchor, size, boxes, segments, within, **options):
        place = free_place(anchor, size, boxes, segments, within, **options)
        if place is not None:
            assert within.contains(place)
            assert not any(place.overlaps(box) for box in boxes)
            placed.append(place)
        return place

    monkeypatch.setattr(roofline_labels, "free_place", recording)
    render_roofline_svg(chart_of_report(make_placed_report(CROWDED, CROWDED_MOVES)))
    assert len(placed) >= 7
    assert not any(one.overlaps(other) for i, one in enumerate(placed) for other in placed[:i])


def test_labels__of_moved_cases_always_find_a_place(crowded: str) -> None:
    joined = "\n".join(texts(crowded))
    for case_id in ("gemm.fp8[n=8192]", "attention.prefill[n=4096]", "gemm.bf16[n=4096]"):
        assert case_id in joined


def test_labels__that_found_no_place_are_counted_in_the_footer(crowded: str) -> None:
    works = dict(CROWDED) | {f"gemm.copy{index}[n=4096]": CROWDED["gemm.bf16[n=4096]"] for index in range(30)}
    joined = "\n".join(texts(render_roofline_svg(chart_of_report(make_placed_report(works, {})))))
    assert re.search(r"Without a label for want of room: \d+; the table names every case", joined)


def inside(chart: RooflineChart, monkeypatch: pytest.MonkeyPatch) -> bool:
    seen = []
    original = roofline_figure.draw_roofline

    def checking(axes, chart, shapes):
        missing = original(axes, chart, shapes)
        (low_x, high_x), (low_y, high_y) = axes.get_xlim(), axes.get_ylim()
        seen.extend(
            low_x < case.intensity_flop_per_byte < high_x and low_y < rate < high_y
            for case in chart.points
            for rate in (case.rate_per_s, case.baseline_rate_per_s)
            if rate
        )
        return missing

    monkeypatch.setattr(roofline_figure, "draw_roofline", checking)
    render_roofline_svg(chart)
    return bool(seen) and all(seen)


def test_points__are_never_clipped_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    extreme = {
        "user.tiny[n=1]": (Work(work_flop=1, read_bytes=10**9, dtype="fp32", pipe="fp32"), 1e-3),
        "user.huge[n=2]": (Work(work_flop=10**18, read_bytes=4, dtype="fp32", pipe="fp32"), 1.0),
    }
    moves = {"user.tiny[n=1]": (CaseVerdict.REGRESSED, 99.0)}
    assert inside(chart_of_report(make_placed_report(dict(SMALL) | extreme, moves)), monkeypatch)


def drawn_texts(chart: RooflineChart) -> list[tuple[str, float, float]]:
    """Every text with its left and right end as shares of the figure's width."""
    from matplotlib.text import Text

    figure = roofline_figure._figure(chart)
    figure.draw_without_rendering()
    width = figure.get_figwidth() * figure.dpi
    found = []
    for text in figure.findobj(Text):
        # Ticks beyond the ends of an axis exist but are not drawn.
        if text.get_visible() and not re.fullmatch(r"[\d.\s]*[PTGMk%]?", text.get_text()):
            box = text.get_window_extent()
            found.append((text.get_text(), box.x0 / width, box.x1 / width))
    return found


@pytest.mark.parametrize("works", [SMALL, CROWDED], ids=["small", "crowded"])
def test_texts__are_never_cut_off_by_the_edge(works) -> None:
    long = "pattern.a_very_long_name_of_a_case[bytes=4GiB,axis_one=12345678,axis_two=abcdefgh,axis_three=xyz]"
    longer = "gemm.a_very_long_name_of_a_case[n=4096,axis_one=12345678,axis_two=abcdefgh,axis_three=xyz]"
    works = dict(works) | {long: SMALL["bandwidth.copy[bytes=4GiB]"], longer: SMALL["gemm.fp32[n=4096]"]}
    moves = {long: (CaseVerdict.REGRESSED, 0.5), longer: (CaseVerdict.REGRESSED, 0.5)}
    report = make_placed_report(works, moves)
    ends = drawn_texts(chart_of_report(report))
    assert not [text for text, left, right in ends if left < -0.001 or right > 1.001]
    # A moved case is named even if its name is long: broken where a reader would break it.
    assert any(text.startswith("gemm.a_very_long_name_of_a_case\n") for text, _, _ in ends)


def test_rows__reach_beyond_every_baseline() -> None:
    moves = {"bandwidth.copy[bytes=4GiB]": (CaseVerdict.REGRESSED, 0.5)}
    figure = roofline_figure._figure(chart_of_report(make_placed_report(SMALL, moves)))
    assert figure.axes[1].get_xlim()[1] > 1.5 * 4.22 / 4.814


def test_broken_id__breaks_before_the_bracket_and_after_commas() -> None:
    assert broken_id("gemm.bf16[n=4096]") == "gemm.bf16[n=4096]"
    assert broken_id("gemm.bf16[m=4096,n=4096,k=4096]", 20) == "gemm.bf16[m=4096,\nn=4096,k=4096]"
    assert broken_id("x" * 50, 20) == "x" * 19 + "\N{HORIZONTAL ELLIPSIS}"


def test_svg__takes_names_from_outside_literally() -> None:
    report = make_placed_report(injected=(Injection(pattern="$\\alpha$<script>&", requested="+3%"),))
    report = replace(report, gpu=replace(report.gpu, name="GPU $x^2$ <b>&</b>"))
    svg = render_roofline_svg(chart_of_report(report))
    assert "<script>" not in svg
    assert "<b>" not in svg
    joined = "\n".join(texts(svg))
    assert "GPU $x^2$ <b>&</b>" in joined
    assert "$\\alpha$<script>&" in joined


def test_svg__says_recorded_where_nothing_was_measured() -> None:
    assert "RECORDED" in render_roofline_svg(chart_of_report(make_placed_report(device_kind="recorded")))


def test_svg__of_a_run_needs_no_verdict() -> None:
    run = make_session()
    chart = chart_of_run(run, measured_roofs(run, TABLE))
    joined = "\n".join(texts(render_roofline_svg(chart)))
    assert "gemm.bf16[n=4096]" in joined
    assert "bars: fastest and slowest launch" in joined
    assert "regressed" not in joined


def test_svg__of_roofs_alone_and_of_almost_nothing() -> None:
    assert "Roofs of x" in render_roofline_svg(chart_of_roofs(Roofs(gpu_name="x")))
    only_compute = Roofs(gpu_name="x", compute=(Roof(key="fp32", label="FP32", unit="FLOP", measured_per_s=1e12),))
    assert "FP32 1.00 TFLOP/s measured" in render_roofline_svg(chart_of_roofs(only_compute))
    only_memory = Roofs(gpu_name="x", memory=(Roof(key="dram", label="DRAM", unit="B", datasheet_per_s=1e12),))
    assert "DRAM 1.00 TB/s, datasheet, not measured" in render_roofline_svg(chart_of_roofs(only_memory))


def test_svg__of_a_report_without_roofs_has_its_cases() -> None:
    report = replace(make_placed_report(), roofs=None, gpu=Gpu(name="unknown"))
    assert "gemm.bf16[n=4096]" in render_roofline_svg(chart_of_report(report))


def test_svg__of_cases_below_no_roof_and_without_intervals() -> None:
    report = make_placed_report()
    bare = tuple(replace(case, candidate=None, roofline=None) for case in report.cases)
    joined = "\n".join(texts(render_roofline_svg(chart_of_report(replace(report, cases=bare)))))
    assert "gemm.bf16[n=4096]\n735 TFLOP/s" in joined or "735 TFLOP/s" in joined
    assert "of roof" not in joined


def test_svg__of_rows_without_intervals() -> None:
    report = make_placed_report()
    bare = tuple(replace(case, candidate=None) for case in report.cases)
    joined = "\n".join(texts(render_roofline_svg(chart_of_report(replace(report, cases=bare)))))
    assert "4.22 TB/s, 92 % of DRAM" in joined


def test_svg__of_an_unknown_gpu_compares_rows_with_the_measured_roof() -> None:
    run = replace(make_session(), gpu=Gpu(name="NVIDIA Z999"))
    joined = "\n".join(texts(render_roofline_svg(chart_of_run(run, measured_roofs(run, TABLE)))))
    assert "4.22 TB/s, 92 % of DRAM" in joined


def test_svg__a_move_too_short_to_see_has_no_arrow_in_its_row() -> None:
    moves = {"bandwidth.copy[bytes=4GiB]": (CaseVerdict.SUSPECTED, 0.004)}
    joined = "\n".join(texts(render_roofline_svg(chart_of_report(make_placed_report(SMALL, moves)))))
    assert "time +0.4 %" in joined


def test_png__is_a_png_of_useful_size() -> None:
    png = render_roofline_png(chart_of_report(make_placed_report()))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") == 2120
    assert png == render_roofline_png(chart_of_report(make_placed_report()))


def test_page__holds_picture_and_text_and_escapes() -> None:
    report = make_placed_report()
    page = render_roofline_page(chart_of_report(replace(report, gpu=replace(report.gpu, name="<i>GPU"))))
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "<i>" not in page
    assert "gemm.bf16[n=4096]" in page


def test_family_shapes__built_in_families_keep_theirs() -> None:
    shapes = family_shapes(["own", "gemm", "bandwidth", "own", "other"])
    assert shapes["gemm"] == "s"
    assert shapes["bandwidth"] == "o"
    assert len(set(shapes.values())) == 4
