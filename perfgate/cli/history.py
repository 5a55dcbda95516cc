"""``perfgate history``: what every case did over many sessions."""

from pathlib import Path

import click

from perfgate.cli.options import policy_option, verbose_option, view_options

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("places", nargs=-1, metavar="[FILE|FOLDER]...", type=_FILE)
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these cases (repeatable).")
@policy_option
@click.option("--svg", type=_FILE, metavar="FILE", help="Write the trends as a picture.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page.")
@view_options
@verbose_option
def command(
    *,
    places: tuple[Path, ...],
    cases: tuple[str, ...],
    policy: Path | None,
    svg: Path | None,
    html: Path | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> int:
    """Show the trend of every case over runs and baseline sessions: steps, and slow drift.

    Takes run documents, baselines, and folders of them; baselines/ by default. Exits 0 whatever it finds,
    since nothing is judged here, and 3 where a file was damaged: it is named, and the others are shown.
    """
    import json

    from perfgate.cli.results import refuse_unwritable
    from perfgate.cli.view import current_view, show, tell
    from perfgate.core.codec import encode
    from perfgate.errors import ExitCode
    from perfgate.report.history_text import render_history
    from perfgate.storage.files import write_text
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.trending import recalled

    for path in filter(None, (svg, html)):
        refuse_unwritable(path)
    found = recalled(places or (Path("baselines"),), read_policy(policy, Path.cwd()), cases)
    for message in found.damaged:
        tell(f"perfgate: error: {message}; left out")
    if not quiet:
        for message in found.set_aside:
            tell(f"perfgate: {message}; left out")
    if svg is not None:
        from perfgate.report.history_figure import render_history_svg

        write_text(svg, render_history_svg(found.chips))
    if html is not None:
        from perfgate.report.html_history import render_history_html

        write_text(html, render_history_html(found.chips))
    if as_json:
        show(json.dumps(encode(found), indent=2))
    elif not quiet:
        view = current_view(no_color=no_color)
        show(render_history(found.chips, width=view.width, color=view.color, unicode=view.unicode, verbose=verbose))
    return int(ExitCode.DOCUMENT if found.damaged else ExitCode.PASSED)
