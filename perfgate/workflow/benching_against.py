"""Tests of pytest that measure, base against change: both sides' tests launched in turn, judged by their pairs."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen

from perfgate.core.against import judged_against
from perfgate.core.caveat import Caveat
from perfgate.core.device import Device
from perfgate.core.judgement import is_gated
from perfgate.core.paired import launches_a_side, refuse_too_few
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.sides import failures, sides_of
from perfgate.measure.order import LaunchOrder
from perfgate.workflow.accepting import now_utc
from perfgate.workflow.against import BASE_BROKEN, BASE_PILOT, HEAD_PILOT, told
from perfgate.workflow.benching import Benches, bare_info
from perfgate.workflow.cases import Selection, SideFolders
from perfgate.workflow.checking import CheckResult, known_plans, shown
from perfgate.workflow.interleaving import measure_in_turn
from perfgate.workflow.laying import Ground, laid_out_base
from perfgate.workflow.starting import limits
from perfgate.workflow.stored import stored_verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TestsAgainstBase:
    """The tests of a pytest compared with those of a base.

    Attributes:
        device: opened device.
        revision: of the base.
        case_ids: of the tests that were collected here.
        options, places: what this pytest was called with: its options, and the files and folders that it was given.
        order_option, journal_option: by which a pytest is told that it is a launch.
        folder: where it was called.
        baseline_place: where a stored baseline may be, whose verdict is told beside.
        launches: of each side; None for as many as the cases ask for.
        control: measure also what is the same on both sides.
        seed: of the orders.
    """

    __test__ = False

    device: Device
    revision: str
    case_ids: tuple[str, ...]
    options: tuple[str, ...]
    places: tuple[str, ...]
    order_option: str
    journal_option: str
    folder: Path
    baseline_place: Path
    launches: int | None = None
    control: bool = False
    seed: int = 0

    def verdict(self) -> tuple[CheckResult, dict[str, str]]:
        """Measure and judge; return also why a test of the change has no result.

        Raises:
            ConfigurationError: the revision is not here.
            CompileError: a side does not build.
            PerfgateError: no verdict could be reached.
        """
        began_s = time.monotonic()
        with (
            laid_out_base(self.folder, self.revision) as ground,
            tempfile.TemporaryDirectory(prefix="perfgate-", ignore_cleanup_errors=True) as name,
        ):
            policy = ground.policy(None)
            ground.build(policy.build)
            is_same = not policy.build and not self.control and ground.is_same_tree()
            with self.device.lock(wait=True):
                result, reasons = self._judged(ground, policy, Path(name), is_same=is_same)
        return replace(result, report=replace(result.report, measured_s=time.monotonic() - began_s)), reasons

    def _judged(
        self, ground: Ground, policy: Policy, folder: Path, *, is_same: bool
    ) -> tuple[CheckResult, dict[str, str]]:
        plans = dict(known_plans(self.baseline_place, self.device.gpu))
        places = _places_in_base(self.places, ground)
        base, head = (
            self._benches(folder / name, given, side)
            for name, given, side in (
                ("base", places or (), ground.side),
                ("head", _files(self.places), SideFolders()),
            )
        )
        base.plans = plans
        # A base that has none of the files that are asked for has no test of them.
        if not is_same and places is not None:
            base.measure([BASE_PILOT])
        head.plans = dict(base.plans)
        head.measure([HEAD_PILOT])
        base.plans = dict(head.plans)
        known = head.collected if is_same else base.collected
        common = [case_id for case_id in self.case_ids if case_id in known]
        # What the change has but was not asked for is not missing.
        gone = [case_id for case_id in known if case_id not in head.collected]
        failed = failures(common, base.run(common), head.run(self.case_ids))
        differing = [] if is_same else [case_id for case_id in common if case_id not in failed]
        if differing:
            self._measure(differing, base, head, policy)
        head_run = head.run(self.case_ids)
        base_run = self._of_base(ground, base.run((*common, *gone)), common, gone, head_run if is_same else None)
        name = ground.name(is_measured=bool(differing))
        sides = replace(sides_of(base_run, head_run), base_name=name, is_redefined=False)
        report = shown(judged_against(sides, policy, now_utc()), sides.head)
        stored = stored_verdict(self.baseline_place, base_run, Selection(suite=""), policy)
        broken = [
            Caveat(code=BASE_BROKEN, message=f"the base's {name} cannot be collected, so its tests are new: {why}")
            for name, why in base.broken.items()
        ]
        report = told(report, (*broken, *(() if stored is None else (stored,))))
        return CheckResult(report=report, run=head_run, base=base_run), head.reasons

    def _benches(self, described: Path, places: Sequence[str], side: SideFolders) -> Benches:
        described.mkdir()
        return Benches(
            device=self.device,
            case_ids=self.case_ids,
            arguments=(*self.options, "--continue-on-collection-errors", *places),
            order_option=self.order_option,
            journal_option=self.journal_option,
            described=described,
            side=side,
            seed=self.seed,
        )

    def _measure(self, case_ids: Sequence[str], base: Benches, head: Benches, policy: Policy) -> None:
        infos = head.run().cases
        family = sum(is_gated(case_id, infos[case_id], None, policy) for case_id in case_ids)
        asked = self.launches
        count = launches_a_side(family, policy.alpha) if asked is None else asked + asked % 2
        refuse_too_few(count, family=family, alpha=policy.alpha)
        base.case_ids = head.case_ids = tuple(case_ids)
        patience = limits(self.device.kind)

        def start(order: LaunchOrder, journal: Path) -> "Popen[bytes]":
            return (base if order.options.get("folder") else head).start(order, journal)

        measure_in_turn(
            base,
            head,
            lambda _: nullcontext(start),
            launches=count,
            seed=self.seed,
            limits=replace(patience, session_s=2 * patience.session_s),
        )

    @staticmethod
    def _of_base(ground: Ground, run: Run, common: Sequence[str], gone: Sequence[str], same: Run | None) -> Run:
        """The base's document: what both sides have and what the change lacks, at its own commit."""
        described = dict(run.cases if same is None else same.cases)
        cases = {case_id: described.get(case_id, bare_info(case_id)) for case_id in (*common, *gone)}
        return replace(run, cases=cases, environment=replace(run.environment, commit=ground.commit, dirty=False))


def _files(places: Sequence[str]) -> tuple[str, ...]:
    """Return files and folders without the tests in them: which are meant, the order of a launch says."""
    return tuple(dict.fromkeys(place.partition("::")[0] for place in places))


def _places_in_base(places: Sequence[str], ground: Ground) -> tuple[str, ...] | None:
    """Return the files and folders as the base has them; None where it has none of those that were given."""
    found = []
    for place in _files(places):
        path = ground.in_base(ground.working / place)
        if path.exists():
            found.append(str(path))
    return tuple(found) if found or not places else None
