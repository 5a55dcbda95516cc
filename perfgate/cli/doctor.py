"""``perfgate doctor``: what works here."""

import click

from perfgate.cli.options import device_option, view_options


@click.command()
@device_option
@view_options
def command(*, device: str, as_json: bool, quiet: bool, no_color: bool) -> int:
    """Look at GPU, driver, NVML, compiler and permissions; say what to do about what does not work.

    Exits 0 when a check can run, 5 when it cannot.
    """
    import json

    from perfgate.cli.view import current_view, show
    from perfgate.core.codec import encode
    from perfgate.core.finding import exit_code
    from perfgate.report.doctor_text import render_findings
    from perfgate.workflow.diagnosing import findings

    found = findings(device)
    if as_json:
        show(json.dumps(encode(found), indent=2))
    elif not quiet:
        view = current_view(no_color=no_color)
        show(render_findings(found, width=view.width, color=view.color, unicode=view.unicode))
    return int(exit_code(found))
