"""A change's own cases judged by its base in one session, by the policy of the base; the action's ``against``."""

from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.core.device import Device, DeviceKind
from perfgate.core.report import Report
from perfgate.core.verdict import CheckVerdict
from perfgate.errors import ConfigurationError, ExitCode
from perfgate.github.event import Event, EventKind
from perfgate.resources import resource_folder
from perfgate.workflow.against import BASE_BROKEN, AgainstBase
from perfgate.workflow.base import Base, Places, laid_out
from perfgate.workflow.cases import Selection
from perfgate.workflow.gating import GatedChange, with_suites
from perfgate.workflow.inputs import AUTOMATIC, NONE, Inputs
from perfgate.workflow.listener import Listener
from perfgate.workflow.proposed import proposed_change
from perfgate.workflow.suites import is_own

_FIRST = "The base has none of these cases yet, so this pull request passes; the next one is compared with them."


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseGate:
    """How a change is judged by its base.

    Attributes:
        base: the commit whose policy, and stored baseline, count.
        revision: the commit that is measured in turn with the change.
        places: where policy and baseline are.
        device: opened device.
        selection: what is measured, but for the suites.
        suites: names of suites that were asked for; without any those that the base's policy names.
        listener: told while it goes on.
        launches: of each side; None for as many as the cases ask for.
    """

    base: Base
    revision: str
    places: Places
    device: Device
    selection: Selection
    listener: Listener
    suites: tuple[str, ...] = ()
    launches: int | None = None

    def verdict(self) -> GatedChange:
        """Measure both sides and judge.

        Raises:
            ConfigurationError: no suite is the repository's own: nothing could differ.
            PerfgateError: no verdict could be reached.
        """
        with laid_out(self.base, self.places) as layout:
            policy = layout.effective_policy()
            names = self.suites or policy.suites
            if not any(map(is_own, names)):
                raise ConfigurationError(
                    f"input against: {self.revision}: every suite is built in, and so the same on both sides",
                    hint="name a suite of your own, or set against: none",
                )
            selection = with_suites(self.selection, names)
            is_shipped = self.device.kind is DeviceKind.RECORDED and self.places.baseline is None
            asked = AgainstBase(
                device=self.device,
                selection=selection,
                revision=self.revision,
                policy=None,
                effective_policy=policy,
                trusts_suites=False,
                listener=self.listener,
                launches=self.launches,
                baseline_place=resource_folder("baselines") if is_shipped else layout.baseline,
                wait=True,
                folder=self.places.working,
            )
            result = asked.verdict()
            places = replace(self.places, suites=tuple(map(Path, selection.own_suites)))
            proposed = proposed_change(self.base, places, self.base.repository.commit_id("HEAD"))
        for sentence in proposed.sentences:
            self.listener.notices(sentence)
        report = first_passes(result.report)
        if proposed.is_broken and report.exit_code == ExitCode.PASSED:
            report = replace(report, exit_code=int(ExitCode.DOCUMENT))
        notices = (*((_FIRST,) if _is_first(report) else ()), *proposed.sentences)
        return GatedChange(result=replace(result, report=report), proposed=proposed, notices=notices)


def base_revision(inputs: Inputs, event: Event, base: Base, names: tuple[str, ...]) -> str | None:
    """Return the commit that a change is measured in turn with; None where its stored baseline alone judges it.

    Args:
        inputs: of the action.
        event: what started the workflow.
        base: of the change.
        names: of the suites, as asked for or by the base's policy.
    """
    if inputs.against == NONE:
        return None
    if inputs.against != AUTOMATIC:
        return inputs.against
    is_pull = event.kind is EventKind.PULL_REQUEST
    return base.commit if is_pull and any(map(is_own, names)) else None


def first_passes(report: Report) -> Report:
    """Let a change pass that brings the first cases: a base without any has nothing to protect."""
    return replace(report, exit_code=int(ExitCode.PASSED)) if _is_first(report) else report


def _is_first(report: Report) -> bool:
    is_new = report.verdict is CheckVerdict.NO_BASELINE and report.exit_code in (ExitCode.PASSED, ExitCode.NO_BASELINE)
    return is_new and not any(caveat.code == BASE_BROKEN for caveat in report.caveats)
