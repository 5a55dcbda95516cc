"""Hidden: what ncu looks at. Reads an order from a file, executes each case once, tells which."""

import json
from pathlib import Path

import click


@click.command(hidden=True)
@click.argument("order", type=click.Path(path_type=Path))
@click.argument("told", type=click.Path(path_type=Path))
def command(order: Path, told: Path) -> int:
    """Execute the cases that ORDER names once under a profiler and write to TOLD which were."""
    from perfgate.core.codec import decode
    from perfgate.measure.order import LaunchOrder
    from perfgate.workflow.profiling import profile_cases

    profile_cases(decode(LaunchOrder, json.loads(order.read_text(encoding="utf-8"))), told)
    return 0
