"""What every renderer says in words: the headline, who acts, what differs, which baseline, which policy."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields

from perfgate.core.case import MemoryLevel
from perfgate.core.device import DeviceKind
from perfgate.core.gpu import Difference, Environment, Gpu
from perfgate.core.policy import Acceptance, Policy
from perfgate.core.report import BaselineUsed, CaseResult, Report
from perfgate.core.roofs import Roofs
from perfgate.core.run import Injection
from perfgate.core.units import bytes_text, clock_text, percent_text, rate_text
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ExitCode
from perfgate.report.rows import VERDICT_ORDER, verdict_text
from perfgate.shims import assert_never

_FIELD_NAMES = {
    "driver_version": "driver",
    "cuda_driver_version": "CUDA driver",
    "cuda_toolkit_version": "CUDA toolkit",
    "cublas_version": "cuBLAS",
    "pycuda_version": "PyCUDA",
    "python_version": "Python",
    "os": "operating system",
    "cpu_model": "CPU",
    "nvml_tier": "NVML tier",
    "vbios_version": "VBIOS",
    "visible_gpus": "visible GPUs",
    "sm_count": "SMs",
    "l2_bytes": "L2",
    "ecc_enabled": "ECC",
    "mig_profile": "MIG profile",
    "pci_device_id": "PCI device",
    "pci_subsystem_id": "PCI subsystem",
    "board_part_number": "board",
    "memory_bytes": "memory",
    "memory_bus_bits": "memory bus [bit]",
    "sm_clock_max_hz": "highest SM clock",
    "dirty": "uncommitted changes",
}

_ACTORS = {
    "author": "the author of this change",
    "maintainer": "a maintainer",
    "runner-owner": "the owner of the runner",
}

# Whose causes count for who acts: the verdicts that can make a check fail.
_ACTING = frozenset(
    {CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED, CaseVerdict.INVALID, CaseVerdict.MISSING, CaseVerdict.INCONCLUSIVE}
)


def headline(report: Report) -> str:
    """Return the verdict in one line, with the GPU that it is about."""
    place = f"on {report.gpu.name}"
    match report.verdict:
        case CheckVerdict.REGRESSED if report.exit_code == 0:
            return f"regressed {place}, accepted"
        case CheckVerdict.PASSED if report.exit_code != 0:
            return f"passed {place}, but the check fails with exit {report.exit_code}"
        case CheckVerdict.PASSED | CheckVerdict.REGRESSED | CheckVerdict.SUSPECTED | CheckVerdict.INCONCLUSIVE:
            return f"{report.verdict} {place}"
        case CheckVerdict.NO_BASELINE:
            return f"no baseline for {report.gpu.name}"
        case CheckVerdict.NOT_COMPARABLE:
            return f"no comparable baseline for this {report.gpu.name}"
        case CheckVerdict.INVALID:
            return f"invalid measurement {place}"
        case _:
            assert_never(report.verdict)


def rehearsal(device_kind: str, injected: tuple[Injection, ...]) -> tuple[tuple[str, str], ...]:
    """Return what makes this no measurement of a GPU: badge and sentence; empty for the real thing."""
    found = []
    if device_kind != DeviceKind.CUDA:
        found.append((device_kind.upper(), "no GPU was measured: times are resampled from recorded sessions"))
    if injected:
        found.append(("INJECTED", f"a rehearsal, not a measurement: {', '.join(map(injection_text, injected))}"))
    return tuple(found)


def injection_text(injection: Injection) -> str:
    """Render an injection: ``"gemm.* +3% (ran +3.12 %)"``."""
    effective = sorted({percent_text(value, signed=True) for value in injection.effective.values()})
    ran = f" (ran {' / '.join(effective)})" if effective else ""
    return f"{injection.pattern} {injection.requested}{ran}"


def tally(results: tuple[CaseResult, ...]) -> str:
    """Count the cases by verdict: ``"1 regressed, 12 unchanged"``."""
    count = Counter(result.verdict for result in results)
    return ", ".join(f"{count[one]} {verdict_text(one)}" for one in VERDICT_ORDER if count[one]) or "no cases"


def actors(report: Report) -> tuple[str, ...]:
    """Return who acts, most concerned first: whom the causes name, else whom the verdict concerns; empty for nobody."""
    if report.exit_code == ExitCode.PASSED:
        return ()
    if report.exit_code == ExitCode.WRONG_OUTPUT:
        return ("the author of the kernel",)
    is_of_base = report.baseline is not None and report.baseline.base_commit is not None
    match report.verdict:
        case CheckVerdict.NO_BASELINE | CheckVerdict.NOT_COMPARABLE | CheckVerdict.PASSED:
            return (_ACTORS["maintainer"],)
        case CheckVerdict.SUSPECTED | CheckVerdict.INVALID | CheckVerdict.INCONCLUSIVE:
            # Machine and day are the same on both sides of a comparison with a base.
            fallback = _ACTORS["author" if is_of_base else "runner-owner"]
        case CheckVerdict.REGRESSED:
            fallback = _ACTORS["author"]
        case _:
            assert_never(report.verdict)
    causes = [
        cause
        for result in report.cases
        if result.verdict in _ACTING and result.gated and not result.accepted
        for cause in result.causes
    ]
    named = tuple(dict.fromkeys(_ACTORS.get(cause.who, cause.who) for cause in (*causes, *report.causes)))
    return named or (fallback,)


def field_name(field: str) -> str:
    """Return a field's name in words, without its unit."""
    return _FIELD_NAMES.get(field, field.removesuffix("_hz").removesuffix("_w").replace("_", " "))


def difference_text(difference: Difference) -> str:
    """Render a difference: ``"CUDA toolkit 13.1 (baseline 13.0)"``."""
    here, there = (_scaled_difference(difference.field, text) for text in (difference.candidate, difference.baseline))
    return f"{field_name(difference.field)} {here} (baseline {there})"


def _scaled_difference(field: str, text: str) -> str:
    return bytes_text(int(text)) if field.endswith("_bytes") and text.isdecimal() else text


def gpu_text(gpu: Gpu) -> str:
    """Name a GPU, its board and its chip."""
    parts = [gpu.name]
    if gpu.mig_profile:
        parts.append(f"MIG {gpu.mig_profile}")
    if gpu.board_part_number:
        parts.append(f"board {gpu.board_part_number}")
    if gpu.chip:
        parts.append(f"chip {gpu.chip}")
    return " · ".join(parts)


def software_text(environment: Environment) -> str:
    """Name driver and toolkit."""
    parts = []
    if environment.driver_version:
        parts.append(f"driver {environment.driver_version}")
    if environment.cuda_toolkit_version:
        parts.append(f"CUDA {environment.cuda_toolkit_version}")
    return " · ".join(parts)


def conditions_text(report: Report) -> str:
    """Say how the session went: launches, duration, clock, temperature."""
    parts = [counted(report.launches, "launch", "launches")] if report.launches else []
    if report.measured_s is not None:
        parts.append(f"{report.measured_s:.0f} s")
    if report.sm_clock_hz is not None:
        parts.append(f"SM {clock_text(report.sm_clock_hz)}")
    if report.temperature_c is not None:
        parts.append(f"{report.temperature_c:.0f} °C")
    return " · ".join(parts)


def baseline_text(baseline: BaselineUsed | None) -> str:
    """Say which baseline a check was judged against."""
    if baseline is None:
        return "none"
    if baseline.base_commit is not None:
        return baseline.source
    sessions = f"{counted(baseline.sessions, 'session', 'sessions')}, {baseline.sessions_of_chip} of this chip"
    newest = f", newest {baseline.newest_utc[:10]}" if baseline.newest_utc else ""
    return f"{baseline.source}: {sessions}{newest}"


def counted(count: int, one: str, many: str) -> str:
    """Render a count with its noun."""
    return f"{count} {one if count == 1 else many}"


def roofs_text(roofs: Roofs | None) -> str:
    """Name the measured roofs, and the ridge point of each compute roof over DRAM; "" without any."""
    if roofs is None:
        return ""
    measured = [roof for roof in (*roofs.memory, *roofs.compute) if roof.measured_per_s is not None]
    parts = [f"{roof.label} {rate_text(roof.measured_per_s, roof.unit)}" for roof in measured if roof.measured_per_s]
    dram = roofs.memory_roof(MemoryLevel.DRAM)
    if dram is not None and dram.measured_per_s:
        parts += [
            f"ridge {roof.label} over {dram.label} {roof.measured_per_s / dram.measured_per_s:.0f} {roof.unit}/byte"
            for roof in roofs.compute
            if roof.measured_per_s
        ]
    return ", ".join(parts)


def known_fields(value: Gpu | Environment) -> Iterator[tuple[str, str]]:
    """Yield name and text of every field that is known."""
    for field in fields(value):
        known = getattr(value, field.name)
        if known is not None:
            yield field_name(field.name), _scaled_text(field.name, known)


def _scaled_text(field: str, value: object) -> str:
    """Render a field by the unit in its name."""
    match value:
        case int() if field.endswith("_bytes"):
            return bytes_text(value)
        case float() if field.endswith("_hz"):
            return clock_text(value)
        case float() if field.endswith("_w"):
            return f"{value:g} W"
        case _:
            return _value_text(value)


# Part of a policy, but no threshold: said where it is set.
_WHAT_IS_MEASURED = ("suites", "build")


def policy_lines(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield name and value of everything that the effective policy sets."""
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in _WHAT_IS_MEASURED and not value:
            continue
        if field.name.endswith("_s"):
            yield field.name.removesuffix("_s").replace("_", " "), f"{value:g} s"
        elif field.name == "margin_floor":
            yield "margin floor", percent_text(value, decimals=1)
        else:
            yield field.name.replace("_", " "), _value_text(value)


def _value_text(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case Acceptance():
            link = f", {value.link}" if value.link else ""
            expires = f", until {value.expires}" if value.expires else ""
            return f"{value.case} up to {percent_text(value.limit)}: {value.reason}{link}{expires}"
        case Mapping():
            return ", ".join(f"{key} {percent_text(one, decimals=1)}" for key, one in value.items()) or "none"
        case tuple():
            return "; ".join(_value_text(one) for one in value) or "none"
        case _:
            return str(value)
