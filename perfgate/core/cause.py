"""What was seen beside a change that may explain it: coded, in a sentence, with who acts.

A cause never changes a verdict or an exit code. It is read from what was recorded: source and machine
code, environment, clocks, the other cases, and the health of the GPU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfgate.core.gpu import Difference, Environment, environment_differences
from perfgate.core.report import Cause
from perfgate.core.run import Health
from perfgate.core.units import clock_text, percent_text
from perfgate.core.xid import is_of_program, xid_text

FOREIGN_PROCESS, THROTTLED = "foreign-process", "throttled"  # codes that others ask for
AUTHOR, MAINTAINER, RUNNER_OWNER = "author", "maintainer", "runner-owner"

# Differences of the environment that can move a GPU's times by themselves: field, code, words, who acts.
_ENVIRONMENT = (
    ("driver_version", "driver-changed", "the driver", RUNNER_OWNER),
    ("vbios_version", "vbios-changed", "the VBIOS", RUNNER_OWNER),
    ("cpu_model", "cpu-changed", "the CPU", RUNNER_OWNER),
    ("visible_gpus", "machine-changed", "the number of GPUs of the machine", RUNNER_OWNER),
    ("clock_policy", "clock-policy-changed", "the clock policy", RUNNER_OWNER),
    ("variables", "variables-changed", "the environment's CUDA variables", MAINTAINER),
)
# These act through the machine code alone.
_TOOLCHAIN = ("cuda_toolkit_version", "compiler", "cublas_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one case that moved.

    Attributes:
        change: relative change of the time or cycles.
        margin: its margin.
        is_same_chip: compared with sessions of this chip.
        source, code: whether the hash of the kernel's source, of its machine code differs; None if unknown.
        is_in_cycles: the change is one of SM cycles: a lower clock makes none of them, since memory keeps its own.
        clock_hz: baseline's and candidate's median SM clock; None where not measured.
        environment: fields that differ from the newest session used.
    """

    change: float
    margin: float
    is_same_chip: bool
    source: bool | None = None
    code: bool | None = None
    is_in_cycles: bool = False
    clock_hz: tuple[float, float] | None = None
    environment: tuple[Difference, ...] = ()


def differs(one: str | None, other: str | None) -> bool | None:
    """Tell whether two hashes differ; None where one is unknown."""
    return None if one is None or other is None else one != other


def case_causes(seen: Evidence, health: Sequence[Cause] = ()) -> tuple[Cause, ...]:
    """Return what may explain one case's change; the hardware itself when nothing else can."""
    causes = [*_code_causes(seen), *environment_causes(seen.environment)]
    clock = clock_cause(seen)
    if clock is not None and not (seen.is_in_cycles and clock.code == "clock-lower"):
        causes.append(clock)
    unchanged = seen.source is False and seen.code in (False, None) and not causes
    if unchanged and seen.is_same_chip and seen.change > 0 and not health:
        causes.append(
            Cause(
                code="hardware-finding",
                message="an unchanged kernel in an unchanged environment got slower on this chip",
                who=RUNNER_OWNER,
            )
        )
    return tuple(causes)


def clock_cause(seen: Evidence) -> Cause | None:
    """Return the cause that the SM clock moved by more than half the margin, with the change in cycles."""
    if seen.clock_hz is None:
        return None
    before, now = seen.clock_hz
    relative = now / before - 1
    if abs(relative) <= seen.margin / 2:
        return None
    word = "lower" if relative < 0 else "higher"
    return Cause(
        code=f"clock-{word}",
        message=f"the SM clock is {percent_text(abs(relative), decimals=1)} {word}: {clock_text(before)} before, "
        f"{clock_text(now)} now",
        who=RUNNER_OWNER,
    )


def environment_causes(differences: Sequence[Difference]) -> tuple[Cause, ...]:
    """Return the causes among the fields of the environment that differ."""
    by_field = {one.field: one for one in differences}
    return tuple(
        Cause(code=code, message=f"{words} changed: {_moved(by_field[field])}", who=who)
        for field, code, words, who in _ENVIRONMENT
        if field in by_field
    )


def family_shift(shifts: Mapping[str, float], margins: Mapping[str, float], families: Mapping[str, str]) -> set[str]:
    """Return the families of which every case, two at least, moved beyond its margin by about the same factor.

    About the same: within the margins of their median. Such a shift has a common cause, and a kernel
    is not one. Looked for by family, since chips differ in one access pattern and not in another.

    Args:
        shifts: logarithm of the change by case.
        margins: by case.
        families: by case.
    """
    found = set()
    for family in set(families.values()):
        members = [case_id for case_id in shifts if families[case_id] == family]
        if len(members) < 2:
            continue
        values = np.array([shifts[case_id] for case_id in members])
        edges = np.log1p([margins[case_id] for case_id in members])
        middle = float(np.median(values))
        is_beyond = np.all(np.sign(values) == np.sign(middle)) and np.all(np.abs(values) > edges)
        if is_beyond and np.all(np.abs(values - middle) <= edges):
            found.add(family)
    return found


def family_cause(family: str, shift: float) -> Cause:
    """Return the cause that a whole family moved."""
    return Cause(
        code="family-shift",
        message=f"every case of the family {family} moved by about {percent_text(shift, signed=True, decimals=1)}: "
        "one kernel cannot be why",
        who=RUNNER_OWNER,
    )


def canary_cause(moved: Sequence[str]) -> Cause:
    """Return the cause that cases whose source did not change moved as well."""
    named = ", ".join(moved[:3]) + (" and others" if len(moved) > 3 else "")
    return Cause(
        code="canaries-moved",
        message=f"cases whose source did not change are slower too: {named}",
        who=RUNNER_OWNER,
    )


def health_causes(before: Health | None, after: Health | None) -> tuple[Cause, ...]:
    """Return what the GPU itself reports beside a session."""
    states = [state for state in (before, after) if state is not None]
    if not states:
        return ()
    now = states[-1]
    foreign = sorted({name for state in states for name in state.foreign_processes})
    grown = [
        words
        for field, words in (
            ("ecc_corrected", "corrected ECC errors"),
            ("ecc_uncorrected", "uncorrected ECC errors"),
            ("remapped_rows_correctable", "rows remapped after correctable errors"),
            ("remapped_rows_uncorrectable", "rows remapped after uncorrectable errors"),
            ("pcie_replays", "PCIe replays"),
            ("nvlink_errors", "NVLink errors"),
        )
        if len(states) == 2 and (getattr(now, field) or 0) > (getattr(states[0], field) or 0)
    ]
    found = (
        (bool(foreign), FOREIGN_PROCESS, f"another process used the GPU: {', '.join(foreign)}"),
        (bool(grown), "errors-grew", f"during the session grew: {', '.join(grown)}"),
        (bool(now.remap_pending or now.remap_failed), "row-remapping", "a row remapping is pending or has failed"),
        (
            _is_below(now.pcie_width, now.pcie_width_max),
            "pcie-narrower",
            f"PCIe runs {now.pcie_width} lanes wide of {now.pcie_width_max}",
        ),
        (
            len(states) == 2 and _is_below(now.nvlink_links_active, states[0].nvlink_links_active),
            "nvlink-lost",
            "NVLink links were lost during the session",
        ),
        (bool(now.mps_active), "mps-active", "the multi-process service shares the GPU"),
    )
    causes = [Cause(code=code, message=message, who=RUNNER_OWNER) for is_seen, code, message in found if is_seen]
    if now.xids:
        message = f"the driver reported {xid_text(now.xids)} during the session"
        who = AUTHOR if all(is_of_program(number) for number in now.xids) else RUNNER_OWNER
        causes.append(Cause(code="xid", message=message, who=who))
    return tuple(causes)


def throttle_cause(clock_events_s: Mapping[str, float]) -> Cause | None:
    """Return the cause that the GPU slowed itself during a case; None where it did not, or only as it always does."""
    reasons = {name: value for name, value in clock_events_s.items() if value > 0}
    if not reasons:
        return None
    named = ", ".join(f"{name.replace('_', ' ')} {value:.2g} s" for name, value in sorted(reasons.items()))
    return Cause(code=THROTTLED, message=f"the GPU lowered its clocks during the case: {named}", who=RUNNER_OWNER)


def relevant_differences(baseline: Environment, candidate: Environment) -> tuple[Difference, ...]:
    """Return the differences between two environments that can move a GPU's times."""
    fields = {field for field, *_ in _ENVIRONMENT} | set(_TOOLCHAIN)
    return tuple(one for one in environment_differences(baseline, candidate) if one.field in fields)


def _code_causes(seen: Evidence) -> list[Cause]:
    if seen.source:
        return [Cause(code="source-changed", message="the kernel's source changed", who=AUTHOR)]
    toolchain = [one for one in seen.environment if one.field in _TOOLCHAIN]
    moved = "; ".join(f"{one.field.removesuffix('_version').replace('_', ' ')} {_moved(one)}" for one in toolchain)
    if seen.code:
        why = f" ({moved})" if moved else ""
        return [Cause(code="code-changed", message=f"same source, other machine code{why}", who=MAINTAINER)]
    if toolchain and seen.code is None:
        return [Cause(code="toolkit-changed", message=f"the toolchain changed: {moved}", who=MAINTAINER)]
    return []


def _moved(one: Difference) -> str:
    return f"{one.baseline} to {one.candidate}"


def _is_below(now: int | None, most: int | None) -> bool:
    return now is not None and most is not None and now < most
