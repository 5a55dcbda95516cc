"""``perfgate roofline``: the roofs of a run or of a GPU of the table, and where each case sits."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from perfgate.cli.machines import Machine
    from perfgate.cli.view import View
    from perfgate.report.roofline_chart import RooflineChart

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--run", "run_path", type=click.Path(path_type=Path), default=None, help="A run: measured roofs and cases."
)
@click.option(
    "--gpu", multiple=True, metavar="NAME", help="A GPU of the table, by name: its roofs on paper; repeatable."
)
@click.option("--latencies", is_flag=True, help="Show latencies instead, published and measured.")
@click.option("--verify", is_flag=True, help="Compare declared FLOP and bytes with the GPU's counters (needs ncu).")
@click.option("--suite", multiple=True, metavar="NAME|FILE", help="With --verify: which cases; default: default.")
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="With --verify: only these (repeatable).")
@click.option("--device", default="auto", metavar="DEVICE", help="With --verify: auto, cuda, cuda:N, cuda:GPU-<uuid>.")
@click.option("--svg", type=_FILE, default=None, help="Write the picture of the first machine as SVG.")
@click.option("--png", type=_FILE, default=None, help="The same as PNG.")
@click.option("--html", type=_FILE, default=None, help="The same as a page of its own, with the text below.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
@click.option("--no-color", is_flag=True, help="No colours.")
def command(
    run_path: Path | None,
    gpu: Sequence[str],
    *,
    latencies: bool,
    verify: bool,
    suite: tuple[str, ...],
    cases: tuple[str, ...],
    device: str,
    svg: Path | None,
    png: Path | None,
    html: Path | None,
    as_json: bool,
    no_color: bool,
) -> None:
    """Show measured and theoretical roofs, ridge points, and where each case sits."""
    from perfgate.cli.machines import chosen_machines
    from perfgate.cli.view import current_view, show
    from perfgate.report.roofline_text import render_roofline_text

    view = current_view(no_color=no_color)
    if verify:
        _verify(device, suite, cases, run_path, view, as_json=as_json)
        return
    machines = chosen_machines(gpu, run_path)
    if latencies:
        for machine in machines:
            show(_latencies(machine, view.width, color=view.color, unicode=view.unicode))
        return
    charts = [_chart(machine) for machine in machines]
    _write_pictures(charts[0], svg=svg, png=png, html=html)
    if as_json:
        show(_json(machines, charts))
        return
    for chart in charts:
        show(render_roofline_text(chart, view.width) + "\n")


def _verify(
    selector: str, suite: tuple[str, ...], cases: tuple[str, ...], run_path: Path | None, view: "View", *, as_json: bool
) -> None:
    """Show declared work beside counters.

    Raises:
        ConfigurationError: a declaration is off, or nothing can be counted.
    """
    import json

    from perfgate.cli.machines import chosen_machines
    from perfgate.cli.options import Measuring
    from perfgate.cli.view import show
    from perfgate.core.codec import encode
    from perfgate.core.roofs import paper_roofs
    from perfgate.errors import ConfigurationError
    from perfgate.report.counters_text import render_counters
    from perfgate.storage.gpu_table import read_gpu_table
    from perfgate.workflow.devices import opened_device
    from perfgate.workflow.verifying import counted

    opened = opened_device(selector)
    selection = Measuring(device=selector, suite=suite, cases=cases, seed=0).selection(opened)
    roofs = chosen_machines((), run_path)[0].roofs if run_path else paper_roofs(opened.gpu, read_gpu_table())
    found = counted(opened, selection, roofs)
    if as_json:
        document = {"format": "perfgate.counters/1", "gpu": encode(opened.gpu), **encode(found)}
        show(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        show(
            render_counters(
                found.cases,
                gpu_name=opened.gpu.name,
                failures=found.failures,
                left_out=found.left_out,
                width=view.width,
                color=view.color,
                unicode=view.unicode,
            )
        )
    if found.faults:
        raise ConfigurationError(
            f"the declared work of {len(found.faults)} cases is not what they do:\n" + "\n".join(found.faults),
            hint="correct the case's Work, or its kernel; rates, intensities and bounds follow from it",
        )


def _chart(machine: "Machine") -> "RooflineChart":
    from perfgate.report.roofline_chart import chart_of_roofs, chart_of_run
    from perfgate.storage.gpu_table import read_gpu_table

    if machine.run is not None:
        return chart_of_run(machine.run, machine.roofs)
    table = read_gpu_table()
    sheet = next(one for one in table.gpus if one.name == machine.roofs.gpu_name)
    sources = [f"{key}: {table.sources[key]}" for key in sheet.sources]
    doubts = [f"from general knowledge or implied: {', '.join(sheet.unconfirmed)}"] if sheet.unconfirmed else []
    notes = [sheet.note] if sheet.note else []
    return chart_of_roofs(machine.roofs, tuple(notes + doubts + sources))


def _latencies(machine: "Machine", width: int, *, color: bool, unicode: bool) -> str:
    from perfgate.errors import ConfigurationError
    from perfgate.report.latency_text import render_latencies
    from perfgate.storage.gpu_table import read_latency_table

    if machine.clock_hz is None:
        raise ConfigurationError(f"the clock of {machine.roofs.gpu_name} is unknown: cycles cannot be converted")
    table = read_latency_table()
    return render_latencies(
        table, clock_hz=machine.clock_hz, run=machine.run, width=width, color=color, unicode=unicode
    )


def _write_pictures(chart: "RooflineChart", *, svg: Path | None, png: Path | None, html: Path | None) -> None:
    from perfgate.errors import OutputError

    try:
        if svg is not None:
            from perfgate.report.roofline_figure import render_roofline_svg

            svg.write_text(render_roofline_svg(chart), encoding="utf-8")
        if png is not None:
            from perfgate.report.roofline_figure import render_roofline_png

            png.write_bytes(render_roofline_png(chart))
        if html is not None:
            from perfgate.report.roofline_page import render_roofline_page

            html.write_text(render_roofline_page(chart), encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{error.filename} cannot be written: {error.strerror}", hint="name a file that can"
        ) from error


def _json(machines: "Sequence[Machine]", charts: "Sequence[RooflineChart]") -> str:
    import json

    from perfgate.core.codec import encode

    document = {
        "format": "perfgate.roofline/1",
        "machines": [
            {"roofs": encode(machine.roofs), "ridges": encode(chart.ridges), "cases": encode(chart.points + chart.rows)}
            for machine, chart in zip(machines, charts, strict=True)
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
