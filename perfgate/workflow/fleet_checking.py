"""Checking a fleet: measured, judged, and those that are slow measured again before they are accused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from perfgate.core.fleet import Seat
from perfgate.core.fleet_confirmation import confirmed_report
from perfgate.core.fleet_report import Standing, seats_named
from perfgate.storage.fleet_folder import read_manifest
from perfgate.workflow.fleet_judging import FleetInput, JudgedFleet, judged_fleet

Measure = Callable[[Path, Sequence[Seat] | None], object]

CONFIRMATION = "confirmation"


def checked_fleet(given: FleetInput, measure: Measure, *, confirms: bool) -> JudgedFleet:
    """Measure a fleet into ``given.folder``, judge it, and confirm what is found.

    The second measurement of a slow GPU takes the place of its first among the same peers; a GPU that is not slow
    again is healthy, and the report says that it was suspected.
    """
    measure(given.folder, None)
    first = judged_fleet(given)
    slow = seats_named(first.report.members, Standing.SLOW)
    if not slow or not confirms:
        return first
    hosts = {(first.hosts[seat.node], seat.gpu) for seat in slow}
    manifest = read_manifest(given.folder)
    seats = [seat for seat in (manifest.seats if manifest else ()) if (seat.node, seat.gpu) in hosts]
    measure(given.folder / CONFIRMATION, seats)
    second = judged_fleet(given, again=given.folder / CONFIRMATION)
    return replace(second, report=confirmed_report(first.report, second.report))
