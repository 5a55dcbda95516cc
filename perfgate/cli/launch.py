"""Hidden: what a supervisor starts. Reads an order from a file, measures, writes the journal."""

import json
import os
import sys
from pathlib import Path

import click

from perfgate.errors import ExitCode
from perfgate.measure.orphan import PARENT_VARIABLE


@click.command(hidden=True)
@click.argument("order", required=False, type=click.Path(path_type=Path))
@click.argument("journal", required=False, type=click.Path(path_type=Path))
@click.option("--stand-by", is_flag=True, help="Import ahead, and take ORDER and JOURNAL from the input.")
def command(order: Path | None, journal: Path | None, *, stand_by: bool) -> int:
    """Carry out the launch that ORDER describes and tell of it in JOURNAL."""
    import signal

    from perfgate.core.codec import decode
    from perfgate.measure.order import LaunchOrder
    from perfgate.workflow.launch import run_launch
    from perfgate.workflow.standing_by import awaited_turn

    # A launch has nothing to tidy up: its journal is written, and its parent waits for it to end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if stand_by:
        turn = awaited_turn()
        if turn is None:
            return int(ExitCode.PASSED)
        order, journal = turn
    if order is None or journal is None:
        raise click.UsageError("ORDER and JOURNAL, or --stand-by")
    told = decode(LaunchOrder, json.loads(order.read_text(encoding="utf-8")))
    code = int(ExitCode.PASSED if run_launch(told, journal) else ExitCode.DEVICE)
    if PARENT_VARIABLE in os.environ:
        # The journal is written and the device closed: what frameworks do at exit takes a quarter of a second.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
