"""Baselines change here: a session is accepted, with a reason, from a measurement or from a run document."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from perfgate import __version__
from perfgate.core.acceptance import accepted_session, baseline_of, with_session
from perfgate.core.baseline import Baseline, Provenance
from perfgate.core.device import DeviceKind
from perfgate.core.run import Run
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.baselines import baseline_target, update_baseline
from perfgate.storage.documents import read_baseline, read_run
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
            return baseline_of(run, provenance)
        if run.device_kind == DeviceKind.RECORDED and any(
            session.provenance.device_kind == DeviceKind.CUDA for session in stored.sessions
        ):
            raise ConfigurationError(
                "a recorded run cannot join sessions measured on a GPU", hint="name another folder with --baseline"
            )
        kept = tuple(one for one in stored.sessions if not replaces or one.chip is None or one.chip != run.gpu.chip)
        if not kept:
            return replace(baseline_of(run, provenance), margins=stored.margins)
        return with_session(replace(stored, sessions=kept), accepted_session(run, provenance))

    return change


def run_doubts(run: Run) -> tuple[str, ...]:
    """Return why a run should not become a baseline; empty when nothing speaks against it."""
    doubts = []
    if run.health_after and run.health_after.foreign_processes:
        doubts.append("other processes used the GPU")
    unsettled: set[str] = set()
    spoiled: set[str] = set()
    failed: set[str] = set()
    for launch in run.launches:
        failed.update(launch.failures)
        for case_id, case in launch.cases.items():
            if not case.settled and run.cases[case_id].gated:
                unsettled.add(case_id)
            if not case.valid_blocks:
                spoiled.add(case_id)
    for text, cases in (("did not settle", unsettled), ("has no valid block", spoiled), ("failed", failed)):
        doubts.extend(f"{case_id} {text}" for case_id in sorted(cases))
    return tuple(doubts)


def read_base(path: Path) -> Baseline:
    """Read what a run is compared with: a baseline, or a run, which becomes a baseline of one session.

    Raises:
        DocumentError: it is neither.
    """
    try:
        return read_baseline(path)
    except DocumentError as not_baseline:
        if "perfgate.run/" not in not_baseline.reason:
            raise
    run = read_run(path)
    provenance = Provenance(
        recorded_utc=run.created_utc,
        reason="compared",
        device_kind=run.device_kind,
        perfgate_version=__version__,
    )
    return baseline_of(run, provenance)


def now_utc() -> str:
    """Return this moment as documents write it."""
    return utc_text(datetime.now(timezone.utc))
