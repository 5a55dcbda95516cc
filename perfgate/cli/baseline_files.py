"""``perfgate baseline merge`` and ``migrate``: baselines as files that git joins and that grow older."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfgate.errors import ConfigurationError

if TYPE_CHECKING:
    from perfgate.core.baseline import Baseline

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("ours", type=_FILE)
@click.argument("theirs", type=_FILE)
@click.option("--output", "-o", type=_FILE, required=True, metavar="OUT", help="File to write; may be one of the two.")
@click.option("--base", type=_FILE, metavar="FILE", help="What both came from: sessions that a side removed stay away.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all is well.")
def merge(*, ours: Path, theirs: Path, output: Path, base: Path | None, quiet: bool) -> int:
    """Join the sessions of two baselines of one GPU.

    As a merge driver of git: perfgate baseline merge --quiet --base %O %A %B -o %A. When it fails, OUT
    stays as it is, and git reports a conflict.
    """
    from perfgate.cli.view import show
    from perfgate.core.baseline_change import merged
    from perfgate.report.sentences import counted
    from perfgate.storage.documents import read_baseline, render_baseline_json
    from perfgate.storage.files import write_text
    from perfgate.workflow.accepting import refuse_implausible

    joined = merged(read_baseline(ours), read_baseline(theirs), _ancestor(base))
    refuse_implausible(joined, f"{ours} and {theirs} together")
    # No lock: git runs this at the top of a repository, and the lock file would stay there.
    write_text(output, render_baseline_json(joined, str(output)))
    if not quiet:
        show(f"{output}: {counted(len(joined.sessions), 'session', 'sessions')} of {joined.gpu.name}")
    return 0


@click.command()
@click.argument("paths", nargs=-1, type=_FILE)
@click.option("--quiet", "-q", is_flag=True, help="Say nothing when all is well.")
def migrate(*, paths: tuple[Path, ...], quiet: bool) -> int:
    """Write baseline files, or folders of them, again in the newest format and in canonical order."""
    from perfgate.cli.view import show
    from perfgate.storage.baselines import list_baselines, rewritten_baseline

    places = paths or (Path("baselines"),)
    files = [
        file
        for place in places
        for file in ([one.path for one in list_baselines(place)] if place.is_dir() else [place])
    ]
    if not files:
        raise ConfigurationError("no baseline to migrate", hint="name a file or folder")
    for file in files:
        is_changed = rewritten_baseline(file)
        if not quiet:
            show(f"{file}: {'written in the newest format' if is_changed else 'already in the newest format'}")
    return 0


def _ancestor(path: Path | None) -> "Baseline | None":
    """Read what both sides came from; git gives an empty file where there was none."""
    from perfgate.storage.documents import read_baseline

    try:
        is_empty = path is None or path.stat().st_size == 0
    except OSError:
        is_empty = False  # reading names what is wrong
    return None if path is None or is_empty else read_baseline(path)
