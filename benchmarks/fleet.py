"""Fleets without a GPU: planted slow GPUs found over seeds, thousands of runs judged, a cluster of 64 nodes driven.

    python benchmarks/fleet.py planted [--seeds 20]
    python benchmarks/fleet.py judging [--runs 8000]
    python benchmarks/fleet.py cluster [--nodes 64] [--gpus 8] [--launches 1]

Runs are drawn from the recorded sessions that ship with perfgate: whole launches, with replacement, and the times of
their blocks again with replacement. ``planted`` slows three GPUs of 512: one case by 3 %, every case by 10 %, and one
that is another board. ``cluster`` starts as many Ray nodes on this machine and measures the recorded device on each
of their GPUs by ``perfgate fleet``'s own path; it prints what a GPU takes beyond its measuring loop.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from perfgate.core.fleet import Concurrency, Member, Seat, member_of
from perfgate.core.fleet_judgement import judge_fleet
from perfgate.core.fleet_report import FindingCode, Standing
from perfgate.core.policy import Policy
from perfgate.core.run import Block, CaseLaunch, Run
from perfgate.storage.documents import read_run
from perfgate.storage.fleet_folder import FleetManifest, write_manifest, write_seat_run
from perfgate.workflow.devices import recordings_folder
from perfgate.workflow.fleet_judging import FleetInput, fleet_baselines, judged_fleet
from perfgate.workflow.fleet_measuring import FleetPlan, measured_fleet

NOW = "2026-12-01T00:00:00Z"
LAUNCHES = 6


def recorded(board: str) -> list[Run]:
    """Return the shipped sessions of a board."""
    runs = [read_run(path) for path in sorted(recordings_folder().glob("*.json.gz"))]
    return [run for run in runs if (run.gpu.board_part_number or "").endswith(board)]


def drawn(run: Run, generator: random.Random, slow: dict[str, float]) -> Run:
    """Return a run of six launches drawn from a session, slowed by case; ``"*"`` is every other case."""

    def block(one: Block, factor: float) -> Block:
        return replace(one, times_s=tuple(factor * generator.choice(one.times_s) for _ in one.times_s))

    def case(one: CaseLaunch, factor: float) -> CaseLaunch:
        return replace(one, blocks=tuple(block(generator.choice(one.blocks), factor) for _ in one.blocks))

    launches = []
    for index in range(LAUNCHES):
        launch = generator.choice(run.launches)
        cases = {case_id: case(one, 1 + slow.get(case_id, slow.get("*", 0.0))) for case_id, one in launch.cases.items()}
        launches.append(replace(launch, index=index, cases=cases))
    return replace(run, launches=tuple(launches))


def planted(seeds: int) -> bool:
    """Judge 64 x 8 GPUs with three planted ones, over seeds; return whether all were found and nothing else."""
    usual, odd = recorded("000"), recorded("001")
    right = 0
    for seed in range(seeds):
        generator = random.Random(seed)
        one_case, every_case, other_board = generator.sample(range(512), 3)
        copy = next(case_id for case_id in usual[0].cases if case_id.startswith("bandwidth.copy"))
        members: list[Member] = []
        for index in range(512):
            slow = {one_case: {copy: 0.03}, every_case: {"*": 0.10}}.get(index, {})
            session = generator.choice(odd if index == other_board else usual)
            members.append(member_of(Seat(node=f"n{index // 8:02}", gpu=index % 8), drawn(session, generator, slow)))
        report = judge_fleet(members, (), policy=Policy(), created_utc=NOW)
        seat = {index: f"n{index // 8:02}/{index % 8}" for index in (one_case, every_case, other_board)}
        found = {one.seat.name for one in report.members if one.standing is Standing.SLOW}
        boards = [one for one in report.findings if one.code is FindingCode.OTHER_BOARD]
        lone = {one.seat.name for one in report.members if one.standing is Standing.UNJUDGED}
        is_right = (
            found == {seat[one_case], seat[every_case]}
            and lone == {seat[other_board]}
            and report.findings == tuple(boards)
        )
        right += is_right
        print(f"seed {seed}: slow {sorted(found)}, another board {sorted(lone)}: {'right' if is_right else 'WRONG'}")
    print(f"{right} of {seeds} seeds right")
    return right == seeds


def widened(run: Run, count: int) -> Run:
    """Return a run with ``count`` cases, further ones being copies under other names."""
    names = list(run.cases)
    copies = {
        f"copy{index}.{names[index % len(names)].split('.', 1)[1]}": names[index % len(names)] for index in range(count)
    }
    kept = dict(list({name: name for name in names}.items())[:count])
    chosen = dict(list((kept | copies).items())[:count])
    return replace(
        run,
        cases={new: replace(run.cases[old], family=new.split(".", 1)[0]) for new, old in chosen.items()},
        launches=tuple(
            replace(one, cases={new: one.cases[old] for new, old in chosen.items() if old in one.cases}, failures={})
            for one in run.launches
        ),
    )


def copy_seat_run(folder: Path, known: Seat, seat: Seat) -> None:
    """Give a seat the files of another."""
    for kind, suffix in (("runs", ".json.gz"), ("condensed", "")):
        target = folder / kind / seat.node / f"{seat.gpu}{suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / kind / known.node / f"{known.gpu}{suffix}", target)


def cpu_s() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def judging(runs: int) -> bool:
    """Write that many runs of 16 cases, and judge the folder; print time and memory."""
    session = widened(recorded("000")[0], 16)
    generator = random.Random(0)
    folder = Path(tempfile.mkdtemp(prefix="perfgate-fleet-"))
    try:
        # A hundred different runs, again and again: what is read and judged is the same work.
        different = min(100, runs)
        seats = tuple(Seat(node=f"n{index // 8:04}", gpu=index % 8) for index in range(runs))
        write_manifest(folder, FleetManifest(arguments=(), concurrency="gpu", seats=seats))
        for seat in seats[:different]:
            write_seat_run(folder, seat, drawn(session, generator, {}))
        for index, seat in enumerate(seats[different:]):
            copy_seat_run(folder, seats[index % different], seat)
        size = sum(path.stat().st_size for path in folder.rglob("*.gz"))
        print(f"{runs} runs of {len(session.cases)} cases, {size / 1e6:.0f} MB")
        began_s, cpu_before_s = time.monotonic(), cpu_s()
        judged = judged_fleet(FleetInput(folder=folder, policy=Policy(), baselines=fleet_baselines(Path("baselines"))))
        took_s, took_cpu_s = time.monotonic() - began_s, cpu_s() - cpu_before_s
    finally:
        shutil.rmtree(folder)
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    cores = len(os.sched_getaffinity(0))
    print(f"judged in {took_s:.1f} s on {cores} cores, {took_cpu_s:.1f} s of CPU; at most about {kib / 2**20:.2f} GiB")
    print(f"standings: { {str(one): judged.report.count(one) for one in Standing if judged.report.count(one)} }")
    return took_s <= 60


def cluster(nodes: int, gpus: int, launches: int) -> bool:
    """Drive a cluster of many nodes on this machine; print what was found and what a GPU took."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    head = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    began_s = time.monotonic()
    made = Cluster(initialize_head=True, head_node_args=head)
    for index in range(nodes):
        made.add_node(wait=False, num_cpus=1, num_gpus=gpus, node_name=f"n{index:02}", object_store_memory=80 * 2**20)
    made.wait_for_nodes(timeout=600)
    print(f"{nodes} nodes up after {time.monotonic() - began_s:.0f} s")
    generator = random.Random(1)
    one_case, every_case, other_board = generator.sample(range(nodes * gpus), 3)
    board = min(recordings_folder().glob("*001-*.json.gz"))
    usual = min(recordings_folder().glob("*000-*.json.gz"))
    own: dict[tuple[str, int], tuple[str, ...]] = {}
    for index in range(nodes * gpus):
        words = ["--device", f"recorded:{board if index == other_board else usual}", "--seed", str(index)]
        words += {one_case: ["--inject", "bandwidth.copy*=+3%"], every_case: ["--inject", "*=+10%"]}.get(index, [])
        own[f"n{index // gpus:02}", index % gpus] = tuple(words)
    plan = FleetPlan(
        arguments=("--launches", str(launches)),
        concurrency=Concurrency.GPU,
        address=made.address,
        own_arguments=own,
        timeout_s=3600.0,
        placement_s=1200.0,
    )
    folder = Path(tempfile.mkdtemp(prefix="perfgate-fleet-"))
    try:
        began_s = time.monotonic()
        ended: list[float] = []
        manifest = measured_fleet(folder, plan, heard=lambda *_: ended.append(time.monotonic() - began_s))
        took_s = time.monotonic() - began_s
        report = judged_fleet(FleetInput(folder=folder, policy=Policy(), shows_hosts=True)).report
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        made.shutdown()
    names = {index: f"n{index // gpus:02}/{index % gpus}" for index in (one_case, every_case, other_board)}
    found = {one.seat.name for one in report.members if one.standing is Standing.SLOW}
    print(f"{len(ended)} runs in {took_s:.0f} s, {len(manifest.vacancies)} missing")
    print(f"planted {names[one_case]} and {names[every_case]}, found {sorted(found)}")
    print("\n".join(one.message for one in report.findings))
    return found == {names[one_case], names[every_case]} and not manifest.vacancies


def overhead(rounds: int) -> bool:
    """Compare a run through Ray with the same command by itself, on a cluster of one node; print the difference."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    words = ("--device", "recorded", "--launches", "3")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 1, "include_dashboard": False})
    alone: list[float] = []
    through: list[float] = []
    try:
        ray.init(address=made.address, log_to_driver=False)
        for index in range(rounds):
            with tempfile.TemporaryDirectory() as name:
                began_s = time.monotonic()
                command = [sys.executable, "-m", "perfgate", "run", f"{name}/run.json.gz", *words, "-q"]
                subprocess.run(command, check=True)
                alone.append(time.monotonic() - began_s)
                began_s = time.monotonic()
                plan = FleetPlan(arguments=words, address=made.address)
                measured_fleet(Path(name) / "fleet", plan, heard=lambda *_: None)
                through.append(time.monotonic() - began_s)
            print(f"round {index}: alone {alone[-1]:.2f} s, through Ray {through[-1]:.2f} s")
        ray.shutdown()
    finally:
        made.shutdown()
    more_s = statistics.median(through) - statistics.median(alone)
    print(f"Ray's share of a GPU: {more_s:.2f} s (median of {rounds})")
    return more_s <= 2


def main(arguments: Sequence[str]) -> int:
    """Run one of the benchmarks; exit 1 where its target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("planted").add_argument("--seeds", type=int, default=20)
    verbs.add_parser("judging").add_argument("--runs", type=int, default=8000)
    driven = verbs.add_parser("cluster")
    driven.add_argument("--nodes", type=int, default=64)
    driven.add_argument("--gpus", type=int, default=8)
    driven.add_argument("--launches", type=int, default=1)
    verbs.add_parser("overhead").add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    if given.verb == "planted":
        is_met = planted(given.seeds)
    elif given.verb == "judging":
        is_met = judging(given.runs)
    elif given.verb == "overhead":
        is_met = overhead(given.rounds)
    else:
        is_met = cluster(given.nodes, given.gpus, given.launches)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
