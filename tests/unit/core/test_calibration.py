"""What a machine can detect, learned from sessions of unchanged code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import BaselineSession, Provenance
from perfgate.core.calibration import Calibration, CaseNoise, calibrated, calibration, refusals
from perfgate.core.case import Timing, Unit
from perfgate.core.gate import judge
from perfgate.core.margin import is_supported
from perfgate.core.policy import Policy
from perfgate.core.report import MarginSource
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import ConfigurationError
from tests.factories import make_run, make_session, make_session_case

COPY, READ, SUBMIT = "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]", "launch.submit"
POLICY = Policy()


def session(seed: int, *, between: Mapping[str, float], launch: float = 2e-4, **changes: Any) -> BaselineSession:
    """A session of 12 launches; ``between`` gives each case's spread between sessions."""
    generator = np.random.default_rng(seed)
    cases = {}
    for case_id, spread in between.items():
        values = 2.5e-3 * np.exp(spread * generator.standard_normal() + launch * generator.standard_normal(12))
        timing = Timing.SUBMIT if case_id == SUBMIT else Timing.EVENTS
        cases[case_id] = make_session_case(launch_medians_s=tuple(values.tolist()), within_spread=0.003, timing=timing)
    return make_session({}, cases=cases, recorded_utc=f"2026-11-{seed % 28 + 1:02}T12:00:00Z", **changes)


def quiet(count: int = 5, **changes: Any) -> list[BaselineSession]:
    return [session(seed, between={COPY: 2e-4, READ: 2e-4}, **changes) for seed in range(count)]


def case(found: Calibration, case_id: str = COPY) -> CaseNoise:
    return next(one for one in found.cases if one.id == case_id)


def test_calibration__gives_the_noise_of_every_level() -> None:
    found = case(calibration(quiet(40), POLICY))
    assert found.within == 0.003
    assert found.launches == pytest.approx(2e-4, rel=0.15)
    assert found.sessions == pytest.approx(2e-4, rel=0.35)
    assert found.chips is None
    assert (found.unit, found.is_gated) == (Unit.SECONDS, True)


def test_calibration__proposes_margins_by_the_rule_of_the_gate() -> None:
    found = calibration(quiet(), POLICY)
    assert (found.sessions, found.same_chip) == (5, True)
    assert case(found).margin.source is MarginSource.SAME_CHIP_CALIBRATED
    assert 0.003 <= case(found).margin.relative < 0.005
    assert case(found).least_margin == pytest.approx(4 * case(found).margin.session_spread)


def test_calibration__predicts_what_is_found() -> None:
    found = calibration(quiet(), POLICY)
    detectable = case(found).detectable
    assert detectable is not None
    assert case(found).margin.relative < detectable < 0.006
    assert found.false_alarm_rate <= 0.001
    assert 0 < found.false_alarm_bound < 0.005


def test_calibration__the_smallest_change_is_found_in_99_of_100_checks() -> None:
    detectable = case(calibration(quiet(), POLICY)).detectable
    assert detectable is not None
    hits = 0
    for seed in range(60):
        base = session(1000 + seed, between={COPY: 2e-4, READ: 2e-4})
        candidate = session(2000 + seed, between={COPY: 2e-4, READ: 2e-4})
        values = {
            one: [value * (1 + detectable) for value in candidate.cases[one].launch_medians_s[:6]]
            for one in (COPY, READ)
        }
        run = make_run(values)
        baseline = calibrated(
            replace(baseline_of(run, base.provenance), sessions=(base,)), calibration(quiet(), POLICY)
        )
        report = judge(baseline=baseline, candidate=run, policy=POLICY, created_utc="2026-11-30T12:00:00Z")
        hits += report.cases[0].verdict is CaseVerdict.REGRESSED
    assert hits >= 58


def test_calibration__is_seeded() -> None:
    assert calibration(quiet(), POLICY, seed=1) == calibration(quiet(), POLICY, seed=1)


def test_calibration__a_case_whose_sessions_differ_too_much_cannot_be_gated() -> None:
    sessions = [session(seed, between={COPY: 0.02, "gemm.fp32[n=4096]": 2e-4}) for seed in range(5)]
    found = calibration(sessions, POLICY)
    assert not is_supported(case(found).margin)
    assert is_supported(case(found, "gemm.fp32[n=4096]").margin)
    baseline = calibrated(baseline_of(make_run({COPY: [2.5e-3] * 12}), sessions[0].provenance), found)
    assert baseline.margins[COPY].relative > 0.01
    report = judge(
        baseline=baseline, candidate=make_run({COPY: [2.6e-3] * 6}), policy=POLICY, created_utc="2026-11-30T12:00:00Z"
    )
    assert report.cases[0].verdict is CaseVerdict.NOT_GATED


def test_calibration__counts_the_false_alarms_that_noisy_sessions_will_raise() -> None:
    # Two sessions 0.33 % apart leave a margin below four times their spread: alarms are to be expected.
    ids = [f"bandwidth.copy[bytes={size}MiB]" for size in range(1, 21)]
    sessions = [
        make_session(dict.fromkeys(ids, median_s), recorded_utc=f"2026-11-{day}T12:00:00Z")
        for day, median_s in ((10, 2.5e-3), (11, 2.5e-3 * 1.0033))
    ]
    noisy = calibration(sessions, POLICY)
    assert all(is_supported(one.margin) for one in noisy.cases)
    assert 0.002 < noisy.false_alarm_rate < noisy.false_alarm_bound
    # Where no case may be gated there is none to accuse.
    wild = calibration([session(seed, between={COPY: 0.05}) for seed in range(5)], POLICY)
    assert wild.false_alarm_rate == 0


def test_calibration__between_chips_learns_the_margin_between_chips() -> None:
    sessions = [session(seed, between={COPY: 2e-4, READ: 2e-4}, chip=f"chip{seed // 2}") for seed in range(8)]
    found = calibration(sessions, POLICY)
    assert (found.chip, found.sessions, found.same_chip) == (None, 4, False)
    assert case(found).margin.source is MarginSource.CROSS_CHIP_CALIBRATED
    assert case(found).chips is not None
    assert case(found).sessions is not None


def test_calibration__one_session_a_chip_knows_nothing_of_sessions_on_one() -> None:
    sessions = [session(seed, between={COPY: 2e-4}, chip=f"chip{seed}") for seed in range(3)]
    assert case(calibration(sessions, POLICY)).sessions is None


def test_calibration__needs_two_sessions_that_measured_alike() -> None:
    with pytest.raises(ConfigurationError, match="two sessions at least"):
        calibration(quiet(1), POLICY)
    other = session(7, between={COPY: 2e-4, READ: 2e-4}, method=2)
    with pytest.raises(ConfigurationError, match="measured the same cases alike"):
        calibration([*quiet(1), other], POLICY)
    with pytest.raises(ConfigurationError, match="two chips at least"):
        calibration([*quiet(1), replace(other, chip="0badc0de")], POLICY)


def test_calibration__host_timed_cases_are_looked_at_but_not_in_the_family() -> None:
    found = calibration([session(seed, between={COPY: 2e-4, SUBMIT: 0.1}) for seed in range(5)], POLICY)
    assert not case(found, SUBMIT).is_gated
    assert not is_supported(case(found, SUBMIT).margin)


def test_calibration__so_few_launches_that_nothing_can_be_proven() -> None:
    few = Policy(launches=2, stages=(2,), baseline_launches=2)
    assert case(calibration(quiet(), few)).detectable is None


def test_calibration__of_constants_is_the_floor() -> None:
    constant = [make_session({COPY: 2.5e-3}, recorded_utc=f"2026-11-{day}T12:00:00Z") for day in range(10, 15)]
    found = case(calibration(constant, POLICY))
    assert (found.launches, found.sessions, found.within) == (0.0, 0.0, None)
    assert found.detectable is not None
    assert found.detectable >= found.margin.relative


def test_calibrated__margins_are_used_by_the_gate_on_that_chip() -> None:
    found = calibration(quiet(), POLICY)
    run = make_run({COPY: [2.5e-3] * 12, READ: [2.5e-3] * 12})
    baseline = calibrated(
        baseline_of(
            run, Provenance(recorded_utc="2026-11-29T12:00:00Z", reason="r", device_kind="cuda", perfgate_version="1")
        ),
        found,
    )
    assert set(baseline.margins) == {COPY, READ}
    report = judge(baseline=baseline, candidate=run, policy=POLICY, created_utc="2026-11-30T12:00:00Z")
    assert report.cases[0].margin is not None
    assert report.cases[0].margin.relative == pytest.approx(case(found).margin.relative)
    assert report.cases[0].margin.sessions == 5


def test_refusals__name_the_margins_that_the_machine_does_not_support() -> None:
    found = calibration(quiet(), POLICY)
    assert refusals(found, Policy(margins={"bandwidth.*": 0.003})) == ()
    (refused,) = refusals(found, Policy(margins={"bandwidth.copy": 0.0005}))
    assert refused.code == "margin-unsupported"
    assert "0.05 %" in refused.message
    assert "use at least" in refused.remedy
