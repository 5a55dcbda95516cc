"""What a person reads, kept whole: every situation in every form of text; `--update-golden` accepts new renderings."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from perfgate.core.report import Report
from perfgate.report.junit import render_junit
from perfgate.report.markdown import render_markdown
from perfgate.report.table_csv import render_csv
from perfgate.report.terminal import render_terminal
from tests.golden.reports import REPORTS

FOLDER = Path(__file__).parent

FORMS: dict[str, Callable[[Report], str]] = {
    "expected.txt": lambda report: render_terminal(report, width=80),
    "expected-wide.txt": lambda report: render_terminal(report, width=200, verbose=True),
    "expected-ascii.txt": lambda report: render_terminal(report, width=80, unicode=False),
    "expected.xml": render_junit,
    "expected.csv": render_csv,
    "expected.md": lambda report: render_markdown(report, run_url="https://ci.example/runs/7"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("situation", REPORTS)
def test_rendering__is_what_was_agreed(situation: str, form: str, update_golden: bool) -> None:
    path = FOLDER / situation / form
    rendered = FORMS[form](REPORTS[situation]())
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(rendered, encoding="utf-8", newline="")
        path.with_name(f"{form}.got").unlink(missing_ok=True)
        return
    expected = path.read_bytes().decode() if path.exists() else ""
    if rendered == expected:
        return
    got = path.with_name(f"{form}.got")
    got.parent.mkdir(exist_ok=True)
    got.write_text(rendered, encoding="utf-8", newline="")
    difference = "\n".join(
        difflib.unified_diff(expected.splitlines(), rendered.splitlines(), str(path), str(got), lineterm="")
    )
    pytest.fail(f"{situation}/{form} differs; accept with --update-golden\n{difference}")
