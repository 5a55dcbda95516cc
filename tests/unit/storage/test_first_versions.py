"""The documents of the first version, as real hardware gave them, are read for ever.

tests/data/*-1.json are never written again: whoever breaks this test adds a migration to storage/formats.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfgate.core.acceptance import implausible
from perfgate.core.verdict import CheckVerdict
from perfgate.storage import documents
from perfgate.storage.baselines import rewritten_baseline
from perfgate.storage.documents import (
    parse_baseline,
    parse_report,
    parse_run,
    read_baseline,
    read_report,
    read_run,
    render_baseline_json,
    render_report_json,
    render_run_json,
)
from perfgate.storage.formats import BASELINE

DATA = Path(__file__).resolve().parents[2] / "data"


def test_baseline_1__is_read() -> None:
    baseline = read_baseline(DATA / "baseline-1.json")
    assert baseline.gpu.board_part_number == "692-2G520-0282-001"
    assert [session.chip for session in baseline.sessions] == ["fbc45f24891a", "8be5d03ddacd"]
    copy = baseline.sessions[0].cases["bandwidth.copy[bytes=4GiB]"]
    assert copy.launch_medians_s[:2] == (0.00199261, 0.00199478)
    assert copy.work.moved_bytes == 2 * 2**32
    assert not implausible(baseline)
    text = render_baseline_json(baseline)
    assert parse_baseline(text, "again") == baseline
    assert render_baseline_json(parse_baseline(text, "again")) == text


def test_run_1__is_read() -> None:
    run = read_run(DATA / "run-1.json")
    assert (run.device_kind, len(run.launches), len(run.cases)) == ("cuda", 3, 4)
    assert sum(len(block.times_s) for block in run.launches[0].cases["gemm.fp32[n=4096]"].blocks) > 30
    assert parse_run(render_run_json(run), "again") == run


def test_report_1__is_read() -> None:
    report = read_report(DATA / "report-1.json")
    assert report.verdict is CheckVerdict.INVALID
    assert len(report.cases) == 11
    assert parse_report(render_report_json(report), "again") == report


def test_rewritten_baseline__migrates_from_the_first_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def second(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"extensions": {"was": 1}}

    path = tmp_path / "h200.json"
    path.write_bytes((DATA / "baseline-1.json").read_bytes())
    newer = replace(BASELINE, version=2, migrations={1: second})
    schema = documents.refuse_invalid

    def untagged(value: dict[str, Any], *rest: str) -> None:
        schema(value | {"format": "perfgate.baseline/1"}, *rest)

    monkeypatch.setattr("perfgate.storage.documents.BASELINE", newer)
    monkeypatch.setattr("perfgate.storage.documents.refuse_invalid", untagged)
    assert rewritten_baseline(path)
    written = json.loads(path.read_text())
    assert (written["format"], written["extensions"]) == ("perfgate.baseline/2", {"was": 1})
    assert not rewritten_baseline(path)
