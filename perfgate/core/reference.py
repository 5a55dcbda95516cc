"""Which launches of a baseline one case is compared with: like with like, or a reason why not.

The sessions of this chip if there are any, else those of other chips of the identity; of this driver
where there are any; always with the same version, work and sampling plan.
"""

import math
import statistics
from dataclasses import dataclass, fields, is_dataclass

from perfgate.core.baseline import Baseline, BaselineSession, SessionCase
from perfgate.core.case import Unit
from perfgate.core.cause import differs
from perfgate.core.caveat import Caveat
from perfgate.core.comparison import logarithms
from perfgate.core.device import DeviceKind
from perfgate.core.gpu import unknown_identity_fields
from perfgate.core.margin import SessionLevels, margin_defaults, pooled
from perfgate.core.plan import CasePlan
from perfgate.core.run import Run
from perfgate.core.selection import is_match
from perfgate.core.summary import median_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The baseline's side of one case.

    Attributes:
        sessions: those that were used, oldest first.
        cases: the case in each of them.
        launches: logarithms in the unit of judgement, every session shifted to the common level.
        levels: of sessions, or of chips: what the margin is learned from.
        anchor: logarithm of the level of the first accepted session of this chip; None without one.
        median_s: median time of the sessions.
        sm_clock_hz: median clock of the sessions; None where it is unknown.
    """

    sessions: tuple[BaselineSession, ...]
    cases: tuple[SessionCase, ...]
    launches: tuple[float, ...]
    levels: SessionLevels
    anchor: float | None
    median_s: float
    sm_clock_hz: float | None
    caveats: tuple[Caveat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReference:
    """Why a case cannot be compared; ``is_new`` when the baseline has never seen it."""

    reason: str
    is_new: bool = False


def reference(case_id: str, run: Run, baseline: Baseline) -> Reference | NoReference:
    """Return the launches of a baseline that a run's case is compared with, or why there are none.

    The identity of the GPU is taken for checked.
    """
    waived = is_injected(case_id, run)
    usable: list[_Pair] = []
    reason = ""
    for session in baseline.sessions:
        case = session.cases.get(case_id)
        if case is None:
            continue
        obstacle = _obstacle(session, case, case_id, run, is_waived=waived)
        if obstacle:
            reason = obstacle
        else:
            usable.append((session, case))
    if not usable:
        new = NoReference(reason="the baseline has no such case", is_new=True)
        return NoReference(reason=reason) if reason else new
    usable = _current(usable, margin_defaults(case_id).same_chip)
    own = [pair for pair in usable if _is_of_chip(pair[0], run)]
    if not own:
        usable = _of_newest_source(usable, margin_defaults(case_id).cross_chip)
    caveats = [_INJECTED] if waived else []
    same_driver = [pair for pair in own or usable if _driver(pair[0]) == run.environment.driver_version]
    if not same_driver and run.environment.driver_version is not None:
        caveats.append(_driver_caveat(own or usable, run))
    used = same_driver or own or usable
    if not own:
        caveats.append(_CROSS_CHIP)
    return _reference(used, anchor=own[0][1] if own else None, caveats=tuple(caveats))


def is_injected(case_id: str, run: Run) -> bool:
    """Tell whether a slowdown was rehearsed on this case: its number of executions had to change."""
    return any(is_match(case_id, injection.pattern) for injection in run.injected)


def plan_of(case_id: str, run: Run) -> CasePlan | None:
    """Return the sampling plan of a run's case, from its blocks where it is not stated."""
    stated = run.cases[case_id].plan
    if stated is not None:
        return stated
    for launch in run.launches:
        blocks = launch.cases[case_id].valid_blocks if case_id in launch.cases else ()
        if blocks:
            return CasePlan(
                executions_per_sample=blocks[0].executions_per_sample,
                samples_per_block=len(blocks[0].times_s),
                blocks=len(blocks),
            )
    return None


_Pair = tuple[BaselineSession, SessionCase]

_CROSS_CHIP = Caveat(
    code="cross-chip",
    message="compared with other chips of this GPU: the baseline has no session of this chip that is comparable",
    remedy='perfgate baseline update --reason "another chip" adds one, at the smaller margin',
)
_INJECTED = Caveat(
    code="injected",
    message="a change was injected into this case, so its number of executions differs from the baseline's",
)


def _current(pairs: list[_Pair], margin: float) -> list[_Pair]:
    """Return each chip's sessions since its last accepted step, in the order of acceptance.

    A step is a session of another source or machine code that left the level of those before it by
    more than the margin: an accepted slowdown or speed-up, after which older sessions describe other
    code. Unchanged code that moves is noise, however far: it stays and widens the margin.
    """
    current: dict[str | None, list[_Pair]] = {}
    for pair in pairs:
        before = current.setdefault(pair[0].chip, [])
        if before and _is_step(before, pair[1], margin):
            before.clear()
        before.append(pair)
    kept = {id(session) for own in current.values() for session, _ in own}
    return [pair for pair in pairs if id(pair[0]) in kept]


def _of_newest_source(pairs: list[_Pair], margin: float) -> list[_Pair]:
    """Leave out sessions of other chips whose source is another than the newest session's, and whose level is too.

    They describe other code, and how far it was from the present one is no noise between chips.
    """
    newest = pairs[-1][1].source_sha256
    _, medians = pooled(
        [logarithms(case.statistics()).tolist() for _, case in pairs if not differs(case.source_sha256, newest)]
    )
    level, edge = statistics.median(medians), math.log1p(margin)

    def is_kept(case: SessionCase) -> bool:
        moved = abs(statistics.median(logarithms(case.statistics()).tolist()) - level)
        return not differs(case.source_sha256, newest) or moved <= edge

    return [pair for pair in pairs if is_kept(pair[1])]


def _is_step(before: list[_Pair], case: SessionCase, margin: float) -> bool:
    last = before[-1][1]
    if not (differs(last.source_sha256, case.source_sha256) or differs(last.code_sha256, case.code_sha256)):
        return False
    _, medians = pooled([logarithms(one.statistics()).tolist() for _, one in before])
    moved = abs(statistics.median(logarithms(case.statistics()).tolist()) - statistics.median(medians))
    return bool(moved > math.log1p(margin))


def _is_of_chip(session: BaselineSession, run: Run) -> bool:
    """Tell whether a session is of the chip under judgement; an identity with unknown fields proves no chip."""
    return session.chip is not None and session.chip == run.gpu.chip and not unknown_identity_fields(run.gpu)


def _driver(session: BaselineSession) -> str | None:
    return session.environment.driver_version


def _driver_caveat(pairs: list[_Pair], run: Run) -> Caveat:
    seen = ", ".join(sorted({_driver(session) or "unknown" for session, _ in pairs}))
    return Caveat(
        code="driver-differs",
        message=f"no baseline session is of this driver: {seen} there, {run.environment.driver_version} here",
        remedy=f'perfgate baseline update --reason "driver {run.environment.driver_version}" adds one',
    )


def _reference(
    used: list[_Pair],
    *,
    anchor: SessionCase | None,
    caveats: tuple[Caveat, ...],
) -> Reference:
    values = [logarithms(case.statistics()).tolist() for _, case in used]
    launches, medians = pooled(values)
    same_chip = anchor is not None
    if not same_chip:
        medians = _chip_levels([session.chip for session, _ in used], medians)
    if not all(case.settled for _, case in used):
        caveats += (Caveat(code="not-settled", message="the baseline was measured before the GPU had settled"),)
    return Reference(
        sessions=tuple(session for session, _ in used),
        cases=tuple(case for _, case in used),
        launches=launches,
        levels=SessionLevels(same_chip=same_chip, medians=medians),
        anchor=statistics.median(logarithms(anchor.statistics()).tolist()) if anchor is not None else None,
        median_s=statistics.median(statistics.median(case.launch_medians_s) for _, case in used),
        sm_clock_hz=median_or_none(case.sm_clock_hz for _, case in used),
        caveats=caveats,
    )


def _chip_levels(chips: list[str | None], medians: tuple[float, ...]) -> tuple[float, ...]:
    """Return one level a chip; sessions of unknown chips count as one chip, so that nothing is claimed from them."""
    by_chip: dict[str | None, list[float]] = {}
    for chip, median in zip(chips, medians, strict=True):
        by_chip.setdefault(chip, []).append(median)
    return tuple(statistics.median(levels) for levels in by_chip.values())


def _obstacle(session: BaselineSession, case: SessionCase, case_id: str, run: Run, *, is_waived: bool) -> str | None:
    """Return why a session's case is not comparable with the run's; None when it is."""
    info = run.cases[case_id]
    plan = None if is_waived else _difference("sampling plan", case.plan, plan_of(case_id, run))
    compute = info.work.pipe is not None  # only these slow down with the power limit
    host = info.timing.is_host_timed
    return (
        _kind_obstacle(session, run)
        or _difference("method", session.method, run.method)
        or _difference("version", case.version, info.version)
        or _difference("work", case.work, info.work)
        or _difference("timing", case.timing, info.timing)
        or _difference("unit of judgement", case.unit, info.unit)
        or _known_difference("concurrency", session.environment.concurrency, run.environment.concurrency)
        or plan
        or (
            _difference("power limit", _watts(session.power_limit_w), _watts(run.gpu.power_limit_w))
            if compute
            else None
        )
        or (_difference("CPU", session.environment.cpu_model, run.environment.cpu_model) if host else None)
        or ("the baseline knows no SM cycles" if info.unit is Unit.CYCLES and case.launch_cycles is None else None)
    )


def _difference(name: str, there: object, here: object) -> str | None:
    """Return a sentence on a field that differs; work and plans are shown by the fields in which they do."""
    if there == here:
        return None
    if is_dataclass(there) and type(there) is type(here):
        differing = [one.name for one in fields(there) if getattr(there, one.name) != getattr(here, one.name)]
        pairs = [f"{one} {getattr(there, one)} in the baseline, {getattr(here, one)} here" for one in differing]
        return f"{name} differs: {'; '.join(pairs)}"
    return f"{name} differs: {_shown(there)} in the baseline, {_shown(here)} here"


def _known_difference(name: str, there: str | None, here: str | None) -> str | None:
    """Return a sentence on a field that both sides know and that differs."""
    return None if there is None or here is None else _difference(name, there, here)


def _watts(limit_w: float | None) -> str:
    return "unknown" if limit_w is None else f"{limit_w:g} W"


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)


def _kind_obstacle(session: BaselineSession, run: Run) -> str | None:
    """Return why a recording may not stand for a GPU; the other way round every output says RECORDED."""
    if session.provenance.device_kind == DeviceKind.RECORDED and run.device_kind != DeviceKind.RECORDED:
        return "the baseline holds a recorded device, not a GPU"
    return None
