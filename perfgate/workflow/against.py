"""``check --against``: the base laid out beside the change, both built, measured in turn, and judged by their pairs."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.core.against import Sides, judged_against
from perfgate.core.caveat import Caveat
from perfgate.core.device import Device
from perfgate.core.judgement import is_gated
from perfgate.core.paired import launches_a_side, refuse_too_few
from perfgate.core.plan import CasePlan
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.run import CaseInfo, Launch, Run
from perfgate.core.selection import is_match
from perfgate.core.units import percent_text
from perfgate.core.validity import Unusable, measured
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ConfigurationError, DeviceError, PerfgateError, WrongOutputError
from perfgate.measure.injection import parse_injection
from perfgate.measure.order import Side, interleaved
from perfgate.measure.supervisor import SessionInterruptedError, supervise
from perfgate.storage.baselines import find_baseline
from perfgate.storage.git import Repository, open_repository, run_git
from perfgate.storage.policy import has_policy, read_policy
from perfgate.storage.worktree import laid_out_commit
from perfgate.workflow.accepting import now_utc
from perfgate.workflow.building import build_side
from perfgate.workflow.cases import Selection, SideFolders, with_own_margins
from perfgate.workflow.checking import CheckResult, compared, known_plans, selected_baseline, shown
from perfgate.workflow.gating import with_suites
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import InterruptedRunError, Session, held
from perfgate.workflow.starting import limits, starter


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

    def verdict(self) -> CheckResult:
        """Measure and judge.

        Raises:
            ConfigurationError: the revision is not here, a suite lies outside the repository or cannot be loaded.
            CompileError: a side does not build.
            PerfgateError: no verdict could be reached.
        """
        repository = open_repository(self.folder)
        commit = repository.commit_id(self.revision)
        if commit is None:
            raise ConfigurationError(
                f"--against {self.revision!r} names no commit here",
                hint="fetch it (actions/checkout with fetch-depth: 0), or correct the name",
            )
        began_s = time.monotonic()
        with laid_out_commit(repository, commit) as tree:
            contest = _Contest.of(self, repository, commit, tree)
            with held(self.device, self.selection, wait=self.wait) as clock_hz:
                result = contest.result(clock_hz)
        return replace(result, report=replace(result.report, measured_s=time.monotonic() - began_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contest:
    """Both sides, built and ready to be measured."""

    asked: AgainstBase
    policy: Policy
    commit: str
    base: Selection
    head: Selection
    is_same_tree: bool
    notices: tuple[Caveat, ...] = ()

    @classmethod
    def of(cls, asked: AgainstBase, repository: Repository, commit: str, tree: Path) -> "_Contest":
        """Lay out the sides and build them."""
        top = repository.top.resolve()
        if tree.resolve().is_relative_to(top):
            raise ConfigurationError(f"the temporary folder {tree.parent} lies in the repository", hint="set TMPDIR")
        below = asked.folder.resolve().relative_to(top)
        folder = tree / below if (tree / below).is_dir() else tree
        policy = _policy(asked, folder)
        head = asked.selection
        if not head.suite and not head.own_suites:
            head = with_suites(head, policy.suites)
        build = policy.build if asked.build is None else asked.build
        for side, place in ((Side.BASE, folder), (Side.HEAD, asked.folder)):
            build_side(build, place, side)
        suites, notices = _mapped(head.own_suites, top, tree)
        base = replace(
            head, own_suites=suites, inject=(), side=SideFolders(folder=str(folder), forbidden=str(top)), answers={}
        )
        gpu = asked.device.gpu
        return cls(
            asked=asked,
            policy=with_own_margins(policy, base if suites else head, gpu),
            commit=commit,
            base=base,
            head=head,
            is_same_tree=not build and _is_same_tree(repository, commit),
            notices=notices,
        )

    def result(self, clock_hz: float | None) -> CheckResult:
        """Measure what differs, and judge."""
        bases, heads = self._described(self.base), self._described(self.head)
        if not heads:
            raise ConfigurationError(f"suite {self.head.suite_name!r} has no case to measure here")
        common = [case_id for case_id in heads if case_id in bases]
        only_head = {case_id: info for case_id, info in heads.items() if case_id not in bases}
        only_base = {case_id: info for case_id, info in bases.items() if case_id not in heads}
        wanted = [case_id for case_id in common if self._may_differ(case_id)]
        plans = dict(known_plans(self.asked.baseline_place, self.asked.device.gpu))
        base_pilot = self._pilot(self.base, wanted, plans, 0, clock_hz)
        head_pilot = self._pilot(self.head, [*wanted, *only_head], plans, 1, clock_hz)
        failed = _failures(wanted, base_pilot, head_pilot)
        differing = [case_id for case_id in wanted if case_id not in failed]
        if base_pilot is not None and head_pilot is not None:
            one, other = base_pilot.run(), head_pilot.run()
            differing = [case_id for case_id in differing if not self._is_same_code(case_id, one, other)]
        sides = self._measured(differing, plans, clock_hz) if differing else self._unmeasured(base_pilot, head_pilot)
        wrong = head_pilot.wrong_outputs if head_pilot is not None else ()
        sides = replace(
            sides,
            same={case_id: heads[case_id] for case_id in common if case_id not in differing and case_id not in failed},
            failed={case_id: (heads[case_id], reason) for case_id, reason in failed.items()},
            only_head=only_head,
            only_base=only_base,
            is_redefined=self._is_redefined,
            wrong_output=tuple(dict.fromkeys((*wrong, *sides.wrong_output))),
            base_name=self._base_name(is_measured=bool(differing)),
        )
        report = judged_against(sides, self.policy, now_utc())
        head, base = (sides.head, sides.base) if differing else (None, None)
        return CheckResult(report=self._told(report, sides), run=head, base=base)

    def _base_name(self, *, is_measured: bool) -> str:
        short, asked = self.commit[:12], self.asked.revision
        name = f"base {short}" if self.commit.startswith(asked) else f"base {asked} ({short})"
        return f"{name}, measured in turn" if is_measured else name

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

    def _pilot(
        self, selection: Selection, case_ids: list[str], plans: dict[str, CasePlan], index: int, clock_hz: float | None
    ) -> Session | None:
        """Launch a side once: it compiles, chooses the plans that both sides share, and shows what fails."""
        if not case_ids:
            return None
        session = self._session(selection, case_ids, plans, index, clock_hz)
        try:
            session.measure_to(1)
        except (WrongOutputError, DeviceError) as error:
            if not session.launched:
                raise
            self.asked.listener.notices(error.message)
        for case_id, plan in session.plans.items():
            plans.setdefault(case_id, plan)
        return session

    def _session(
        self, selection: Selection, case_ids: Iterable[str], plans: Mapping[str, CasePlan], index: int, hz: float | None
    ) -> Session:
        narrowed = replace(selection, cases=tuple(case_ids), inject=self._inject(selection, case_ids))
        return Session(self.asked.device, narrowed, plans, self.asked.listener, first_index=index, locked_clock_hz=hz)

    def _inject(self, selection: Selection, case_ids: Iterable[str]) -> tuple[str, ...]:
        """The rehearsals that mean any of these cases: the others would be refused as meaning none."""
        ids = tuple(case_ids)
        return tuple(
            one for one in selection.inject if any(is_match(case_id, parse_injection(one).pattern) for case_id in ids)
        )

    def _measured(self, case_ids: list[str], plans: Mapping[str, CasePlan], clock_hz: float | None) -> Sides:
        """Measure both sides in turn."""
        infos = self._described(self.head)
        family = sum(is_gated(case_id, infos[case_id], None, self.policy) for case_id in case_ids)
        asked = self.asked.launches
        count = launches_a_side(family, self.policy.alpha) if asked is None else asked + asked % 2
        refuse_too_few(count, family=family, alpha=self.policy.alpha)
        base = self._session(self.base, case_ids, plans, 2, clock_hz)
        head = self._session(self.head, case_ids, plans, 2, clock_hz)
        sessions = {Side.BASE: base, Side.HEAD: head}
        order = interleaved(count, self.head.seed)
        orders = [sessions[side].order(index) for index, side in enumerate(order, start=2)]
        patience = limits(self.asked.device.kind)
        with head.attended(len(orders)):
            try:
                outcomes = supervise(
                    orders,
                    starter(self.asked.device.kind),
                    on_progress=head.progressed,
                    limits=replace(patience, session_s=2 * patience.session_s),
                )
            except SessionInterruptedError as error:
                head.take([one for one, side in zip(error.outcomes, order, strict=False) if side is Side.HEAD])
                raise InterruptedRunError(head.run() if head.has_results else None) from error
        for side, session in sessions.items():
            session.take([one for one, where in zip(outcomes, order, strict=True) if where is side])
        neighbours = list(zip(order, (one.launch for one in outcomes), strict=True))
        pairs = tuple(_pair(*neighbours[index : index + 2]) for index in range(0, len(neighbours), 2))
        return Sides(base=self._of_base(base.run()), head=head.run(), pairs=pairs, wrong_output=head.wrong_outputs)

    def _unmeasured(self, base: Session | None, head: Session | None) -> Sides:
        """Nothing differs: what the sides would have been measured with, if anything."""

        def nothing(selection: Selection, pilot: Session | None) -> Run:
            session = pilot or Session(self.asked.device, selection, {}, self.asked.listener)
            return replace(session.run(), cases={}, launches=())

        head_run = nothing(self.head, head)
        return Sides(base=self._of_base(nothing(self.head, base)), head=head_run, pairs=())

    def _of_base(self, run: Run) -> Run:
        return replace(run, environment=replace(run.environment, commit=self.commit, dirty=False))

    def _told(self, report: Report, sides: Sides) -> Report:
        """Add what a person should know beside the judgement."""
        stored = self._stored_verdict(sides.head) if sides.pairs else None
        notices = (*self.notices, *((stored,) if stored is not None else ()))
        report = replace(shown(report, sides.head), caveats=(*report.caveats, *notices))
        if report.verdict is CheckVerdict.PASSED and not sides.pairs:
            summary = "The change and its base run the same code in every case: nothing was measured."
            report = replace(report, summary=summary)
        if report.verdict in (CheckVerdict.NO_BASELINE, CheckVerdict.NOT_COMPARABLE):
            report = replace(
                report, next_step="The base has nothing to compare these cases with; the next change will."
            )
        return report

    def _stored_verdict(self, head: Run) -> Caveat | None:
        """What the stored baseline says of the change; told, never decisive."""
        try:
            found = find_baseline(self.asked.baseline_place, head.gpu).found
            if found is None:
                return None
            baseline = selected_baseline(found.baseline, replace(self.head, cases=tuple(head.cases)))
            if not any(session.cases for session in baseline.sessions):
                return None
            report = compared(baseline, found.path.name, head, self.policy)
        except PerfgateError as error:
            return Caveat(code="stored-baseline", message=f"the stored baseline gives no verdict: {error.message}")
        slower = [
            f"{case.id} {percent_text(case.change.value, signed=True)}"
            for case in report.cases
            if case.verdict in (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED) and case.change is not None
        ]
        told = f": {', '.join(slower)}" if slower else ""
        return Caveat(
            code="stored-baseline",
            message=f"against the stored baseline {found.path.name}: {report.verdict}{told}",
            remedy="the comparison with the base decides",
        )


def _pair(one: tuple[Side, Launch], other: tuple[Side, Launch]) -> tuple[Launch, Launch]:
    """Return two neighbouring launches, that of the base first."""
    return (one[1], other[1]) if one[0] is Side.BASE else (other[1], one[1])


def _policy(asked: AgainstBase, folder: Path) -> Policy:
    """The base's policy where it has one: a change must not loosen its own gate; else that of the change."""
    named = asked.policy
    if named is None:
        return read_policy(None, folder if has_policy(folder) else asked.folder)
    if not named.is_absolute() and (folder / named).is_file():
        return read_policy(folder / named, folder)
    return read_policy(named if named.is_absolute() else asked.folder / named, asked.folder)


def _mapped(suites: tuple[str, ...], top: Path, tree: Path) -> tuple[tuple[str, ...], tuple[Caveat, ...]]:
    """Return the base's own copies of suites, and notices of those that it lacks."""
    found, notices = [], []
    for name in suites:
        path = Path(name).resolve()
        if not path.is_relative_to(top):
            raise ConfigurationError(
                f"the suite {name} lies outside of the repository {top}: there is no base of it",
                hint="keep it in the repository, or compare with a stored baseline",
            )
        place = tree / path.relative_to(top)
        if place.is_file():
            found.append(str(place))
        else:
            message = f"the base has no {path.relative_to(top)}: its cases are new and cannot be compared"
            notices.append(Caveat(code="suite-is-new", message=message))
    return tuple(found), tuple(notices)


def _is_same_tree(repository: Repository, commit: str) -> bool:
    """Whether the working tree is the base: the same tree, and nothing changed or added."""
    head = repository.commit_id("HEAD")
    if head is None or repository.tree_id(head) != repository.tree_id(commit):
        return False
    status = run_git(repository.top, ("status", "--porcelain", "--untracked-files=normal"))
    return status.returncode == 0 and not status.stdout.strip()


def _failures(case_ids: list[str], base: Session | None, head: Session | None) -> dict[str, str]:
    """Return the cases that a pilot has no time of, and why: measuring them two dozen times more would not help."""
    found: dict[str, str] = {}
    for session, prefix in ((base, "the base: "), (head, "")):
        if session is not None:
            run = session.run()
            sides = {case_id: measured(case_id, run) for case_id in case_ids}
            found |= {
                case_id: f"{prefix}{side.reason}" for case_id, side in sides.items() if isinstance(side, Unusable)
            }
    return found
