"""Spreads of recorded sessions: what is put together, and what is compared with what."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.sessions import agreements, documents, main, rendered
from perfgate.core.case import Unit
from perfgate.core.run import Injection
from perfgate.storage.documents import write_run
from tests.factories import ENVIRONMENT, H200, make_case_info, make_run

COPY = "bandwidth.copy[bytes=4GiB]"


def test_agreements__puts_launches_sessions_chips_and_hosts_apart() -> None:
    other_chip = replace(H200, chip="aaaa")
    other_host = replace(ENVIRONMENT, cpu_model="AMD EPYC")
    runs = [
        make_run({COPY: [1.0, 1.02]}),
        make_run({COPY: [1.02, 1.02]}),
        make_run({COPY: [1.03, 1.05]}, gpu=other_chip, environment=other_host),
    ]
    (found,) = agreements(runs)
    assert (found.sessions, found.chips, found.boards, found.hosts) == (3, 2, 1, 2)
    assert found.median == pytest.approx(1.02)
    spread = math.sqrt(2) * 0.01
    assert found.between_launches_worst == pytest.approx(spread / 1.01)
    assert found.between_launches == pytest.approx(math.sqrt(((spread / 1.01) ** 2 + (spread / 1.04) ** 2) / 3))
    assert found.between_sessions == pytest.approx(0.01 / 1.015)
    assert found.between_chips == found.between_hosts == pytest.approx(0.025 / 1.0275)
    assert found.misses == ("launches", "chips")


def test_agreements__boards_are_never_compared_with_each_other() -> None:
    other = replace(H200, chip="aaaa", board_part_number="other")
    (found,) = agreements([make_run({COPY: [1.0, 1.0]}), make_run({COPY: [2.0, 2.0]}, gpu=other)])
    assert found.boards == 2
    assert found.between_chips is None
    assert found.misses == ()


def test_agreements__other_sources_are_another_case() -> None:
    changed = {COPY: make_case_info(source_sha256="c" * 64)}
    found = agreements([make_run({COPY: [1.0]}), make_run({COPY: [2.0]}, infos=changed)])
    assert [(one.sources, one.sessions) for one in found] == [("aaaaaaa", 1), ("ccccccc", 1)]
    assert found[0].between_launches is None


def test_agreements__rehearsed_sessions_are_left_out() -> None:
    rehearsed = make_run({COPY: [1.0]}, injected=(Injection(pattern="*", requested="+3%"),))
    assert agreements([rehearsed]) == []


def test_agreements__cases_judged_in_cycles_are_compared_in_cycles() -> None:
    infos = {"gemm.fp16[n=8192]": make_case_info("gemm", unit=Unit.CYCLES)}
    (found,) = agreements([make_run({"gemm.fp16[n=8192]": [1e-3, 1e-3]}, infos=infos)])
    assert found.median == pytest.approx(1.98e6)
    assert "1980000 cycles" in rendered([found])


def test_main__reads_folders_and_writes_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    write_run(folder / "one.json", make_run({COPY: [2e-3, 2.001e-3]}))
    assert documents([folder]) == [folder / "one.json"]
    monkeypatch.setattr("sys.argv", ["sessions", str(folder), "--json", str(tmp_path / "found.json")])
    main()
    (row,) = json.loads((tmp_path / "found.json").read_text())
    assert row["case"] == COPY
    assert row["misses"] == []
    assert COPY in capsys.readouterr().out
