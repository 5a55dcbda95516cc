"""What is measured: the selected cases of a suite, or of a recording, on one device."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate.core.canonical import content_sha256
from perfgate.core.device import Device, DeviceKind
from perfgate.core.gpu import Gpu
from perfgate.core.policy import Policy
from perfgate.core.run import CaseInfo
from perfgate.core.selection import matching, near_names
from perfgate.errors import ConfigurationError
from perfgate.workflow.describing import Description, Question, description


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFolders:
    """One of two states of a repository.

    Attributes:
        folder: where its launches work; "" for the current folder.
        forbidden: folder of the other state, that no module may come from; "" for none.
        verified: folder where its launches keep what outputs they have verified; "" compares every launch's.
    """

    folder: str = ""
    forbidden: str = ""
    verified: str = ""

    @property
    def options(self) -> dict[str, str]:
        """As a launch's order carries it."""
        given = {"folder": self.folder, "forbidden": self.forbidden, "verified": self.verified}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is measured.

    Attributes:
        suite: name of the built-in suite; "" for none.
        own_suites: absolute paths of own suites.
        side: where own suites are loaded, when two states of a repository are compared.
        answers: what own suites were found to hold, so that all launches of a check see one suite.
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
    own_suites: tuple[str, ...] = ()
    side: SideFolders = field(default_factory=SideFolders)
    answers: dict[Question, Description] = field(default_factory=dict, compare=False, repr=False)

    @property
    def suite_name(self) -> str:
        """What is measured, for people."""
        return " + ".join([*([self.suite] if self.suite else []), *(Path(one).name for one in self.own_suites)])

    def own_description(self, gpu: Gpu) -> Description:
        """Return what the own suites hold; raises like ``describing.description``, and where one cannot be loaded."""
        found = self._answer(gpu)
        for message, hint in found.broken.values():
            raise ConfigurationError(message, hint=hint)
        return found

    def broken_suites(self, gpu: Gpu) -> Mapping[str, tuple[str, str]]:
        """Return the own suites that cannot be loaded: message and hint; raises like ``describing.description``."""
        return self._answer(gpu).broken

    def _answer(self, gpu: Gpu) -> Description:
        """What a process of its own says of the own suites, asked once."""
        question = Question(suites=self.own_suites, gpu=gpu, folder=self.side.folder, forbidden=self.side.forbidden)
        if question not in self.answers:
            self.answers[question] = description(question)
        return self.answers[question]


def described_cases(device: Device, selection: Selection) -> tuple[dict[str, CaseInfo], dict[str, str], str | None]:
    """Return the selected cases, those that this GPU cannot run with the reason, and the hash of the suite.

    Raises:
        ConfigurationError: no case is left, or a glob matches none.
    """
    infos, absent, suite_sha256 = _all_cases(device, selection)
    chosen = dict(infos)
    if selection.cases:
        for glob in selection.cases:
            if not matching([*infos, *absent], glob):
                near = near_names(glob, infos)
                raise ConfigurationError(
                    f"--case {glob!r} matches no case of suite {selection.suite_name!r}",
                    hint=f"did you mean {' or '.join(near)}?" if near else f"cases: {', '.join(infos)}",
                )
        wanted = {case_id for glob in selection.cases for case_id in matching(infos, glob)}
        chosen = {case_id: info for case_id, info in infos.items() if case_id in wanted}
    if not chosen:
        reasons = "; ".join(f"{case_id}: {reason}" for case_id, reason in absent.items())
        raise ConfigurationError(f"suite {selection.suite_name!r} has no case to measure here", hint=reasons)
    return chosen, absent, suite_sha256


def _all_cases(device: Device, selection: Selection) -> tuple[dict[str, CaseInfo], dict[str, str], str | None]:
    """Return the cases of the built-in suite and of own ones, those that are absent, and the hash over both."""
    infos, absent, suite_sha256 = _built_in_cases(device, selection.suite) if selection.suite else ({}, {}, None)
    own = selection.own_description(device.gpu)
    doubled = sorted(set(infos) & set(own.cases))
    if doubled:
        raise ConfigurationError(
            f"{doubled[0]} is a case of suite {selection.suite!r} and of an own one", hint="give it another name"
        )
    if own.suite_sha256 is not None:
        suite_sha256 = own.suite_sha256 if suite_sha256 is None else content_sha256([suite_sha256, own.suite_sha256])
    if device.kind is DeviceKind.RECORDED:
        # Programs need no device of ours; nothing else of an own suite was recorded.
        runnable = {case_id: own.cases[case_id] for case_id in own.programs}
        absent |= {
            case_id: "it was not recorded: own kernels need a GPU" for case_id in own.cases if case_id not in runnable
        }
        return {**infos, **runnable}, {**absent, **own.absent}, suite_sha256
    return {**infos, **own.cases}, {**absent, **own.absent}, suite_sha256


def with_own_margins(policy: Policy, selection: Selection, gpu: Gpu) -> Policy:
    """Return the policy with the margins that own cases ask for; where it names a case itself, it goes first."""
    own = selection.own_description(gpu).margins
    return replace(policy, margins={**own, **policy.margins}) if own else policy


def _built_in_cases(device: Device, suite_name: str) -> tuple[dict[str, CaseInfo], dict[str, str], str | None]:
    from perfgate.suite import built_in_suite
    from perfgate.suite.sources import source_sha256, suite_sha256

    if device.kind is DeviceKind.RECORDED:
        from perfgate.devices.recorded import RecordedDevice

        assert isinstance(device, RecordedDevice)  # noqa: S101 - narrows the type
        # Whatever else was recorded, the larger suite's cases are asked for by its name.
        larger = {case.id for case in built_in_suite("full", device.gpu).cases}
        unasked = larger - {case.id for case in built_in_suite(suite_name, device.gpu).cases}
        return {key: info for key, info in device.case_infos().items() if key not in unasked}, {}, None
    suite = built_in_suite(suite_name, device.gpu)
    absent = {one.id: one.reason for one in suite.absent}
    if device.environment.cublas_version is None:
        absent |= {case.id: f"{case.library} is not installed here" for case in suite.cases if case.library}
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
        if case.id not in absent
    }
    return infos, absent, suite_sha256(suite)
