"""``perfgate report``: a report or a run in any form."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum, assert_never

if TYPE_CHECKING:
    from perfgate.cli.view import View
    from perfgate.core.history import ChipHistory
    from perfgate.core.report import Report
    from perfgate.core.run import Run


class Form(StrEnum):
    """How a document is rendered."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    JUNIT = "junit"
    CSV = "csv"


# A run was not judged: there is nothing to test, to comment or to list by verdict.
RUN_FORMS = (Form.TERMINAL, Form.HTML, Form.JSON)
# As wide as a file is comfortably read.
_FILE_WIDTH = 120


@click.command()
@click.argument("document", metavar="RUN-or-REPORT", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice([one.value for one in Form]),
    default=Form.TERMINAL.value,
    help="Form of the output; a run has terminal, html and json.",
)
@click.option(
    "--run", "run_path", type=click.Path(path_type=Path), help="With html: the report's run, to show its launches."
)
@click.option(
    "--history",
    "history_path",
    type=click.Path(path_type=Path),
    help="With html: runs or a baseline, to show how the cases moved.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write instead of stdout.")
@click.option("--verbose", "-v", is_flag=True, help="In the terminal: all cases, policy, environment.")
@click.option("--no-color", is_flag=True, help="No colour (NO_COLOR is honoured too).")
def command(
    *,
    document: Path,
    form: str,
    run_path: Path | None,
    history_path: Path | None,
    output: Path | None,
    verbose: bool,
    no_color: bool,
) -> int:
    """Render a report, or a run, again in another form.

    Exits 0 whatever the verdict in it: nothing is judged here.
    """
    from perfgate.cli.results import refuse_unwritable
    from perfgate.cli.view import View, current_view, show
    from perfgate.core.report import Report
    from perfgate.core.run import Run
    from perfgate.storage.documents import read_document, read_run
    from perfgate.storage.files import write_text

    if output is not None:
        refuse_unwritable(output)
    wanted = Form(form)
    found = read_document(document)
    plain = View(width=_FILE_WIDTH, color=False, unicode=True)
    view = current_view(no_color=no_color) if output is None else plain
    for name, path in (("--run", run_path), ("--history", history_path)):
        if path is not None and not (isinstance(found, Report) and wanted is Form.HTML):
            raise ConfigurationError(f"{name} is for a report with --format html", hint="leave it out")
    match found:
        case Report():
            run = None if run_path is None else _run_of(found, read_run(run_path), run_path)
            history = None if history_path is None else _history_of(found, history_path)
            text = _rendered_report(found, run, history, wanted, view, verbose=verbose)
        case Run():
            text = _rendered_run(found, wanted, view, verbose=verbose)
        case _:
            raise ConfigurationError(f"{document} is a baseline", hint=f"perfgate baseline show {document}")
    if output is None:
        show(text)
    else:
        write_text(output, text if text.endswith("\n") else f"{text}\n")
    return 0


def _run_of(report: "Report", run: "Run", path: Path) -> "Run":
    """Return the run where it can be the report's.

    Raises:
        ConfigurationError: it is of another GPU, or has none of its cases.
    """
    measured = [case.id for case in report.cases if case.candidate is not None]
    if run.gpu != report.gpu or (measured and not any(one in run.cases for one in measured)):
        raise ConfigurationError(f"{path} is not the run of this report", hint="give the run.json written beside it")
    return run


def _history_of(report: "Report", place: Path) -> "ChipHistory":
    """Return the history of the report's chip.

    Raises:
        ConfigurationError: there is none of it.
    """
    from perfgate.core.gpu import identity_differences
    from perfgate.workflow.trending import recalled

    found = recalled((place,), report.policy)
    for one in found.chips:
        if one.gpu.chip == report.gpu.chip and not identity_differences(one.gpu, report.gpu):
            return one
    raise ConfigurationError(f"{place} holds no session of this report's chip", hint="give its baseline, or its runs")


def _rendered_report(
    report: "Report", run: "Run | None", history: "ChipHistory | None", form: Form, view: "View", *, verbose: bool
) -> str:
    match form:
        case Form.TERMINAL:
            from perfgate.report.terminal import render_terminal

            return render_terminal(report, width=view.width, color=view.color, unicode=view.unicode, verbose=verbose)
        case Form.MARKDOWN:
            from perfgate.cli.results import MARKDOWN_BYTES
            from perfgate.report.markdown import render_markdown

            return render_markdown(report, limit_bytes=MARKDOWN_BYTES)
        case Form.HTML:
            from perfgate.report.html_page import render_html

            return render_html(report, run=run, history=history)
        case Form.JSON:
            from perfgate.storage.documents import render_report_json

            return render_report_json(report)
        case Form.JUNIT:
            from perfgate.report.junit import render_junit

            return render_junit(report)
        case Form.CSV:
            from perfgate.report.table_csv import render_csv

            return render_csv(report)
        case _:
            assert_never(form)


def _rendered_run(run: "Run", form: Form, view: "View", *, verbose: bool) -> str:
    match form:
        case Form.TERMINAL:
            from perfgate.report.run_text import render_run

            return render_run(run, width=view.width, color=view.color, unicode=view.unicode, verbose=verbose)
        case Form.HTML:
            from perfgate.core.roofs import measured_roofs
            from perfgate.report.html_run import render_run_html
            from perfgate.storage.gpu_table import read_gpu_table

            return render_run_html(run, measured_roofs(run, read_gpu_table()))
        case Form.JSON:
            from perfgate.storage.documents import render_run_json

            return render_run_json(run)
        case Form.MARKDOWN | Form.JUNIT | Form.CSV:
            raise ConfigurationError(
                f"a run has no form {form}: it was not judged",
                hint=f"a run has {', '.join(RUN_FORMS)}; judge it with perfgate compare BASE RUN --json",
            )
        case _:
            assert_never(form)
