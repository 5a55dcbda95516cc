"""The roofline in plain text, predictions and latencies: complete and within the width."""

import json

import pytest

from perfgate.core.access import access
from perfgate.core.case import Unit, Work
from perfgate.core.gemm import gemm
from perfgate.core.gpu_table import gpu_sheet
from perfgate.core.roofs import Roofs, sheet_roofs
from perfgate.core.transfer import Collective, collective, link_named
from perfgate.report.estimate_text import predictions_document, render_predictions
from perfgate.report.latency_text import render_latencies
from perfgate.report.roofline_chart import chart_of_report, chart_of_roofs
from perfgate.report.roofline_text import render_roofline_text
from perfgate.storage.gpu_table import read_latency_table, read_link_table
from tests.factories import make_case_info, make_run
from tests.unit.report.roofline_reports import CROWDED, SMALL, TABLE, make_placed_report, make_session


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("works", [SMALL, CROWDED], ids=["small", "crowded"])
def test_render_roofline_text__stays_within_the_width(works, width: int) -> None:
    text = render_roofline_text(chart_of_report(make_placed_report(works)), width)
    assert max(map(len, text.splitlines())) <= width
    assert all(case_id in text for case_id in works)


def test_render_roofline_text__shows_roofs_ridges_and_shares() -> None:
    text = render_roofline_text(chart_of_report(make_placed_report()))
    for part in ("4.57 TB/s", "4.81 TB/s", "161  gemm.bf16", "92 % DRAM", "1.310 µs", "/", "100 % BF16 tensor"):
        assert part in text
    plot = text.split("case")[0]
    assert all(letter in plot for letter in "abc")


def test_render_roofline_text__cases_at_one_place_stand_beside_each_other() -> None:
    works = dict(SMALL) | {"gemm.bf16_again[n=4096]": SMALL["gemm.bf16[n=4096]"]}
    plot = render_roofline_text(chart_of_report(make_placed_report(works)), 80).split("  case")[0]
    assert any("cd" in line for line in plot.splitlines())


def test_render_roofline_text__a_roof_that_starts_below_the_plot_is_cut_not_wrapped() -> None:
    works = {case_id: SMALL[case_id] for case_id in SMALL if not case_id.startswith("gemm.fp32")}
    text = render_roofline_text(chart_of_report(make_placed_report({"gemm.bf16[n=4096]": works["gemm.bf16[n=4096]"]})))
    assert "BF16 tensor" in text
    low = works | {"user.low[n=1]": (Work(work_flop=2**20, read_bytes=2**20, dtype="fp32", pipe="fp32"), 1e-3)}
    plot = render_roofline_text(chart_of_report(make_placed_report(low, {})), 80).split("  case")[0]
    assert plot.count("/") > 10


def test_render_roofline_text__of_roofs_alone() -> None:
    text = render_roofline_text(chart_of_roofs(sheet_roofs(gpu_sheet(TABLE, "H200"), TABLE), ("a note",)))
    assert "989 TFLOP/s" in text
    assert "1071 TFLOP/s" in text
    assert text.endswith("a note\n")
    assert render_roofline_text(chart_of_roofs(Roofs(gpu_name="x"))) == "Roofs of x\n\n"


def predictions(*names: str):
    return [gemm(2048, 2048, 2048, dtype="fp32", roofs=sheet_roofs(gpu_sheet(TABLE, name), TABLE)) for name in names]


def test_render_predictions__side_by_side_with_a_measured_time() -> None:
    text = render_predictions(
        predictions("H200", "V100-SXM2-16GB", "L4"), width=80, color=False, unicode=True, measured_s=1e-3
    )
    assert max(map(len, text.splitlines())) <= 80
    for part in ("50331648 bytes", "17.2 TFLOP/s", "50.3 GB/s", "NVIDIA H200", "Tesla V100-SXM2-16GB", "NVIDIA L4"):
        assert part in text
    assert "17.2 GFLOP / (66.9 TFLOP/s x 0.97)" in text
    # A caveat of all machines is said once.
    assert text.count("the roofs are the vendor's") == 1


def test_render_predictions__of_a_copy_have_no_share_of_a_compute_roof() -> None:
    found = access(2**28, roofs=sheet_roofs(gpu_sheet(TABLE, "L4"), TABLE))
    text = render_predictions([found], width=80, color=False, unicode=True, measured_s=8e-3)
    assert "of the memory roof" in text
    assert "of the compute roof" not in text
    assert "useful bandwidth" in text


def test_render_predictions__of_a_collective() -> None:
    link = link_named(read_link_table(), "nvlink4")
    text = render_predictions([collective(Collective.ALL_REDUCE, 2**30, 8, link)], width=80, color=False, unicode=False)
    assert "bus bandwidth" in text
    assert "1.75 x 1.07 GB" in text
    assert text.isascii()


def test_predictions_document__is_json_with_what_is_computed() -> None:
    document = json.loads(json.dumps(predictions_document(predictions("H200"), 1e-3)))
    assert document["format"] == "perfgate.estimate/1"
    found = document["predictions"][0]
    assert found["bound"] == "compute"
    assert found["time_s"] == pytest.approx(268.3e-6, rel=1e-3)
    assert found["work"]["work_flop"] == 2 * 2048**3
    assert 0 < found["wave_factor"] <= 1


def test_render_latencies__shows_published_corrected_and_measured() -> None:
    text = render_latencies(
        read_latency_table(), clock_hz=1.98e9, run=make_session(), width=80, color=False, unicode=True
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "22-32 cycles" in text
    assert "744 is a far miss; a far hit is 414" in text
    gap = next(line for line in text.splitlines() if "one more kernel in a stream" in line)
    assert gap.endswith("1.310 µs")


def test_render_latencies__shows_measured_steps_in_cycles_and_time() -> None:
    info = make_case_info("latency", work=Work(), unit=Unit.CYCLES)
    case_id = "latency.shuffle[steps=1000]"
    run = make_run({case_id: (12e-6,) * 3}, infos={case_id: info})
    text = render_latencies(read_latency_table(), clock_hz=2e9, run=run, width=100, color=False, unicode=True)
    shuffle = next(line for line in text.splitlines() if "warp shuffle" in line)
    assert shuffle.endswith("23.8 cycles, 12.00 ns")
