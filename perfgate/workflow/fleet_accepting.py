"""Baselines from a fleet: a session for every healthy chip, in the file of its identity."""

from dataclasses import dataclass
from pathlib import Path

from perfgate.core.fleet_report import Standing
from perfgate.core.policy import Policy
from perfgate.errors import BaselineError
from perfgate.storage.documents import read_run
from perfgate.storage.fleet_folder import read_manifest, stored_runs
from perfgate.workflow.accepting import Terms, accepted
from perfgate.workflow.fleet_judging import FleetInput, judged_fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFleet:
    """What became of the runs of a fleet.

    Attributes:
        sessions: how many were added, by baseline file.
        left_out: seats that were not, and why.
    """

    sessions: dict[Path, int]
    left_out: dict[str, str]

    @property
    def lines(self) -> list[str]:
        """Say it."""
        added = [
            f"{path}: {count} {'session' if count == 1 else 'sessions'} added" for path, count in self.sessions.items()
        ]
        return added + [f"left out: {seat}: {reason}" for seat, reason in self.left_out.items()]


def accepted_fleet(folder: Path, place: Path, *, policy: Policy, reason: str, force: str | None) -> AcceptedFleet:
    """Add every GPU of a folder of runs that its peers do not call slow to the baseline of its identity.

    Args:
        folder: runs.
        place: folder of baselines, or a file.
        policy: what slow is.
        reason: stored with every session.
        force: why runs with doubts are accepted.

    Raises:
        DocumentError: the folder holds no run.
        BaselineError: not one of the runs could be accepted.
        OutputError: a baseline cannot be written.
    """
    judged = judged_fleet(FleetInput(folder=folder, policy=policy))
    # Too few peers do not speak against a GPU: its baseline is what is being made.
    fit = {
        (judged.hosts[one.seat.node], one.seat.gpu)
        for one in judged.report.members
        if one.standing in (Standing.HEALTHY, Standing.UNJUDGED)
    }
    left_out = {
        one.seat.name: "; ".join((str(one.standing), *one.reasons))
        for one in judged.report.members
        if (judged.hosts[one.seat.node], one.seat.gpu) not in fit
    }
    sessions: dict[Path, int] = {}
    for stored in stored_runs(folder, read_manifest(folder)):
        if (stored.seat.node, stored.seat.gpu) not in fit:
            continue
        try:
            path = accepted(read_run(stored.path), place, Terms(reason=reason, force=force, policy=policy)).path
        except BaselineError as error:
            left_out[stored.seat.name] = error.message
            continue
        sessions[path] = sessions.get(path, 0) + 1
    if not sessions:
        reasons = "; ".join(f"{seat}: {why}" for seat, why in list(left_out.items())[:3])
        raise BaselineError(f"no run could be accepted: {reasons}", hint="measure again, or pass --force with why")
    return AcceptedFleet(sessions=sessions, left_out=left_out)
