"""A pytest that supervises launches: it has them run, and then judges every test by what they measured."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError
from perfgate.testing.role import (
    AGAINST_OPTION,
    JOURNAL_OPTION,
    ORDER_OPTION,
    WIDTH,
    Role,
    case_name,
    is_benchmark,
    show_run,
    write_run_document,
)

if TYPE_CHECKING:
    from perfgate.core.device import Device
    from perfgate.core.policy import Policy
    from perfgate.core.report import CaseResult, Report
    from perfgate.core.run import Run

_LAUNCHES_WITH_BASELINE = 6
_FLAGS = ("--perfgate-control",)


def launches_asked(config: pytest.Config) -> int:
    """Return the number of launches: as asked; one, or with a baseline as many as a check.

    Raises:
        UsageError: fewer than one.
    """
    asked: int | None = config.getoption("--perfgate-launches")
    if asked is not None and asked < 1:
        raise pytest.UsageError(f"--perfgate-launches {asked}: at least 1")
    default = 1 if config.getoption("--perfgate-baseline") is None else _LAUNCHES_WITH_BASELINE
    return default if asked is None else asked


class Supervising(Role):
    """Has the launches run, then judges every test by them."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._run: Run | None = None
        self._report: Report | None = None
        self._reasons: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Measure before any test runs."""
        tests = [item for item in session.items if is_benchmark(item)]
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return  # pytest itself refuses to go on
        if tests and not session.config.option.collectonly:
            try:
                self._measure(session.config, [case_name(item) for item in tests])
            except PerfgateError as error:
                raise pytest.UsageError(f"perfgate: {error.message} {error.hint}".strip()) from error

    def _measure(self, config: pytest.Config, case_ids: list[str]) -> None:
        from perfgate.workflow import devices

        device = devices.opened_device(config.getoption("--perfgate-device"))
        if config.getoption(AGAINST_OPTION) is not None:
            self._compare(config, device, case_ids)
        else:
            self._launch(config, device, case_ids)
        asked: Path | None = config.getoption("--perfgate-run")
        if asked is not None:
            write_run_document(asked, self._run)

    def _launch(self, config: pytest.Config, device: "Device", case_ids: list[str]) -> None:
        """Measure these tests, and judge them by a stored baseline where that is asked for."""
        from perfgate.storage.policy import read_policy
        from perfgate.workflow.benching import Benches
        from perfgate.workflow.checking import known_plans

        place: Path | None = config.getoption("--perfgate-baseline")
        launches = launches_asked(config)
        with tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True) as described:
            benches = Benches(
                device=device,
                case_ids=tuple(case_ids),
                arguments=_arguments(config),
                order_option=ORDER_OPTION,
                journal_option=JOURNAL_OPTION,
                described=Path(described),
                plans={} if place is None else known_plans(place, device.gpu),
            )
            with device.lock(wait=True):
                benches.measure(range(launches))
            self._run, self._reasons = benches.run(), benches.reasons
        if place is not None:
            self._report = _judged(self._run, place, read_policy(None, Path.cwd()))

    def _compare(self, config: pytest.Config, device: "Device", case_ids: list[str]) -> None:
        """Measure these tests and those of a base in turn, and judge by that."""
        from perfgate.workflow.benching_against import TestsAgainstBase
        from perfgate.workflow.devices import baseline_place, session_seed

        places = tuple(map(str, config.option.file_or_dir))
        contest = TestsAgainstBase(
            device=device,
            revision=config.getoption(AGAINST_OPTION),
            case_ids=tuple(case_ids),
            options=_arguments(config, without=places),
            places=places,
            order_option=ORDER_OPTION,
            journal_option=JOURNAL_OPTION,
            folder=config.invocation_params.dir,
            baseline_place=baseline_place(config.getoption("--perfgate-baseline"), device),
            launches=config.getoption("--perfgate-launches"),
            control=config.getoption("--perfgate-control"),
            seed=session_seed(None, device),
        )
        result, self._reasons = contest.verdict()
        self._run, self._report = result.run, result.report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail where the comparison does although every test that is here passed: one is gone."""
        from perfgate.errors import ExitCode

        # New tests have nothing to be compared with, and passed.
        code = ExitCode.PASSED if self._report is None else self._report.exit_code
        if code not in (ExitCode.PASSED, ExitCode.NO_BASELINE) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report a test by what was measured; it does not run again, and nor do its fixtures."""
        if not is_benchmark(item) or self._run is None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        failure = self._failure(case_name(item))
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords=dict.fromkeys(item.keywords, 1),
            outcome="passed" if failure is None else "failed",
            longrepr=failure,
            when="call",
        )
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _failure(self, case_id: str) -> str | None:
        """Say why a test fails; None where it passes."""
        from perfgate.core.validity import Unusable, measured

        assert self._run is not None  # noqa: S101 - the protocol asks for it only then
        if case_id not in self._run.cases or not any(case_id in launch.cases for launch in self._run.launches):
            return f"{case_id}: not measured: {self._reasons.get(case_id, 'no launch said why')}"
        side = measured(case_id, _launches_of(case_id, self._run))
        if isinstance(side, Unusable):
            return f"{case_id}: {side.reason}"
        result = next((one for one in self._report.cases if one.id == case_id), None) if self._report else None
        return self._verdict_failure(result) if result is not None and not result.accepted else None

    def _verdict_failure(self, result: "CaseResult") -> str | None:
        from perfgate.core.units import percent_text
        from perfgate.core.verdict import CaseVerdict

        failing = {CaseVerdict.REGRESSED, CaseVerdict.INVALID}
        if self._report is not None and self._report.policy.suspected_fails:
            failing.add(CaseVerdict.SUSPECTED)
        if result.verdict not in failing:
            return None
        if result.change is None or result.margin is None:
            return f"{result.id}: {result.verdict}: {result.reason}"
        change = percent_text(result.change.value, signed=True)
        causes = "".join(f"; {cause.message}" for cause in result.causes)
        return f"{result.id}: {result.verdict} by {change}, margin {percent_text(result.margin.relative)}{causes}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the judgement, or what was measured."""
        if self._report is not None:
            from perfgate.report.terminal import render_terminal

            terminalreporter.section("perfgate")
            terminalreporter.write_line(render_terminal(self._report, width=WIDTH, color=False, unicode=True))
        elif self._run is not None:
            show_run(terminalreporter, self._run)


def _launches_of(case_id: str, run: "Run") -> "Run":
    """Leave out launches that were not told to measure a case: those in turn, where the pilot showed enough."""
    told = tuple(one for one in run.launches if case_id in one.cases or case_id in one.failures)
    return replace(run, launches=told)


def _judged(run: "Run", place: Path, policy: "Policy") -> "Report":
    from perfgate.errors import BaselineError
    from perfgate.storage.baselines import find_baseline
    from perfgate.workflow.cases import Selection
    from perfgate.workflow.checking import compared, selected_baseline, with_launches

    found = find_baseline(place, run.gpu).found
    if found is None:
        raise BaselineError(
            f"no baseline for {run.gpu.name} in {place}",
            hint="record one: pytest --perfgate-launches 12 --perfgate-run run.json, then"
            " perfgate baseline update --from run.json --reason ...",
        )
    asked = Selection(suite="", cases=tuple(run.cases))
    one_look = with_launches(policy, len(run.launches))
    return compared(selected_baseline(found.baseline, asked), found.path.name, run, one_look)


def _arguments(config: pytest.Config, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of a launch: those of this pytest, but for ours; neither cache nor another order.

    ``without`` are files and folders to leave out.
    """
    kept, is_value, left = [], False, list(without)
    for argument in config.invocation_params.args:
        text = str(argument)
        if is_value:
            is_value = False
        elif text.startswith("--perfgate-"):
            is_value = "=" not in text and text not in _FLAGS
        elif text in left:
            left.remove(text)
        else:
            kept.append(text)
    return (*kept, "-p", "no:cacheprovider", "-p", "no:randomly")
