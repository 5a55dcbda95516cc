"""Runs without their samples are judged as the runs are."""

from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.core.acceptance import accepted_session
from perfgate.core.baseline import Provenance
from perfgate.core.case import Unit
from perfgate.core.condensed import condensed
from perfgate.core.run import Block, CaseLaunch, Run
from perfgate.core.summary import launch_statistics
from perfgate.core.validity import measured
from perfgate.storage.documents import read_run
from perfgate.workflow.devices import recordings_folder
from tests.factories import make_run

COPY = "bandwidth.copy[bytes=4GiB]"
RECORDINGS = sorted(recordings_folder().glob("*.json.gz"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_condensed__a_recorded_session_measures_the_same(path: Path) -> None:
    run = read_run(path)
    brief = condensed(run)
    for case_id in run.cases:
        for unit in Unit:
            assert launch_statistics(brief, case_id, unit) == pytest.approx(
                launch_statistics(run, case_id, unit), rel=1e-2
            )
        own = run.cases[case_id].unit
        assert launch_statistics(brief, case_id, own) == pytest.approx(launch_statistics(run, case_id, own), rel=1e-12)
    assert sum(len(one.blocks) for launch in brief.launches for one in launch.cases.values()) == sum(
        len(launch.cases) for launch in run.launches
    )


def test_condensed__is_exact_in_cycles_and_in_time_where_cycles_judge() -> None:
    run = make_run({COPY: [2e-3, 2.1e-3]})
    in_cycles = replace(run, cases={COPY: replace(run.cases[COPY], unit=Unit.CYCLES)})
    brief = condensed(in_cycles)
    for unit in Unit:
        assert launch_statistics(brief, COPY, unit) == pytest.approx(
            launch_statistics(in_cycles, COPY, unit), rel=1e-12
        )


def test_condensed__a_launch_without_a_valid_block_keeps_its_reason() -> None:
    bad = Block(sequence=3, started_s=0.0, times_s=(1e-3, 2e-3), executions_per_sample=1, valid=False, reason="too hot")
    run = make_run({COPY: [2e-3]})
    launch = replace(run.launches[0], cases={COPY: CaseLaunch(blocks=(bad, bad))})
    broken = replace(run, launches=(launch,))
    assert measured(COPY, condensed(broken)) == measured(COPY, broken)


def test_condensed__a_session_accepted_from_it_has_the_same_medians() -> None:
    run: Run = read_run(RECORDINGS[0])
    provenance = Provenance(recorded_utc=run.created_utc, reason="test", device_kind="cuda", perfgate_version="0")
    whole, brief = accepted_session(run, provenance), accepted_session(condensed(run), provenance)
    for case_id, case in whole.cases.items():
        assert brief.cases[case_id].launch_medians_s == pytest.approx(case.launch_medians_s, rel=1e-12)
