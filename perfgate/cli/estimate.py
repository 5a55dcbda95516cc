"""``perfgate estimate KIND``: predicted time, bound, intensity and ridge point, from a datasheet or a run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfgate.cli.quantities import Size, Time

if TYPE_CHECKING:
    from perfgate.cli.machines import Machine
    from perfgate.core.estimate import Prediction
    from perfgate.core.roofs import Roofs
    from perfgate.core.transfer import Link

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_DTYPES = "fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4"
_dtype = click.option("--dtype", default="bf16", show_default=True, help=f"Element type: {_DTYPES}.")
_batch = click.option("--batch", type=Size(), default=1, show_default=True, help="Independent copies.")
_tile = click.option("--tile", nargs=2, type=Size(), default=None, help="Rows and columns of an output tile.")
_COMMON = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout."),
    click.option("--no-color", is_flag=True, help="No colours."),
)


def _size(name: str, help_text: str, default: int | None = None) -> Decorator:
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


def _kernel(name: str, *options: Decorator) -> Decorator:
    """Register a function from roofs and sizes to a prediction as ``perfgate estimate NAME``."""

    def register(predict: Callable[..., "Prediction"]) -> Callable[..., "Prediction"]:
        def on_machine(machine: "Machine", **sizes: Any) -> "Prediction":
            return predict(machine.roofs, **sizes)

        on_machine.__doc__ = predict.__doc__
        time = click.option("--time", type=Time(), default=None, help="A measured time, to compare: 1ms.")
        return _on_machines(name, *options, time)(on_machine)

    return register


def _on_machines(name: str, *options: Decorator) -> Decorator:
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


def _linked(name: str, *options: Decorator) -> Decorator:
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


@_kernel(
    "gemm",
    _size("m", "Rows of A and C (tokens)."),
    _size("n", "Columns of B and C."),
    _size("k", "Columns of A, rows of B."),
    _dtype,
    click.option("--out-dtype", default=None, help="Element type of C, that of A and B by default."),
    click.option("--beta", is_flag=True, help="C is read too: C = A B + beta C."),
    _batch,
    _tile,
)
def _gemm(roofs: "Roofs", m: int, n: int, k: int, **options: Any) -> "Prediction":
    """C[M,N] = A[M,K] B[K,N]: 2 M N K FLOP."""
    from perfgate.core.gemm import gemm

    return gemm(m, n, k, roofs=roofs, **options)


@_kernel(
    "grouped-gemm",
    _size("n", "Columns of each expert's weights."),
    _size("k", "Rows of each expert's weights."),
    click.option("--expert-tokens", default=None, help="Tokens of each expert: 100,0,25."),
    click.option("--tokens", type=Size(), default=None, help="Tokens, spread evenly; with --experts and --top-k."),
    click.option("--experts", type=Size(), default=8, show_default=True, help="Experts."),
    click.option("--top-k", type=Size(), default=1, show_default=True, help="Experts that a token goes to."),
    _dtype,
    _tile,
)
def _grouped_gemm(
    roofs: "Roofs",
    *,
    n: int,
    k: int,
    expert_tokens: str | None,
    tokens: int | None,
    experts: int,
    top_k: int,
    **options: Any,
) -> "Prediction":
    """Experts of a mixture: each its own tokens against its own K x N weights."""
    from perfgate.cli.machines import parse_counts
    from perfgate.core.gemm import balanced_tokens, grouped_gemm
    from perfgate.errors import ConfigurationError

    if (expert_tokens is None) == (tokens is None):
        raise ConfigurationError("give either --expert-tokens 100,0,25 or --tokens N")
    each = parse_counts(expert_tokens) if expert_tokens is not None else balanced_tokens(tokens or 0, experts, top_k)
    return grouped_gemm(each, n, k, roofs=roofs, **options)


@_kernel(
    "attention-prefill",
    _size("heads", "Query heads."),
    _size("queries", "New positions."),
    click.option("--keys", type=Size(), default=None, help="Positions attended to, as many as queries by default."),
    _size("head-dim", "Size of a head.", 128),
    click.option("--value-dim", type=Size(), default=None, help="Size of a value, that of a head by default."),
    click.option("--kv-heads", type=Size(), default=None, help="Key and value heads, as many as heads by default."),
    click.option("--causal", is_flag=True, help="A position attends to itself and those before it."),
    click.option("--log-sum-exp", is_flag=True, help="Written out too, for a backward pass."),
    _batch,
    _dtype,
)
def _attention_prefill(roofs: "Roofs", **options: Any) -> "Prediction":
    """Fused attention over many new positions: 2 P (d + dv) FLOP a head for P query-key pairs."""
    from perfgate.core.attention import attention_prefill

    return attention_prefill(roofs=roofs, **options)


@_kernel(
    "attention-decode",
    _size("heads", "Query heads."),
    _size("context", "Positions in the cache."),
    _size("head-dim", "Size of a head.", 128),
    click.option("--kv-heads", type=Size(), default=None, help="Key and value heads: fewer than heads is GQA or MQA."),
    click.option("--latent", nargs=2, type=Size(), default=None, help="MLA: sizes of latent and rotary part, 512 64."),
    _size("new-tokens", "New positions a sequence.", 1),
    _batch,
    _dtype,
)
def _attention_decode(
    roofs: "Roofs", head_dim: int, kv_heads: int | None, latent: tuple[int, int] | None, **options: Any
) -> "Prediction":
    """Attention of few new positions against a cache: 4 N d FLOP a query head; MHA, GQA, MQA or MLA."""
    from perfgate.core.attention import attention_decode, attention_decode_latent

    if latent is not None:
        return attention_decode_latent(latent_dim=latent[0], rope_dim=latent[1], roofs=roofs, **options)
    return attention_decode(head_dim=head_dim, kv_heads=kv_heads, roofs=roofs, **options)


@_kernel(
    "elementwise",
    _size("count", "Elements."),
    _size("reads", "Arrays read.", 1),
    _size("writes", "Arrays written.", 1),
    _size("flop-per-element", "Operations on each element.", 1),
    _dtype,
)
def _elementwise(roofs: "Roofs", count: int, **options: Any) -> "Prediction":
    """An operation on each element: s N (reads + writes) bytes."""
    from perfgate.core.operators import elementwise

    return elementwise(count, roofs=roofs, **options)


@_kernel("reduction", _size("count", "Elements."), _size("partials", "Results written.", 1), _dtype)
def _reduction(roofs: "Roofs", count: int, **options: Any) -> "Prediction":
    """A sum or maximum: N - 1 FLOP, s N bytes."""
    from perfgate.core.operators import reduction

    return reduction(count, roofs=roofs, **options)


@_kernel(
    "softmax",
    _size("rows", "Rows."),
    _size("columns", "Columns."),
    click.option(
        "--algorithm",
        type=click.Choice(["on-chip", "online", "safe"]),
        default="online",
        show_default=True,
        help="Moves 2, 3 or 4 N elements.",
    ),
    _dtype,
)
def _softmax(roofs: "Roofs", rows: int, columns: int, algorithm: str, **options: Any) -> "Prediction":
    """A softmax of each row: 5 N FLOP, 2 to 4 s N bytes."""
    from perfgate.core.operators import SoftmaxAlgorithm, softmax

    return softmax(rows, columns, algorithm=SoftmaxAlgorithm(algorithm), roofs=roofs, **options)


@_kernel(
    "layernorm",
    _size("rows", "Rows."),
    _size("columns", "Columns."),
    click.option("--rms", is_flag=True, help="RMSNorm."),
    click.option("--saves-statistics", is_flag=True, help="Mean and deviation are written, for a backward pass."),
    _dtype,
)
def _layernorm(roofs: "Roofs", rows: int, columns: int, rms: bool, **options: Any) -> "Prediction":
    """LayerNorm or RMSNorm of each row: 8 N or 4 N FLOP, 2 s N bytes."""
    from perfgate.core.operators import Normalisation, layernorm

    kind = Normalisation.RMS if rms else Normalisation.LAYER
    return layernorm(rows, columns, normalisation=kind, roofs=roofs, **options)


@_kernel(
    "conv2d",
    _size("channels", "Input channels."),
    _size("height", "Rows of the image."),
    _size("width", "Columns of the image."),
    _size("out-channels", "Kernels."),
    _size("kernel", "Rows and columns of a kernel.", 3),
    _size("stride", "Step.", 1),
    _size("padding", "Rim of zeros.", 0),
    _size("groups", "Groups of channels.", 1),
    click.option("--im2col", is_flag=True, help="Patches are written out first."),
    _batch,
    _dtype,
)
def _conv2d(roofs: "Roofs", **options: Any) -> "Prediction":
    """A 2-D convolution as a matrix product."""
    from perfgate.core.operators import conv2d

    return conv2d(roofs=roofs, **options)


@_kernel(
    "access",
    _size("count", "Elements."),
    click.option(
        "--pattern",
        type=click.Choice(["coalesced", "offset", "stride", "gather"]),
        default="coalesced",
        show_default=True,
        help="Which element each thread reads.",
    ),
    _size("stride", "Distance of neighbouring reads, in elements.", 2),
    _size("element-size", "Bytes of an element.", 4),
    _size("fetch", "Bytes that memory moves at least.", 32),
)
def _access(roofs: "Roofs", *, count: int, pattern: str, stride: int, element_size: int, fetch: int) -> "Prediction":
    """A copy that reads in a pattern: what memory moves beside what was asked for."""
    from perfgate.core.access import AccessPattern, access

    return access(
        count,
        pattern=AccessPattern(pattern),
        stride=stride,
        element_size_bytes=element_size,
        fetch_bytes=fetch,
        roofs=roofs,
    )


@_on_machines(
    "serial",
    click.option("--step", "steps", multiple=True, metavar="ID=COUNT", help="An operation and how often; repeatable."),
)
def _serial(machine: "Machine", steps: Sequence[str]) -> "Prediction":
    """The launch and a chain of steps: shuffle=5, syncthreads=5, dram=2, ..."""
    from perfgate.cli.machines import parse_steps
    from perfgate.core.latency import serial
    from perfgate.errors import ConfigurationError

    if machine.clock_hz is None:
        raise ConfigurationError(f"the clock of {machine.roofs.gpu_name} is unknown: cycles cannot be converted")
    return serial(
        parse_steps(steps),
        clock_hz=machine.clock_hz,
        machine=machine.roofs.gpu_name,
        launch_s=machine.roofs.launch_s,
        run=machine.run,
    )


@_linked(
    "transfer",
    _size("size", "Bytes of one buffer."),
    _size("copies", "Receivers of each buffer.", 1),
    click.option("--multicast", is_flag=True, help="The switch copies: the bytes are sent once."),
    _size("items", "Buffers that one GPU sends.", 1),
    _size("senders", "GPUs that send to one receiver at once.", 1),
)
def _transfer(link: "Link", size: int, **options: Any) -> "Prediction":
    """Moving buffers over a link: T = latency + bytes / (efficiency x bandwidth)."""
    from perfgate.core.transfer import transfer

    return transfer(size, link, **options)


@_linked(
    "collective",
    click.option(
        "--kind",
        type=click.Choice(["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"]),
        default="all-reduce",
        show_default=True,
        help="What the ranks do together.",
    ),
    _size("size", "Bytes a rank; of the whole result for all-gather and reduce-scatter."),
    _size("ranks", "GPUs."),
    click.option(
        "--algorithm",
        type=click.Choice(["ring", "tree", "nvls"]),
        default="ring",
        show_default=True,
        help="Of an all-reduce.",
    ),
)
def _collective(link: "Link", kind: str, size: int, ranks: int, algorithm: str) -> "Prediction":
    """A collective of GPUs, each with one link into the switch."""
    from perfgate.core.transfer import Algorithm, Collective, collective

    return collective(Collective(kind), size, ranks, link, algorithm=Algorithm(algorithm))
