"""``doctor``: what of this machine works for perfgate, and what to do about the rest."""

import platform
import sys
from pathlib import Path

from perfgate.core.device import DeviceKind
from perfgate.core.finding import Condition, Finding
from perfgate.errors import PerfgateError
from perfgate.resources import cache_folder
from perfgate.workflow.devices import parse_selector, recording, recordings_folder, recordings_place


def findings(selector: str) -> tuple[Finding, ...]:
    """Look at Python and at the device that a selector names; beside a CUDA device at the recordings that ship.

    Raises:
        ConfigurationError: the selector is malformed.
    """
    kind, rest = parse_selector(selector)
    if kind is DeviceKind.RECORDED:
        return _python(), _recordings(recordings_place(rest))
    from perfgate.devices.cuda.diagnosis import cuda_findings
    from perfgate.suite import built_in_suite

    return (
        _python(),
        _recordings(recordings_folder()),
        *cuda_findings(rest, cache_folder(), lambda gpu: built_in_suite("default", gpu)),
    )


def _python() -> Finding:
    version = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.platform == "linux":
        return Finding(name="Python", condition=Condition.WORKS, result=version)
    return Finding(
        name="Python",
        condition=Condition.LIMITED,
        result=version,
        consequence="GPUs are measured on Linux only; the recorded device and comparing work everywhere",
    )


def _recordings(place: Path) -> Finding:
    try:
        found = recording(place)
    except PerfgateError as error:
        return Finding(
            name="recorded device",
            condition=Condition.BROKEN,
            result=error.message,
            consequence="--device recorded does not work",
            remedy=error.hint or "reinstall perfgate",
        )
    gpu = found.runs[0].gpu
    return Finding(
        name="recorded device",
        condition=Condition.WORKS,
        result=f"{len(found.launches)} launches of {len(found.cases)} cases on {gpu.name}",
    )
