"""``perfgate run``: measure only."""

from dataclasses import replace
from pathlib import Path

import click

from perfgate.cli.options import Measuring, measuring_options, view_options


@click.command()
@click.argument("run_file", metavar="RUN.json", type=click.Path(path_type=Path))
@measuring_options
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Sample as this baseline does (file or folder), so that the run can be judged by it; default as in check.",
)
@click.option(
    "--concurrency",
    type=click.Choice(["gpu", "node", "all"]),
    help="What else is measured at the same time, for runs that start together: nothing of this machine, its other "
    "GPUs, the whole fleet. Recorded; runs of different kinds are not compared.",
)
@view_options
def command(
    *,
    run_file: Path,
    measuring: Measuring,
    baseline: Path | None,
    concurrency: str | None,
    as_json: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Measure this GPU and write the run document RUN.json (gzipped where the name ends in .gz)."""
    from perfgate.cli.progress import TerminalProgress
    from perfgate.cli.results import keep_interrupted, refuse_unwritable
    from perfgate.cli.view import current_view, show
    from perfgate.core.policy import Policy
    from perfgate.storage.documents import render_run_json, write_run
    from perfgate.workflow.checking import known_plans
    from perfgate.workflow.devices import baseline_place, opened_device
    from perfgate.workflow.measuring import InterruptedRunError, measured

    refuse_unwritable(run_file)
    opened = opened_device(measuring.device)
    selection = measuring.selection(opened)
    count = Policy().launches if measuring.launches is None else measuring.launches
    plans = known_plans(baseline_place(baseline, opened), opened.gpu)
    try:
        run = measured(opened, selection, count, TerminalProgress(quiet=quiet), wait=measuring.wait, plans=plans)
    except InterruptedRunError as error:
        keep_interrupted(run_file, error.run)
        raise
    run = replace(run, environment=replace(run.environment, concurrency=concurrency))
    write_run(run_file, run)
    if as_json:
        show(render_run_json(run))
    elif not quiet:
        from perfgate.report.run_text import render_run

        view = current_view(no_color=no_color)
        show(render_run(run, width=view.width, color=view.color, unicode=view.unicode))
    return 0
