from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.core.report import Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import PublishError
from perfgate.github.commands import MAX_SUMMARY_BYTES
from perfgate.github.comments import RunId, marker
from perfgate.workflow.inputs import parse_inputs
from perfgate.workflow.publishing import (
    RUNGS_BYTES,
    Desk,
    Story,
    annotations_of,
    exit_code_of,
    located_annotations,
    published,
    step_exit_code,
    summary_text,
)
from tests.action_harness import ROOT
from tests.golden.reports import REPORTS, bandwidth_case

REGRESSED, PASSED = REPORTS["regressed"](), REPORTS["passed"]()


def story_of(*reports: Report, **changes: object) -> Story:
    fields: dict[str, object] = {
        "reports": reports,
        "exit_code": max((report.exit_code for report in reports), default=5),
        "run": RunId(id=10, attempt=1),
        "run_url": "https://github.example/octo/kernels/actions/runs/10",
    }
    return Story(**(fields | changes))  # type: ignore[arg-type]


def giant(cases: int = 3000) -> Report:
    """A report whose Markdown would be far above every limit, with characters of four bytes."""
    many = tuple(
        replace(bandwidth_case("copy", 2e-3, 0.0), id=f"bandwidth.copy[bytes={number}]", reason="🚀" * 50)
        for number in range(cases)
    )
    return replace(REGRESSED, cases=(*REGRESSED.cases, *many), summary="🚀" * 300_000)


def test_story__a_giant_report_fits_a_comment_and_a_summary() -> None:
    story = story_of(giant(), notices=("🚀" * 5000,), details="🚀" * 100_000)
    hidden = f"{marker('x' * 100)}\n<!-- perfgate-run id={10**19} attempt=9 -->\n"
    for limit in RUNGS_BYTES:
        text = story.markdown(limit)
        assert len((hidden + text).encode()) <= min(limit + 500, 60_000)
        assert text.startswith("### perfgate: regressed")
    trouble = PublishError("no" * 1000, hint="try" * 1000)
    assert len(summary_text(story, (trouble,) * 20).encode()) < MAX_SUMMARY_BYTES


@pytest.mark.parametrize(
    ("report", "fail_on", "expected"),
    [
        (REGRESSED, None, 1),
        (PASSED, None, 0),
        (REGRESSED, frozenset(), 0),
        (REGRESSED, frozenset({CheckVerdict.REGRESSED}), 1),
        (REGRESSED, frozenset({CheckVerdict.INVALID}), 0),
        (replace(REGRESSED, exit_code=0), frozenset({CheckVerdict.REGRESSED}), 0),
        (replace(PASSED, verdict=CheckVerdict.INCONCLUSIVE), frozenset({CheckVerdict.INCONCLUSIVE}), 8),
        (replace(PASSED, verdict=CheckVerdict.NO_BASELINE), frozenset({CheckVerdict.NO_BASELINE}), 8),
        (replace(PASSED, exit_code=3), None, 3),
    ],
)
def test_step_exit_code(report: Report, fail_on: frozenset[CheckVerdict] | None, expected: int) -> None:
    assert step_exit_code(story_of(report), fail_on) == expected


@pytest.mark.parametrize("fail_on", [None, frozenset(), frozenset({CheckVerdict.REGRESSED})])
def test_step_exit_code__an_error_always_fails(fail_on: frozenset[CheckVerdict] | None) -> None:
    assert step_exit_code(story_of(message="no GPU"), fail_on) == 5


def test_exit_code_of__several_is_that_of_the_worst_verdict() -> None:
    suspected = replace(REGRESSED, verdict=CheckVerdict.SUSPECTED, exit_code=8)
    accepted = replace(REGRESSED, exit_code=0)
    assert exit_code_of((PASSED, suspected, REGRESSED)) == 1
    assert exit_code_of((PASSED, accepted, suspected)) == 8
    assert exit_code_of((PASSED, accepted)) == 0


def test_annotations__are_ten_at_most() -> None:
    story = story_of(REGRESSED, notices=tuple(f"notice {number}" for number in range(20)))
    found = annotations_of(story, 1, (PublishError("x"),) * 20)
    assert len(found) == 10
    assert found[0].level == "error"


def test_annotations__a_plain_pass_needs_none() -> None:
    assert annotations_of(story_of(PASSED), 0, ()) == ()


def test_located_annotations__only_of_sources_in_the_workspace(tmp_path: Path) -> None:
    case = next(one for one in REGRESSED.cases if one.family == "bandwidth")
    slower = replace(case, id="bandwidth.copy[bytes=4GiB]", verdict=CaseVerdict.REGRESSED, gated=True)
    report = replace(REGRESSED, cases=(slower,))
    (found,) = located_annotations(report, "default", ROOT)
    assert found.file == "kernels/bandwidth.cu"
    assert located_annotations(report, "default", tmp_path) == ()
    assert located_annotations(PASSED, "default", ROOT) == ()
    assert located_annotations(report, "", ROOT) == ()


def test_published__without_a_token_nothing_is_posted_and_nothing_is_missing() -> None:
    desk = Desk(api=None, inputs=parse_inputs({}), pull=7, head_sha="a" * 40, has_check_run=True)
    done = published(desk, story_of(REGRESSED))
    assert (done.code, done.troubles) == (1, ())
    assert "label the pull request perfgate-accepted" in done.story.reports[0].next_step


def test_published__outside_a_pull_request_nobody_is_told_of_labels() -> None:
    desk = Desk(api=None, inputs=parse_inputs({}), pull=None, head_sha="a" * 40, has_check_run=True)
    assert "re-run the job" not in published(desk, story_of(REGRESSED)).story.reports[0].next_step
