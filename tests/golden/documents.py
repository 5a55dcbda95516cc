"""A run and a baseline whose pages are kept as golden files."""

from dataclasses import replace

from perfgate.core.baseline import Baseline, CalibratedMargin
from perfgate.core.baseline_change import BaselineDifference, baseline_difference
from perfgate.core.case import Timing, Unit, Work
from perfgate.core.run import Run
from tests.factories import (
    make_baseline,
    make_case_info,
    make_case_launch,
    make_run,
    make_session,
    make_session_case,
    normal_medians,
)
from tests.golden.reports import gemm_work

COPY, GEMM, SUBMIT = "bandwidth.copy[bytes=4GiB]", "gemm.bf16[n=4096]", "launch.submit"


def run() -> Run:
    """Six launches of three cases: one did not settle, one is timed by the host, one is absent."""
    infos = {
        COPY: make_case_info("bandwidth"),
        GEMM: make_case_info("gemm", work=gemm_work(), unit=Unit.CYCLES),
        SUBMIT: make_case_info("launch", work=Work(), timing=Timing.SUBMIT, gated=False),
    }
    medians_s = {
        COPY: normal_medians(1, 6),
        GEMM: normal_medians(2, 6, median_s=188.5e-6, spread=1e-3),
        SUBMIT: normal_medians(3, 6, median_s=6.9e-6, spread=0.03),
    }
    whole = make_run(medians_s, infos=infos, absent={"gemm.fp8[n=4096]": "needs compute capability 8.9, this is 9.0"})
    restless = replace(make_case_launch(189e-6), settled=False)
    first = replace(whole.launches[0], cases=dict(whole.launches[0].cases) | {GEMM: restless})
    return replace(whole, launches=(first, *whole.launches[1:]))


def baseline() -> Baseline:
    """Two sessions of one chip, the newer one forced; one case has a calibrated margin."""
    older = make_session({COPY: 2.034e-3}, recorded_utc="2026-11-20T09:12:00Z")
    gemm = make_session_case(188.5e-6, work=gemm_work(), within_spread=0.0012)
    newer = make_session({}, cases={COPY: make_session_case(2.041e-3), GEMM: gemm}, recorded_utc="2026-11-29T21:40:00Z")
    made = replace(
        newer.provenance,
        reason="the driver moved to 580",
        forced="another process used the GPU",
        runner="gpu-1",
        commit="1a2b3c4d5e6f",
    )
    margin = CalibratedMargin(relative=0.0048, sessions=6, same_chip=True)
    return make_baseline(older, replace(newer, provenance=made), margins={COPY: margin})


def change() -> BaselineDifference:
    """The newer session of ``baseline`` is new."""
    whole = baseline()
    return baseline_difference(replace(whole, sessions=whole.sessions[:1], margins={}), whole)
