"""What is measured: the selected cases of a suite, or of a recording, on one device."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfgate.core.device import Device, DeviceKind
from perfgate.core.run import CaseInfo
from perfgate.core.selection import matching, near_names
from perfgate.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is measured.

    Attributes:
        suite: name of the built-in suite.
        cases: globs; all cases when empty.
        inject: rehearsals, as written.
        seed: of the order of cases and of a recording's draws.
        settings: numbers of the measuring loop that differ from its defaults.
        lock_clocks: whether the SM clock is locked while it is measured.
        clock_mhz: at which clock; None for a default.
    """

    suite: str = "default"
    cases: tuple[str, ...] = ()
    inject: tuple[str, ...] = ()
    seed: int = 0
    settings: Mapping[str, float] = field(default_factory=dict)
    lock_clocks: bool = False
    clock_mhz: int | None = None


def described_cases(device: Device, selection: Selection) -> tuple[dict[str, CaseInfo], dict[str, str], str | None]:
    """Return the selected cases, those that this GPU cannot run with the reason, and the hash of the suite.

    Raises:
        ConfigurationError: no case is left, or a glob matches none.
    """
    infos, absent, suite_sha256 = _all_cases(device, selection.suite)
    chosen = dict(infos)
    if selection.cases:
        for glob in selection.cases:
            if not matching([*infos, *absent], glob):
                near = near_names(glob, infos)
                raise ConfigurationError(
                    f"--case {glob!r} matches no case of suite {selection.suite!r}",
                    hint=f"did you mean {' or '.join(near)}?" if near else f"cases: {', '.join(infos)}",
                )
        wanted = {case_id for glob in selection.cases for case_id in matching(infos, glob)}
        chosen = {case_id: info for case_id, info in infos.items() if case_id in wanted}
    if not chosen:
        reasons = "; ".join(f"{case_id}: {reason}" for case_id, reason in absent.items())
        raise ConfigurationError(f"suite {selection.suite!r} has no case to measure here", hint=reasons)
    return chosen, absent, suite_sha256


def _all_cases(device: Device, suite_name: str) -> tuple[dict[str, CaseInfo], dict[str, str], str | None]:
    if device.kind is DeviceKind.RECORDED:
        from perfgate.devices.recorded import RecordedDevice

        assert isinstance(device, RecordedDevice)  # noqa: S101 - narrows the type
        return device.case_infos(), {}, None
    from perfgate.suite import built_in_suite
    from perfgate.suite.sources import source_sha256, suite_sha256

    suite = built_in_suite(suite_name, device.gpu)
    infos = {
        case.id: CaseInfo(
            family=case.family,
            work=case.work,
            version=case.version,
            timing=case.timing,
            gated=case.gated,
            unit=case.unit,
            source_sha256=source_sha256(case),
        )
        for case in suite.cases
    }
    return infos, {one.id: one.reason for one in suite.absent}, suite_sha256(suite)
