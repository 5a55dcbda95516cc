"""``perfgate compare``: judge two documents."""

from pathlib import Path

import click

from perfgate.cli.options import policy_option, verbose_option, view_options


@click.command()
@click.argument("base", metavar="BASE", type=click.Path(path_type=Path))
@click.argument("candidate", metavar="CAND", type=click.Path(path_type=Path))
@policy_option
@view_options
@verbose_option
def command(
    *, base: Path, candidate: Path, policy: Path | None, as_json: bool, quiet: bool, verbose: bool, no_color: bool
) -> int:
    """Judge the run CAND against BASE, a baseline or another run. Needs no GPU."""
    from perfgate.cli.view import current_view, show
    from perfgate.report.terminal import render_terminal
    from perfgate.storage.documents import read_run, render_report_json
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.accepting import read_base
    from perfgate.workflow.checking import compared

    report = compared(read_base(base), base.name, read_run(candidate), read_policy(policy, Path.cwd()))
    if as_json:
        show(render_report_json(report))
    elif not quiet:
        view = current_view(no_color=no_color)
        show(render_terminal(report, width=view.width, color=view.color, unicode=view.unicode, verbose=verbose))
    return report.exit_code
