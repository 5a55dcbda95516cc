"""The folder of results: emptied first, every file whole, and never the reason for another verdict."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.cli.view import tell
from perfgate.core.run import Run
from perfgate.errors import OutputError

if TYPE_CHECKING:
    from perfgate.workflow.checking import CheckResult

# What perfgate writes there; anything else in the folder belongs to somebody and is not deleted.
# A file may be longer than a comment; GitHub shows a job summary up to a mebibyte.
MARKDOWN_BYTES = 900_000
RUN_FILE = "run.json"
CONFIRMATION_FILE = "confirmation.json"
BASE_FILE = "base.json"  # the base's side of check --against
REPORT_FILE = "report.json"
MARKDOWN_FILE = "report.md"
PAGE_FILE = "report.html"
ROOFLINE_FILE = "roofline.svg"
PROPOSED_FILE = "proposed-baseline.json"  # on the action's first run
_OWN = (
    RUN_FILE,
    CONFIRMATION_FILE,
    BASE_FILE,
    REPORT_FILE,
    MARKDOWN_FILE,
    PAGE_FILE,
    ROOFLINE_FILE,
    PROPOSED_FILE,
    ".gitignore",
)


def emptied_folder(folder: Path) -> Path:
    """Create the folder of results, or empty it of what perfgate wrote there before.

    Raises:
        OutputError: it cannot be created or written, or it holds files that are not perfgate's.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        strange = sorted(path.name for path in folder.iterdir() if path.name not in _OWN)
        if strange:
            raise OutputError(
                f"--output {folder} holds files that perfgate did not write: {', '.join(strange[:5])}",
                hint="name an empty folder",
            )
        for path in folder.iterdir():
            path.unlink()
        # Results are not source: they stay out of the commits of a repository that they are written into.
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"--output {folder} cannot be written: {error.strerror}", hint="name a folder that can"
        ) from error
    return folder


def delivered(folder: Path, result: "CheckResult") -> int:
    """Write the documents and renderings of a check and return its exit code.

    Results that cannot be written never change a verdict: they are an error of their own only where
    the check would have passed.
    """
    from perfgate.cli.main import print_error

    try:
        _write_results(folder, result)
    except OutputError as error:
        print_error(error)
        return result.report.exit_code or int(error.exit_code)
    return result.report.exit_code


def refuse_unwritable(path: Path) -> None:
    """Find out before anything is measured whether its document can be written.

    Raises:
        OutputError: it could not be.
    """
    folder = path.parent
    if path.is_dir():
        raise OutputError(f"{path} is a folder, not a file", hint="name a file in it")
    if not folder.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {folder}", hint="make the folder first")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path} cannot be written: no permission for {folder}", hint="name a folder that can")


def keep_interrupted(path: Path, run: Run | None) -> None:
    """Write what an interrupted session measured; say where."""
    from perfgate.cli.main import print_error
    from perfgate.storage.documents import write_run

    if run is None:
        return
    try:
        write_run(path, run)
    except OutputError as error:
        print_error(error)
    else:
        tell(f"perfgate: {len(run.launches)} launches are kept in {path}")


def _write_results(folder: Path, result: "CheckResult") -> None:
    from perfgate.report.html_page import render_html
    from perfgate.report.markdown import render_markdown
    from perfgate.report.roofline_chart import chart_of_report
    from perfgate.report.roofline_figure import render_roofline_svg
    from perfgate.storage.documents import write_report, write_run
    from perfgate.storage.files import write_text

    report = result.report
    runs = {RUN_FILE: result.run, CONFIRMATION_FILE: result.confirmation, BASE_FILE: result.base}
    for name, run in runs.items():
        if run is not None:
            write_run(folder / name, run)
    write_report(folder / REPORT_FILE, report)
    write_text(folder / MARKDOWN_FILE, render_markdown(report, limit_bytes=MARKDOWN_BYTES))
    write_text(folder / PAGE_FILE, render_html(report, run=result.run, history=result.history))
    if result.run is not None:
        write_text(folder / ROOFLINE_FILE, render_roofline_svg(chart_of_report(report)))
