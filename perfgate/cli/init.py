"""``perfgate init``: what a repository needs to gate its own kernels."""

from pathlib import Path

import click

_KERNELS_SHOWN = 8


@click.command()
def command() -> int:
    """Write a policy, an example suite and a workflow into this repository; files that exist are kept."""
    from perfgate.cli.view import show
    from perfgate.workflow.initialising import initialised

    done = initialised(Path.cwd())
    lines = [f"wrote {name}" for name in done.written] + [f"kept {name}: it exists" for name in done.kept]
    if done.kernels:
        more = len(done.kernels) - _KERNELS_SHOWN
        shown = [f"  {one}" for one in done.kernels[:_KERNELS_SHOWN]] + ([f"  and {more} more"] if more > 0 else [])
        lines += ["", 'kernels here that a suite can name (extern "C"):', *shown]
    lines += [
        "",
        "Put your kernels into benchmarks/suite.py, then:",
        "  perfgate run run.json                      # measures them once",
        f"  perfgate check --against {done.base} --control   # both sides, the same or not",
    ]
    show("\n".join(lines))
    return 0
