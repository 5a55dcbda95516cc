"""A pytest on its own: it measures in one launch, in its own process."""

from typing import TYPE_CHECKING, Any

import pytest

from perfgate.testing.role import Role, show_run, write_run_document

if TYPE_CHECKING:
    from perfgate.core.device import Device
    from perfgate.core.run import Run
    from perfgate.workflow.benching import Bench


class Alone(Role):
    """Measures in one launch, here."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._device: Device | None = None

    def _opened(self) -> "Bench":
        from perfgate.workflow import benching, devices

        self._device = devices.opened_device(self._config.getoption("--perfgate-device"))
        self._exits.enter_context(self._device.lock(wait=True))
        return benching.Bench(session=self._exits.enter_context(benching.opened_bench(self._device.address)))

    def pytest_sessionfinish(self) -> None:
        """Write the run document."""
        place = self._config.getoption("--perfgate-run")
        if place is not None and self._run() is not None:
            write_run_document(place, self._run())

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show what was measured."""
        run = self._run()
        if run is not None:
            show_run(terminalreporter, run)

    def _run(self) -> "Run | None":
        from perfgate.workflow.benching import bench_run, single_launch

        if self._bench is None or self._device is None or not self._bench.results:
            return None
        launch = single_launch({case_id: one.launch for case_id, one in self._bench.results.items()})
        return bench_run(self._device, self._bench.infos, (launch,))
