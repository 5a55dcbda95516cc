"""Calibrating on the shipped recordings and from runs: noise, refusals, margins in a baseline."""

from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.core.acceptance import baseline_of
from perfgate.core.baseline import Provenance
from perfgate.core.policy import Policy
from perfgate.core.run import Injection, Run
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.baselines import baseline_target, list_baselines
from perfgate.storage.documents import write_baseline, write_run
from perfgate.workflow.calibrating import calibrated_from, measured_sessions, read_sessions, store_margins
from perfgate.workflow.cases import Selection
from perfgate.workflow.devices import opened_device
from perfgate.workflow.listener import Silent
from tests.factories import H200, make_run, normal_medians

COPY = "bandwidth.copy[bytes=4GiB]"
WHY = Provenance(recorded_utc="2026-11-29T12:00:00Z", reason="first", device_kind="cuda", perfgate_version="0.1.0")


def session(seed: int, spread: float = 4e-4, median_s: float = 2e-3) -> Run:
    created = f"2026-11-30T{seed:02}:00:00Z"
    return make_run({COPY: normal_medians(seed, 12, spread=spread, median_s=median_s)}, created_utc=created)


def test_calibrated_from__reads_noise_by_level_and_proposes_a_margin() -> None:
    found = calibrated_from(tuple(session(seed) for seed in range(1, 6)), Policy()).found
    case = found.cases[0]
    assert found.same_chip
    assert case.launches is not None
    assert 2e-4 < case.launches < 6e-4
    assert 0.003 <= case.margin.relative <= 0.01
    assert case.detectable is not None
    assert case.detectable > case.margin.relative


def test_calibrated_from__refuses_margins_below_the_noise() -> None:
    runs = tuple(session(seed, median_s=2e-3 * (1 + 0.002 * (seed % 2))) for seed in range(1, 6))
    refused = calibrated_from(runs, Policy(margins={"bandwidth.*": 0.0005})).refused
    assert [one.code for one in refused] == ["margin-unsupported"]


def test_store_margins__writes_them_into_the_baseline(tmp_path: Path) -> None:
    runs = tuple(session(seed) for seed in range(1, 4))
    found = calibrated_from(runs, Policy()).found
    with pytest.raises(BaselineError, match="no baseline"):
        store_margins(tmp_path, runs, found)
    write_baseline(baseline_target(tmp_path, H200), baseline_of(runs[0], WHY))
    store_margins(tmp_path, runs, found)
    stored = list_baselines(tmp_path)[0].baseline
    assert set(stored.margins) == {COPY}
    assert stored.margins[COPY].sessions == 3


def test_read_sessions__refuses_rehearsals_and_other_boards(tmp_path: Path) -> None:
    one, other, injected = tmp_path / "one.json", tmp_path / "other.json", tmp_path / "injected.json"
    write_run(one, session(1))
    write_run(other, replace(session(2), gpu=replace(H200, board_part_number="692-2G520-0282-001")))
    write_run(injected, replace(session(3), injected=(Injection(pattern="*", requested="+1%"),)))
    assert len(read_sessions((one, one))) == 2
    with pytest.raises(DocumentError, match="board_part_number"):
        read_sessions((one, other))
    with pytest.raises(DocumentError, match="rehearsal"):
        read_sessions((one, injected))


def test_measured_sessions__are_of_unchanged_code_and_alike(tmp_path: Path) -> None:
    device = opened_device("recorded")
    selection = Selection(cases=("bandwidth.read",))

    def measured(selection: Selection, sessions: int) -> tuple[Run, ...]:
        return measured_sessions(
            device, selection, sessions=sessions, launches=2, pause_s=60.0, place=tmp_path, listener=Silent()
        )

    first, second = measured(selection, 2)
    assert first.launches[0].cases != second.launches[0].cases
    assert [one.plan for one in first.cases.values()] == [one.plan for one in second.cases.values()]
    with pytest.raises(ConfigurationError, match="two at least"):
        measured(selection, 1)
    with pytest.raises(ConfigurationError, match="unchanged"):
        measured(replace(selection, inject=("bandwidth.read=+1%",)), 2)
