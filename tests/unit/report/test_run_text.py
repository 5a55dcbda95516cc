"""A run at the terminal: medians, spread between launches, and every doubt."""

from dataclasses import replace

from perfgate.core.case import Timing
from perfgate.core.run import Block, CaseLaunch, Health, Injection, Launch
from perfgate.report.run_text import render_run
from tests.factories import H200, make_case_info, make_case_launch, make_run

COPY = "bandwidth.copy[bytes=4GiB]"


def test_render_run__shows_median_rate_spread_clock_and_temperature() -> None:
    text = render_run(make_run({COPY: [2.0e-3, 2.0e-3, 2.1e-3]}))
    assert text.splitlines()[0] == "▌ MEASURED on NVIDIA H200"
    assert "▌ 1 case of suite default in 3 of 3 launches\n" in text
    assert f"  {COPY}  2.000 ms  4.29 TB/s  2.84 %  1.98 GHz  40 °C\n" in text
    assert "Spread       standard deviation" in text


def test_render_run__leaves_out_what_was_not_measured() -> None:
    run = make_run({COPY: [2.0e-3]})
    launch = replace(make_case_launch(2e-3, sm_clock_hz=None), temperature_c=None)
    text = render_run(replace(run, launches=(replace(run.launches[0], cases={COPY: launch}),)))
    assert f"  {COPY}  2.000 ms  4.29 TB/s\n" in text
    assert "Spread" not in text


def test_render_run__says_recorded_and_injected() -> None:
    run = make_run({COPY: [2e-3]}, device_kind="recorded", injected=(Injection(pattern="*", requested="hang"),))
    assert render_run(run).splitlines()[0] == "▌ MEASURED on NVIDIA H200  RECORDED  INJECTED"


def test_render_run__gives_host_timed_cases_no_rate_and_dims_what_is_not_gated() -> None:
    info = make_case_info("launch", timing=Timing.SUBMIT, gated=False)
    text = render_run(make_run({"launch.submit": [7e-6]}, infos={"launch.submit": info}), color=True)
    line = next(one for one in text.splitlines() if "launch.submit" in one)
    assert "B/s" not in line
    assert line.startswith("  \x1b[2mlaunch.submit")


def test_render_run__tells_every_doubt_under_its_case() -> None:
    bad = Block(sequence=1, started_s=0.0, times_s=(), executions_per_sample=4, valid=False, reason="throttled")
    odd = replace(bad, sequence=2, reason=None)
    good = make_case_launch(2e-3).blocks[0]
    launch = CaseLaunch(blocks=(good, bad, bad, odd), settled=False, output_verified=False)
    run = make_run({COPY: [2e-3, 2e-3]})
    run = replace(
        run,
        launches=(
            replace(run.launches[0], cases={COPY: launch}),
            replace(run.launches[1], cases={}, failures={COPY: "out of memory"}),
        ),
    )
    notes = [line.strip() for line in render_run(run).splitlines() if line.startswith("    ")]
    assert notes == [
        "its output is wrong in 1 of 1 launch",
        "failed in 1 launch: out of memory",
        "2 of 4 blocks unused: throttled",
        "1 of 4 blocks unused: no reason given",
        "not settled in 1 of 1 launch",
    ]


def test_render_run__lists_failed_launches_absent_cases_and_company() -> None:
    run = make_run(
        {COPY: [2e-3]},
        absent={"gemm.fp8": "needs compute capability 8.9"},
        health_before=Health(foreign_processes=("python",)),
        health_after=Health(foreign_processes=("python", "Xorg"), xids=(43,)),
    )
    run = replace(run, launches=(*run.launches, Launch(index=1, started_utc="", cases={}, failure="it crashed")))
    text = render_run(run)
    assert "in 1 of 2 launches" in text
    assert "Failed       launch 1: it crashed\n" in text
    assert "Absent       gemm.fp8: needs compute capability 8.9\n" in text
    assert "Reported     by the driver: Xid 43 (a program's kernel was stopped)\n" in text
    assert (
        "Also there   another process used this GPU: Xorg\n             another process used this GPU: python\n" in text
    )


def test_render_run__verbose_lists_the_environment() -> None:
    run = make_run({COPY: [2e-3]})
    assert "Environment  driver: 580.159.04\n" in render_run(run, verbose=True)
    assert "Environment" not in render_run(run)


def test_render_run__without_launches_still_names_the_gpu() -> None:
    text = render_run(make_run({}, gpu=replace(H200, name="GPU \x1b[31m")))
    assert r"MEASURED on GPU \x1b[31m" in text
    assert "case " not in text
