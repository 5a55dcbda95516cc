"""Compares the matrix products with the vendor's library (cuBLASLt) on the GPU at hand.

    python benchmarks/peers_gemm.py [--case GLOB] [--rounds 5] [--round-s 1] [--json FILE]

A contest is a product of the full suite and its twin ``gemm.cublas_...``: same shape, data and checks, one
process, one stream, one way of timing. Rounds of at least a second alternate, and every other one goes
backwards, so that heat meets both. Large products are limited by power, so that ratios are given in time
and in SM cycles; above 1 ours is faster.
"""

import argparse
import fnmatch
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perfgate.core.case import Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.core.units import rate_text
from perfgate.devices.cuda.session import CudaSession, opened_session
from perfgate.errors import DeviceError, WrongOutputError
from perfgate.resources import cache_folder
from perfgate.suite import built_in_suite

INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a contestant took in a round: medians of one execution."""

    time_s: float
    cycles: float


@dataclass
class Contest:
    """Ours and the library's."""

    ours: Case
    twin: Case
    turns: dict[str, list[Turn]] = field(default_factory=lambda: {"ours": [], "twin": []})


def contests(gpu: Gpu, patterns: Sequence[str]) -> list[Contest]:
    """Return the products that have a twin."""
    cases = {case.id: case for case in built_in_suite("full", gpu).cases if case.family == "gemm"}
    twins = {identity.replace(".cublas_", "."): case for identity, case in cases.items() if ".cublas_" in identity}
    return [
        Contest(ours=cases[identity], twin=twin)
        for identity, twin in twins.items()
        if identity in cases and any(fnmatch.fnmatchcase(identity, pattern) for pattern in patterns)
    ]


def verified(session: CudaSession, case: Case) -> None:
    """Check a contestant once: a wrong kernel wins nothing."""
    with session.open_case(case.id) as opened:
        opened.poison()
        opened.time_batch(executions=opened.sets, samples=1)
        result = opened.verify()
        share = result.error / result.tolerance if result.tolerance else result.error
        print(f"{case.id}: {'right' if result.passed else 'WRONG'}, {share:.2f} of the tolerance", flush=True)
        if not result.passed:
            raise WrongOutputError(f"{case.id}: {result.detail}")


def timed(session: CudaSession, case: Case, round_s: float) -> Turn:
    """Time one contestant for at least ``round_s``."""
    with session.open_case(case.id) as opened:
        probe = opened.time_batch(executions=opened.sets, samples=3)
        rough_s = statistics.median(probe.intervals_s) / opened.sets
        executions = opened.sets * max(1, math.ceil(INTERVAL_S / rough_s / opened.sets))
        turns: list[Turn] = []
        measured_s = 0.0
        while measured_s < round_s:
            batch = opened.time_batch(executions=executions, samples=10)
            measured_s += sum(batch.intervals_s)
            if not batch.spin_timed_out and batch.sm_clock_hz:
                times_s = [interval_s / executions for interval_s in batch.intervals_s]
                turn = Turn(time_s=statistics.median(times_s), cycles=statistics.mean(times_s) * batch.sm_clock_hz)
                turns.append(turn)
        if not turns:
            raise DeviceError(f"{case.id}: no batch was timed behind the spin kernel with its clock")
        return Turn(
            time_s=statistics.median(turn.time_s for turn in turns),
            cycles=statistics.median(turn.cycles for turn in turns),
        )


def held(session: CudaSession, compared: list[Contest], rounds: int, round_s: float) -> None:
    """Time all contestants in turns."""
    for contest in compared:
        verified(session, contest.ours)
        verified(session, contest.twin)
    for turn in range(rounds):
        for contest in compared:
            entries = [("ours", contest.ours), ("twin", contest.twin)]
            for name, case in entries if turn % 2 == 0 else reversed(entries):
                contest.turns[name].append(timed(session, case, round_s))
        print(f"round {turn + 1} of {rounds}", flush=True)


def row_of(contest: Contest) -> dict[str, Any]:
    """Print and return the medians of a contest."""
    ours, twin = contest.turns["ours"], contest.turns["twin"]
    in_time = [one.time_s / our.time_s for our, one in zip(ours, twin, strict=True)]
    in_cycles = [one.cycles / our.cycles for our, one in zip(ours, twin, strict=True)]
    rate, twin_rate = (
        contest.ours.work.work_flop / statistics.median(turn.time_s for turn in turns) for turns in (ours, twin)
    )
    spread = max(turn.cycles for turn in ours) / min(turn.cycles for turn in ours) - 1
    print(
        f"{contest.ours.id:34} {rate_text(rate, 'FLOP'):>14}  library {rate_text(twin_rate, 'FLOP'):>14}"
        f"  ratio in time {statistics.median(in_time):.4f} ({min(in_time):.4f} to {max(in_time):.4f})"
        f", in cycles {statistics.median(in_cycles):.4f}; ours varies by {100 * spread:.2f} % in cycles"
    )
    return {
        "case": contest.ours.id,
        "ours_flop_per_s": rate,
        "twin_flop_per_s": twin_rate,
        "ratio_in_time": statistics.median(in_time),
        "ratio_in_cycles": statistics.median(in_cycles),
        "turns": {name: [asdict(turn) for turn in turns] for name, turns in contest.turns.items()},
    }


def main() -> None:
    """Hold the contests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", metavar="GLOB", help="only these products (repeatable)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=1.0, help="least time of one contestant in a round")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    arguments = parser.parse_args()

    compared: list[Contest] = []
    found: list[Gpu] = []

    def suite(gpu: Gpu) -> Suite:
        found.append(gpu)
        compared.extend(contests(gpu, arguments.case or ["gemm.*"]))
        return Suite(name="products", cases=tuple(case for one in compared for case in (one.ours, one.twin)))

    with opened_session("", suite, cache_folder()) as session:
        held(session, compared, arguments.rounds, arguments.round_s)
    print(found[0].name)
    rows = [row_of(contest) for contest in compared]
    if arguments.json:
        document = {"gpu": asdict(found[0]), "rows": rows}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
