"""``perfgate run`` and ``perfgate doctor``: what was measured, as a document; what works here."""

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perfgate.core.run import Run
from perfgate.storage.documents import read_run
from perfgate.storage.schema import published_schema


def test_run__writes_a_document_that_fits_its_schema(perfgate: Any, device: str, recorded_run: Run) -> None:
    ending = perfgate("run", "run.json", "--device", device, "--launches", "2", "--seed", "7")
    run = read_run(Path("run.json"))
    assert ending.code == 0, ending.err
    jsonschema.validate(json.loads(Path("run.json").read_text()), published_schema("run"))
    assert (run.device_kind, run.seed, len(run.launches)) == ("recorded", 7, 2)
    assert run.gpu == recorded_run.gpu
    assert set(run.cases) == set(recorded_run.cases)
    assert all(set(launch.cases) == set(run.cases) for launch in run.launches)
    assert all(info.plan is not None for info in run.cases.values())


def test_run__prints_the_document_that_it_wrote(perfgate: Any, device: str) -> None:
    ending = perfgate("run", "run.json", "--device", device, "--launches", "1", "--case", "launch.*", "--json")
    assert ending.code == 0, ending.err
    assert ending.out == Path("run.json").read_text()


def test_run__is_gzipped_where_its_name_says_so(perfgate: Any, device: str) -> None:
    assert perfgate("run", "run.json.gz", "--device", device, "--launches", "1", "--case", "launch.gap").code == 0
    document = json.loads(gzip.decompress(Path("run.json.gz").read_bytes()))
    assert document["format"] == "perfgate.run/1"


def test_run__quiet_says_nothing(perfgate: Any, device: str) -> None:
    ending = perfgate("run", "run.json", "--device", device, "--launches", "1", "--case", "launch.gap", "--quiet")
    assert (ending.code, ending.out, ending.err) == (0, "", "")


def test_run__states_what_was_injected(perfgate: Any, device: str) -> None:
    perfgate("run", "run.json", "--device", device, "--launches", "1", "--inject", "bandwidth.copy=+5%")
    (injected,) = read_run(Path("run.json")).injected
    assert (injected.pattern, injected.requested) == ("bandwidth.copy", "+5%")
    assert injected.effective == {"bandwidth.copy[bytes=4GiB]": pytest.approx(0.05, rel=0.02)}


def test_run__orders_its_cases_anew_in_every_launch(perfgate: Any, device: str) -> None:
    perfgate("run", "run.json", "--device", device, "--launches", "3")
    orders = [
        sorted(launch.cases, key=lambda case_id, cases=launch.cases: cases[case_id].blocks[0].sequence)
        for launch in read_run(Path("run.json")).launches
    ]
    assert len({tuple(order) for order in orders}) > 1


def test_doctor__of_a_recording_works_everywhere(perfgate: Any, device: str) -> None:
    assert perfgate("doctor", "--device", device).code == 0
    found = json.loads(perfgate("doctor", "--device", device, "--json").out)
    assert [one["condition"] for one in found] == ["works", "works"]
    assert "6 launches of 8 cases on NVIDIA H200" in found[1]["result"]


def test_doctor__of_a_recording_that_cannot_be_read_says_so(perfgate: Any) -> None:
    ending = perfgate("doctor", "--device", "recorded:nothing.json.gz")
    assert ending.code == 5
    assert "nothing.json.gz: does not exist" in ending.out


def test_doctor__of_an_unknown_device_is_a_usage_error(perfgate: Any) -> None:
    ending = perfgate("doctor", "--device", "rocm")
    assert ending.code == 2
    assert "'rocm' is unknown" in ending.err


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU here")
def test_doctor__without_a_gpu_says_what_is_missing_and_what_to_do(perfgate: Any) -> None:
    ending = perfgate("doctor")
    assert ending.code == 5
    assert "broken" in ending.out
    assert "to do" in ending.out
