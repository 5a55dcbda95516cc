"""Two measurements of the same GPUs: only what is slow in both is accused."""

from dataclasses import replace

from perfgate.core.fleet_report import FleetMember, FleetReport, Standing, fleet_exit_code, rank


def confirmed_report(first: FleetReport, second: FleetReport) -> FleetReport:
    """Return the second report, with those that were slow in the first alone said to be healthy after all.

    Args:
        first: on the first measurement of all.
        second: the same, with the slow ones measured again.
    """
    before = {(one.seat.node, one.seat.gpu): one for one in first.members}
    members = tuple(sorted((_confirmed(one, before[one.seat.node, one.seat.gpu]) for one in second.members), key=rank))
    wrong = second.exit_code if second.exit_code not in (0, 1) else 0
    code = int(fleet_exit_code(members, wrong_outputs=False)) or wrong
    return replace(second, members=members, exit_code=code)


def _confirmed(now: FleetMember, before: FleetMember) -> FleetMember:
    """Return a GPU as it is after its second measurement."""
    if before.standing is Standing.SLOW and now.standing is not Standing.SLOW:
        cases = ", ".join(one.id for one in before.slow[:3])
        return replace(
            now, reasons=(*now.reasons, f"it was slow in {cases} at first, and not when it was measured again")
        )
    if before.standing is not Standing.SLOW and now.standing is Standing.SLOW:
        # It was not measured again: only its peers moved.
        return before
    return now
