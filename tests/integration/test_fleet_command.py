"""``perfgate fleet judge`` over folders as ``srun`` and a cluster leave them: verdicts, views, exit codes."""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.cli.main import run as command
from perfgate.core.fleet import Seat, Vacancy
from perfgate.core.run import Run
from perfgate.errors import ExitCode
from perfgate.storage.documents import write_run
from perfgate.storage.fleet_folder import FleetManifest, write_manifest, write_seat_run
from tests.factories import H200, make_run

COPY, READ = "bandwidth.copy[bytes=4GiB]", "bandwidth.read[bytes=4GiB]"


def run_of(name: str, *, slower: float = 0.0) -> Run:
    """Six launches of a chip of its own."""
    medians = [2e-3 * (1 + 1e-4 * index) for index in range(6)]
    cases = {COPY: [one * (1 + slower) for one in medians], READ: medians}
    return make_run(cases, gpu=replace(H200, chip=f"{zlib.crc32(name.encode()):012x}"))


def judged(folder: Path, capsys: Any, *options: str) -> tuple[int, str, str]:
    code = command(["fleet", "judge", str(folder), "--no-color", *options])
    ending = capsys.readouterr()
    return code, ending.out, ending.err


@pytest.fixture
def srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What eight tasks of srun wrote."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    folder.mkdir()
    for index in range(8):
        name = f"node{index // 4}-{index % 4}"
        write_run(folder / f"{name}.json.gz", run_of(name))
    return folder


def test_fleet_judge__a_healthy_folder_passes(srun: Path, capsys: Any) -> None:
    code, out, _ = judged(srun, capsys)
    assert (code, "every GPU is healthy" in out) == (ExitCode.PASSED, True)
    assert "node0" not in out  # an alias stands for a host, unless its name is asked for


def test_fleet_judge__a_slow_gpu_is_named_and_every_view_says_so(srun: Path, capsys: Any, tmp_path: Path) -> None:
    write_run(srun / "node1-2.json.gz", run_of("node1-2", slower=0.05))
    views = ("--output", "out", "--openmetrics", "gpus.prom", "--drain-list", "drain.txt", "--host-names")
    code, out, _ = judged(srun, capsys, *views)
    assert code == ExitCode.REGRESSED
    assert "node1/2" in out
    assert "+5.0 %" in out
    assert (tmp_path / "drain.txt").read_text() == "node1\n"
    report = json.loads((tmp_path / "out" / "fleet-report.json").read_text())
    assert [one["seat"]["node"] for one in report["members"] if one["standing"] == "slow"] == ["node1"]
    assert 'standing="slow"} 1' in (tmp_path / "gpus.prom").read_text()
    assert "node1" in (tmp_path / "out" / "fleet-report.html").read_text()
    assert ",slow," in (tmp_path / "out" / "fleet-report.csv").read_text()


def test_fleet_judge__damaged_and_foreign_files_are_missing_gpus_the_rest_is_judged(srun: Path, capsys: Any) -> None:
    whole = (srun / "node0-1.json.gz").read_bytes()
    (srun / "node0-1.json.gz").write_bytes(whole[: len(whole) // 2])
    (srun / "node0-2.json.gz").unlink()
    (srun / "node0-2.json").write_text('{"format": "somebody/1"}')
    code, out, _ = judged(srun, capsys, "--host-names")
    assert code == ExitCode.UNDECIDED
    assert "6 healthy" in out
    assert "2 missing" in out
    assert "node0/1" in out
    assert "damaged gzip" in out


def test_fleet_judge__what_a_cluster_was_to_measure_and_did_not_is_missing(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seats = tuple(Seat(node=f"n{node}", gpu=gpu) for node in range(2) for gpu in range(4))
    lost, unreached = seats[3], seats[7]
    manifest = FleetManifest(
        arguments=(), concurrency="gpu", seats=seats, vacancies=(Vacancy(seat=lost, reason="its worker died"),)
    )
    write_manifest(tmp_path / "fleet", manifest)
    for seat in seats:
        if seat not in (lost, unreached):
            write_seat_run(tmp_path / "fleet", seat, run_of(seat.name))
    code, out, _ = judged(tmp_path / "fleet", capsys, "--host-names")
    assert code == ExitCode.UNDECIDED
    assert "its worker died" in out
    assert "it was not measured: the call ended before" in out
    assert "6 healthy" in out


@pytest.mark.parametrize("made", ["nothing", "empty", "doubled"])
def test_fleet_judge__a_folder_that_cannot_be_judged_says_why(
    tmp_path: Path, capsys: Any, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    if made != "nothing":
        folder.mkdir()
    if made == "doubled":
        for name in ("node0-1.json", "node0_1.json"):
            write_run(folder / name, run_of("one"))
    code, _, err = judged(folder, capsys)
    assert code == ExitCode.DOCUMENT
    said = {"nothing": "there is no such folder", "empty": "holds no run", "doubled": "it is of the same GPU, node0/1"}
    assert said[made] in err


def test_fleet_judge__labels_name_a_rack_that_is_slow(srun: Path, capsys: Any, tmp_path: Path) -> None:
    for index in range(8, 32):
        name = f"node{index // 4}-{index % 4}"
        write_run(srun / f"{name}.json.gz", run_of(name, slower=0.04 if index >= 24 else 0.0))
    racks = "\n".join(f"node{node},r{node // 2}" for node in range(8))
    (tmp_path / "labels.csv").write_text(f"node,rack\n{racks}\n")
    code, out, _ = judged(srun, capsys, "--labels", "labels.csv")
    assert code == ExitCode.REGRESSED
    assert "rack r3: 8 GPUs are 4.0 % slower than the rest" in " ".join(out.split())
