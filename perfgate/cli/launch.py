"""Hidden: what a supervisor starts. Reads an order from a file, measures, writes the journal."""

import json
from pathlib import Path

import click

from perfgate.errors import ExitCode


@click.command(hidden=True)
@click.argument("order", type=click.Path(path_type=Path))
@click.argument("journal", type=click.Path(path_type=Path))
def command(order: Path, journal: Path) -> int:
    """Carry out the launch that ORDER describes and tell of it in JOURNAL."""
    import signal

    from perfgate.core.codec import decode
    from perfgate.measure.order import LaunchOrder
    from perfgate.workflow.launch import run_launch

    # A launch has nothing to tidy up: its journal is written, and its parent waits for it to end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    told = decode(LaunchOrder, json.loads(order.read_text(encoding="utf-8")))
    return int(ExitCode.PASSED if run_launch(told, journal) else ExitCode.DEVICE)
