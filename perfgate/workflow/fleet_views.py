"""The files that a judged fleet is written into."""

from pathlib import Path

from perfgate.report.fleet_files import render_drain_list, render_fleet_csv, render_openmetrics
from perfgate.report.fleet_page import render_fleet_html
from perfgate.storage.documents import render_fleet_json
from perfgate.storage.files import make_folder, write_text
from perfgate.workflow.fleet_judging import JudgedFleet


def write_views(judged: JudgedFleet, *, folder: Path | None, openmetrics: Path | None, drain_list: Path | None) -> None:
    """Write the views that were asked for; host names go into the drain list alone.

    Raises:
        OutputError: one cannot be written.
    """
    if folder is not None:
        make_folder(folder)
        write_text(folder / "fleet-report.json", render_fleet_json(judged.report))
        write_text(folder / "fleet-report.html", render_fleet_html(judged.report))
        write_text(folder / "fleet-report.csv", render_fleet_csv(judged.report))
    if openmetrics is not None:
        write_text(openmetrics, render_openmetrics(judged.report))
    if drain_list is not None:
        write_text(drain_list, render_drain_list(judged.report, judged.hosts))
