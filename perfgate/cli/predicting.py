"""How a function that predicts becomes ``perfgate estimate KIND``: its options, machines or links, and output."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfgate.cli.quantities import Size, Time

if TYPE_CHECKING:
    from perfgate.cli.machines import Machine
    from perfgate.core.prediction import Prediction

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_DTYPES = "fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4"
dtype_option = click.option("--dtype", default="bf16", show_default=True, help=f"Element type: {_DTYPES}.")
batch_option = click.option("--batch", type=Size(), default=1, show_default=True, help="Independent copies.")
tile_option = click.option("--tile", nargs=2, type=Size(), default=None, help="Rows and columns of an output tile.")
_COMMON = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout."),
    click.option("--no-color", is_flag=True, help="No colours."),
)


def size(name: str, help_text: str, default: int | None = None) -> Decorator:
    """A size option: required without a default."""
    shown = default is not None
    return click.option(
        f"--{name}", type=Size(), default=default, required=not shown, show_default=shown, help=help_text
    )


@click.group()
def command() -> None:
    """Predict times: T = launch + max(FLOP / compute roof, bytes / memory roof, exponentials / their rate).

    Name GPUs with --gpu (roofs of the datasheet) or a machine of your own with --run RUN.json (its
    measured roofs); several stand side by side. Sizes may be written 4096, 4Ki, 100MB or 1GiB.
    """


def kernel(name: str, *options: Decorator) -> Decorator:
    """Register a function from roofs and sizes to a prediction as ``perfgate estimate NAME``."""

    def register(predict: Callable[..., "Prediction"]) -> Callable[..., "Prediction"]:
        def on_machine(machine: "Machine", **sizes: Any) -> "Prediction":
            return predict(machine.sustained, **sizes)

        on_machine.__doc__ = predict.__doc__
        time = click.option("--time", type=Time(), default=None, help="A measured time, to compare: 1ms.")
        return on_machines(name, *options, time)(on_machine)

    return register


def on_machines(name: str, *options: Decorator) -> Decorator:
    """Register a function from a machine and sizes to a prediction as ``perfgate estimate NAME``."""

    def register(predict: Callable[..., "Prediction"]) -> Callable[..., "Prediction"]:
        def run_command(
            gpu: Sequence[str],
            run: Path | None,
            as_json: bool,
            no_color: bool,
            time: float | None = None,
            **sizes: Any,
        ) -> None:
            from perfgate.cli.machines import chosen_machines

            predictions = [predict(machine, **sizes) for machine in chosen_machines(gpu, run)]
            _show(predictions, measured_s=time, as_json=as_json, no_color=no_color)

        machine = (
            click.option("--gpu", multiple=True, metavar="NAME", help="A GPU of the table, by name; repeatable."),
            click.option("--run", type=click.Path(path_type=Path), default=None, help="A run: its measured roofs."),
        )
        return _registered(name, predict, run_command, (*options, *machine))

    return register


def linked(name: str, *options: Decorator) -> Decorator:
    """Register a function from a link and sizes to a prediction as ``perfgate estimate NAME``."""

    def register(predict: Callable[..., "Prediction"]) -> Callable[..., "Prediction"]:
        def run_command(link: Sequence[str], as_json: bool, no_color: bool, **sizes: Any) -> None:
            from perfgate.cli.machines import chosen_links

            predictions = [predict(one, **sizes) for one in chosen_links(link)]
            _show(predictions, measured_s=None, as_json=as_json, no_color=no_color)

        links = click.option("--link", multiple=True, metavar="ID", help="nvlink5, pcie5, ib-ndr, ...; repeatable.")
        return _registered(name, predict, run_command, (*options, links))

    return register


def _registered(
    name: str, predict: Callable[..., "Prediction"], run_command: Callable[..., None], options: Sequence[Decorator]
) -> Callable[..., "Prediction"]:
    run_command.__doc__ = predict.__doc__
    for option in reversed((*options, *_COMMON)):
        run_command = option(run_command)
    command.command(name)(run_command)
    return predict


def _show(predictions: Sequence["Prediction"], *, measured_s: float | None, as_json: bool, no_color: bool) -> None:
    import json

    from perfgate.cli.view import current_view, show
    from perfgate.report.estimate_text import predictions_document, render_predictions

    if as_json:
        show(json.dumps(predictions_document(predictions, measured_s), indent=2, ensure_ascii=False))
        return
    view = current_view(no_color=no_color)
    show(
        render_predictions(predictions, width=view.width, color=view.color, unicode=view.unicode, measured_s=measured_s)
    )
