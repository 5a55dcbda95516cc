"""``perfgate check``: the main job."""

from dataclasses import replace
from pathlib import Path

import click

from perfgate.cli.options import (
    Measuring,
    against_options,
    baseline_option,
    measuring_options,
    output_option,
    policy_option,
    verbose_option,
    view_options,
)
from perfgate.errors import ConfigurationError


@click.command()
@measuring_options
@baseline_option
@policy_option
@click.option(
    "--base-ref", metavar="REF", help="Read baseline and policy from this commit, so that a change cannot loosen them."
)
@against_options
@output_option
@view_options
@verbose_option
def command(
    *,
    measuring: Measuring,
    baseline: Path | None,
    policy: Path | None,
    base_ref: str | None,
    against: str | None,
    control: bool,
    build: str | None,
    output: Path,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> int:
    """Measure this GPU and judge it against the baseline of its identity.

    Exits 0 when nothing is slower, 1 when a case is, 4 when there is no baseline to compare with.
    """
    from perfgate.cli.progress import TerminalProgress
    from perfgate.cli.results import RUN_FILE, delivered, emptied_folder, keep_interrupted
    from perfgate.cli.view import current_view, show
    from perfgate.core.conclusion import recording_step
    from perfgate.core.verdict import CheckVerdict
    from perfgate.report.terminal import render_terminal
    from perfgate.storage.documents import render_report_json
    from perfgate.storage.policy import read_policy
    from perfgate.workflow.against import AgainstBase
    from perfgate.workflow.base import Places, base_of_ref
    from perfgate.workflow.checking import Check, with_launches
    from perfgate.workflow.devices import baseline_place, opened_device
    from perfgate.workflow.gating import Gate
    from perfgate.workflow.measuring import InterruptedRunError

    _refuse_contradictions(base_ref=base_ref, against=against, control=control, build=build)
    here = None if base_ref else with_launches(read_policy(policy, Path.cwd()), measuring.launches)
    opened = opened_device(measuring.device)
    selection = measuring.selection(opened, policy)
    folder = emptied_folder(output)
    listener = TerminalProgress(quiet=quiet)
    try:
        if against is not None:
            contest = AgainstBase(
                device=opened,
                # Without --suite the base's policy says what is measured.
                selection=selection if measuring.suite else replace(selection, suite="", own_suites=()),
                revision=against,
                policy=policy,
                listener=listener,
                launches=measuring.launches,
                control=control,
                build=build,
                baseline_place=baseline_place(baseline, opened),
                wait=measuring.wait,
                folder=Path.cwd(),
            )
            result = contest.verdict()
        elif here is not None:
            check = Check(device=opened, selection=selection, policy=here, listener=listener, wait=measuring.wait)
            result = check.against(baseline_place(baseline, opened))
        else:
            gate = Gate(
                base=base_of_ref(Path.cwd(), base_ref or ""),
                places=Places(working=Path.cwd(), baseline=baseline, policy=policy),
                device=opened,
                selection=selection,
                suites=measuring.suite,
                listener=listener,
                launches=measuring.launches,
                wait=measuring.wait,
            )
            result = gate.verdict(first_run_passes=False).result
    except InterruptedRunError as error:
        keep_interrupted(folder / RUN_FILE, error.run)
        raise
    if as_json:
        show(render_report_json(result.report))
    else:
        shown = result.report
        if against is None and shown.verdict in (CheckVerdict.NO_BASELINE, CheckVerdict.NOT_COMPARABLE):
            # As this person called it; the documents name none of their places.
            shared = _shared_options(measuring, baseline)
            shown = replace(shown, next_step=recording_step(shown, shared))
        view = current_view(no_color=no_color)
        show(render_terminal(shown, width=view.width, color=view.color, unicode=view.unicode, verbose=verbose))
    return delivered(folder, result)


def _refuse_contradictions(*, base_ref: str | None, against: str | None, control: bool, build: str | None) -> None:
    if against is not None and base_ref:
        raise ConfigurationError(
            "--against and --base-ref exclude each other", hint="--against reads the base's policy"
        )
    if against is None and (control or build is not None):
        raise ConfigurationError(f"{'--control' if control else '--build'} is for --against REF")


def _shared_options(measuring: Measuring, baseline: Path | None) -> tuple[str, ...]:
    """Return the options that a baseline has to be recorded with, where they are not the defaults."""
    # A UUID is not repeated: logs are public.
    device = measuring.device
    kept = device if "GPU-" not in device and "MIG-" not in device else "cuda:GPU-<uuid>"
    options = [] if device == "auto" else ["--device", kept]
    for name in measuring.suite:
        options += ["--suite", name]
    if baseline is not None:
        options += ["--baseline", str(baseline)]
    return tuple(options)
