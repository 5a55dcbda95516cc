"""Baselines change here: a session is accepted, with a reason, from a measurement or from a run document."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from perfgate import __version__
from perfgate.core.acceptance import accepted_session, baseline_of, implausible, unfitness, with_rows, with_session
from perfgate.core.baseline import Baseline, BaselineSession, Provenance
from perfgate.core.baseline_change import pruned, refuse_mixture
from perfgate.core.gate import judge
from perfgate.core.gpu import Difference, Gpu, environment_differences
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.selection import is_match, near_names
from perfgate.core.units import percent_text
from perfgate.core.verdict import CaseVerdict
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.baselines import StoredBaseline, baseline_target, find_baseline, update_baseline
from perfgate.storage.documents import read_document
from perfgate.workflow.measuring import utc_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms a run becomes part of a baseline.

    Attributes:
        reason: why; stored.
        force: why doubts are overridden; stored with them. None refuses a run with doubts.
        is_reviewed: somebody sees the change as a table before it counts: a slowdown is stated, not refused.
        replaces: the earlier sessions of this chip go.
        cases: globs; only these rows of this chip's newest session are refreshed. Empty adds a session.
        keeps: newest sessions of every chip that stay, beside its first. None keeps all.
        runner, actor: label of the runner, and who accepts it; only where given.
        policy: what a regression is.
    """

    reason: str
    force: str | None = None
    is_reviewed: bool = False
    replaces: bool = False
    cases: tuple[str, ...] = ()
    keeps: int | None = None
    runner: str | None = None
    actor: str | None = None
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ConfigurationError("a baseline is changed with a reason", hint='add --reason "..."')
        if self.force is not None and not self.force.strip():
            raise ConfigurationError("doubts are overridden with a reason", hint='add it: --force "..."')
        if self.replaces and self.cases:
            raise ConfigurationError("--replace drops sessions, --case refreshes rows of one", hint="give one of them")
        if self.keeps is not None and self.keeps < 1:
            raise ConfigurationError(f"--prune {self.keeps}: at least 1 session of a chip stays")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A baseline that was changed.

    Attributes:
        path: its file.
        baseline, before: the baseline now, and as it was; None where there was no file.
        nearest: where a file was made, the baseline that is nearest, of another GPU; it stays as it is.
        identity: in what the nearest differs.
        conditions: in what the new session differs from the newest one before, of this chip if there is one.
    """

    path: Path
    baseline: Baseline
    before: Baseline | None
    nearest: StoredBaseline | None = None
    identity: tuple[Difference, ...] = ()
    conditions: tuple[Difference, ...] = ()


def accepted(run: Run, place: Path, terms: Terms) -> Accepted:
    """Add a run to the baseline of its GPU.

    Args:
        run: what was measured.
        place: folder of baselines, or a file.
        terms: why and how.

    Raises:
        ConfigurationError: an injected run, or no case of it is meant.
        BaselineError: the machine was busy, throttled or unsettled, or got slower, and force was not given;
            or the run cannot share a baseline with what is there.
        DocumentError, OutputError: the baseline cannot be read or written.
    """
    if run.injected:
        raise ConfigurationError("an injected run cannot become a baseline", hint="measure again without --inject")
    run = _selected(run, terms.cases)
    doubts = run_doubts(run)
    if doubts and terms.force is None:
        raise BaselineError(
            f"this run is no fit baseline: {'; '.join(doubts)}",
            hint="measure again on an idle machine, or pass --force with why it is right all the same",
        )
    search = find_baseline(place, run.gpu) if place.is_dir() else None
    path = baseline_target(place, run.gpu)
    before: list[Baseline | None] = []

    def change(stored: Baseline | None) -> Baseline:
        before.append(stored)
        slower = () if stored is None else slowdowns(stored, run, terms.policy)
        if slower and terms.force is None and not terms.is_reviewed:
            raise BaselineError(
                f"this run is slower than the baseline: {'; '.join(slower)}",
                hint='find out why; a slowdown that was decided on is accepted by --force "why"',
            )
        changed = _changed(stored, run, terms, _provenance(run, terms, (*doubts, *slower)))
        refuse_implausible(changed, f"the session of {run.created_utc}", run.gpu)
        return changed

    baseline = update_baseline(path, change)
    nearest = search.nearest if search is not None and before[-1] is None else None
    return Accepted(
        path=path,
        baseline=baseline,
        before=before[-1],
        nearest=nearest,
        identity=search.differences if search is not None and nearest is not None else (),
        conditions=_conditions(before[-1], run),
    )


def run_doubts(run: Run) -> tuple[str, ...]:
    """Return what speaks against accepting a run, in sentences.

    Uncommitted changes are not among it: they are recorded, but a machine's baseline does not depend on them.
    """
    return tuple(caveat.message for caveat in unfitness(run, Policy()) if caveat.code != "dirty")


def slowdowns(stored: Baseline, run: Run, policy: Policy) -> tuple[str, ...]:
    """Return the cases of a run that are proven slower than a baseline, and that the policy does not accept.

    A baseline that followed every slowdown would absorb what the gate is for.
    """
    sessions = (replace(one, cases=_only(one.cases, tuple(run.cases))) for one in stored.sessions)
    known = replace(stored, sessions=tuple(sessions))
    try:
        report = judge(baseline=known, candidate=run, policy=policy, created_utc=now_utc())
    except ConfigurationError:
        return ()  # too few launches to prove anything, which is a doubt of its own
    return tuple(
        f"{case.id} by {percent_text(case.change.value, signed=True)}"
        for case in report.cases
        if case.verdict is CaseVerdict.REGRESSED and case.accepted is None and case.change is not None
    )


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
    elif not isinstance(document, Run):
        raise DocumentError(str(path), "is a report", hint="compare a baseline or a run with a run")
    return base_of_document(document)


def base_of_document(document: Baseline | Run) -> Baseline:
    """Return a baseline as it is; a run becomes one of one session, also a rehearsal: it is compared, not accepted."""
    if isinstance(document, Baseline):
        return document
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


def _provenance(run: Run, terms: Terms, overridden: tuple[str, ...]) -> Provenance:
    why = terms.force or "shown for review"
    return Provenance(
        recorded_utc=run.created_utc,
        reason=terms.reason.strip(),
        device_kind=run.device_kind,
        perfgate_version=run.perfgate_version,
        commit=run.environment.commit,
        runner=terms.runner,
        actor=terms.actor,
        forced=f"{why.strip()}: {'; '.join(overridden)}" if overridden else None,
    )


def _changed(stored: Baseline | None, run: Run, terms: Terms, provenance: Provenance) -> Baseline:
    if stored is None:
        return baseline_of(run, provenance)
    session = accepted_session(run, provenance)
    refuse_mixture((*stored.sessions, session))
    if terms.cases:
        changed = with_rows(stored, session)
    else:
        kept = tuple(one for one in stored.sessions if not (terms.replaces and _is_of_chip(one, run)))
        changed = with_session(replace(stored, sessions=kept), session)
    return changed if terms.keeps is None else pruned(changed, terms.keeps)


def _is_of_chip(session: BaselineSession, run: Run) -> bool:
    return session.chip is not None and session.chip == run.gpu.chip


def _conditions(before: Baseline | None, run: Run) -> tuple[Difference, ...]:
    """Return what is different since the session that was the newest: what a later reader asks first."""
    sessions = before.sessions if before is not None else ()
    others = [one for one in sessions if one.provenance.recorded_utc != run.created_utc]
    own = [one for one in others if _is_of_chip(one, run)]
    if not others:
        return ()
    last = (own or others)[-1]
    found = environment_differences(last.environment, run.environment)
    if last.power_limit_w != run.gpu.power_limit_w:
        limits = (last.power_limit_w, run.gpu.power_limit_w)
        there, here = ("unknown" if limit is None else f"{limit:g} W" for limit in limits)
        found = (Difference(field="power_limit_w", baseline=there, candidate=here), *found)
    return (
        found if own else (Difference(field="chip", baseline=_chip(last.chip), candidate=_chip(run.gpu.chip)), *found)
    )


def _chip(chip: str | None) -> str:
    return chip or "unknown"


def _selected(run: Run, globs: tuple[str, ...]) -> Run:
    """Return a run without the cases that were not asked for."""
    for glob in globs:
        if not any(is_match(case_id, glob) for case_id in run.cases):
            near = near_names(glob, run.cases)
            hint = f"did you mean {' or '.join(near)}?" if near else f"cases: {', '.join(run.cases)}"
            raise ConfigurationError(f"--case {glob!r} matches no case of the run", hint=hint)
    if not globs:
        return run
    cases = {case_id: info for case_id, info in run.cases.items() if any(is_match(case_id, glob) for glob in globs)}
    launches = (replace(one, cases=_only(one.cases, tuple(cases))) for one in run.launches)
    return replace(run, cases=cases, launches=tuple(launches))


def _only(cases: Mapping[str, T], ids: tuple[str, ...]) -> dict[str, T]:
    return {case_id: case for case_id, case in cases.items() if case_id in ids}
