"""A pytest that is a launch: it runs the tests of its order and tells its supervisor."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfgate.core.codec import decode
from perfgate.measure.journal import CaseFailed, FailureKind, LaunchFinished, Started, open_journal
from perfgate.measure.order import LaunchOrder
from perfgate.measure.orphan import end_with_parent
from perfgate.testing.role import JOURNAL_OPTION, ORDER_OPTION, Role, case_name, is_benchmark
from perfgate.workflow.benching import DESCRIBED, node_case_id, write_infos

if TYPE_CHECKING:
    from perfgate.workflow.benching import Bench


class Launched(Role):
    """One launch: runs the tests that its order names, in that order, and tells its supervisor."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        end_with_parent(os.environ)
        self._order: LaunchOrder = decode(
            LaunchOrder, json.loads(config.getoption(ORDER_OPTION).read_text(encoding="utf-8"))
        )
        self._journal = self._exits.enter_context(open_journal(config.getoption(JOURNAL_OPTION)))
        self._journal.write(Started(pid=os.getpid()))
        self._collected: list[str] = []
        self._broken: dict[str, str] = {}

    def _opened(self) -> "Bench":
        from perfgate.workflow import benching

        session = self._exits.enter_context(benching.opened_bench(self._order.device))
        return benching.Bench(
            session=session,
            plans=self._order.plans,
            journal=self._journal,
            forbidden=self._order.options.get("forbidden", ""),
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests of the order, in its order."""
        places = {case_id: place for place, case_id in enumerate(self._order.case_ids)}
        self._collected = [case_name(item) for item in items if is_benchmark(item)]
        items[:] = sorted(
            (item for item in items if is_benchmark(item) and case_name(item) in places),
            key=lambda item: places[case_name(item)],
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what cannot be collected."""
        if report.failed:
            self._broken[report.nodeid] = _last_line(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of a test that failed before it measured anything, was skipped, or never measured."""
        case_id = node_case_id(report.nodeid)
        is_told = self._bench is not None and case_id in self._bench.told
        if is_told or (report.passed and report.when != "call"):
            return
        message = "the test never called gpu_benchmark" if report.passed else _last_line(report)
        self._journal.write(CaseFailed(case_id=case_id, kind=FailureKind.ERROR, message=message))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Say that all is told: what becomes of the tests is the supervisor's."""
        infos = self._bench.infos if self._bench is not None else {}
        write_infos(Path(self._order.options[DESCRIBED]), infos, self._collected, self._broken)
        self._journal.write(LaunchFinished())
        session.exitstatus = pytest.ExitCode.OK


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message).strip().split("\n", maxsplit=1)[0] or report.outcome
    # Of a file that cannot be imported pytest gives a text, which ends with the error.
    lines = [line for line in str(report.longrepr).strip().splitlines() if line.startswith("E ")]
    return lines[-1].removeprefix("E").strip() if lines else str(report.longrepr).strip().split("\n", maxsplit=1)[0]
