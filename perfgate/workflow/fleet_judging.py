"""Judging a folder of runs: every run read and judged by its baseline on all cores, then all of them by their peers."""

import csv
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from perfgate.core.fleet import BaselineStanding, Member, Seat, Vacancy, member_of
from perfgate.core.fleet_judgement import judge_fleet
from perfgate.core.fleet_report import FleetReport
from perfgate.core.gpu import identity_differences
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ConfigurationError, DocumentError, PerfgateError
from perfgate.storage.baselines import StoredBaseline, list_baselines
from perfgate.storage.documents import read_baseline
from perfgate.storage.fleet_folder import StoredRun, read_manifest, read_seat_run, stored_runs
from perfgate.workflow.checking import judged
from perfgate.workflow.measuring import utc_text

# Starting processes costs more than they save below this many runs.
_FEW_RUNS = 24
_ALIAS_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetInput:
    """What is judged, and how.

    Attributes:
        folder: runs.
        baselines: of the identities that are met; none where nothing is stored.
        labels: of nodes, beside those that the folder knows.
        shows_hosts: whether nodes are named by their host names; else by an alias that does not tell them.
    """

    folder: Path
    policy: Policy
    baselines: tuple[StoredBaseline, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shows_hosts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFleet:
    """A judged fleet.

    Attributes:
        hosts: the real name of every node, by the name that the report uses.
    """

    report: FleetReport
    hosts: Mapping[str, str]


def judged_fleet(given: FleetInput, *, again: Path | None = None) -> JudgedFleet:
    """Judge the runs of a folder. A file that is no run counts as missing, with the reason; the rest is judged.

    Args:
        given: what is judged, and how.
        again: folder of second measurements, which take the place of the first.

    Raises:
        DocumentError: the folder is not there, holds no run, or two of one GPU; or its manifest is damaged.
    """
    manifest = read_manifest(given.folder)
    stored = stored_runs(given.folder, manifest)
    if not stored and manifest is None:
        raise DocumentError(str(given.folder), "holds no run", hint="perfgate run writes one; a file a GPU")
    if again is not None:
        newer = {(one.seat.node, one.seat.gpu): one for one in stored_runs(again, read_manifest(again))}
        stored = tuple(newer.get((one.seat.node, one.seat.gpu), one) for one in stored)
    read = _read(stored, given)
    members = [one for one in read if isinstance(one, Member)]
    vacancies = [one for one in read if isinstance(one, Vacancy)]
    present = {(one.seat.node, one.seat.gpu) for one in stored}
    if manifest is not None:
        vacancies += [one for one in manifest.vacancies if (one.seat.node, one.seat.gpu) not in present]
        reported = present | {(one.seat.node, one.seat.gpu) for one in vacancies}
        vacancies += [
            Vacancy(seat=seat, reason="it was not measured: the call ended before")
            for seat in manifest.seats
            if (seat.node, seat.gpu) not in reported
        ]
    names = _names([*(one.seat.node for one in members), *(one.seat.node for one in vacancies)], given)
    report = judge_fleet(
        [replace(one, seat=_seat(one.seat, names, given)) for one in members],
        [replace(one, seat=_seat(one.seat, names, given)) for one in vacancies],
        policy=given.policy,
        created_utc=utc_text(datetime.now(timezone.utc)),
    )
    return JudgedFleet(report=report, hosts={alias: host for host, alias in names.items()})


def fleet_baselines(place: Path | None) -> tuple[StoredBaseline, ...]:
    """Return the stored baselines of a file or folder; none where nothing was named and there is none.

    Raises:
        DocumentError: what was named is not there or is damaged.
    """
    if place is None:
        default = Path("baselines")
        return list_baselines(default) if default.is_dir() else ()
    if place.is_dir():
        return list_baselines(place)
    return (StoredBaseline(path=place, baseline=read_baseline(place)),)


def read_labels(path: Path | None) -> dict[str, dict[str, str]]:
    """Read labels of nodes: a CSV file whose first column is the node.

    Raises:
        ConfigurationError: it cannot be read, or has no column for the node.
    """
    if path is None:
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: labels cannot be read: {error}") from error
    if rows and "node" not in rows[0]:
        raise ConfigurationError(f"{path}: no column is called node", hint="first line: node,rack")
    return {row.pop("node"): {key: value for key, value in row.items() if key and value} for row in rows}


def _read(stored: Sequence[StoredRun], given: FleetInput) -> list[Member | Vacancy]:
    read = partial(_member, folder=given.folder, policy=given.policy, baselines=given.baselines)
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 61)
    if len(stored) < _FEW_RUNS or workers == 1:
        return [read(one) for one in stored]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(read, stored, chunksize=max(1, min(64, len(stored) // (4 * workers)))))


def _member(
    stored: StoredRun, *, folder: Path, policy: Policy, baselines: tuple[StoredBaseline, ...]
) -> Member | Vacancy:
    """Read one run and judge it by its baseline; also in another process."""
    try:
        run = read_seat_run(folder, stored)
    except DocumentError as error:
        return Vacancy(seat=stored.seat, reason=f"its document is damaged: {error.message}")
    return member_of(stored.seat, run, baseline_standing(run, policy, baselines))


def baseline_standing(run: Run, policy: Policy, baselines: Iterable[StoredBaseline]) -> BaselineStanding | None:
    """Return what the baseline of a run's identity says of it; None without one."""
    found = next((one for one in baselines if not identity_differences(one.baseline.gpu, run.gpu)), None)
    if found is None:
        return None
    # What the fleet was not asked to measure is not missing.
    sessions = (
        replace(one, cases={case_id: case for case_id, case in one.cases.items() if case_id in run.cases})
        for one in found.baseline.sessions
    )
    baseline = replace(found.baseline, sessions=tuple(one for one in sessions if one.cases))
    try:
        report = judged(baseline, found.path.name, run, policy)
    except PerfgateError as error:
        return BaselineStanding(verdict=f"not judged: {error.message}", is_judged=False)
    regressed = {
        case.id: case.change.value
        for case in report.cases
        if case.verdict is CaseVerdict.REGRESSED and case.change is not None and case.accepted is None
    }
    return BaselineStanding(
        verdict=str(report.verdict),
        is_judged=report.verdict not in (CheckVerdict.NO_BASELINE, CheckVerdict.NOT_COMPARABLE),
        regressed=regressed,
        causes=report.causes,
    )


def _names(nodes: Iterable[str], given: FleetInput) -> dict[str, str]:
    """Return how each node is called: by its host name, or by the start of its hash, longer where two would agree."""
    hosts = sorted(set(nodes))
    if given.shows_hosts:
        return {host: host for host in hosts}
    hashes = {host: hashlib.sha256(host.encode()).hexdigest() for host in hosts}
    digits = _ALIAS_DIGITS
    while len({value[:digits] for value in hashes.values()}) < len(hosts):
        digits += 1
    return {host: f"node-{value[:digits]}" for host, value in hashes.items()}


def _seat(seat: Seat, names: Mapping[str, str], given: FleetInput) -> Seat:
    labels = {**seat.labels, **given.labels.get(seat.node, {})}
    return replace(seat, node=names[seat.node], labels=labels)
