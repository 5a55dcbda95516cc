"""``perfgate calibrate``: what this machine can detect."""

from pathlib import Path

import click

from perfgate.cli.options import (
    Measuring,
    baseline_option,
    measuring_options,
    policy_option,
    view_options,
)


@click.command()
@measuring_options
@baseline_option
@policy_option
@click.option("--sessions", type=int, default=3, show_default=True, metavar="N", help="Sessions to measure.")
@click.option("--pause", type=float, default=60.0, show_default=True, metavar="S", help="Rest between them [s].")
@click.option(
    "--from", "from_runs", multiple=True, type=click.Path(path_type=Path), metavar="RUN.json", help="Use these runs."
)
@click.option("--write", is_flag=True, help="Store the margins in the baseline of this GPU.")
@view_options
def command(
    *,
    measuring: Measuring,
    baseline: Path | None,
    policy: Path | None,
    sessions: int,
    pause: float,
    from_runs: tuple[Path, ...],
    write: bool,
    as_json: bool,
    quiet: bool,
    no_color: bool,
) -> int:
    """Measure sessions of unchanged code (A/A) and say what this machine can detect.

    Prints noise by level, the false-alarm rate, the smallest change that a check finds in 99 of 100
    cases, and proposed margins; exits 2 when the policy asks for margins below what the machine supports.
    """
    import json

    from perfgate.cli.progress import TerminalProgress
    from perfgate.cli.view import current_view, show
    from perfgate.core.codec import encode
    from perfgate.errors import ConfigurationError
    from perfgate.report.calibration_text import render_calibration
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.calibrating import calibrated_from, measured_sessions, read_sessions, store_margins
    from perfgate.workflow.devices import baseline_place, opened_device

    effective = read_policy(policy, Path.cwd())
    listener = TerminalProgress(quiet=quiet)
    if from_runs:
        runs, place = read_sessions(from_runs), baseline or Path("baselines")
    else:
        opened = opened_device(measuring.device)
        place = baseline_place(baseline, opened)
        selection = measuring.selection(opened)
        runs = measured_sessions(
            opened,
            selection,
            sessions=sessions,
            launches=measuring.launches or effective.baseline_launches,
            pause_s=pause,
            place=place,
            listener=listener,
            wait=measuring.wait,
        )
    result = calibrated_from(runs, effective, seed=measuring.seed or 0)
    for doubt in result.doubts:
        listener.notices(doubt)
    if as_json:
        show(json.dumps(encode(result.found), indent=2))
    elif not quiet:
        view = current_view(no_color=no_color)
        show(
            render_calibration(
                result.found,
                device_kind=runs[0].device_kind,
                width=view.width,
                color=view.color,
                unicode=view.unicode,
            )
        )
    if result.refused:
        raise ConfigurationError(
            "; ".join(one.message for one in result.refused),
            hint="; ".join(dict.fromkeys(one.remedy for one in result.refused)),
        )
    if write:
        listener.notices(f"margins stored in {store_margins(place, runs, result.found)}")
    return 0
