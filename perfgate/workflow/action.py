"""The action's steps: one measures, with no token; one tells, with a token and none of the change's code."""

from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.run import Run
from perfgate.errors import ConfigurationError
from perfgate.github.api import Api
from perfgate.github.event import Event, EventKind
from perfgate.github.runner import Runner
from perfgate.workflow.base import Base, Places, base_of_event, base_of_ref, laid_out
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import known_plans
from perfgate.workflow.devices import opened_device, session_seed
from perfgate.workflow.gating import Gate, GatedChange, with_suites
from perfgate.workflow.gating_by_base import BaseGate, base_revision
from perfgate.workflow.inputs import Inputs
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import measured
from perfgate.workflow.outcome import Outcome
from perfgate.workflow.publishing import Story
from perfgate.workflow.rejudging import of_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the action and what surrounds it.

    Attributes:
        inputs: of the action.
        event: what started the workflow.
        runner: what the runner says.
        folder: the working directory.
        token: None in the step that measures.
    """

    inputs: Inputs
    event: Event
    runner: Runner
    folder: Path
    token: str | None = field(default=None, repr=False)

    @property
    def places(self) -> Places:
        """Where baseline and policy are."""
        return Places(working=self.folder, baseline=self.inputs.baseline, policy=self.inputs.policy)

    def api(self) -> Api | None:
        """Return GitHub as the token of this step may use it; None without a token."""
        if not self.token:
            return None
        return Api(
            repository=self.runner.repository,
            token=self.token,
            url=self.runner.api_url,
            graphql_url=self.runner.graphql_url,
        )

    def selection(self, seed: int = 0) -> Selection:
        """Return what is measured, but for the suites."""
        return Selection(
            cases=self.inputs.cases,
            seed=seed,
            lock_clocks=self.inputs.lock_clocks is not None,
            clock_mhz=self.inputs.lock_clocks or None,
        )


def measured_change(step: Step, listener: Listener) -> GatedChange:
    """Measure and judge the change that is checked out.

    Raises:
        PerfgateError: no verdict could be reached.
    """
    _refuse_untrusted(step)
    inputs, folder = step.inputs, step.folder
    if inputs.base_ref:
        base = base_of_ref(folder, inputs.base_ref)
    else:
        base = base_of_event(folder, step.event, step.runner.address)
    revision = _compared_revision(step, base)
    device = opened_device(inputs.device)
    selection = step.selection(session_seed(None, device))
    if revision is not None:
        by_base = BaseGate(
            base=base,
            revision=revision,
            places=step.places,
            device=device,
            selection=selection,
            suites=inputs.suites,
            listener=listener,
            launches=inputs.launches,
        )
        return by_base.verdict()
    gate = Gate(
        base=base,
        places=step.places,
        device=device,
        selection=selection,
        suites=inputs.suites,
        listener=listener,
        launches=inputs.launches,
        wait=True,
    )
    return gate.verdict(first_run_passes=True)


def _compared_revision(step: Step, base: Base) -> str | None:
    """Return the commit that the change is measured in turn with, None for none; see ``base_revision``."""
    names = step.inputs.suites
    if not names:
        with laid_out(base, step.places) as layout:
            names = layout.effective_policy().suites
    return base_revision(step.inputs, step.event, base, names)


def measured_session(step: Step, listener: Listener) -> Run:
    """Measure what a baseline is to be made of.

    Raises:
        ConfigurationError: a pull request's code would be measured, or there is no reason.
        PerfgateError: nothing could be measured.
    """
    if step.event.pull is not None:
        raise ConfigurationError(
            "a baseline is not updated from a pull request", hint="start the workflow by workflow_dispatch"
        )
    if not step.inputs.reason:
        raise ConfigurationError("input reason is empty: a baseline is changed with a reason", hint="set it")
    device = opened_device(step.inputs.device)
    with laid_out(base_of_ref(step.folder, "HEAD"), step.places) as layout:
        policy = layout.effective_policy()
        plans = known_plans(layout.baseline, device.gpu)
    launches = step.inputs.launches or policy.baseline_launches
    selection = with_suites(step.selection(session_seed(None, device)), step.inputs.suites or policy.suites)
    return measured(device, selection, launches, listener, wait=True, plans=plans)


def check_story(step: Step, outcome: Outcome) -> Story:
    """Return what is told of a check.

    Raises:
        DocumentError: the report cannot be read.
    """
    report = outcome.read_report()
    if report is not None and step.event.pull is not None:
        # The commit that is checked out merges the head into the base; people know the head.
        report = of_commit(report, step.event.pull.head_sha)
    return Story(
        reports=() if report is None else (report,),
        exit_code=outcome.exit_code if report is None else report.exit_code,
        run=step.runner.run,
        run_url=step.runner.run_url,
        notices=outcome.notices,
        details=outcome.details,
        message=outcome.message,
        hint=outcome.hint,
    )


def _refuse_untrusted(step: Step) -> None:
    if step.event.kind is EventKind.PULL_REQUEST_TARGET:
        raise ConfigurationError(
            "pull_request_target runs with write rights on the base: a change is not measured there",
            hint="use the event pull_request, and comment.yml for the comment",
        )
    if step.event.is_from_fork and not step.inputs.allow_forks:
        source = step.event.pull.head_repository if step.event.pull else None
        raise ConfigurationError(
            f"this pull request comes from a fork ({source or 'deleted'}): its code does not run on this runner",
            hint="read docs/security.md before you set allow-forks: true",
        )
