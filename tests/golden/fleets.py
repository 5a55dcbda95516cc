"""The fleet whose views are kept: what a cluster's owner is to see of slow, odd, invalid and missing GPUs."""

from dataclasses import replace

from perfgate.core.fleet import Member, Seat, Vacancy
from perfgate.core.fleet_report import FleetReport
from tests.fleets import COPY, GEMM, fleet, judged, slowed

HOSTS = {f"n{node:02}": f"gpu-{node:02}.cluster.example" for node in range(16)}


def troubled() -> FleetReport:
    """16 nodes of 8 GPUs: one slow in a case, one in all, a slow node, another board, an invalid and a missing GPU."""

    def changed(seat: Seat, one: Member) -> Member:
        match seat.name:
            case "n03/5":
                return slowed(one, 0.03, COPY)
            case "n10/1":
                return slowed(one, 0.10)
            case "n12/0":
                return replace(one, gpu=replace(one.gpu, board_part_number="692-2G520-0282-001"))
            case "n14/2":
                return replace(one, cases={}, unusable={COPY: "the GPU waited for the host"})
        return slowed(one, 0.02, GEMM) if seat.node == "n07" else one

    members = [one for one in fleet(changed) if one.seat.name != "n15/7"]
    return judged(members, Vacancy(seat=Seat(node="n15", gpu=7), reason="its node died"))


def healthy() -> FleetReport:
    """Two nodes on which nothing is wrong."""
    return judged(fleet(nodes=2))
