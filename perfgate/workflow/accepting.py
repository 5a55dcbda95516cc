"""Baselines change here: a session is accepted, with a reason, from a measurement or from a run document."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from perfgate import __version__
from perfgate.core.acceptance import accepted_session, baseline_of, implausible, unfitness, with_session
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.device import DeviceKind
from perfgate.core.gpu import Gpu
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.baselines import baseline_target, update_baseline
from perfgate.storage.documents import read_document
from perfgate.workflow.measuring import utc_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A baseline that was changed."""

    path: Path
    baseline: Baseline
    before: Baseline | None


def accepted(run: Run, place: Path, *, reason: str, force: str | None = None, replaces: bool = False) -> Accepted:
    """Add a run to the baseline of its GPU.

    Args:
        run: what was measured.
        place: folder of baselines, or a file.
        reason: why; stored.
        force: why doubts are overridden; stored. None refuses a run with doubts.
        replaces: the earlier sessions of this chip go.

    Raises:
        ConfigurationError: no reason, an injected run.
        BaselineError: the machine was busy, throttled or unsettled, and force was not given.
        DocumentError, OutputError: the baseline cannot be read or written.
    """
    if not reason.strip():
        raise ConfigurationError("a baseline is changed with a reason", hint='add --reason "..."')
    if run.injected:
        raise ConfigurationError("an injected run cannot become a baseline", hint="measure again without --inject")
    doubts = run_doubts(run)
    if doubts and force is None:
        raise BaselineError(
            f"this run is no fit baseline: {'; '.join(doubts)}",
            hint="measure again on an idle machine, or pass --force with why it is right all the same",
        )
    path = baseline_target(place, run.gpu)
    provenance = Provenance(
        recorded_utc=run.created_utc,
        reason=reason.strip(),
        device_kind=run.device_kind,
        perfgate_version=run.perfgate_version,
        commit=run.environment.commit,
        forced=f"{force}: {'; '.join(doubts)}" if force and doubts else None,
    )
    before: list[Baseline | None] = []
    baseline = update_baseline(path, _change(run, provenance, before, replaces=replaces))
    return Accepted(path=path, baseline=baseline, before=before[-1])


def _change(
    run: Run, provenance: Provenance, before: list[Baseline | None], *, replaces: bool
) -> Callable[[Baseline | None], Baseline]:
    def change(stored: Baseline | None) -> Baseline:
        before.append(stored)
        if stored is None:
            return _plausible(baseline_of(run, provenance), run)
        if run.device_kind == DeviceKind.RECORDED and any(
            session.provenance.device_kind == DeviceKind.CUDA for session in stored.sessions
        ):
            raise ConfigurationError(
                "a recorded run cannot join sessions measured on a GPU", hint="name another folder with --baseline"
            )
        kept = tuple(one for one in stored.sessions if not replaces or one.chip is None or one.chip != run.gpu.chip)
        if not kept:
            return _plausible(replace(baseline_of(run, provenance), margins=stored.margins), run)
        return _plausible(with_session(replace(stored, sessions=kept), accepted_session(run, provenance)), run)

    return change


def run_doubts(run: Run) -> tuple[str, ...]:
    """Return what speaks against accepting a run, in sentences.

    Uncommitted changes are not among it: they are recorded, but a machine's baseline does not depend on them.
    """
    return tuple(caveat.message for caveat in unfitness(run, Policy()) if caveat.code != "dirty")


def _plausible(baseline: Baseline, run: Run) -> Baseline:
    refuse_implausible(baseline, f"the session of {run.created_utc}", run.gpu)
    return baseline


def refuse_implausible(baseline: Baseline, source: str, gpu: Gpu | None = None) -> None:
    """Refuse a baseline that cannot be true: beyond physics, from the future, sessions that contradict each other.

    Raises:
        DocumentError: names everything that cannot be.
    """
    found = implausible(baseline, gpu=gpu, now_utc=now_utc())
    if found:
        raise DocumentError(
            source,
            "; ".join(caveat.message for caveat in found),
            hint="mend or remove the session: perfgate baseline show lists them",
        )


def read_base(path: Path) -> Baseline:
    """Read what a run is compared with: a baseline, or a run, which becomes a baseline of one session.

    Raises:
        DocumentError: it is neither, or makes no sense.
    """
    document = read_document(path)
    if isinstance(document, Baseline):
        refuse_implausible(document, str(path))
        return document
    if not isinstance(document, Run):
        raise DocumentError(str(path), "is a report", hint="compare a baseline or a run with a run")
    provenance = Provenance(
        recorded_utc=document.created_utc,
        reason="compared",
        device_kind=document.device_kind,
        perfgate_version=__version__,
        forced="compared, not accepted" if document.injected else None,
    )
    return baseline_of(document, provenance)


def now_utc() -> str:
    """Return this moment as documents write it."""
    return utc_text(datetime.now(timezone.utc))
