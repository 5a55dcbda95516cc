"""``calibrate``: what this machine can detect, from sessions of unchanged code (A/A)."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.acceptance import accepted_session
from perfgate.core.baseline import Baseline, BaselineSession, Provenance
from perfgate.core.calibration import Calibration, calibrated, calibration, refusals
from perfgate.core.caveat import Caveat
from perfgate.core.device import Device, DeviceKind
from perfgate.core.gpu import identity_differences
from perfgate.core.plan import CasePlan
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.baselines import baseline_target, find_baseline, update_baseline
from perfgate.storage.documents import read_run
from perfgate.workflow.accepting import run_doubts
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import baseline_plans, rest
from perfgate.workflow.listener import Listener
from perfgate.workflow.measuring import Session, held


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What a calibration came to.

    Attributes:
        found: noise, margins, false alarms, smallest detectable change.
        refused: margins of the policy that the machine does not support.
        doubts: what speaks against single sessions.
    """

    found: Calibration
    refused: tuple[Caveat, ...]
    doubts: tuple[str, ...]


def measured_sessions(
    device: Device,
    selection: Selection,
    *,
    sessions: int,
    launches: int,
    pause_s: float,
    place: Path,
    listener: Listener,
    wait: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[Run, ...]:
    """Measure sessions of unchanged code on one device, resting between them.

    Raises:
        ConfigurationError: fewer than two sessions, a rehearsal.
        InterruptedRunError, DeviceError: see ``Session``.
    """
    if sessions < 2:
        raise ConfigurationError(f"--sessions {sessions}: a calibration needs two at least", hint="five are good")
    if selection.inject:
        raise ConfigurationError("sessions with an injected change are not of unchanged code")
    stored = find_baseline(place, device.gpu).found
    plans: Mapping[str, CasePlan] = baseline_plans(stored.baseline, device.gpu) if stored else {}
    runs: list[Run] = []
    with held(device, selection, wait=wait) as clock_hz:
        for number in range(sessions):
            if number and device.kind is DeviceKind.CUDA:
                listener.notices(f"session {number} of {sessions} done; resting {pause_s:.0f} s")
                rest(pause_s, pause)
            session = Session(
                device, selection, plans, listener, first_index=number * launches, locked_clock_hz=clock_hz
            )
            session.measure_to(launches)
            runs.append(session.run())
            plans = {case_id: info.plan for case_id, info in runs[0].cases.items() if info.plan is not None}
    return tuple(runs)


def read_sessions(paths: tuple[Path, ...]) -> tuple[Run, ...]:
    """Read runs of unchanged code; all of one GPU identity.

    Raises:
        DocumentError: one cannot be read, is a rehearsal, or is of another GPU.
    """
    runs = tuple(read_run(path) for path in paths)
    for path, run in zip(paths, runs, strict=True):
        if run.injected:
            raise DocumentError(str(path), "is a rehearsal: its code was not unchanged")
        differences = identity_differences(runs[0].gpu, run.gpu)
        if differences:
            fields = ", ".join(one.field for one in differences)
            raise DocumentError(str(path), f"is of another GPU than {paths[0].name}: {fields} differ")
    return runs


def calibrated_from(runs: tuple[Run, ...], policy: Policy, *, seed: int = 0) -> Calibrated:
    """Learn from runs of unchanged code; raises like ``core.calibration.calibration``."""
    doubts = tuple(f"session of {run.created_utc}: {doubt}" for run in runs for doubt in run_doubts(run))
    found = calibration([_session(run, "calibration") for run in runs], policy, seed=seed)
    return Calibrated(found=found, refused=refusals(found, policy), doubts=doubts)


def store_margins(place: Path, runs: tuple[Run, ...], found: Calibration) -> Path:
    """Write the calibrated margins into the baseline of the GPU; return its file.

    Raises:
        BaselineError: there is no baseline to write them into.
        DocumentError, OutputError: it cannot be read or written.
    """
    gpu = runs[0].gpu
    path = baseline_target(place, gpu)
    if not path.exists():
        raise BaselineError(
            f"there is no baseline of this GPU in {place} to store margins in",
            hint='record one first: perfgate baseline update --reason "..."',
        )

    def change(stored: Baseline | None) -> Baseline:
        if stored is None:
            raise BaselineError(f"{path.name} was deleted meanwhile", hint="record a baseline first")
        return calibrated(stored, found)

    update_baseline(path, change)
    return path


def _session(run: Run, reason: str) -> BaselineSession:
    provenance = Provenance(
        recorded_utc=run.created_utc,
        reason=reason,
        device_kind=run.device_kind,
        perfgate_version=run.perfgate_version,
    )
    return accepted_session(run, provenance)
