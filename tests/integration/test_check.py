"""``perfgate check`` from its arguments to its exit code, on a recording: launches are real processes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.report import CaseResult, MarginSource, Report
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.storage.documents import read_report, read_run, write_run

COPY, GEMM = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]"
GATED = {
    COPY,
    GEMM,
    "bandwidth.read[bytes=4GiB]",
    "bandwidth.triad[bytes=4GiB]",
    "bandwidth.write[bytes=4GiB]",
    "launch.gap",
}
RESULTS = Path("perfgate-results")


@pytest.fixture
def check(perfgate: Callable[..., Any], device: str, baselines: Path) -> Callable[..., Any]:
    """``perfgate check`` of the recording against its own baseline."""

    def call(*arguments: object, device: str = device, baseline: Path = baselines) -> Any:
        return perfgate("check", "--device", device, "--baseline", baseline, *arguments)

    return call


def stored() -> Report:
    return read_report(RESULTS / "report.json")


def with_verdict(report: Report, verdict: CaseVerdict) -> set[str]:
    return {case.id for case in report.cases if case.verdict is verdict}


def case_of(report: Report, case_id: str) -> CaseResult:
    return next(case for case in report.cases if case.id == case_id)


def with_other_gpu(run: Run, path: Path, **changes: object) -> str:
    """Write a recording of a GPU that differs in some fields; return what names it as a device."""
    write_run(path, replace(run, gpu=replace(run.gpu, **changes)))  # type: ignore[arg-type]
    return f"recorded:{path}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_check__passes_where_nothing_changed_and_stops_at_the_first_look(check: Any, seed: int) -> None:
    ending = check("--seed", seed)
    report = stored()
    assert ending.code == 0, ending.out
    assert report.verdict is CheckVerdict.PASSED
    assert with_verdict(report, CaseVerdict.UNCHANGED) == GATED
    assert (report.launches, report.looks) == (3, 1)
    assert ending.out.splitlines()[-1] == "RECORDED PASSED: 6 unchanged, 2 not gated. Exit 0."
    assert ending.err == ""


def test_check__writes_its_results_and_nothing_else(check: Any) -> None:
    check()
    assert {path.name for path in RESULTS.iterdir()} >= {"run.json", "report.json", "report.md", ".gitignore"}
    assert not (RESULTS / "confirmation.json").exists()
    assert (RESULTS / ".gitignore").read_text() == "*\n"
    assert len(read_run(RESULTS / "run.json").launches) == 3
    assert (RESULTS / "report.md").read_text().startswith("### perfgate: passed on NVIDIA H200")


def test_check__prints_the_report_as_it_is_stored(check: Any) -> None:
    ending = check("--json")
    assert ending.out == (RESULTS / "report.json").read_text()


def test_check__repeats_exactly_with_the_same_seed(check: Any) -> None:
    def measured(*arguments: object) -> list[Any]:
        check("--case", "bandwidth.copy", "--case", "launch.gap", *arguments)
        launches = json.loads((RESULTS / "run.json").read_text())["launches"]
        return [{case: value["blocks"] for case, value in launch["cases"].items()} for launch in launches]

    first = measured()
    assert measured() == first
    assert measured("--seed", "0") == first
    assert measured("--seed", "1") != first


@pytest.mark.parametrize(
    ("injected", "slower", "change"), [("bandwidth.copy=+2%", COPY, 0.02), ("gemm*=+3%", GEMM, 0.03)]
)
def test_check__names_exactly_the_case_that_got_slower(check: Any, injected: str, slower: str, change: float) -> None:
    ending = check("--inject", injected)
    report = stored()
    result = case_of(report, slower)
    assert ending.code == 1, ending.out
    assert report.verdict is CheckVerdict.REGRESSED
    assert with_verdict(report, CaseVerdict.REGRESSED) == {slower}
    assert with_verdict(report, CaseVerdict.UNCHANGED) == GATED - {slower}
    assert result.change is not None
    assert result.change.value == pytest.approx(change, rel=0.1)
    assert result.change.low is not None
    assert result.margin is not None
    assert result.change.low > result.margin.relative
    assert result.margin.source is MarginSource.SAME_CHIP_DEFAULT
    assert ending.out.splitlines()[-1].startswith("RECORDED INJECTED REGRESSED: 1 regressed, 5 unchanged")


def test_check__confirms_a_regression_with_fresh_launches(check: Any) -> None:
    check("--inject", "bandwidth.copy=+2%")
    report, run, confirmation = stored(), read_run(RESULTS / "run.json"), read_run(RESULTS / "confirmation.json")
    result = case_of(report, COPY)
    assert (len(run.launches), len(confirmation.launches)) == (6, 6)
    assert [launch.index for launch in confirmation.launches] == [6, 7, 8, 9, 10, 11]
    assert report.launches == 12
    assert result.confirmed is True
    assert result.first_change is not None
    assert result.change is not None
    assert result.first_change.value == pytest.approx(result.change.value, abs=2e-3)
    assert confirmation.launches[0].cases[COPY].blocks != run.launches[0].cases[COPY].blocks


def test_check__a_faster_case_is_improved_and_passes(check: Any) -> None:
    ending = check("--inject", "bandwidth.copy=-2%")
    assert ending.code == 0, ending.out
    assert with_verdict(stored(), CaseVerdict.IMPROVED) == {COPY}
    assert "improved" in ending.out


def test_check__a_change_of_all_cases_is_told_from_a_change_of_one_kernel(check: Any) -> None:
    ending = check("--inject", "*=+3%")
    report = stored()
    assert ending.code == 1
    assert with_verdict(report, CaseVerdict.REGRESSED) == GATED - {"launch.gap"}
    assert "one kernel cannot be why" in " ".join(ending.out.split())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("throttle", "hw thermal slowdown"),
        ("crash", "SIGSEGV (segmentation fault)"),
        ("hang", "no sign of life"),
        ("oom", "out of memory"),
    ],
)
def test_check__a_fault_spoils_its_case_and_leaves_the_others(
    check: Any, monkeypatch: pytest.MonkeyPatch, fault: str, reason: str
) -> None:
    from perfgate.workflow import starting

    monkeypatch.setattr(starting, "RECORDED_LIMITS", replace(starting.RECORDED_LIMITS, stall_s=1.0))
    ending = check("--inject", f"bandwidth.copy={fault}")
    report = stored()
    assert ending.code == 8, ending.out
    assert report.verdict is CheckVerdict.INVALID
    assert with_verdict(report, CaseVerdict.INVALID) == {COPY}
    assert with_verdict(report, CaseVerdict.UNCHANGED) == GATED - {COPY}
    assert reason in (case_of(report, COPY).reason or "")
    assert f"rehearsal: bandwidth.copy {fault}" in " ".join(ending.out.split())


def test_check__a_wrong_output_beats_every_time_and_leaves_the_others_judged(check: Any) -> None:
    ending = check("--inject", "bandwidth.copy=wrong-output")
    assert ending.code == 6
    assert f"{COPY}: wrong output" in ending.err + ending.out
    assert "Traceback" not in ending.err
    report = stored()
    assert with_verdict(report, CaseVerdict.INVALID) == {COPY}
    assert with_verdict(report, CaseVerdict.UNCHANGED) == GATED - {COPY}
    assert report.exit_code == 6
    assert report.summary == f"The output of {COPY} is wrong: times mean nothing until it is right."


def test_check__whose_outputs_are_all_wrong_has_no_report(check: Any) -> None:
    ending = check("--inject", "*=wrong-output")
    assert ending.code == 6
    assert "wrong output" in ending.err


def test_check__of_another_chip_uses_the_margin_between_chips_and_says_so(
    check: Any, recorded_run: Run, workplace: Path
) -> None:
    ending = check(device=with_other_gpu(recorded_run, workplace / "other.json.gz", chip="0123456789ab"))
    report = stored()
    assert ending.code == 0, ending.out
    for case in report.cases:
        assert "cross-chip" in {caveat.code for caveat in case.caveats}
        assert case.margin is not None
        assert case.margin.source is MarginSource.CROSS_CHIP_DEFAULT
    copy = case_of(report, COPY)
    assert copy.margin is not None
    assert copy.margin.relative == 0.01
    assert report.baseline is not None
    assert (report.baseline.sessions, report.baseline.sessions_of_chip) == (1, 0)
    assert "other chips of this GPU" in " ".join(ending.out.split())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("board_part_number", "692-2G520-0282-000"),
        ("board_part_number", None),
        ("memory_bytes", 80 * 10**9),
        ("mig_profile", "1g.18gb"),
        ("ecc_enabled", False),
    ],
)
def test_check__of_another_gpu_measures_nothing_and_names_the_field(
    check: Any, recorded_run: Run, workplace: Path, field: str, value: object
) -> None:
    ending = check(device=with_other_gpu(recorded_run, workplace / "other.json.gz", **{field: value}))
    report = stored()
    assert ending.code == 4, ending.out
    assert report.verdict is CheckVerdict.NOT_COMPARABLE
    assert [one.field for one in report.identity_differences] == [field]
    assert not (RESULTS / "run.json").exists()
    assert "perfgate baseline update" in " ".join(ending.out.split())


def test_check__without_a_baseline_says_how_to_make_one(check: Any, workplace: Path) -> None:
    (workplace / "none").mkdir()
    ending = check(baseline=workplace / "none")
    assert ending.code == 4
    assert stored().verdict is CheckVerdict.NO_BASELINE
    assert "perfgate baseline update" in " ".join(ending.out.split())


def test_check__a_folder_of_baselines_that_does_not_exist_is_no_baseline(check: Any, workplace: Path) -> None:
    assert check(baseline=workplace / "missing").code == 4
    assert not (workplace / "missing").exists()


def test_check__of_some_cases_does_not_miss_the_others(check: Any) -> None:
    ending = check("--case", "bandwidth.*", "--case", GEMM)
    assert ending.code == 0, ending.out
    assert {case.id for case in stored().cases} == {one for one in GATED if one != "launch.gap"}


def test_check__a_case_that_the_baseline_lacks_is_new(check: Any, perfgate: Any, device: str, workplace: Path) -> None:
    assert (
        perfgate(
            "baseline", "update", "--device", device, "--case", "bandwidth.[rw]*", "--baseline", "b", "--reason", "r"
        ).code
        == 2
    )
    part = workplace / "part"
    made = perfgate(
        "baseline", "update", "--device", device, "--case", "bandwidth.read", "--baseline", part, "--reason", "r"
    )
    assert made.code == 0, made.err
    ending = check("--case", "bandwidth.read", "--case", "bandwidth.write", baseline=part)
    assert with_verdict(stored(), CaseVerdict.NEW) == {"bandwidth.write[bytes=4GiB]"}
    assert ending.code == 0, ending.out


def test_check__measures_what_its_policy_says(check: Any, workplace: Path) -> None:
    (workplace / "perfgate.toml").write_text("launches = 4\nstages = [2, 4]\n[margins]\n'bandwidth.*' = '4%'\n")
    ending = check("--inject", "bandwidth.copy=+2%", "--case", "bandwidth.copy")
    report = stored()
    assert ending.code == 0, ending.out
    margin = case_of(report, COPY).margin
    assert margin is not None
    assert (margin.relative, margin.source) == (0.04, MarginSource.POLICY)
    assert report.policy.stages == (2, 4)


def test_check__quiet_says_nothing_beside_the_report(check: Any) -> None:
    ending = check("--inject", "bandwidth.copy=crash", "--quiet", "--case", "bandwidth.copy", "--case", "gemm*")
    assert ending.code == 8
    assert ending.err == ""
