"""Cases that tests make: measured where the test runs, in one launch or in a pytest of its own for each launch."""

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from subprocess import Popen
from typing import Any, Protocol

from perfgate import __version__
from perfgate.api.stream import Stream
from perfgate.core.case import Case, Suite, Work
from perfgate.core.codec import decode, encode
from perfgate.core.device import Device, LaunchSession
from perfgate.core.plan import METHOD, CasePlan
from perfgate.core.run import CaseInfo, CaseLaunch, Health, Launch, Run
from perfgate.core.toolbox import Toolbox
from perfgate.devices.environment import launch_environment
from perfgate.errors import PerfgateError
from perfgate.measure.child import start_child
from perfgate.measure.journal import CaseFailed, CaseMeasured, FailureKind, Journal, Phase, PhaseEntered
from perfgate.measure.loop import CaseLoop, MeasuredCase, Settings
from perfgate.measure.order import LaunchOrder, shuffled
from perfgate.measure.supervisor import LaunchOutcome, Lessons, SessionProgress, supervise
from perfgate.resources import cache_folder
from perfgate.suite.sources import source_sha256
from perfgate.workflow.cases import SideFolders
from perfgate.workflow.launch import failure_kind
from perfgate.workflow.measuring import utc_text
from perfgate.workflow.repository import commit_of
from perfgate.workflow.starting import write_order
from perfgate.workflow.suites import refuse_foreign_modules

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
        forbidden: folder that no module may come from; "" for none.
    """

    session: BenchSession
    plans: Mapping[str, CasePlan] = field(default_factory=dict)
    journal: Journal | None = None
    infos: dict[str, CaseInfo] = field(default_factory=dict)
    results: dict[str, MeasuredCase] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    forbidden: str = ""
    _loop: CaseLoop | None = None

    @property
    def stream(self) -> Stream:
        """The stream that everything must be enqueued on."""
        toolbox = self.session.toolbox
        return Stream(toolbox.stream, getattr(toolbox, "native_stream", None))

    def measured(self, case: Case) -> MeasuredCase:
        """Measure a case and keep its result; raises like ``CaseLoop.measure``."""
        if self._loop is None:
            light_clock_hz = self.session.self_test()
            self._loop = CaseLoop(self.session, Settings(), self._progresses, light_clock_hz=light_clock_hz)
        self.session.add_case(case)
        try:
            result = self._loop.measure(case.id, case.timing, self.plans.get(case.id), unit=case.unit)
            refuse_foreign_modules(self.forbidden)
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


def write_infos(
    place: Path, infos: Mapping[str, CaseInfo], collected: Sequence[str], broken: Mapping[str, str]
) -> None:
    """Leave what the tests say of their cases, which there are, and which files have none for an error.

    It stands where the order asks for it: only the tests know.
    """
    cases = {case_id: encode(info) for case_id, info in infos.items()}
    document = {"cases": cases, "collected": list(collected), "broken": dict(broken)}
    place.write_text(json.dumps(document), encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Benches:
    """Launches of the tests that use the fixture, each a pytest of its own.

    Attributes:
        device: opened device.
        case_ids: of the tests.
        arguments: of a pytest that is a launch, but for the two below.
        order_option, journal_option: by which it is told that it is a launch.
        described: folder where launches describe their cases; its context outlives this.
        plans: of the baseline, then also of the first launch that measured a case.
        side: where the tests are, when two states of a repository are compared.
        seed: of the order of the cases.
    """

    device: Device
    case_ids: tuple[str, ...]
    arguments: tuple[str, ...]
    order_option: str
    journal_option: str
    described: Path
    plans: dict[str, CasePlan] = field(default_factory=dict)
    side: SideFolders = field(default_factory=SideFolders)
    seed: int = 0
    _outcomes: list[LaunchOutcome] = field(default_factory=list)
    _lessons: Lessons = field(default_factory=Lessons)
    _before: Health | None = None

    def measure(self, launches: Sequence[int]) -> None:
        """Launch so often, under these indices; the first alone, since the others reuse its plans.

        Raises:
            SessionInterruptedError, OutputError: see ``supervise``.
        """
        first, *others = launches
        self.take(supervise([self.order(first)], self.start, lessons=self._lessons))
        self.take(supervise([self.order(index) for index in others], self.start, lessons=self._lessons))

    def order(self, index: int) -> LaunchOrder:
        """Return what a launch is told."""
        self._before = self._before or self.device.health()
        return LaunchOrder(
            index=index,
            device=self.device.address,
            suite="",
            case_ids=shuffled(self.case_ids, self.seed, index),
            seed=self.seed,
            plans=dict(self.plans),
            options={DESCRIBED: str(self.described / f"launch-{index}.json"), **self.side.options},
        )

    def start(self, order: LaunchOrder, journal: Path) -> "Popen[bytes]":
        """Start a launch."""
        place = write_order(order, journal)
        told = (f"{self.order_option}={place}", f"{self.journal_option}={journal}")
        command = [sys.executable, "-m", "pytest", *self.arguments, *told]
        return start_child(command, launch_environment(self.device.kind), folder=self.side.folder or None)

    def take(self, outcomes: Sequence[LaunchOutcome]) -> None:
        """Keep the outcomes of launches."""
        self._outcomes += outcomes
        for outcome in outcomes:
            self.plans = {**outcome.plans, **self.plans}

    def progressed(self, progress: SessionProgress) -> None:
        """Pytest says nothing before its tests have results."""

    @property
    def collected(self) -> tuple[str, ...]:
        """All cases that the launches found under these arguments, asked for or not."""
        return tuple(dict.fromkeys(one for told in self._told() for one in told["collected"]))

    @property
    def broken(self) -> dict[str, str]:
        """Files whose tests could not be collected, and why."""
        return {name: why for told in self._told() for name, why in told["broken"].items()}

    @property
    def reasons(self) -> dict[str, str]:
        """Why a case has no result in a launch."""
        return {case_id: why for one in reversed(self._outcomes) for case_id, why in one.launch.failures.items()}

    def run(self, undescribed: Iterable[str] = ()) -> Run:
        """Return the document of what was measured so far.

        Args:
            undescribed: cases to name although no launch described them: only a test that measures can.
        """
        infos = {case_id: bare_info(case_id) for case_id in undescribed}
        for told in self._told():
            infos |= {case_id: decode(CaseInfo, value) for case_id, value in told["cases"].items()}
        launches = tuple(one.launch for one in self._outcomes)
        infos = _with_plans(infos, self._outcomes)
        return bench_run(self.device, infos, launches, before=self._before, seed=self.seed)

    def _told(self) -> list[dict[str, Any]]:
        found = []
        for outcome in self._outcomes:
            with contextlib.suppress(OSError, ValueError):
                text = (self.described / f"launch-{outcome.launch.index}.json").read_text(encoding="utf-8")
                found.append(json.loads(text))
        return found


def bare_info(case_id: str) -> CaseInfo:
    """Return what is known of a case that no launch described."""
    return CaseInfo(family=case_id.split(".", 1)[0], work=Work(), version=1)


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
