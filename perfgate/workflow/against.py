"""``check --against``: the base laid out beside the change, both built, measured in turn, and judged by their pairs."""

import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfgate.core.against import judged_against
from perfgate.core.caveat import Caveat
from perfgate.core.device import Device
from perfgate.core.gpu import Gpu
from perfgate.core.judgement import is_gated
from perfgate.core.paired import launches_a_side, refuse_too_few
from perfgate.core.plan import CasePlan
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.run import CaseInfo, Run
from perfgate.core.selection import is_match
from perfgate.core.sides import FIRST_INDEX, Sides, failures, sides_of
from perfgate.core.verdict import CheckVerdict
from perfgate.errors import ConfigurationError, DeviceError, ExitCode, WrongOutputError
from perfgate.measure.injection import parse_injection
from perfgate.measure.order import Side
from perfgate.measure.supervisor import SessionInterruptedError
from perfgate.workflow.accepting import now_utc
from perfgate.workflow.cases import Selection, SideFolders, with_own_margins
from perfgate.workflow.checking import CheckResult, known_plans, shown
from perfgate.workflow.gating import with_suites
from perfgate.workflow.interleaving import measure_in_turn
from perfgate.workflow.laying import Ground, laid_out_base
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import InterruptedRunError, Session, held
from perfgate.workflow.standing_by import standing_by
from perfgate.workflow.starting import limits
from perfgate.workflow.stored import stored_verdict
from perfgate.workflow.suites import LFS_HINT

BASE_PILOT, HEAD_PILOT = 0, 1
# Of a launch, where no baseline says otherwise: it is the number of pairs that decides, and what a pair costs. On an
# H200 launches of six own cases spread alike, within a tenth, with 3 blocks of 10 samples, with these, and with one.
_SAMPLING = {"blocks": 3, "samples_per_block": 5}
BASE_BROKEN = "base-suite-is-broken"
# Exit codes that a suite which cannot be loaded outweighs.
_WEAKER = (ExitCode.PASSED, ExitCode.NO_BASELINE, ExitCode.UNDECIDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBase:
    """A check of a change against its base, in one session.

    Attributes:
        device: opened device.
        selection: what is measured of the change; with no suite, what the policy names.
        revision: of the base.
        policy: file of the policy, looked for in the base first; None looks where ``read_policy`` does.
        listener: told while it goes on.
        launches: of each side; None for as many as the cases ask for, 12 at least.
        control: measure also what is the same on both sides.
        build: command that builds a side; None for the policy's.
        baseline_place: where a stored baseline may be, whose verdict is told beside.
        wait: wait for another perfgate on this GPU to end.
        folder: where the change is worked on.
        effective_policy: instead of what the base's files say.
        trusts_suites: the margins that the base's own suites ask for count.
    """

    device: Device
    selection: Selection
    revision: str
    policy: Path | None
    listener: Listener
    baseline_place: Path
    launches: int | None = None
    control: bool = False
    build: str | None = None
    wait: bool = False
    folder: Path
    effective_policy: Policy | None = None
    trusts_suites: bool = True

    def verdict(self) -> CheckResult:
        """Measure and judge.

        Raises:
            ConfigurationError: the revision is not here, a suite lies outside the repository or cannot be loaded.
            CompileError: a side does not build.
            PerfgateError: no verdict could be reached.
        """
        began_s = time.monotonic()
        with (
            laid_out_base(self.folder, self.revision) as ground,
            tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True) as verified,
        ):
            contest = _Contest.of(self, ground, Path(verified))
            with held(self.device, self.selection, wait=self.wait) as clock_hz:
                result = contest.result(clock_hz)
        return replace(result, report=replace(result.report, measured_s=time.monotonic() - began_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contest:
    """Both sides, built and ready to be measured.

    Attributes:
        broken: suites of the change that cannot be loaded, by the base's copy, and why.
    """

    asked: AgainstBase
    ground: Ground
    policy: Policy
    base: Selection
    head: Selection
    is_same_tree: bool
    broken: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Caveat, ...] = ()

    @classmethod
    def of(cls, asked: AgainstBase, ground: Ground, verified: Path) -> "_Contest":
        """Build the sides and find their suites."""
        policy = asked.effective_policy or ground.policy(asked.policy)
        head = asked.selection
        if not head.suite and not head.own_suites:
            head = with_suites(head, policy.suites)
        build = policy.build if asked.build is None else asked.build
        ground.build(build)
        gpu = asked.device.gpu
        suites, notices = ground.suites(head.own_suites)
        broken = head.broken_suites(gpu)
        if set(broken) == set(head.own_suites) and not head.suite:
            broken = {}  # nothing is left to judge: the first is the error
        head = replace(head, own_suites=tuple(name for name in head.own_suites if name not in broken), answers={})
        # Each side's own: what is right of one code says nothing of another.
        places = [verified / side for side in (Side.BASE, Side.HEAD)]
        for place in places:
            place.mkdir()
        base_side, head_side = replace(ground.side, verified=str(places[0])), SideFolders(verified=str(places[1]))
        head = replace(head, settings={**_SAMPLING, **head.settings}, side=head_side)
        base = replace(head, own_suites=suites, inject=(), side=base_side, answers={})
        base, unloadable = _loadable_base(base, gpu, ground)
        suites = base.own_suites
        if asked.trusts_suites:
            policy = with_own_margins(policy, base if suites else head, gpu)
        return cls(
            asked=asked,
            ground=ground,
            policy=policy,
            base=base,
            head=head,
            is_same_tree=not build and ground.is_same_tree(),
            broken={str(ground.in_base(Path(name))): ground.shown(message) for name, (message, _) in broken.items()},
            notices=(*notices, *unloadable),
        )

    def result(self, clock_hz: float | None) -> CheckResult:
        """Measure what differs, and judge."""
        bases, heads = self._described(self.base), self._described(self.head)
        if not heads:
            raise ConfigurationError(f"suite {self.head.suite_name!r} has no case to measure here")
        wanted = [case_id for case_id in heads if case_id in bases and self._may_differ(case_id)]
        new = [case_id for case_id in heads if case_id not in bases]
        plans = dict(known_plans(self.asked.baseline_place, self.asked.device.gpu))
        # A base without any suite is described by the change's, and has no case of it.
        base = _Side(self, self.base if bases else self.head, bases, BASE_PILOT, clock_hz)
        head = _Side(self, self.head, heads, HEAD_PILOT, clock_hz)
        base.try_out(wanted, plans)
        head.try_out([*wanted, *new], plans)
        failed = failures(wanted, base.run(), head.run())
        differing = [
            case_id
            for case_id in wanted
            if case_id not in failed and not self._is_same_code(case_id, base.run(), head.run())
        ]
        if differing:
            self._measure(differing, base, head, plans)
        name = self.ground.name(is_measured=bool(differing))
        base_run, head_run = self._of_base(base.run()), head.run()
        sides = self._with_broken(
            sides_of(base_run, head_run),
            is_redefined=self._is_redefined,
            wrong_output=head.wrong_outputs,
            base_name=name,
        )
        report = shown(judged_against(sides, self.policy, now_utc()), sides.head)
        stored = stored_verdict(self.asked.baseline_place, base_run, self.head, self.policy)
        report = told(report, (*self.notices, *((stored,) if stored is not None else ())))
        if self.broken and report.exit_code in _WEAKER:
            report = replace(report, exit_code=int(ExitCode.USAGE))
        return CheckResult(report=report, run=head_run, base=base_run)

    def _with_broken(self, sides: Sides, **changes: Any) -> Sides:
        """Tell of the cases whose suite the change has broken why they were not measured: they are not missing."""
        if self.broken:
            origins = self.base.own_description(self.asked.device.gpu).origins
            lost = {
                case_id: (info, self.broken[origins[case_id]])
                for case_id, info in sides.only_base.items()
                if origins.get(case_id) in self.broken
            }
            kept = {case_id: info for case_id, info in sides.only_base.items() if case_id not in lost}
            sides = replace(sides, only_base=kept, failed={**sides.failed, **lost})
        return replace(sides, **changes)

    def _described(self, selection: Selection) -> Mapping[str, CaseInfo]:
        """The cases of a side; none where it has no suite at all."""
        if not selection.suite and not selection.own_suites:
            return {}
        try:
            return Session(self.asked.device, selection, {}, self.asked.listener).infos
        except ConfigurationError:
            # The base may lack a case that was asked for by name: then it is new.
            if selection is self.base and selection.cases:
                every = Session(self.asked.device, replace(selection, cases=()), {}, self.asked.listener).infos
                return {one: info for one, info in every.items() if any(is_match(one, two) for two in selection.cases)}
            raise

    def _may_differ(self, case_id: str) -> bool:
        """Whether a case has to be looked at: its own suite or code may differ, or somebody wants it measured."""
        if self.asked.control or self._is_injected(case_id):
            return True
        return case_id in self.head.own_description(self.asked.device.gpu).cases and not self.is_same_tree

    def _is_injected(self, case_id: str) -> bool:
        return any(is_match(case_id, parse_injection(one).pattern) for one in self.head.inject)

    @property
    def _is_redefined(self) -> bool:
        gpu = self.asked.device.gpu
        one, other = self.base.own_description(gpu), self.head.own_description(gpu)
        return one.definition_sha256 != other.definition_sha256

    def _is_same_code(self, case_id: str, base: Run, head: Run) -> bool:
        """Whether a kernel is the same machine code, launched alike. What runs code of others cannot be known."""
        if self.asked.control or self._is_injected(case_id) or self._is_redefined:
            return False
        one, other = base.cases[case_id], head.cases[case_id]
        return one.code_sha256 is not None and replace(one, source_sha256=None) == replace(other, source_sha256=None)

    def _measure(self, case_ids: list[str], base: "_Side", head: "_Side", plans: Mapping[str, CasePlan]) -> None:
        """Measure both sides in turn."""
        family = sum(is_gated(case_id, head.infos[case_id], None, self.policy) for case_id in case_ids)
        asked = self.asked.launches
        count = launches_a_side(family, self.policy.alpha) if asked is None else asked + asked % 2
        refuse_too_few(count, family=family, alpha=self.policy.alpha)
        one, other = base.contender(case_ids, plans), head.contender(case_ids, plans)
        patience = limits(self.asked.device.kind)
        with other.attended(2 * count):
            try:
                measure_in_turn(
                    one,
                    other,
                    lambda orders: standing_by(self.asked.device.kind, orders, base.modules | head.modules),
                    launches=count,
                    seed=self.head.seed,
                    limits=replace(patience, session_s=2 * patience.session_s),
                )
            except SessionInterruptedError as error:
                raise InterruptedRunError(other.run() if other.has_results else None) from error

    def _of_base(self, run: Run) -> Run:
        return replace(run, environment=replace(run.environment, commit=self.ground.commit, dirty=False))


def _loadable_base(base: Selection, gpu: Gpu, ground: Ground) -> tuple[Selection, tuple[Caveat, ...]]:
    """Return the base without suites that cannot be loaded: what they held has nothing to be compared with."""
    if not base.own_suites:
        return base, ()
    broken = base.broken_suites(gpu)
    for message, hint in broken.values():
        if hint == LFS_HINT:  # a base that was not fetched whole must not make everything new
            raise ConfigurationError(ground.shown(message), hint=hint)
    notices = [
        Caveat(code=BASE_BROKEN, message=f"the base's suite is broken, so its cases are new: {ground.shown(message)}")
        for message, _ in broken.values()
    ]
    left = tuple(name for name in base.own_suites if name not in broken)
    return replace(base, own_suites=left, answers={}), tuple(notices)


class _Side:
    """One of the sides: its cases, its pilot, and its launches in turn."""

    def __init__(
        self,
        contest: _Contest,
        selection: Selection,
        infos: Mapping[str, CaseInfo],
        pilot_index: int,
        clock_hz: float | None,
    ) -> None:
        self.infos = infos
        self._asked = contest.asked
        self._selection = selection
        self._pilot_index = pilot_index
        self._clock_hz = clock_hz
        self._sessions: list[Session] = []

    def try_out(self, case_ids: list[str], plans: dict[str, CasePlan]) -> None:
        """Launch once: it compiles, chooses the plans that both sides share, and shows what fails."""
        if not case_ids:
            return
        session = self._session(case_ids, plans, self._pilot_index)
        try:
            session.measure_to(1)
        except (WrongOutputError, DeviceError) as error:
            if not session.launched:
                raise
            self._asked.listener.notices(error.message)
        for case_id, plan in session.plans.items():
            plans.setdefault(case_id, plan)

    def contender(self, case_ids: list[str], plans: Mapping[str, CasePlan]) -> Session:
        """Return a session for the launches in turn."""
        return self._session(case_ids, plans, FIRST_INDEX)

    @property
    def wrong_outputs(self) -> tuple[str, ...]:
        """The cases whose output was wrong."""
        return tuple(dict.fromkeys(case_id for session in self._sessions for case_id in session.wrong_outputs))

    @property
    def modules(self) -> frozenset[str]:
        """The installed packages that its launches import."""
        return frozenset(name for session in self._sessions for name in session.modules)

    def run(self) -> Run:
        """Return the document of this side: all its cases, and all launches so far."""
        sessions = self._sessions or [Session(self._asked.device, self._whole, {}, self._asked.listener)]
        runs = [session.run() for session in sessions]
        cases = dict(self.infos)
        for run in runs:
            cases |= {case_id: info for case_id, info in run.cases.items() if case_id in cases}
        launches = tuple(launch for run in runs for launch in run.launches)
        return replace(runs[-1], cases=cases, launches=launches, health_before=runs[0].health_before)

    @property
    def _whole(self) -> Selection:
        return replace(self._selection, cases=(), inject=())

    def _session(self, case_ids: Iterable[str], plans: Mapping[str, CasePlan], index: int) -> Session:
        ids = tuple(case_ids)
        # The rehearsals that mean any of these cases: the others would be refused as meaning none.
        meant = tuple(
            one
            for one in self._selection.inject
            if any(is_match(case_id, parse_injection(one).pattern) for case_id in ids)
        )
        narrowed = replace(self._selection, cases=ids, inject=meant)
        session = Session(
            self._asked.device,
            narrowed,
            plans,
            self._asked.listener,
            first_index=index,
            locked_clock_hz=self._clock_hz,
        )
        self._sessions.append(session)
        return session


def told(report: Report, notices: tuple[Caveat, ...]) -> Report:
    """Add to a comparison with a base what a person should know beside the judgement."""
    report = replace(report, caveats=(*report.caveats, *notices))
    if report.verdict is CheckVerdict.PASSED and not report.launches:
        summary = "The change and its base run the same code in every case: nothing was measured in turn."
        return replace(report, summary=summary)
    if report.verdict in (CheckVerdict.NO_BASELINE, CheckVerdict.NOT_COMPARABLE):
        report = replace(report, next_step="The base has nothing to compare these cases with; the next change will.")
    if report.verdict is CheckVerdict.NO_BASELINE:
        report = replace(report, summary="The base has none of these cases: there is nothing to compare them with.")
    return report
