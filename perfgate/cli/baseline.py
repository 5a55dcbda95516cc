"""``perfgate baseline``: baselines as files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfgate.cli.baseline_files import merge, migrate
from perfgate.cli.baseline_update import command as update
from perfgate.cli.options import baseline_option, view_options
from perfgate.errors import ConfigurationError

if TYPE_CHECKING:
    from perfgate.core.baseline import Baseline


@click.group()
def command() -> None:
    """Update, show, compare, list, check and merge baselines: one file for one GPU identity."""


command.add_command(update, "update")
command.add_command(merge)
command.add_command(migrate)


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@view_options
def show(*, path: Path, as_json: bool, quiet: bool, no_color: bool) -> int:
    """Show one baseline file: its GPU, sessions and cases."""
    from perfgate.cli.view import show as print_text
    from perfgate.storage.documents import read_baseline, render_baseline_json

    baseline = read_baseline(path)
    if as_json:
        print_text(render_baseline_json(baseline))
    elif not quiet:
        _show_baseline(baseline, no_color=no_color)
    return 0


@command.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@view_options
def diff(*, before: Path, after: Path, as_json: bool, quiet: bool, no_color: bool) -> int:
    """Show what changed from the baseline file BEFORE to AFTER, and what moved beyond its margin."""
    import json

    from perfgate.cli.view import current_view
    from perfgate.cli.view import show as print_text
    from perfgate.core.baseline_change import baseline_difference
    from perfgate.core.codec import encode
    from perfgate.report.baseline_text import render_baseline_change
    from perfgate.storage.documents import read_baseline

    difference = baseline_difference(read_baseline(before), read_baseline(after))
    if as_json:
        print_text(json.dumps(encode(difference), indent=2))
    elif not quiet:
        view = current_view(no_color=no_color)
        print_text(render_baseline_change(difference, width=view.width, color=view.color, unicode=view.unicode))
    return 0


@command.command(name="list")
@baseline_option
@view_options
def list_command(*, baseline: Path | None, as_json: bool, quiet: bool, no_color: bool) -> int:
    """List the baselines of a folder."""
    import json

    from perfgate.cli.view import current_view
    from perfgate.cli.view import show as print_text
    from perfgate.core.codec import encode
    from perfgate.report.baseline_text import render_baseline_list
    from perfgate.storage.baselines import list_baselines

    stored = list_baselines(baseline or Path("baselines"))
    if as_json:
        rows = [
            {"file": one.path.name, "gpu": encode(one.baseline.gpu), "sessions": len(one.baseline.sessions)}
            for one in stored
        ]
        print_text(json.dumps(rows, indent=2))
    elif not quiet:
        view = current_view(no_color=no_color)
        rows_shown = [(one.path.name, one.baseline) for one in stored]
        print_text(render_baseline_list(rows_shown, width=view.width, color=view.color, unicode=view.unicode))
    return 0


@command.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all is well.")
def validate(*, paths: tuple[Path, ...], quiet: bool) -> int:
    """Check baseline files, or folders of them: schema, sense, physics. Exits 3 at the first that fails."""
    from perfgate.cli.view import show as print_text
    from perfgate.storage.baselines import list_baselines
    from perfgate.storage.documents import read_baseline
    from perfgate.workflow.accepting import refuse_implausible

    checked: list[Path] = []
    for place in paths or (Path("baselines"),):
        files = [one.path for one in list_baselines(place)] if place.is_dir() else [place]
        for path in files:
            refuse_implausible(read_baseline(path), str(path))
        checked.extend(files)
    if not checked:
        raise ConfigurationError("no baseline to validate", hint="name a file or folder")
    if not quiet:
        print_text("\n".join(f"{path}: valid" for path in checked))
    return 0


def _show_baseline(baseline: "Baseline", *, no_color: bool) -> None:
    from perfgate.cli.view import current_view
    from perfgate.cli.view import show as print_text
    from perfgate.report.baseline_text import render_baseline

    view = current_view(no_color=no_color)
    print_text(render_baseline(baseline, width=view.width, color=view.color, unicode=view.unicode))
