"""What every pytest with perfgate shares, whatever its part: the device, opened when the first test asks for it."""

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError

if TYPE_CHECKING:
    from perfgate.core.run import Run
    from perfgate.workflow.benching import Bench

FIXTURE = "gpu_benchmark"
# By these a pytest is told that it is a launch.
ORDER_OPTION, JOURNAL_OPTION = "--perfgate-order", "--perfgate-journal"
AGAINST_OPTION = "--perfgate-against"
WIDTH = 100


class Role:
    """What a pytest is; opens the device when the first test asks for it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._exits = contextlib.ExitStack()
        self._bench: Bench | None = None

    def bench(self) -> "Bench":
        """Return what measures here, opened once.

        Raises:
            PerfgateError: there is no usable GPU.
        """
        if self._bench is None:
            if "PYTEST_XDIST_WORKER" in os.environ:
                pytest.fail("GPU benchmarks cannot share a GPU: run them without -n", pytrace=False)
            try:
                self._bench = self._opened()
            except PerfgateError as error:
                pytest.fail(f"{error.message}\n{error.hint}".strip(), pytrace=False)
        return self._bench

    def _opened(self) -> "Bench":
        raise NotImplementedError

    def pytest_unconfigure(self) -> None:
        """Close the device."""
        self._exits.close()


def is_benchmark(item: pytest.Item) -> bool:
    """Tell whether a test uses the fixture."""
    return FIXTURE in getattr(item, "fixturenames", ())


def case_name(item: pytest.Item) -> str:
    """Return the id of a test's case."""
    from perfgate.workflow.benching import node_case_id

    return node_case_id(item.nodeid)


def write_run_document(place: Path, run: "Run | None") -> None:
    """Write a run document, where there is anything to write."""
    from perfgate.storage.documents import write_run

    if run is not None:
        write_run(place, run)


def show_run(terminalreporter: Any, run: "Run") -> None:
    """Show a run in the terminal's summary."""
    from perfgate.report.run_text import render_run

    terminalreporter.section("perfgate")
    terminalreporter.write_line(render_run(run, width=WIDTH, color=False, unicode=True))
