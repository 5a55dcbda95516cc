"""A GPU that is not there, and launches that answer at once: the workflow without devices and processes."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfgate.core.device import DeviceKind
from perfgate.core.gpu import Environment, Gpu
from perfgate.core.run import Health, Launch
from perfgate.measure.journal import CaseFailed, FailureKind, Phase
from perfgate.measure.order import LaunchOrder
from perfgate.measure.supervisor import LaunchOutcome, SessionInterruptedError, SessionProgress
from tests.factories import ENVIRONMENT, H200, PLAN, make_case_launch


@dataclass
class FakeDevice:
    """An H200; notes how it was held."""

    kind: DeviceKind = DeviceKind.CUDA
    gpu: Gpu = H200
    environment: Environment = ENVIRONMENT
    address: str = "cuda:GPU-1"
    foreign: tuple[str, ...] = ()
    xids: tuple[int, ...] | None = None
    log: list[str] = field(default_factory=list)

    def health(self) -> Health:
        self.log.append("health")
        return Health(temperature_c=30.0 + len(self.log), xids=self.xids)

    def foreign_processes(self, own: int) -> tuple[str, ...]:
        self.log.append(f"foreign of {own}")
        return self.foreign

    @contextlib.contextmanager
    def lock(self, *, wait: bool) -> Iterator[None]:
        self.log.append(f"lock, wait={wait}")
        try:
            yield
        finally:
            self.log.append("unlock")

    @contextlib.contextmanager
    def locked_clocks(self, asked_mhz: int | None) -> Iterator[float]:
        self.log.append(f"lock clocks at {asked_mhz}")
        try:
            yield (asked_mhz or 1200) * 1e6
        finally:
            self.log.append("restore clocks")


@dataclass
class Listening:
    """A listener that notes what it was told."""

    log: list[str] = field(default_factory=list)

    def begins(self, launches: int, cases: int) -> None:
        self.log.append(f"begins {launches} x {cases}")

    def progresses(self, launch: int, done_cases: int, case_id: str, phase: str) -> None:
        self.log.append(f"{launch}: {done_cases} {case_id} {phase}")

    def notices(self, message: str) -> None:
        self.log.append(f"notice: {message}")

    def ends(self) -> None:
        self.log.append("ends")


Median = Callable[[LaunchOrder, str], "float | CaseFailed | None"]


@dataclass
class Launches:
    """Stands in for ``supervise``: the launches that it was asked for, and their answers.

    Attributes:
        median: of a case in a launch; None for a launch that died before it, or how the case failed.
        interrupts_at: index of the launch that is interrupted.
    """

    median: Median
    interrupts_at: int | None = None
    sm_clock_hz: float = 1.98e9
    calls: list[list[LaunchOrder]] = field(default_factory=list)

    @property
    def orders(self) -> list[LaunchOrder]:
        return [order for orders in self.calls for order in orders]

    def __call__(
        self,
        orders: Sequence[LaunchOrder],
        start: Any,
        *,
        on_progress: Callable[[SessionProgress], None] = lambda _: None,
        **_: Any,
    ) -> tuple[LaunchOutcome, ...]:
        self.calls.append(list(orders))
        outcomes: list[LaunchOutcome] = []
        for order in orders:
            if order.index == self.interrupts_at:
                raise SessionInterruptedError("SIGTERM", tuple(outcomes))
            on_progress(
                SessionProgress(
                    launch=order.index,
                    launches=len(orders),
                    attempt=1,
                    case_id=order.case_ids[0],
                    phase=Phase.BLOCK,
                    cases_done=0,
                    case_count=len(order.case_ids),
                )
            )
            outcomes.append(self._outcome(order))
        return tuple(outcomes)

    def _outcome(self, order: LaunchOrder) -> LaunchOutcome:
        found = {case_id: self.median(order, case_id) for case_id in order.case_ids}
        plans = {case_id: order.plans.get(case_id, PLAN) for case_id, one in found.items() if isinstance(one, float)}
        failures = tuple(one for one in found.values() if isinstance(one, CaseFailed))
        died = None if None not in found.values() else "died of SIGSEGV (segmentation fault)"
        return LaunchOutcome(
            launch=Launch(
                index=order.index,
                started_utc="2026-11-30T12:00:00Z",
                cases={
                    case_id: make_case_launch(one, plan=plans[case_id], sm_clock_hz=self.sm_clock_hz)
                    for case_id, one in found.items()
                    if isinstance(one, float)
                },
                failures={one.case_id: one.message for one in failures},
                failure=died,
            ),
            plans=plans,
            code_sha256=dict.fromkeys(plans, "b" * 64),
            effective_changes={},
            case_failures=failures,
            notes=(f"launch {order.index}: its last output",) if died else (),
        )


def failed(case_id: str, kind: FailureKind = FailureKind.DEVICE, message: str = "it failed") -> CaseFailed:
    return CaseFailed(case_id=case_id, kind=kind, message=f"{case_id}: {message}")
