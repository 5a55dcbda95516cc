"""``perfgate fleet``: every GPU of many machines, judged by its baseline and by its peers."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfgate.cli.fleet_measuring import FleetMeasuring, fleet_measuring_options
from perfgate.cli.options import baseline_option, policy_option, view_options

if TYPE_CHECKING:
    from perfgate.workflow.fleet_judging import FleetInput, JudgedFleet


@click.group()
def command() -> None:
    """Measure every GPU of a Ray cluster, or judge a folder of runs: which of them is slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The judging options of a command, as they were given."""

    baseline: Path | None
    policy: Path | None
    labels: Path | None
    host_names: bool
    output: Path | None
    openmetrics: Path | None
    drain_list: Path | None
    as_json: bool
    no_color: bool

    def given(self, folder: Path) -> "FleetInput":
        """Return what is judged, and how."""
        from perfgate.storage.policy import read_policy
        from perfgate.workflow.fleet_judging import FleetInput, fleet_baselines, read_labels

        return FleetInput(
            folder=folder,
            policy=read_policy(self.policy, Path.cwd()),
            baselines=fleet_baselines(self.baseline),
            labels=read_labels(self.labels),
            shows_hosts=self.host_names,
        )

    def deliver(self, judged: "JudgedFleet", *, quiet: bool) -> int:
        """Show and write the result; return its exit code."""
        from perfgate.cli.view import current_view, show
        from perfgate.report.fleet_text import render_fleet
        from perfgate.storage.documents import render_fleet_json
        from perfgate.workflow.fleet_views import write_views

        write_views(judged, folder=self.output, openmetrics=self.openmetrics, drain_list=self.drain_list)
        if self.as_json:
            show(render_fleet_json(judged.report))
        elif not quiet:
            view = current_view(no_color=self.no_color)
            show(render_fleet(judged.report, width=view.width, color=view.color, unicode=view.unicode))
        return judged.report.exit_code


def judging_options(function: Callable[..., int]) -> Callable[..., int]:
    """How a fleet is judged, and which views of the result are written: given to the command as ``judging``."""
    names = [field.name for field in fields(Judging)]

    @functools.wraps(function)
    def bundled(**given: Any) -> int:
        return function(judging=Judging(**{name: given.pop(name) for name in names}), **given)

    wrapped: Callable[..., int] = bundled
    for option in reversed(
        (
            baseline_option,
            policy_option,
            click.option(
                "--labels",
                type=click.Path(path_type=Path),
                metavar="FILE.csv",
                help="Labels of nodes (columns node, rack, ...): a label whose GPUs are slow is named.",
            ),
            click.option("--host-names", is_flag=True, help="Name nodes by their host names, not by an alias."),
            click.option(
                "--output",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Folder for fleet-report.json, .html and .csv.",
            ),
            click.option(
                "--openmetrics",
                type=click.Path(path_type=Path),
                metavar="FILE.prom",
                help="Also as metrics, for the node exporter's textfile collector.",
            ),
            click.option(
                "--drain-list",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Also the host names of nodes with a slow, invalid or missing GPU, one a line.",
            ),
            view_options,
        )
    ):
        wrapped = option(wrapped)
    return wrapped


@command.command()
@click.argument("runs", type=click.Path(path_type=Path))
@judging_options
def judge(*, runs: Path, judging: Judging, quiet: bool) -> int:
    """Judge the runs of a folder: of `perfgate fleet run`, or one file a GPU written by `perfgate run` under srun.

    Exits 0 when every GPU is healthy, 1 when one is slow, 8 when one is invalid or missing.
    """
    from perfgate.workflow.fleet_judging import judged_fleet

    return judging.deliver(judged_fleet(judging.given(runs)), quiet=quiet)


@command.command()
@click.argument("runs", type=click.Path(path_type=Path))
@fleet_measuring_options
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def run(*, runs: Path, measuring: FleetMeasuring, quiet: bool) -> int:
    """Measure every GPU of a Ray cluster into the folder RUNS, one task a GPU."""
    from perfgate.errors import ExitCode

    manifest = measuring.measured(runs, quiet=quiet)
    return int(ExitCode.UNDECIDED if manifest.vacancies else ExitCode.PASSED)


@command.command()
@click.argument("runs", type=click.Path(path_type=Path))
@fleet_measuring_options
@click.option("--no-confirmation", is_flag=True, help="Do not measure slow GPUs again before they are accused.")
@judging_options
def check(*, runs: Path, measuring: FleetMeasuring, no_confirmation: bool, judging: Judging, quiet: bool) -> int:
    """Measure every GPU of a Ray cluster, judge them, and measure again those that are slow.

    A GPU is accused when it is slow both times. Exits 0 when every GPU is healthy, 1 when one is slow, 8 when one is
    invalid or missing.
    """
    from perfgate.workflow.fleet_checking import checked_fleet

    given = judging.given(runs)
    judged = checked_fleet(
        given,
        lambda folder, seats: measuring.measured(folder, quiet=quiet, only=seats, baselines=given.baselines),
        confirms=not no_confirmation,
    )
    return judging.deliver(judged, quiet=quiet)


@command.command()
@click.argument("runs", type=click.Path(path_type=Path))
@baseline_option
@policy_option
@click.option("--reason", required=True, metavar="TEXT", help="Why; stored with every session.")
@click.option("--force", metavar="TEXT", help="Accept runs with doubts, and why; stored.")
@click.option("--quiet", "-q", is_flag=True, help="No list.")
def baseline(
    *, runs: Path, baseline: Path | None, policy: Path | None, reason: str, force: str | None, quiet: bool
) -> int:
    """Add the healthy GPUs of a folder of runs to the baselines of their identities.

    A session for every chip: from several of them the margin between chips is learned. Slow GPUs are left out.
    """
    from perfgate.cli.view import show
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.fleet_accepting import accepted_fleet

    accepted = accepted_fleet(
        runs, baseline or Path("baselines"), policy=read_policy(policy, Path.cwd()), reason=reason, force=force
    )
    if not quiet:
        show("\n".join(accepted.lines) + "\n")
    return 0
