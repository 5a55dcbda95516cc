"""Cases that tests make: measured where the test runs, in one launch or in a pytest of its own for each launch."""

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from subprocess import Popen
from typing import Protocol

from perfgate import __version__
from perfgate.api.stream import Stream
from perfgate.core.case import Case, Suite
from perfgate.core.codec import decode, encode
from perfgate.core.device import Device, LaunchSession
from perfgate.core.plan import METHOD, CasePlan
from perfgate.core.run import CaseInfo, CaseLaunch, Health, Launch, Run
from perfgate.core.toolbox import Toolbox
from perfgate.errors import PerfgateError
from perfgate.measure.child import start_child
from perfgate.measure.journal import CaseFailed, CaseMeasured, FailureKind, Journal, Phase, PhaseEntered
from perfgate.measure.loop import CaseLoop, MeasuredCase, Settings
from perfgate.measure.order import LaunchOrder, shuffled
from perfgate.measure.supervisor import LaunchOutcome, Lessons, supervise
from perfgate.resources import cache_folder
from perfgate.suite.sources import source_sha256
from perfgate.workflow.launch import failure_kind
from perfgate.workflow.measuring import utc_text
from perfgate.workflow.repository import commit_of

SUITE_NAME = "pytest"
# Option of an order: where a launch describes its cases.
DESCRIBED = "described"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_]+")
_NOT_IN_VALUES = re.compile(r"[^A-Za-z0-9_.+-]+")


class BenchSession(LaunchSession, Protocol):
    """A launch that takes cases as tests make them."""

    def add_case(self, case: Case) -> None:
        """Take in a case."""
        ...

    @property
    def toolbox(self) -> Toolbox:
        """What cases are prepared with."""
        ...


@contextlib.contextmanager
def opened_bench(address: str) -> Iterator[BenchSession]:
    """Open the device of an address for cases to come; raises like ``devices.cuda.session.opened_session``."""
    from perfgate.devices.cuda.session import opened_session

    _, _, rest = address.partition(":")
    with opened_session(rest, lambda _: Suite(name=SUITE_NAME, cases=()), cache_folder()) as session:
        yield session


def node_case_id(node_id: str) -> str:
    """Return the id of a test's case: ``tests/test_scan.py::test_it[64]`` is ``tests.test_scan.test_it[id=64]``."""
    place, _, parameters = node_id.partition("[")
    parts = [_NOT_IN_NAMES.sub("_", part.lower()) for part in re.split(r"::|/", place.replace(".py::", "::"))]
    name = ".".join(part for part in parts if part.strip("_"))
    name = name if name[:1].isalpha() else f"t{name}"
    name = name if "." in name else f"tests.{name}"
    value = _NOT_IN_VALUES.sub("_", parameters.removesuffix("]"))
    return f"{name}[id={value}]" if value else name


@dataclass(slots=True, kw_only=True)
class Bench:
    """Measures the cases of one process.

    Attributes:
        session: the device.
        plans: sampling plans that are fixed already.
        journal: where a launch tells its supervisor; None in a process that is on its own.
        infos, results: what was measured so far.
        told: cases whose result or failure the supervisor knows.
    """

    session: BenchSession
    plans: Mapping[str, CasePlan] = field(default_factory=dict)
    journal: Journal | None = None
    infos: dict[str, CaseInfo] = field(default_factory=dict)
    results: dict[str, MeasuredCase] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    _loop: CaseLoop | None = None

    @property
    def stream(self) -> Stream:
        """The stream that everything must be enqueued on."""
        toolbox = self.session.toolbox
        return Stream(toolbox.stream, getattr(toolbox, "native_stream", None))

    def measured(self, case: Case) -> MeasuredCase:
        """Measure a case and keep its result; raises like ``CaseLoop.measure``."""
        if self._loop is None:
            self.session.self_test()
            self._loop = CaseLoop(self.session, Settings(), self._progresses)
        self.session.add_case(case)
        try:
            result = self._loop.measure(case.id, case.timing, self.plans.get(case.id))
        except PerfgateError as error:
            self.fail(case.id, failure_kind(error), error.message)
            raise
        info = CaseInfo(
            family=case.family,
            work=case.work,
            version=case.version,
            timing=case.timing,
            gated=case.gated,
            unit=case.unit,
            source_sha256=source_sha256(case),
            code_sha256=self.session.code_sha256(case.id),
            plan=result.plan,
        )
        self.infos[case.id], self.results[case.id] = info, result
        self.told.add(case.id)
        if self.journal is not None:
            self.journal.write(CaseMeasured(case_id=case.id, result=result.launch, plan=result.plan))
        return result

    def fail(self, case_id: str, kind: FailureKind, message: str) -> None:
        """Tell the supervisor that a case has no result."""
        self.told.add(case_id)
        if self.journal is not None:
            self.journal.write(CaseFailed(case_id=case_id, kind=kind, message=message))

    def _progresses(self, case_id: str, phase: str) -> None:
        if self.journal is not None:
            self.journal.write(PhaseEntered(case_id=case_id, phase=Phase(phase)))


def write_infos(place: Path, infos: Mapping[str, CaseInfo]) -> None:
    """Leave what the tests say of their cases where the order asks for it: only they know."""
    document = {case_id: encode(info) for case_id, info in infos.items()}
    place.write_text(json.dumps(document), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benches:
    """Launches of the tests that use the fixture, each a pytest of its own.

    Attributes:
        device: opened device.
        case_ids: of the tests.
        arguments: of the pytest that asks for them.
        order_option, journal_option: by which a pytest is told that it is a launch.
        plans: of the baseline.
        seed: of the order of the cases.
    """

    device: Device
    case_ids: tuple[str, ...]
    arguments: tuple[str, ...]
    order_option: str
    journal_option: str
    plans: Mapping[str, CasePlan] = field(default_factory=dict)
    seed: int = 0

    def run(self, launches: int) -> tuple[Run, dict[str, str]]:
        """Measure, and return the run, and why a case has no result in a launch.

        Raises:
            SessionInterruptedError, OutputError: see ``supervise``.
        """
        lessons = Lessons()
        before = self.device.health()
        with tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            first = supervise([self._order(0, self.plans, folder)], self._start, lessons=lessons)
            plans = {**self.plans, **first[0].plans}
            orders = [self._order(index, plans, folder) for index in range(1, launches)]
            outcomes = (*first, *supervise(orders, self._start, lessons=lessons))
            infos = {case_id: info for index in range(launches) for case_id, info in _read_infos(folder, index).items()}
        run = bench_run(
            self.device,
            _with_plans(infos, outcomes),
            tuple(one.launch for one in outcomes),
            before=before,
            seed=self.seed,
        )
        reasons = {case_id: why for one in reversed(outcomes) for case_id, why in one.launch.failures.items()}
        return run, reasons

    def _order(self, index: int, plans: Mapping[str, CasePlan], folder: Path) -> LaunchOrder:
        return LaunchOrder(
            index=index,
            device=self.device.address,
            suite="",
            case_ids=shuffled(self.case_ids, self.seed, index),
            seed=self.seed,
            plans=plans,
            options={DESCRIBED: str(_infos_place(folder, index))},
        )

    def _start(self, order: LaunchOrder, journal: Path) -> "Popen[bytes]":
        from perfgate.devices.environment import launch_environment

        place = journal.with_suffix(".order.json")
        place.write_text(json.dumps(encode(order)), encoding="utf-8")
        told = (f"{self.order_option}={place}", f"{self.journal_option}={journal}")
        command = [sys.executable, "-m", "pytest", *self.arguments, *told]
        return start_child(command, launch_environment(self.device.kind))


def bench_run(
    device: Device,
    infos: Mapping[str, CaseInfo],
    launches: tuple[Launch, ...],
    *,
    before: Health | None = None,
    seed: int = 0,
) -> Run:
    """Return the run document of what tests measured."""
    commit, dirty = commit_of(Path.cwd())
    return Run(
        created_utc=utc_text(datetime.now(timezone.utc)),
        perfgate_version=__version__,
        device_kind=str(device.kind),
        method=METHOD,
        suite_name=SUITE_NAME,
        suite_sha256=None,
        gpu=device.gpu,
        environment=replace(device.environment, commit=commit, dirty=dirty),
        cases=dict(infos),
        launches=tuple(_known(launch, infos) for launch in launches),
        seed=seed,
        health_before=before,
        health_after=device.health() if before is not None else None,
    )


def single_launch(results: Mapping[str, CaseLaunch]) -> Launch:
    """Return what one process measured as a launch."""
    return Launch(index=0, started_utc=utc_text(datetime.now(timezone.utc)), cases=dict(results))


def _known(launch: Launch, infos: Mapping[str, CaseInfo]) -> Launch:
    """Leave out what no launch described: a test that failed before it said what it measures."""
    failures = {case_id: reason for case_id, reason in launch.failures.items() if case_id in infos}
    return replace(launch, failures=failures)


def _with_plans(infos: Mapping[str, CaseInfo], outcomes: Sequence[LaunchOutcome]) -> dict[str, CaseInfo]:
    plans = {case_id: plan for outcome in reversed(outcomes) for case_id, plan in outcome.plans.items()}
    return {case_id: replace(info, plan=plans.get(case_id, info.plan)) for case_id, info in infos.items()}


def _infos_place(folder: Path, index: int) -> Path:
    return folder / f"cases-{index}.json"


def _read_infos(folder: Path, index: int) -> dict[str, CaseInfo]:
    try:
        document = json.loads(_infos_place(folder, index).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {case_id: decode(CaseInfo, value) for case_id, value in document.items()}
