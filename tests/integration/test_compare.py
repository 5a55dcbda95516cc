"""``perfgate compare``: two documents in, a verdict out; nothing is measured."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perfgate.core.run import Run
from perfgate.storage.documents import write_baseline, write_run
from perfgate.storage.schema import published_schema
from tests.factories import H200, make_baseline, make_run, make_session, normal_medians

COPY, GEMM = "bandwidth.copy[bytes=4GiB]", "gemm.fp32[n=4096]"


def run_of(*, slower: float = 0.0, launches: int = 6, seed: int = 7, **changes: Any) -> Run:
    copy = [one * (1 + slower) for one in normal_medians(seed, launches)]
    return make_run({COPY: copy, GEMM: normal_medians(seed + 1, launches, median_s=3e-3)}, **changes)


@pytest.fixture
def base(workplace: Path) -> Path:
    write_run(workplace / "base.json.gz", run_of(launches=12, seed=1))
    return workplace / "base.json.gz"


@pytest.mark.parametrize(
    ("slower", "code", "verdict"),
    [(0.0, 0, "passed"), (0.02, 1, "regressed"), (-0.02, 0, "passed"), (0.0055, 8, "suspected")],
)
def test_compare__exits_by_the_verdict(perfgate: Any, base: Path, slower: float, code: int, verdict: str) -> None:
    write_run(Path("candidate.json"), run_of(slower=slower))
    ending = perfgate("compare", base, "candidate.json", "--json")
    report = json.loads(ending.out)
    assert (ending.code, report["exit_code"], report["verdict"]) == (code, code, verdict)
    assert ending.err == ""
    jsonschema.validate(report, published_schema("report"))


def test_compare__takes_a_baseline_as_base(perfgate: Any, workplace: Path) -> None:
    medians = {COPY: 2e-3, GEMM: 3e-3}
    write_baseline(workplace / "b.json", make_baseline(make_session(medians)))
    write_run(workplace / "candidate.json", run_of())
    assert perfgate("compare", "b.json", "candidate.json").code == 0


def test_compare__writes_no_file(perfgate: Any, base: Path, workplace: Path) -> None:
    write_run(workplace / "candidate.json", run_of())
    before = {path: path.read_bytes() for path in workplace.iterdir()}
    perfgate("compare", base, "candidate.json")
    assert {path: path.read_bytes() for path in workplace.iterdir()} == before


def test_compare__of_another_board_is_not_comparable(perfgate: Any, base: Path) -> None:
    write_run(Path("candidate.json"), run_of(gpu=replace(H200, board_part_number="692-2G520-0282-001")))
    ending = perfgate("compare", base, "candidate.json")
    assert ending.code == 4
    assert "board_part_number" in ending.out
    assert "692-2G520-0282-001" in ending.out


def test_compare__of_too_few_launches_says_how_many_are_needed(perfgate: Any, base: Path) -> None:
    write_run(Path("candidate.json"), run_of(launches=1))
    ending = perfgate("compare", base, "candidate.json")
    assert ending.code == 2
    assert "could not prove any regression" in ending.err
    assert "measure at least" in ending.err


def spoiled(text: str) -> dict[str, bytes]:
    """A run document, spoiled in every way that a download, an editor or another program spoils one."""
    document = json.loads(text)
    newer = document | {"format": "perfgate.run/2"}
    nan = text.replace('"sm_clock_hz": ', '"sm_clock_hz": NaN, "x": ', 1)
    negative = json.loads(text)
    negative["launches"][0]["cases"][COPY]["blocks"][0]["times_s"][0] = -1.0
    return {
        "truncated": text.encode()[: len(text) // 2],
        "empty": b"",
        "no-json": b"<html>504 Gateway Timeout</html>",
        "no-object": b"[]",
        "nan": nan.encode(),
        "newer": json.dumps(newer).encode(),
        "foreign": b'{"format": "hyperfine/1"}',
        "no-format": b"{}",
        "negative-time": json.dumps(negative).encode(),
        "unknown-field": json.dumps(document | {"surprise": 1}).encode(),
        "utf-16": text.encode("utf-16"),
        "half-a-gzip": gzip.compress(text.encode())[:-100],
        "a-bomb": gzip.compress(b" " * 70_000_000),
        "deep": b'{"format": "perfgate.run/1", "extensions": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    }


SAYS = {
    "truncated": "is not JSON",
    "empty": "is not JSON",
    "no-json": "is not JSON",
    "no-object": "it has no field 'format'",
    "nan": "NaN",
    "newer": "reads run documents up to version 1",
    "foreign": "none of perfgate's",
    "no-format": "it has no field 'format'",
    "negative-time": "must be finite and positive",
    "unknown-field": "unknown field 'surprise'",
    "utf-16": "is not UTF-8",
    "half-a-gzip": "damaged gzip",
    "a-bomb": "larger than",
    "deep": "deeper than",
}


@pytest.mark.parametrize("damage", SAYS)
@pytest.mark.parametrize("side", ["base", "candidate"])
def test_compare__names_a_spoiled_document_and_what_is_wrong(
    perfgate: Callable[..., Any], base: Path, damage: str, side: str
) -> None:
    write_run(Path("good.json"), run_of())
    bad = Path(f"{damage}.json")
    bad.write_bytes(spoiled(Path("good.json").read_text())[damage])
    ending = perfgate("compare", *(("good.json", bad) if side == "candidate" else (bad, "good.json")))
    assert ending.code == 3, ending.err
    assert str(bad) in ending.err
    assert SAYS[damage] in ending.err
    assert "Traceback" not in ending.err
    assert ending.out == ""
    assert len(ending.err) < 1000


def test_compare__of_files_that_cannot_be_read(perfgate: Any, base: Path, workplace: Path) -> None:
    for candidate, message in (("missing.json", "does not exist"), (workplace, "is a directory")):
        ending = perfgate("compare", base, candidate)
        assert ending.code == 3
        assert message in ending.err


def test_compare__a_pointer_leads_to_the_place(perfgate: Any, base: Path) -> None:
    write_run(Path("good.json"), run_of())
    document = json.loads(Path("good.json").read_text())
    document["launches"][2]["cases"][GEMM]["blocks"][1]["executions_per_sample"] = "four"
    Path("bad.json").write_text(json.dumps(document))
    ending = perfgate("compare", base, "bad.json")
    assert ending.code == 3
    assert "bad.json#/launches/2/cases/gemm.fp32[n=4096]/blocks/1/executions_per_sample" in ending.err


def test_compare__a_candidate_must_be_a_run(perfgate: Any, base: Path, workplace: Path) -> None:
    write_baseline(workplace / "b.json", make_baseline())
    ending = perfgate("compare", base, "b.json")
    assert ending.code == 3
    assert "a run is wanted here" in ending.err
