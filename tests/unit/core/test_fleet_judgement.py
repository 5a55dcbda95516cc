"""Fleets judged: who is slow and why, who is apart, who is missing, and the exit code."""

from dataclasses import replace

import pytest

from perfgate.core.fleet import BaselineStanding, Member, Seat, Vacancy, member_of
from perfgate.core.fleet_confirmation import confirmed_report
from perfgate.core.fleet_judgement import fleet_margin
from perfgate.core.fleet_report import FindingCode, Standing
from perfgate.core.policy import Policy
from tests.factories import make_run
from tests.fleets import COPY, GEMM, fleet, judged, named, slowed


@pytest.mark.parametrize("seed", range(20))
def test_judge_fleet__finds_what_is_slow_and_accuses_nothing_else(seed: int) -> None:
    def planted(seat: Seat, one: Member) -> Member:
        if seat.name == "n03/5":
            return slowed(one, 0.03, COPY)
        return slowed(one, 0.10) if seat.name == "n10/1" else one

    report = judged(fleet(planted, seed=seed))
    assert named(report, Standing.SLOW) == {"n03/5", "n10/1"}
    assert named(report, Standing.HEALTHY) == {one.seat.name for one in fleet()} - {"n03/5", "n10/1"}
    first = report.members[0]
    assert (first.seat.name, len(first.slow)) == ("n10/1", 2)
    assert first.worst == pytest.approx(0.10, abs=0.005)
    assert report.exit_code == 1


@pytest.mark.parametrize("seed", range(5))
def test_judge_fleet__accuses_nobody_in_a_healthy_fleet(seed: int) -> None:
    report = judged(fleet(seed=seed))
    assert named(report, Standing.HEALTHY) == {one.seat.name for one in fleet()}
    assert report.findings == ()
    assert report.exit_code == 0


def test_judge_fleet__a_gpu_slower_by_less_than_the_margin_is_healthy() -> None:
    report = judged(fleet(lambda seat, one: slowed(one, 0.008) if seat.name == "n03/5" else one))
    assert report.exit_code == 0


def test_judge_fleet__the_policy_s_margin_goes_first() -> None:
    members = fleet(lambda seat, one: slowed(one, 0.02, COPY) if seat.name == "n03/5" else one)
    assert judged(members).exit_code == 1
    assert judged(members, policy=Policy(margins={"bandwidth.*": 0.05})).exit_code == 0
    assert fleet_margin(COPY, Policy(margins={"*": 0.1, "bandwidth.*": 0.05})) == 0.05


def test_judge_fleet__a_slow_node_is_named_once_and_its_gpus_are_slow() -> None:
    report = judged(fleet(lambda seat, one: slowed(one, 0.05) if seat.node == "n07" else one))
    (finding,) = report.findings
    assert (finding.code, finding.attribute, finding.value, finding.seats) == (
        FindingCode.SLOW_GROUP,
        "node",
        "n07",
        8,
    )
    assert set(finding.cases) == {COPY, GEMM}
    assert named(report, Standing.SLOW) == {f"n07/{gpu}" for gpu in range(8)}


def test_judge_fleet__a_driver_that_is_slower_is_named_and_not_its_nodes() -> None:
    def older(seat: Seat, one: Member) -> Member:
        if seat.node >= "n08":
            return one
        return slowed(replace(one, environment=replace(one.environment, driver_version="590.1")), 0.03)

    (finding,) = judged(fleet(older)).findings
    assert (finding.attribute, finding.value, finding.seats) == ("driver_version", "590.1", 64)
    assert finding.message.startswith("driver 590.1: 64 GPUs are 3.0")


def test_judge_fleet__a_rack_that_is_slower_is_named() -> None:
    (finding,) = judged(fleet(lambda seat, one: slowed(one, 0.03) if seat.labels["rack"] == "r2" else one)).findings
    assert (finding.attribute, finding.value, finding.seats) == ("rack", "r2", 32)


def test_judge_fleet__another_board_is_judged_apart() -> None:
    def odd(seat: Seat, one: Member) -> Member:
        if seat.name != "n05/0":
            return one
        return slowed(replace(one, gpu=replace(one.gpu, board_part_number="692-2G520-0282-001")), 0.05)

    report = judged(fleet(odd))
    assert named(report, Standing.SLOW) == set()
    assert named(report, Standing.UNJUDGED) == {"n05/0"}
    (finding,) = report.findings
    assert finding.code is FindingCode.OTHER_BOARD
    assert "1 of 128 GPUs is another board" in finding.message
    assert "692-2G520-0282-001" in finding.message
    assert report.exit_code == 4


def test_judge_fleet__a_lone_board_with_a_baseline_is_judged_by_it() -> None:
    def odd(seat: Seat, one: Member) -> Member:
        if seat.name != "n05/0":
            return one
        board = replace(one.gpu, board_part_number="692-2G520-0282-001")
        return replace(one, gpu=board, baseline=BaselineStanding(verdict="passed", is_judged=True))

    assert judged(fleet(odd)).exit_code == 0


def test_judge_fleet__slower_than_its_baseline_is_slow_though_its_peers_agree() -> None:
    standing = BaselineStanding(verdict="regressed", is_judged=True, regressed={COPY: 0.02})
    report = judged([replace(one, baseline=standing) for one in fleet(nodes=1)])
    assert len(named(report, Standing.SLOW)) == 8
    assert {one.against for one in report.members[0].slow} == {"baseline"}


def test_judge_fleet__says_that_a_slow_gpu_runs_at_a_lower_clock_than_its_peers() -> None:
    def throttled(seat: Seat, one: Member) -> Member:
        if seat.name != "n02/2":
            return one
        slow = slowed(one, 0.10)
        return replace(slow, cases={key: replace(case, sm_clock_hz=1.78e9) for key, case in slow.cases.items()})

    report = judged(fleet(throttled))
    assert any(cause.code == "clock-lower" and "of its peers" in cause.message for cause in report.members[0].causes)


def test_judge_fleet__measured_beside_others_is_not_compared_with_measured_alone() -> None:
    def busy(seat: Seat, one: Member) -> Member:
        return (
            slowed(replace(one, environment=replace(one.environment, concurrency="all")), 0.04)
            if seat.node < "n08"
            else one
        )

    report = judged(fleet(busy))
    assert report.exit_code == 0
    assert report.concurrency is None


def test_judge_fleet__the_missing_and_the_invalid_are_named_and_the_rest_is_judged() -> None:
    members = fleet(lambda seat, one: slowed(one, 0.05) if seat.name == "n01/1" else one)
    members[40] = replace(members[40], cases={GEMM: members[40].cases[GEMM]}, unusable={COPY: "no launch gave a time"})
    gone = [Vacancy(seat=Seat(node="n99", gpu=gpu), reason="its node left the cluster") for gpu in range(8)]
    report = judged(members, *gone)
    assert named(report, Standing.SLOW) == {"n01/1"}
    assert named(report, Standing.INVALID) == {members[40].seat.name}
    assert len(named(report, Standing.MISSING)) == 8
    assert report.exit_code == 1
    assert [one.code for one in report.findings] == [FindingCode.NODE_MISSING]


def test_judge_fleet__exit_codes_of_the_undecided() -> None:
    gone = Vacancy(seat=Seat(node="n99", gpu=0), reason="damaged")
    assert judged(fleet(), gone).exit_code == 8
    assert judged([]).exit_code == 4
    wrong = fleet()
    wrong[0] = replace(wrong[0], cases={}, unusable={COPY: "wrong"}, wrong_outputs=(COPY,))
    assert judged(wrong).exit_code == 6


def test_judge_fleet__names_another_version_of_perfgate() -> None:
    members = fleet(lambda seat, one: replace(one, perfgate_version="0.9.0") if seat.name == "n00/0" else one)
    (finding,) = judged(members).findings
    assert finding.code is FindingCode.OTHER_VERSION
    assert "1 of 128 GPUs was measured by perfgate 0.9.0" in finding.message


def test_member_of__takes_a_run_as_a_check_does() -> None:
    one = member_of(Seat(node="n", gpu=3), make_run({COPY: [2e-3, 2.01e-3, 1.99e-3]}))
    assert one.cases[COPY].median == 2e-3
    assert 0 < one.cases[COPY].error < 0.01


def test_confirmed_report__accuses_only_what_is_slow_both_times() -> None:
    def first(seat: Seat, one: Member) -> Member:
        return slowed(one, 0.05) if seat.name in ("n03/5", "n10/1") else one

    def second(seat: Seat, one: Member) -> Member:
        return slowed(one, 0.05) if seat.name == "n03/5" else one

    report = confirmed_report(judged(fleet(first)), judged(fleet(second)))
    assert named(report, Standing.SLOW) == {"n03/5"}
    (calm,) = [one for one in report.members if one.seat.name == "n10/1"]
    assert "not when it was measured again" in calm.reasons[0]
    assert report.exit_code == 1


def test_confirmed_report__of_a_false_alarm_passes() -> None:
    suspected = judged(fleet(lambda seat, one: slowed(one, 0.05) if seat.name == "n03/5" else one))
    assert confirmed_report(suspected, judged(fleet())).exit_code == 0
