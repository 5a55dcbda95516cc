"""What every renderer says in words."""

from dataclasses import replace

import pytest

from perfgate.core.gpu import Environment, Gpu
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import Cause
from perfgate.core.roofs import Roof, Roofs
from perfgate.core.run import Injection
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.report import sentences
from tests.factories import ENVIRONMENT, H200
from tests.golden.reports import BASELINE, REGRESSED_GEMM, ROOFS, UNCHANGED, accepted, invalid, make_report, regressed

AUTHOR, MAINTAINER, RUNNER = "the author of this change", "a maintainer", "the owner of the runner"


@pytest.mark.parametrize(
    ("verdict", "exit_code", "text"),
    [
        (CheckVerdict.PASSED, 0, "passed on NVIDIA H200"),
        (CheckVerdict.PASSED, 2, "passed on NVIDIA H200, but the check fails with exit 2"),
        (CheckVerdict.REGRESSED, 1, "regressed on NVIDIA H200"),
        (CheckVerdict.REGRESSED, 0, "regressed on NVIDIA H200, accepted"),
        (CheckVerdict.SUSPECTED, 8, "suspected on NVIDIA H200"),
        (CheckVerdict.INCONCLUSIVE, 0, "inconclusive on NVIDIA H200"),
        (CheckVerdict.NO_BASELINE, 4, "no baseline for NVIDIA H200"),
        (CheckVerdict.NOT_COMPARABLE, 4, "no comparable baseline for this NVIDIA H200"),
        (CheckVerdict.INVALID, 8, "invalid measurement on NVIDIA H200"),
    ],
)
def test_headline__is_the_verdict_and_the_gpu(verdict: CheckVerdict, exit_code: int, text: str) -> None:
    assert sentences.headline(make_report((), verdict, "", exit_code=exit_code)) == text


def test_rehearsal__is_empty_for_a_measurement() -> None:
    assert sentences.rehearsal("cuda", ()) == ()


def test_rehearsal__names_each_thing_that_is_not_real() -> None:
    injected = (Injection(pattern="gemm.*", requested="+3%", effective={"gemm.a": 0.0312, "gemm.b": 0.03}),)
    badges = sentences.rehearsal("recorded", injected)
    assert [badge for badge, _ in badges] == ["RECORDED", "INJECTED"]
    assert badges[1][1].endswith("gemm.* +3% (ran +3.00 % / +3.12 %)")


@pytest.mark.parametrize(
    ("verdict", "exit_code", "expected"),
    [
        (CheckVerdict.PASSED, 0, ()),
        (CheckVerdict.REGRESSED, 0, ()),
        (CheckVerdict.INCONCLUSIVE, 0, ()),
        (CheckVerdict.PASSED, 2, (MAINTAINER,)),
        (CheckVerdict.REGRESSED, 1, (AUTHOR,)),
        (CheckVerdict.REGRESSED, 6, ("the author of the kernel",)),
        (CheckVerdict.SUSPECTED, 8, (RUNNER,)),
        (CheckVerdict.INVALID, 8, (RUNNER,)),
        (CheckVerdict.INCONCLUSIVE, 8, (RUNNER,)),
        (CheckVerdict.NO_BASELINE, 4, (MAINTAINER,)),
        (CheckVerdict.NOT_COMPARABLE, 4, (MAINTAINER,)),
    ],
)
def test_actors__without_causes_follow_the_verdict(
    verdict: CheckVerdict, exit_code: int, expected: tuple[str, ...]
) -> None:
    assert sentences.actors(make_report(UNCHANGED, verdict, "", exit_code=exit_code)) == expected


def test_actors__are_whom_the_causes_name_each_once() -> None:
    driver = Cause(code="driver-changed", message="the driver changed", who="runner-owner")
    report = replace(regressed(), causes=(driver, driver, Cause(code="x", message="y", who="the moon")))
    assert sentences.actors(report) == (MAINTAINER, RUNNER, "the moon")


def test_actors__are_not_whom_accepted_quiet_or_ungated_cases_name() -> None:
    cases = (
        replace(REGRESSED_GEMM, accepted="agreed"),
        replace(REGRESSED_GEMM, verdict=CaseVerdict.IMPROVED),
        replace(REGRESSED_GEMM, gated=False),
        replace(REGRESSED_GEMM, causes=()),
    )
    assert sentences.actors(make_report(cases, CheckVerdict.REGRESSED, "", exit_code=1)) == (AUTHOR,)


def test_tally__counts_in_order_of_attention() -> None:
    assert sentences.tally(regressed().cases) == "1 regressed, 1 inconclusive, 1 improved, 4 unchanged, 1 not gated"
    assert sentences.tally(()) == "no cases"


def test_gpu_text__names_board_chip_and_partition() -> None:
    assert sentences.gpu_text(replace(H200, mig_profile="1g.18gb")) == (
        "NVIDIA H200 · MIG 1g.18gb · board 692-2G520-0282-000 · chip 3f9c21aa"
    )
    assert sentences.gpu_text(Gpu(name="X")) == "X"


def test_software_text__leaves_out_the_unknown() -> None:
    assert sentences.software_text(ENVIRONMENT) == "driver 580.159.04 · CUDA 13.0"
    assert sentences.software_text(Environment()) == ""


def test_conditions_text__leaves_out_the_unknown() -> None:
    report = regressed()
    assert sentences.conditions_text(report) == "6 launches · 31 s · SM 1.98 GHz · 34 °C"
    unknown = replace(report, launches=0, measured_s=None, sm_clock_hz=None, temperature_c=None)
    assert sentences.conditions_text(unknown) == ""
    assert sentences.conditions_text(replace(unknown, launches=1)) == "1 launch"


def test_baseline_text__says_how_many_sessions_are_of_this_chip() -> None:
    assert sentences.baseline_text(None) == "none"
    one = replace(BASELINE, source="b.json", sessions=1, sessions_of_chip=0, newest_utc=None)
    assert sentences.baseline_text(one) == "b.json: 1 session, 0 of this chip"
    assert sentences.baseline_text(BASELINE).endswith("4 sessions, 3 of this chip, newest 2026-11-20")


def test_roofs_text__names_measured_roofs_and_ridges() -> None:
    assert sentences.roofs_text(ROOFS) == (
        "DRAM 4.53 TB/s, FP32 50.3 TFLOP/s, BF16 tensor 735 TFLOP/s, "
        "ridge FP32 over DRAM 11 FLOP/byte, ridge BF16 tensor over DRAM 162 FLOP/byte"
    )


def test_roofs_text__without_a_measured_memory_has_no_ridge() -> None:
    paper = replace(ROOFS.memory[0], measured_per_s=None)
    assert sentences.roofs_text(replace(ROOFS, memory=(paper,), compute=ROOFS.compute[:1])) == "FP32 50.3 TFLOP/s"
    integer = Roof(key="int32", label="INT32", unit="OP", measured_per_s=16e12)
    assert sentences.roofs_text(Roofs(gpu_name="X", compute=(integer,))) == "INT32 16.0 TOP/s"
    assert sentences.roofs_text(Roofs(gpu_name="X")) == sentences.roofs_text(None) == ""


def test_known_fields__are_scaled_by_the_unit_in_their_name() -> None:
    known = dict(sentences.known_fields(H200))
    assert known["memory"] == "139.8 GiB"
    assert known["memory clock"] == "3.20 GHz"
    assert known["power limit"] == "700 W"
    assert (known["ECC"], known["integrated"]) == ("yes", "no")
    assert "MIG profile" not in known
    assert list(sentences.known_fields(Environment())) == []


def test_policy_lines__tell_every_field_of_the_policy() -> None:
    acceptance = Acceptance(case="a.*", limit=0.03, reason="agreed")
    both = (acceptance, replace(acceptance, link="l", expires="2027-01-01"))
    policy = Policy(margins={"gemm.*": 0.02}, accept=both, suites=("full",), build="make")
    lines = dict(sentences.policy_lines(policy))
    assert len(lines) == len(Policy.__slots__)
    assert lines["alpha"] == "0.01"
    assert lines["margin floor"] == "0.3 %"
    assert lines["confirmation pause"] == "60 s"
    assert lines["stages"] == "3; 6"
    assert lines["margins"] == "gemm.* 2.0 %"
    assert lines["accept"] == "a.* up to 3.00 %: agreed; a.* up to 3.00 %: agreed, l, until 2027-01-01"
    assert dict(sentences.policy_lines(Policy()))["margins"] == "none"


def test_caveat_sentence__joins_doubt_and_remedy() -> None:
    assert (
        invalid()
        .caveats[0]
        .sentence.endswith("5 of 6 launches. Check the cooling of this machine, then measure again.")
    )
    assert accepted().caveats == ()
