"""What a person reads, kept whole: every situation in every form of text; `--update-golden` accepts new renderings."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.report import Report
from perfgate.report.baseline_markdown import render_baseline_change_markdown
from perfgate.report.baseline_text import render_baseline, render_baseline_change, render_baseline_list
from perfgate.report.fleet_files import render_drain_list, render_fleet_csv, render_openmetrics
from perfgate.report.fleet_page import render_fleet_html
from perfgate.report.fleet_text import render_fleet
from perfgate.report.history_text import render_history
from perfgate.report.junit import render_junit
from perfgate.report.markdown import render_markdown
from perfgate.report.run_text import render_run
from perfgate.report.table_csv import render_csv
from perfgate.report.terminal import render_terminal
from perfgate.storage.documents import render_fleet_json, render_report_json
from tests.golden import documents, fleets, histories
from tests.golden.reports import REPORTS

FOLDER = Path(__file__).parent

FORMS: dict[str, Callable[[Report], str]] = {
    "expected.txt": lambda report: render_terminal(report, width=80),
    "expected-wide.txt": lambda report: render_terminal(report, width=200, verbose=True),
    "expected-ascii.txt": lambda report: render_terminal(report, width=80, unicode=False),
    "expected.xml": render_junit,
    "expected.csv": render_csv,
    "expected.json": render_report_json,
    "expected.md": lambda report: render_markdown(report, run_url="https://ci.example/runs/7"),
}


PAGES: dict[str, Callable[[], str]] = {
    "run.txt": lambda: render_run(documents.run()),
    "baseline.txt": lambda: render_baseline(documents.baseline()),
    "baselines.txt": lambda: render_baseline_list([("nvidia-h200.json", documents.baseline())]),
    "baseline-change.txt": lambda: render_baseline_change(documents.change()),
    "history.txt": lambda: render_history(histories.moved()),
    "history-wide.txt": lambda: render_history(histories.moved(), width=200),
    "history-ascii.txt": lambda: render_history(histories.moved(), unicode=False),
    "history-single.txt": lambda: render_history(histories.single()),
    "baseline-change.md": lambda: render_baseline_change_markdown(
        documents.change(), documents.baseline().gpu, run_url="https://ci.example/runs/7"
    ),
    "fleet.txt": lambda: render_fleet(fleets.troubled()),
    "fleet-wide.txt": lambda: render_fleet(fleets.troubled(), width=200),
    "fleet-ascii.txt": lambda: render_fleet(fleets.troubled(), unicode=False),
    "fleet-healthy.txt": lambda: render_fleet(fleets.healthy()),
    "fleet.csv": lambda: render_fleet_csv(fleets.healthy()),
    "fleet.json": lambda: render_fleet_json(fleets.healthy()),
    "fleet.prom": lambda: render_openmetrics(fleets.healthy()),
    "fleet.html": lambda: render_fleet_html(fleets.healthy()),
    "fleet-drain.txt": lambda: render_drain_list(fleets.troubled(), fleets.HOSTS),
}


# No document is written with a case id that is none: storage refuses it.
PAIRS = [(name, form) for name in REPORTS for form in FORMS if (name, form) != ("hostile-names", "expected.json")]


@pytest.mark.parametrize(("situation", "form"), PAIRS)
def test_rendering__is_what_was_agreed(situation: str, form: str, update_golden: bool) -> None:
    check(FOLDER / situation / form, FORMS[form](REPORTS[situation]()), update=update_golden)


@pytest.mark.parametrize("page", PAGES)
def test_page_of_a_document__is_what_was_agreed(page: str, update_golden: bool) -> None:
    check(FOLDER / "documents" / page, PAGES[page](), update=update_golden)


def check(path: Path, rendered: str, *, update: bool) -> None:
    """Compare with the golden file; where they differ, leave what was rendered beside it."""
    got = path.with_name(f"{path.name}.got")
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(rendered, encoding="utf-8", newline="")
        got.unlink(missing_ok=True)
        return
    expected = path.read_bytes().decode() if path.exists() else ""
    if rendered == expected:
        return
    got.parent.mkdir(exist_ok=True)
    got.write_text(rendered, encoding="utf-8", newline="")
    difference = "\n".join(
        difflib.unified_diff(expected.splitlines(), rendered.splitlines(), str(path), str(got), lineterm="")
    )
    pytest.fail(f"{path} differs; accept with --update-golden\n{difference}")
