"""A change judged by the baseline and policy of its base; its first run, when the base has no baseline yet."""

from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.device import Device, DeviceKind
from perfgate.core.gate import judge
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.errors import ExitCode
from perfgate.resources import resource_folder
from perfgate.workflow.accepting import now_utc, run_doubts
from perfgate.workflow.base import Base, Layout, Places, laid_out
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import Check, CheckResult, shown, with_launches
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import measured
from perfgate.workflow.proposed import ProposedChange, proposed_change
from perfgate.workflow.suites import chosen_suites


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedChange:
    """What a change came to.

    Attributes:
        result: of the check.
        proposed: what the change edits of its own gate.
        first_baseline: on a first run, the baseline that this run would make; None where it is unfit.
        notices: sentences for people.
    """

    result: CheckResult
    proposed: ProposedChange
    first_baseline: Baseline | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """How a change is judged.

    Attributes:
        base: the commit whose baseline and policy count.
        places: where they are.
        device: opened device; a recording is judged against what ships with perfgate where no baseline is named.
        selection: what is measured, but for the suites.
        suites: names of suites that were asked for; without any those that the base's policy names.
        listener: told while it goes on.
        launches: instead of the policy's.
        wait: wait for another perfgate on this GPU to end.
    """

    base: Base
    places: Places
    device: Device
    selection: Selection
    listener: Listener
    suites: tuple[str, ...] = ()
    launches: int | None = None
    wait: bool = False

    def verdict(self, *, first_run_passes: bool) -> GatedChange:
        """Measure and judge.

        Args:
            first_run_passes: where the base holds no baseline at all, measure one and pass.

        Raises:
            PerfgateError: no verdict could be reached.
        """
        with laid_out(self.base, self.places) as layout:
            policy = with_launches(layout.effective_policy(), self.launches)
            selection = with_suites(self.selection, self.suites or policy.suites)
            places = replace(self.places, suites=tuple(map(Path, selection.own_suites)))
            proposed = proposed_change(self.base, places, self.base.repository.commit_id("HEAD"))
            place = self._baseline_place(layout)
            if first_run_passes and place == layout.baseline and not layout.has_baseline():
                return self._first_run(selection, policy, proposed)
            check = Check(
                device=self.device,
                selection=selection,
                policy=policy,
                listener=self.listener,
                wait=self.wait,
                trusts_suites=False,
            )
            result = check.against(place)
        for sentence in proposed.sentences:
            self.listener.notices(sentence)
        if proposed.is_broken and result.report.exit_code == ExitCode.PASSED:
            result = replace(result, report=replace(result.report, exit_code=int(ExitCode.DOCUMENT)))
        return GatedChange(result=result, proposed=proposed, notices=proposed.sentences)

    def _baseline_place(self, layout: Layout) -> Path:
        if self.device.kind is DeviceKind.RECORDED and self.places.baseline is None:
            return resource_folder("baselines")
        return layout.baseline

    def _first_run(self, selection: Selection, policy: Policy, proposed: ProposedChange) -> GatedChange:
        run = measured(self.device, selection, policy.baseline_launches, self.listener, wait=self.wait)
        report = judge(baseline=None, candidate=run, policy=policy, created_utc=now_utc(), baseline_source="")
        doubts = run_doubts(run)
        if doubts:
            notice = f"No baseline yet, so this run passes. It is no fit baseline itself: {'; '.join(doubts)}."
        else:
            notice = (
                "No baseline yet, so this run passes. What it measured is in proposed-baseline.json of the results:"
                f" commit it to {self.places.baselines.name}/, or run the workflow that updates the baseline."
            )
        return GatedChange(
            result=CheckResult(report=replace(shown(report, run), exit_code=int(ExitCode.PASSED)), run=run),
            proposed=proposed,
            first_baseline=None if doubts else _first_baseline(run),
            notices=(notice, *proposed.sentences),
        )


def with_suites(selection: Selection, names: tuple[str, ...]) -> Selection:
    """Return the selection with the suites of these names; the default one without any.

    Raises:
        ConfigurationError: two built-in suites.
    """
    built_in, own = chosen_suites(names)
    return replace(selection, suite=built_in, own_suites=own)


def _first_baseline(run: Run) -> Baseline:
    provenance = Provenance(
        recorded_utc=run.created_utc,
        reason="first run",
        device_kind=run.device_kind,
        perfgate_version=run.perfgate_version,
        commit=run.environment.commit,
    )
    return baseline_of(run, provenance)
