"""The fixture ``gpu_benchmark``."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError
from perfgate.testing.role import FIXTURE, Role, case_name

if TYPE_CHECKING:
    from perfgate.api.stream import Stream
    from perfgate.core.case import Work

MARK = FIXTURE
_SETTINGS = ("gated", "graph", "version")


class GpuBenchmark:
    """The fixture.

    Args:
        request: of the test.
        role: what this pytest is.
    """

    def __init__(self, request: pytest.FixtureRequest, role: Role) -> None:
        self._request = request
        self._role = role
        self._is_used = False

    @property
    def stream(self) -> "Stream":
        """The stream to enqueue on."""
        return self._role.bench().stream

    def __call__(
        self,
        run: Callable[[], object] | Sequence[Callable[[], object]],
        *,
        work: "Work | None" = None,
        outputs: Sequence[Any] = (),
        reference: Callable[[], Any] | None = None,
        tolerance: float | None = None,
    ) -> float:
        """Measure a callable and return its median time [s].

        Args:
            run: enqueues one execution on ``stream`` and returns; several are taken in turn.
            work: FLOP and bytes of one execution.
            outputs: device arrays that it writes whole.
            reference: what they must hold.
            tolerance: largest relative error.
        """
        from perfgate.api.callable_case import Execution, callable_case
        from perfgate.core.summary import launch_statistic

        if self._is_used:
            pytest.fail("gpu_benchmark measures once in a test: parametrize it for more", pytrace=False)
        self._is_used = True
        execution = Execution(run, outputs, reference, tolerance)
        settings = _settings(self._request.node)
        case = callable_case(
            case_name(self._request.node),
            lambda _: execution,
            work=work,
            sources=(self._request.node.path,),
            **settings,
        )
        try:
            result = self._role.bench().measured(case)
        except PerfgateError as error:
            pytest.fail(f"{error.message}\n{error.hint}".strip(), pytrace=False)
        found = launch_statistic(result.launch, case.unit)
        if found is None:
            reasons = {block.reason for block in result.launch.blocks if block.reason}
            pytest.fail(f"no valid time: {'; '.join(sorted(reasons))}", pytrace=False)
        return found


def _settings(item: pytest.Item) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARK))):
        strange = set(mark.kwargs) - set(_SETTINGS)
        if strange or mark.args:
            pytest.fail(f"mark {MARK} takes {', '.join(_SETTINGS)} by name", pytrace=False)
        settings |= mark.kwargs
    return settings
