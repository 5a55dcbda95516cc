"""Fleets for tests: 16 nodes of 8 H200s that agree, and what is planted into them."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

from perfgate.core.case import Unit
from perfgate.core.fleet import Member, MemberCase, Seat, Vacancy
from perfgate.core.fleet_judgement import judge_fleet
from perfgate.core.fleet_report import FleetReport, Standing
from perfgate.core.policy import Policy
from tests.factories import ENVIRONMENT, H200

COPY, GEMM = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]"
NOW = "2026-12-01T00:00:00Z"

Change = Callable[[Seat, Member], Member]


def member(seat: Seat, factor: dict[str, float] | float = 1.0, *, noise: float = 0.0) -> Member:
    factors = factor if isinstance(factor, dict) else {COPY: factor, GEMM: factor}
    return Member(
        seat=seat,
        gpu=replace(H200, chip=seat.name),
        environment=replace(ENVIRONMENT, concurrency="gpu"),
        perfgate_version="1.0.0",
        device_kind="cuda",
        method=1,
        cases={
            case_id: MemberCase(
                median=2e-3 * factors.get(case_id, 1.0) * math.exp(noise),
                median_s=2e-3,
                error=1e-4,
                unit=Unit.SECONDS,
                gated=True,
                kernel="k",
                sm_clock_hz=1.98e9,
            )
            for case_id in (COPY, GEMM)
        },
    )


def fleet(change: Change = lambda _, one: one, *, nodes: int = 16, seed: int = 0) -> list[Member]:
    generator = random.Random(seed)
    seats = [
        Seat(node=f"n{node:02}", gpu=gpu, labels={"rack": f"r{node // 4}"}) for node in range(nodes) for gpu in range(8)
    ]
    return [change(seat, member(seat, noise=generator.gauss(0, 3e-4))) for seat in seats]


def slowed(one: Member, change: float, *case_ids: str) -> Member:
    cases = {
        case_id: replace(case, median=case.median * (1 + change)) if case_id in case_ids or not case_ids else case
        for case_id, case in one.cases.items()
    }
    return replace(one, cases=cases)


def judged(members: list[Member], *vacancies: Vacancy, policy: Policy | None = None) -> FleetReport:
    return judge_fleet(members, vacancies, policy=policy or Policy(), created_utc=NOW)


def named(report: FleetReport, standing: Standing) -> set[str]:
    return {one.seat.name for one in report.members if one.standing is standing}
