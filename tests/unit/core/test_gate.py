"""The gate from end to end: what a person is told about a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perfgate.core.acceptance import accepted_session, baseline_of, with_session
from perfgate.core.baseline import Baseline, CalibratedMargin, Provenance
from perfgate.core.case import Timing, Unit, Work
from perfgate.core.gate import is_decided, judge, needs_confirmation
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import CaseResult, MarginSource, Report
from perfgate.core.run import CaseInfo, Health, Injection, Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ConfigurationError, ExitCode
from tests.factories import (
    ENVIRONMENT,
    H200,
    make_case_info,
    make_case_launch,
    make_run,
    make_session,
    normal_medians,
)

NOW = "2026-11-30T12:00:00Z"
COPY, READ, GEMM = "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]", "gemm.fp32[n=4096]"
FIRST = Provenance(recorded_utc="2026-11-29T12:00:00Z", reason="first", device_kind="cuda", perfgate_version="0.1.0")
GEMM_WORK = Work(work_flop=137_438_953_472, read_bytes=2**27, write_bytes=2**26, pipe="fp32")
INFOS = {COPY: make_case_info(), READ: make_case_info(), GEMM: make_case_info("gemm", work=GEMM_WORK)}


def times(
    seed: int, count: int, slower: Mapping[str, float] | None = None, ids: Sequence[str] = (COPY, READ, GEMM)
) -> Any:
    return {
        case_id: normal_medians(seed + 7 * place, count, median_s=2.5e-3 * (1 + (slower or {}).get(case_id, 0)))
        for place, case_id in enumerate(ids)
    }


def run(seed: int, count: int = 6, slower: Mapping[str, float] | None = None, **changes: Any) -> Run:
    infos: Mapping[str, CaseInfo] = changes.pop("infos", INFOS)
    return make_run(times(seed, count, slower, tuple(infos)), infos=infos, **changes)


def baseline(**changes: Any) -> Baseline:
    return baseline_of(run(1000, 12, **changes), FIRST)


def judged(candidate: Run, against: Baseline | None = None, policy: Policy | None = None, **arguments: Any) -> Report:
    return judge(
        baseline=against or baseline(), candidate=candidate, policy=policy or Policy(), created_utc=NOW, **arguments
    )


def case(report: Report, case_id: str = COPY) -> CaseResult:
    return next(one for one in report.cases if one.id == case_id)


def codes(result: CaseResult) -> set[str]:
    return {caveat.code for caveat in result.caveats}


def test_judge__the_same_code_passes() -> None:
    report = judged(run(1))
    assert (report.verdict, report.exit_code) == (CheckVerdict.PASSED, 0)
    assert {one.verdict for one in report.cases} == {CaseVerdict.UNCHANGED}
    assert report.summary == "3 cases are judged and none is slower beyond its margin: 3 unchanged."
    assert report.next_step == ""
    assert case(report).change is not None
    assert case(report).change.confidence == pytest.approx(0.9)


def test_judge__a_slower_case_is_a_regression_with_its_numbers() -> None:
    report = judged(run(1, slower={COPY: 0.03}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.REGRESSED, 1)
    found = case(report)
    assert found.change is not None
    assert found.change.low is not None
    assert found.change_widened is not None
    assert found.change_widened.low is not None
    assert found.change.value == pytest.approx(0.03, abs=2e-3)
    assert 0.005 < found.change_widened.low < found.change.low < found.change.value
    assert found.p_adjusted == pytest.approx(3 * (found.p_slower or 0))
    assert (found.significant, found.relevant) == (True, True)
    assert (found.baseline_launches, found.candidate_launches) == (12, 6)
    assert [cause.code for cause in found.causes] == ["hardware-finding"]
    assert "1 of 3 cases is slower beyond the margin: bandwidth.copy[bytes=4GiB] by +3" in report.summary
    assert "The runner's owner acts" in report.next_step


def test_judge__a_faster_case_never_fails() -> None:
    report = judged(run(1, slower={COPY: -0.03}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.PASSED, 0)
    assert case(report).verdict is CaseVerdict.IMPROVED


def test_judge__an_improvement_over_what_had_not_settled_is_not_claimed() -> None:
    slow = baseline()
    (only,) = slow.sessions
    loose = {case_id: replace(one, settled=False) for case_id, one in only.cases.items()}
    report = judged(run(1, slower={COPY: -0.22}), replace(slow, sessions=(replace(only, cases=loose),)))
    assert case(report).verdict is CaseVerdict.INCONCLUSIVE
    assert "not-settled" in codes(case(report))


def test_judge__without_a_baseline_says_so_and_shows_what_was_measured() -> None:
    for nothing in (None, replace(baseline(), sessions=())):
        report = judge(baseline=nothing, candidate=run(1), policy=Policy(), created_utc=NOW)
        assert (report.verdict, report.exit_code) == (CheckVerdict.NO_BASELINE, 4)
        assert case(report).verdict is CaseVerdict.NEW
        assert case(report).candidate is not None
        assert "perfgate baseline update" in report.next_step


def test_judge__another_board_is_not_comparable_and_the_field_is_named() -> None:
    report = judged(run(1, gpu=replace(H200, board_part_number="692-2G520-0282-001")))
    assert (report.verdict, report.exit_code) == (CheckVerdict.NOT_COMPARABLE, 4)
    assert [one.field for one in report.identity_differences] == ["board_part_number"]
    assert "692-2G520-0282-001 here, 692-2G520-0282-000 there" in report.summary


def test_judge__a_board_that_could_not_be_read_is_not_comparable_with_one_that_was() -> None:
    unread = replace(H200, board_part_number=None)
    assert judged(run(1, gpu=unread)).verdict is CheckVerdict.NOT_COMPARABLE
    report = judged(run(1, gpu=unread), baseline(gpu=unread))
    assert report.verdict is CheckVerdict.PASSED
    assert {caveat.code for caveat in report.caveats} == {"identity-incomplete"}
    assert case(report).margin is not None
    assert case(report).margin.source is MarginSource.CROSS_CHIP_DEFAULT


def test_judge__another_gpu_with_the_same_compute_capability_is_not_comparable() -> None:
    report = judged(run(1, gpu=replace(H200, name="NVIDIA L4", compute_capability="9.0")))
    assert "name" in {one.field for one in report.identity_differences}


def test_judge__an_empty_run_on_another_gpu_is_not_comparable_either() -> None:
    nothing = make_run({}, infos={}, gpu=replace(H200, board_part_number="x"))
    assert judged(nothing).verdict is CheckVerdict.NOT_COMPARABLE


def test_judge__a_missing_case_fails_closed_and_is_named() -> None:
    report = judged(run(1, infos={COPY: INFOS[COPY], READ: INFOS[READ]}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INVALID, 8)
    assert case(report, GEMM).verdict is CaseVerdict.MISSING
    assert GEMM in report.summary
    lenient = judged(run(1, infos={COPY: INFOS[COPY]}), policy=Policy(missing_fails=False))
    assert lenient.verdict is CheckVerdict.PASSED


def test_judge__a_missing_case_says_why_the_gpu_cannot_run_it() -> None:
    report = judged(run(1, infos={COPY: INFOS[COPY]}, absent={READ: "needs 8 GiB"}))
    assert case(report, READ).reason == "needs 8 GiB"


def test_judge__what_a_policy_does_not_gate_is_not_missed() -> None:
    report_only = make_case_info("launch", timing=Timing.SUBMIT, gated=False, work=Work())
    own = baseline(infos={**INFOS, "launch.submit": report_only})
    assert judged(run(1), own).verdict is CheckVerdict.PASSED


def test_judge__a_new_case_is_listed_and_does_not_fail() -> None:
    report = judged(run(1), baseline(infos={COPY: INFOS[COPY], READ: INFOS[READ]}))
    assert report.verdict is CheckVerdict.PASSED
    assert case(report, GEMM).verdict is CaseVerdict.NEW
    assert "1 new" in report.summary


def test_judge__only_new_cases_are_no_pass() -> None:
    report = judged(run(1, infos={GEMM: INFOS[GEMM]}), baseline(infos={COPY: INFOS[COPY]}), Policy(missing_fails=False))
    assert (report.verdict, report.exit_code) == (CheckVerdict.NO_BASELINE, 4)


def test_judge__an_empty_family_is_never_a_pass() -> None:
    report = judged(make_run({}, infos={}), policy=Policy(missing_fails=False))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INVALID, 8)
    nothing_gated = {COPY: make_case_info(gated=False)}
    empty = judged(run(1, infos=nothing_gated), baseline(infos=nothing_gated))
    assert empty.verdict is CheckVerdict.INVALID
    assert "nothing was judged" in empty.summary


def test_judge__everything_invalid_is_invalid_with_the_reason() -> None:
    candidate = run(1)
    launches = tuple(
        replace(launch, cases={}, failures=dict.fromkeys(launch.cases, "thermal slowdown"))
        for launch in candidate.launches
    )
    report = judged(replace(candidate, launches=launches))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INVALID, 8)
    assert "thermal slowdown" in report.summary


def test_judge__what_failed_is_invalid_with_or_without_a_baseline() -> None:
    candidate = run(1)
    bad = replace(candidate.launches[0].cases[READ], output_verified=False)
    broken = replace(candidate.launches[0], cases={**candidate.launches[0].cases, READ: bad}, failures={GEMM: "hang"})
    lost = replace(broken, cases={COPY: broken.cases[COPY], READ: bad})
    report = judge(baseline=None, candidate=replace(candidate, launches=(lost,)), policy=Policy(), created_utc=NOW)
    assert report.exit_code == ExitCode.WRONG_OUTPUT
    assert [one.verdict for one in report.cases] == [CaseVerdict.NEW, CaseVerdict.INVALID, CaseVerdict.INVALID]


def test_judge__wrong_output_beats_a_regression() -> None:
    candidate = run(1, slower={COPY: 0.03})
    bad = replace(candidate.launches[0].cases[READ], output_verified=False)
    first = replace(candidate.launches[0], cases={**candidate.launches[0].cases, READ: bad})
    report = judged(replace(candidate, launches=(first, *candidate.launches[1:])))
    assert report.exit_code == ExitCode.WRONG_OUTPUT
    assert case(report, READ).verdict is CaseVerdict.INVALID
    assert READ in report.summary


def test_judge__a_bandwidth_beyond_the_roof_is_invalid_not_improved() -> None:
    report = judged(run(1, slower={COPY: -0.4}))
    assert case(report).verdict is CaseVerdict.INVALID
    assert report.exit_code == 8


def test_judge__another_version_of_one_case_is_not_comparable_the_others_are_judged() -> None:
    report = judged(run(1, infos={**INFOS, COPY: make_case_info(version=2)}))
    assert (report.verdict, report.exit_code) == (CheckVerdict.NOT_COMPARABLE, 4)
    assert case(report).reason == "version differs: 1 in the baseline, 2 here"
    assert case(report, READ).verdict is CaseVerdict.UNCHANGED


def test_judge__host_timed_cases_are_shown_not_judged() -> None:
    submit = "launch.submit"
    infos = {**INFOS, submit: make_case_info("launch", timing=Timing.SUBMIT, work=Work())}
    report = judged(run(1, slower={submit: 0.5}, infos=infos), baseline(infos=infos))
    found = case(report, submit)
    assert report.verdict is CheckVerdict.PASSED
    assert (found.verdict, found.gated) == (CaseVerdict.NOT_GATED, False)
    assert found.change is not None
    assert found.change.value == pytest.approx(0.5, abs=0.01)


def test_judge__host_timed_cases_are_gated_on_demand_with_a_margin_of_their_own() -> None:
    submit = "launch.submit"
    infos = {**INFOS, submit: make_case_info("launch", timing=Timing.SUBMIT, work=Work(), gated=False)}
    candidate, own = run(1, slower={submit: 0.5}, infos=infos), baseline(infos=infos)
    demanded = Policy(gate_host_timed=True)
    assert case(judged(candidate, own, demanded), submit).verdict is CaseVerdict.NOT_GATED
    calibrated = replace(own, margins={submit: CalibratedMargin(relative=0.02, sessions=9, same_chip=True)})
    assert case(judged(candidate, calibrated, demanded), submit).verdict is CaseVerdict.REGRESSED
    by_policy = replace(demanded, margins={"launch.submit": 0.1})
    assert case(judged(candidate, own, by_policy), submit).verdict is CaseVerdict.REGRESSED


def test_judge__a_family_whose_sessions_differ_too_much_is_not_gated_and_says_so() -> None:
    own = baseline()
    for day, factor in ((20, 1.008), (21, 0.993)):
        other = run(day, 12, slower=dict.fromkeys(INFOS, factor - 1))
        own = with_session(own, accepted_session(other, replace(FIRST, recorded_utc=f"2026-11-{day}T12:00:00Z")))
    report = judged(run(1, slower={COPY: 0.03}), own)
    assert case(report).verdict is CaseVerdict.NOT_GATED
    assert "beyond the 1.00 % that a gate may use" in (case(report).reason or "")
    assert "session-noise" in codes(case(report))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INCONCLUSIVE, 0)
    assert "No case can be judged" in report.summary


def test_judge__between_margin_and_proof_lies_suspicion() -> None:
    noisy = {
        case_id: normal_medians(50 + place, 6, median_s=2.516e-3, spread=3e-3) for place, case_id in enumerate(INFOS)
    }
    wide = {
        case_id: normal_medians(60 + place, 12, median_s=2.5e-3, spread=3e-3) for place, case_id in enumerate(INFOS)
    }
    candidate, own = make_run(noisy, infos=INFOS), baseline_of(make_run(wide, infos=INFOS), FIRST)
    report = judged(candidate, own)
    assert (report.verdict, report.exit_code) == (CheckVerdict.SUSPECTED, 8)
    assert "probably slower" in report.summary
    assert judged(candidate, own, Policy(suspected_fails=False)).exit_code == 0


def test_judge__inconclusive_passes_with_a_notice_unless_the_policy_says_otherwise() -> None:
    own = {case_id: normal_medians(60 + place, 12, median_s=2.5e-3, spread=4e-3) for place, case_id in enumerate(INFOS)}
    candidate = make_run(
        {case_id: normal_medians(80 + place, 6, median_s=2.5e-3, spread=4e-3) for place, case_id in enumerate(INFOS)},
        infos=INFOS,
    )
    report = judged(candidate, baseline_of(make_run(own, infos=INFOS), FIRST))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INCONCLUSIVE, 0)
    strict = judged(candidate, baseline_of(make_run(own, infos=INFOS), FIRST), Policy(inconclusive_fails=True))
    assert strict.exit_code == 8


def test_judge__with_launches_that_could_prove_nothing_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="could not prove any") as caught:
        judged(run(1, 2))
    assert "measure at least" in caught.value.hint


def test_judge__a_case_with_too_few_launches_of_its_own_says_so() -> None:
    own = baseline()
    (only,) = own.sessions
    short = replace(only.cases[COPY], launch_medians_s=only.cases[COPY].launch_medians_s[:1], launch_cycles=None)
    report = judged(
        run(1, slower={COPY: 0.03}), replace(own, sessions=(replace(only, cases={**only.cases, COPY: short}),))
    )
    assert case(report).verdict is CaseVerdict.SUSPECTED
    assert "too-few-launches" in codes(case(report))


def test_judge__stages_share_the_error_rate() -> None:
    policy = Policy(launches=6, stages=(3, 6))
    early = judged(run(1, 3), policy=policy, look=0)
    assert {one.verdict for one in early.cases} == {CaseVerdict.UNCHANGED}
    assert is_decided(early)
    slow = judged(run(1, 3, slower={COPY: 0.03}), policy=policy, look=0)
    assert case(slow).verdict is CaseVerdict.SUSPECTED  # three launches cannot prove one of three cases
    assert not is_decided(slow)
    assert not needs_confirmation(slow)
    last = judged(run(1, 6, slower={COPY: 0.03}), policy=policy, look=1)
    assert is_decided(last)
    assert needs_confirmation(last)
    assert (early.looks, last.looks) == (1, 2)


def test_is_decided__after_the_last_look_whatever_it_shows() -> None:
    policy = Policy(launches=3, stages=(2, 3), alpha=0.05)
    own = baseline()
    report = judged(run(1, 3, slower=dict.fromkeys(INFOS, 0.0055)), own, policy, look=1)
    assert is_decided(report)


def test_judge__a_confirmed_regression_reports_the_confirmations_effect() -> None:
    candidate, fresh = run(1, slower={COPY: 0.03}), run(2, slower={COPY: 0.04})
    first = judged(candidate)
    report = judged(candidate, confirmation=fresh, first=first)
    found = case(report)
    assert (report.verdict, report.exit_code, found.confirmed) == (CheckVerdict.REGRESSED, 1, True)
    assert found.change is not None
    assert found.change.value == pytest.approx(0.04, abs=2e-3)
    assert found.first_change == case(first).change
    assert found.p_adjusted == found.p_slower
    assert "confirmed by fresh launches" in report.summary
    assert report.launches == 12
    assert not needs_confirmation(report)
    assert judged(candidate, confirmation=fresh).cases == report.cases


def test_judge__what_fresh_launches_do_not_confirm_is_inconclusive_with_both_estimates() -> None:
    candidate = run(1, slower={COPY: 0.03})
    report = judged(candidate, confirmation=run(2), first=judged(candidate))
    found = case(report)
    assert (report.verdict, report.exit_code) == (CheckVerdict.INCONCLUSIVE, 0)
    assert (found.verdict, found.confirmed) == (CaseVerdict.INCONCLUSIVE, False)
    assert "not-confirmed" in codes(found)
    assert found.first_change is not None
    assert found.change is not None
    assert found.first_change.value > 0.02 > found.change.value


def test_judge__fresh_launches_that_still_look_slower_leave_a_suspicion() -> None:
    candidate = run(1, slower={COPY: 0.03})
    fresh = run(2)
    wild = normal_medians(3, 6, median_s=2.5e-3 * 1.02, spread=0.02)
    launches = tuple(
        replace(launch, cases={**launch.cases, COPY: make_case_launch(wild[place])})
        for place, launch in enumerate(fresh.launches)
    )
    found = case(judged(candidate, confirmation=replace(fresh, launches=launches), first=judged(candidate)))
    assert found.change is not None
    assert found.change.value > 0.005
    assert found.verdict is CaseVerdict.SUSPECTED
    assert found.confirmed is False


def test_judge__a_confirmation_that_failed_leaves_no_verdict() -> None:
    candidate = run(1, slower={COPY: 0.03})
    lacking = run(2, infos={READ: INFOS[READ], GEMM: INFOS[GEMM]})
    report = judged(candidate, confirmation=lacking, first=judged(candidate))
    assert case(report).verdict is CaseVerdict.INVALID
    assert "the baseline has it, this run does not" in (case(report).reason or "")
    elsewhere = judged(
        candidate, confirmation=run(2, gpu=replace(H200, board_part_number="x")), first=judged(candidate)
    )
    assert "another GPU" in (case(elsewhere).reason or "")
    broken = run(2)
    launches = tuple(replace(launch, cases={}, failures={COPY: "crash"}) for launch in broken.launches)
    crashed = judged(candidate, confirmation=replace(broken, launches=launches), first=judged(candidate))
    assert "crash" in (case(crashed).reason or "")


def test_judge__a_confirmation_that_nothing_asked_for_changes_nothing() -> None:
    first = judged(run(1))
    assert judged(run(1), confirmation=run(2, slower={COPY: 0.1}), first=first) is first


def test_judge__everything_slower_beside_another_process_is_invalid() -> None:
    busy = Health(foreign_processes=("python 4711",))
    report = judged(run(1, slower=dict.fromkeys(INFOS, 0.12), health_after=busy))
    assert (report.verdict, report.exit_code) == (CheckVerdict.INVALID, 8)
    assert "python 4711" in report.summary
    assert judged(run(1, health_after=busy)).verdict is CheckVerdict.PASSED


def test_judge__a_shift_of_a_whole_family_is_a_cause() -> None:
    report = judged(run(1, slower={COPY: 0.03, READ: 0.031}))
    assert "family-shift" in {cause.code for cause in case(report).causes}
    assert "family-shift" in {cause.code for cause in report.causes}
    assert "family-shift" not in {cause.code for cause in case(report, GEMM).causes}


def test_judge__canaries_beside_a_changed_kernel_are_a_cause() -> None:
    infos = {**INFOS, COPY: make_case_info(source_sha256="d" * 64)}
    report = judged(run(1, slower={COPY: 0.03, GEMM: 0.05}, infos=infos))
    assert [cause.code for cause in case(report).causes] == ["source-changed", "canaries-moved"]


def test_judge__a_clock_drop_alone_is_a_finding_beside_an_unchanged_verdict() -> None:
    infos = {COPY: INFOS[COPY], GEMM: make_case_info("gemm", work=GEMM_WORK, unit=Unit.CYCLES)}
    own = baseline(infos=infos)
    candidate = run(1, infos=infos)
    slow_clock = tuple(
        replace(
            launch,
            cases={
                **launch.cases,
                GEMM: make_case_launch(launch.cases[GEMM].blocks[0].times_s[0] * 1.02, sm_clock_hz=1.98e9 / 1.02),
            },
        )
        for launch in candidate.launches
    )
    found = case(judged(replace(candidate, launches=slow_clock), own), GEMM)
    assert found.verdict is CaseVerdict.UNCHANGED
    assert "clock-lower" in codes(found)
    assert found.candidate_s is not None
    assert found.baseline_s is not None
    assert found.candidate_s / found.baseline_s == pytest.approx(1.02, abs=2e-3)


def test_judge__throttling_is_a_cause_of_the_case() -> None:
    candidate = run(1, slower={COPY: 0.03})
    launches = tuple(
        replace(launch, cases={**launch.cases, COPY: replace(launch.cases[COPY], clock_events_s={"hw_thermal": 0.5})})
        for launch in candidate.launches
    )
    first = replace(launches[0], cases={one: launches[0].cases[one] for one in (READ, GEMM)})
    report = judged(replace(candidate, launches=(first, *launches[1:])))
    assert [cause.code for cause in case(report).causes] == ["throttled"]
    assert "2.5 s" in case(report).causes[0].message
    assert "launches-lost" in codes(case(report))


def test_judge__lowered_clocks_are_no_cause_of_more_cycles() -> None:
    infos = {COPY: make_case_info(unit=Unit.CYCLES)}
    capped = run(1, slower={COPY: 0.03}, infos=infos)
    launches = tuple(
        replace(
            launch,
            cases={
                COPY: replace(
                    launch.cases[COPY],
                    clock_events_s={"sw_power_cap": 0.5},
                    # A lower clock takes longer for as many cycles, and 3 % more on top.
                    blocks=tuple(
                        replace(one, sm_clock_hz=1.5e9, times_s=tuple(1.98 / 1.5 * time_s for time_s in one.times_s))
                        for one in launch.cases[COPY].blocks
                    ),
                )
            },
        )
        for launch in capped.launches
    )
    report = judged(replace(capped, launches=launches), baseline(infos=infos))
    assert case(report).verdict is CaseVerdict.REGRESSED
    assert [cause.code for cause in case(report).causes] == ["hardware-finding"]


def test_judge__slow_creep_is_warned_about_though_every_step_passed() -> None:
    own = baseline()
    for day, slower in ((20, 0.003), (21, 0.006)):
        step = accepted_session(
            run(day, 12, slower=dict.fromkeys(INFOS, slower)),
            replace(FIRST, recorded_utc=f"2026-12-{day}T12:00:00Z"),
        )
        own = with_session(own, step)
    report = judged(run(1, slower=dict.fromkeys(INFOS, 0.0085)), own, Policy(margins={"*": 0.007}))
    assert report.verdict is not CheckVerdict.REGRESSED
    assert "slow-creep" in codes(case(report))


def test_judge__the_same_regression_is_reported_again_next_time() -> None:
    own = baseline()
    first, again = judged(run(1, slower={COPY: 0.03}), own), judged(run(2, slower={COPY: 0.03}), own)
    assert first.verdict is again.verdict is CheckVerdict.REGRESSED


def test_judge__after_accepting_it_the_same_level_passes_and_the_old_one_is_an_improvement() -> None:
    infos = {**INFOS, COPY: make_case_info(source_sha256="d" * 64)}
    later = replace(FIRST, recorded_utc="2026-11-30T09:00:00Z", reason="accepted")
    own = with_session(baseline(), accepted_session(run(5, 12, slower={COPY: 0.03}, infos=infos), later))
    assert judged(run(1, slower={COPY: 0.03}, infos=infos), own).verdict is CheckVerdict.PASSED
    assert case(judged(run(1, infos=infos), own)).verdict is CaseVerdict.IMPROVED


def test_judge__an_accepted_slowdown_keeps_its_verdict_and_passes() -> None:
    entry = Acceptance(case="bandwidth.*", limit=0.05, reason="more accurate", link="https://example.org/1")
    report = judged(run(1, slower={COPY: 0.03}), policy=Policy(accept=(entry,)))
    assert (report.verdict, report.exit_code) == (CheckVerdict.REGRESSED, 0)
    assert case(report).accepted == "more accurate (https://example.org/1), up to +5.00 %"
    assert "accepted by the policy" in report.summary
    assert "new baseline session" in report.next_step


def test_judge__a_rehearsal_is_named_and_judged_though_its_plan_differs() -> None:
    injected = (Injection(pattern="bandwidth.copy", requested="+3%", effective={COPY: 0.03}),)
    report = judged(run(1, slower={COPY: 0.03}, injected=injected))
    assert report.verdict is CheckVerdict.REGRESSED
    assert report.injected == injected
    assert "injected" in codes(case(report))
    assert "bandwidth.copy +3% was injected" in report.caveats[0].message


def test_judge__reports_which_baseline_and_environment_were_used() -> None:
    older = make_session({COPY: 2.5e-3}, chip="0badc0de")
    own = with_session(baseline(), replace(older, provenance=replace(FIRST, recorded_utc="2026-12-01T00:00:00Z")))
    report = judged(run(1, environment=replace(ENVIRONMENT, driver_version="590.1")), own, baseline_source="h200.json")
    assert report.baseline is not None
    assert (report.baseline.source, report.baseline.sessions, report.baseline.sessions_of_chip) == ("h200.json", 2, 1)
    assert report.baseline.newest_utc == FIRST.recorded_utc
    assert [one.field for one in report.environment_differences] == ["driver_version"]
    assert "driver-differs" in codes(case(report))
    assert (report.sm_clock_hz, report.temperature_c) == (1.98e9, 40.0)


def test_judge__a_spread_that_changed_is_said() -> None:
    noisy = run(1)
    wild = normal_medians(3, 6, median_s=2.5e-3, spread=5e-3)
    launches = tuple(
        replace(launch, cases={**launch.cases, COPY: make_case_launch(wild[place])})
        for place, launch in enumerate(noisy.launches)
    )
    assert "spread-changed" in codes(case(judged(replace(noisy, launches=launches))))


def test_judge__bimodal_history_is_no_accusation() -> None:
    # 22.5 ms or 25.5 ms between runs of unchanged code: a difference that says nothing about a change.
    own = baseline()
    for day, factor in ((20, 25.5 / 22.5), (21, 1.0), (22, 25.5 / 22.5)):
        other = run(day, 12, slower={COPY: factor - 1})
        own = with_session(own, accepted_session(other, replace(FIRST, recorded_utc=f"2026-11-{day}T12:00:00Z")))
    report = judged(run(1, slower={COPY: 25.2 / 22.5 - 1}), own)
    assert case(report).verdict is CaseVerdict.NOT_GATED
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("before_us", "now_us", "noise"),
    [(81.717, 83.403, (0.0421, 0.0459)), (944.862, 948.812, (0.0027, 0.0074))],
)
def test_judge__published_differences_below_three_percent_do_not_fail_a_gate_of_three(
    before_us: float, now_us: float, noise: tuple[float, float]
) -> None:
    infos = {"own.kernel": make_case_info("own", work=Work())}
    base = normal_medians(1, 12, median_s=before_us * 1e-6, spread=noise[0])
    fresh = normal_medians(2, 6, median_s=now_us * 1e-6, spread=noise[1])
    own = baseline_of(make_run({"own.kernel": base}, infos=infos), FIRST)
    report = judged(make_run({"own.kernel": fresh}, infos=infos), own, Policy(margins={"*": 0.03}))
    assert report.exit_code == 0


def test_judge__a_short_kernel_is_held_to_the_same_ratio() -> None:
    # 12 us and half as much again; and 990 ns to 1.1 us: no floor in raw units, no confusion of units.
    for before_s, now_s, change in ((12e-6, 18e-6, 0.5), (990e-9, 1.1e-6, 0.111)):
        infos = {"own.kernel": make_case_info("own", work=Work())}
        own = baseline_of(make_run({"own.kernel": normal_medians(1, 12, median_s=before_s)}, infos=infos), FIRST)
        report = judged(make_run({"own.kernel": normal_medians(2, 6, median_s=now_s)}, infos=infos), own)
        assert report.verdict is CheckVerdict.REGRESSED
        assert report.cases[0].change is not None
        assert report.cases[0].change.value == pytest.approx(change, abs=2e-3)


def test_judge__a_clock_that_reads_a_little_off_does_not_change_the_identity() -> None:
    # Locked at 1500 MHz and read as 1495, memory clock read as 10678 or 10681: same GPU, same verdict.
    report = judged(run(1, gpu=replace(H200, memory_clock_hz=3.2011e9, sm_clock_max_hz=1.495e9)))
    assert report.verdict is CheckVerdict.PASSED


def test_judge__a_recording_replayed_as_the_candidate_is_judged() -> None:
    assert judged(run(1, device_kind="recorded")).verdict is CheckVerdict.PASSED
