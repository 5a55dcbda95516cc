"""The tables of latencies and peaks follow from a run document."""

from benchmarks.limits import latency_lines, peak_lines
from perfgate.core.case import Unit, Work
from tests.factories import make_case_info, make_run

CLOCK_HZ = 1.98e9


def test_latency_lines__tell_a_step_in_cycles_and_time() -> None:
    case_id = "latency.shuffle[steps=1000]"
    info = make_case_info("latency", work=Work(), unit=Unit.CYCLES)
    run = make_run({case_id: (13e-6, 13e-6)}, infos={case_id: info})
    assert list(latency_lines(run))[2:] == [f"| `{case_id}` | 25.7 | 13.00 ns | 0.00 % |"]


def test_peak_lines__tell_the_share_of_the_units_at_the_measured_clock() -> None:
    flop, time_s = 2 * 10**11, 3e-3
    infos = {
        "peak.fma_fp32": make_case_info("peak", work=Work(work_flop=flop, dtype="fp32", pipe="fp32"), unit=Unit.CYCLES),
        "peak.exponential": make_case_info(
            "peak", work=Work(work_flop=12 * 10**9, dtype="fp32", pipe="exponential"), unit=Unit.CYCLES
        ),
    }
    run = make_run(dict.fromkeys(infos, (time_s, time_s)), infos=infos)
    fma, exponential = list(peak_lines(run))[2:]
    assert f"{flop / time_s / (132 * 256 * CLOCK_HZ):.4f}" in fma
    assert "66.7 TFLOP/s | 1980 MHz" in fma
    assert f"{12e9 / time_s / (132 * 16 * CLOCK_HZ):.4f}" in exponential
    assert "4.00 TOP/s" in exponential
