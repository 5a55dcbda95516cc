"""``perfgate baseline update``: a session is measured, or taken from a run document, and accepted."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfgate.cli.options import (
    Measuring,
    baseline_option,
    measuring_options,
    policy_option,
    view_options,
)
from perfgate.errors import ConfigurationError

if TYPE_CHECKING:
    from perfgate.workflow.accepting import Accepted


@click.command()
@measuring_options
@baseline_option
@policy_option
@click.option("--from", "from_run", type=click.Path(path_type=Path), metavar="RUN.json", help="Accept this run.")
@click.option("--reason", required=True, metavar="TEXT", help="Why the baseline changes; stored.")
@click.option("--replace", "replaces", is_flag=True, help="Drop the earlier sessions of this chip.")
@click.option("--prune", type=int, metavar="N", help="Keep the newest N sessions of every chip, and its first.")
@click.option("--force", metavar="TEXT", help="Why doubts about the run are overridden; stored with them.")
@click.option("--runner", metavar="LABEL", help="Label of the runner; stored.")
@click.option("--actor", metavar="NAME", help="Who accepts it; stored.")
@view_options
def command(
    *,
    measuring: Measuring,
    baseline: Path | None,
    policy: Path | None,
    from_run: Path | None,
    reason: str,
    replaces: bool,
    prune: int | None,
    force: str | None,
    runner: str | None,
    actor: str | None,
    as_json: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Measure this GPU (12 launches) and add the session to its baseline, or make one.

    With --case only those rows of this chip's newest session are refreshed. Refused where the machine
    was busy, throttled or unsettled, or a case got slower; --force overrides that with a reason.
    """
    from perfgate.cli.progress import TerminalProgress
    from perfgate.cli.view import show
    from perfgate.storage.documents import read_run, render_baseline_json
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.accepting import Terms, accepted
    from perfgate.workflow.checking import known_plans
    from perfgate.workflow.devices import opened_device
    from perfgate.workflow.measuring import measured

    place = baseline or Path("baselines")
    if measuring.inject:
        raise ConfigurationError("an injected run cannot become a baseline", hint="leave --inject away")
    _refuse_host_name(runner)
    terms = Terms(
        reason=reason,
        force=force,
        replaces=replaces,
        cases=measuring.cases,
        keeps=prune,
        runner=runner,
        actor=actor,
        policy=read_policy(policy, Path.cwd()),
    )
    if from_run is not None:
        run = read_run(from_run)
    else:
        opened = opened_device(measuring.device)
        selection = measuring.selection(opened)
        count = terms.policy.baseline_launches if measuring.launches is None else measuring.launches
        plans = known_plans(place, opened.gpu)
        run = measured(opened, selection, count, TerminalProgress(quiet=quiet), wait=measuring.wait, plans=plans)
    result = accepted(run, place, terms)
    if as_json:
        show(render_baseline_json(result.baseline))
    elif not quiet:
        _show(result, no_color=no_color)
    return 0


def _refuse_host_name(runner: str | None) -> None:
    """Refuse the name of this machine as its label: baselines are public, and name no host."""
    import socket

    if runner is not None and runner.casefold() in (socket.gethostname().casefold(), socket.getfqdn().casefold()):
        raise ConfigurationError(
            "--runner is the name of this host, which no document holds", hint="give a label, such as gpu-h200"
        )


def _show(result: "Accepted", *, no_color: bool) -> None:
    from perfgate.cli.view import current_view, show
    from perfgate.core.baseline_change import baseline_difference
    from perfgate.report.baseline_text import render_baseline, render_baseline_change
    from perfgate.report.sentences import counted, difference_text

    view = current_view(no_color=no_color)
    sessions = counted(len(result.baseline.sessions), "session", "sessions")
    done = "made" if result.before is None else "updated"
    show(f"{done} {result.path}: {sessions} of {result.baseline.gpu.name}")
    if result.nearest is not None:
        differences = ", ".join(difference_text(one) for one in result.identity)
        show(f"{result.nearest.path} stays as it is: it is of another GPU: {differences}")
    if result.conditions:
        show(f"since the session before: {', '.join(difference_text(one) for one in result.conditions)}")
    if result.before is None:
        show(render_baseline(result.baseline, width=view.width, color=view.color, unicode=view.unicode))
    else:
        difference = baseline_difference(result.before, result.baseline)
        show(render_baseline_change(difference, width=view.width, color=view.color, unicode=view.unicode))
