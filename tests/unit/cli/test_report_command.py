"""``perfgate report``: what a file is decides which forms it has; nothing is judged."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from perfgate.cli.main import run as run_command
from perfgate.cli.results import delivered, emptied_folder
from perfgate.storage.documents import write_baseline, write_report, write_run
from perfgate.workflow.checking import CheckResult
from tests.factories import make_baseline, make_run, make_session, normal_medians
from tests.golden.reports import regressed
from tests.unit.report.html_reader import read_page, run_of

COPY = "bandwidth.copy[bytes=4GiB]"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    write_report(path, regressed())
    return path


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    write_run(path, make_run({COPY: normal_medians(1, 3)}))
    return path


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("markdown", "### perfgate: regressed on NVIDIA H200"),
        ("html", "<!doctype html>"),
        ("json", "{"),
        ("junit", "<?xml"),
        ("csv", "case,family,verdict"),
    ],
)
def test_report__has_every_form(report: Path, form: str, start: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(report), "--format", form]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(start)
    if form == "json":
        assert json.loads(shown) == json.loads(report.read_text(encoding="utf-8"))
    if form == "junit":
        ET.fromstring(shown)


def test_report__is_for_the_terminal_unless_asked(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(report)]) == 0
    assert "REGRESSED on NVIDIA H200" in capsys.readouterr().out


@pytest.mark.parametrize(("form", "word"), [("terminal", "MEASURED"), ("html", "Nothing was judged"), ("json", "{")])
def test_run__has_the_forms_that_judge_nothing(
    measured: Path, form: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["report", str(measured), "--format", form]) == 0
    assert word in capsys.readouterr().out


@pytest.mark.parametrize("form", ["markdown", "junit", "csv"])
def test_run__is_refused_in_forms_of_a_verdict(measured: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(measured), "--format", form]) == 2
    told = capsys.readouterr().err
    assert f"no form {form}" in told
    assert "terminal, html, json" in told


def test_baseline__is_sent_to_the_command_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, make_baseline(make_session({COPY: 2e-3})))
    assert run_command(["report", str(path)]) == 2
    assert f"perfgate baseline show {path}" in capsys.readouterr().err


def test_output__is_a_file_and_nothing_is_printed(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = report.with_name("page.html")
    assert run_command(["report", str(report), "--format", "html", "--output", str(page)]) == 0
    assert capsys.readouterr().out == ""
    assert read_page(page.read_text(encoding="utf-8")).faults == []


def test_output__that_cannot_be_written_is_found_first(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(report), "--output", str(report.parent / "none" / "x.txt")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_output__for_the_terminal_has_no_colour(report: Path) -> None:
    path = report.with_name("report.txt")
    assert run_command(["report", str(report), "--output", str(path)]) == 0
    assert "\x1b" not in path.read_text(encoding="utf-8")


def test_run_option__adds_the_launches(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report.with_name("run.json")
    write_run(path, run_of(regressed()))
    assert run_command(["report", str(report), "--format", "html", "--run", str(path)]) == 0
    assert 'class="launches"' in capsys.readouterr().out


def test_run_option__refuses_the_run_of_something_else(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = report.with_name("run.json")
    write_run(path, make_run({"other.case": [2e-3] * 3}))
    assert run_command(["report", str(report), "--format", "html", "--run", str(path)]) == 2
    assert "is not the run of this report" in capsys.readouterr().err


def test_run_option__is_for_html(report: Path, measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["report", str(report), "--run", str(measured)]) == 2
    assert "--run is for a report with --format html" in capsys.readouterr().err


def test_results__of_a_check_have_the_page_with_its_launches(tmp_path: Path) -> None:
    folder = emptied_folder(tmp_path / "results")
    report = regressed()
    assert delivered(folder, CheckResult(report=report, run=run_of(report))) == report.exit_code
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert read_page(page).faults == []
    assert 'class="launches"' in page
    assert list(emptied_folder(folder).iterdir()) == [folder / ".gitignore"]
