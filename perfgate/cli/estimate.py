"""``perfgate estimate KIND``: predicted time, bound, intensity and ridge point, from a datasheet or a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from perfgate.cli.predicting import batch_option, command, dtype_option, kernel, linked, on_machines, size, tile_option
from perfgate.cli.quantities import Size

if TYPE_CHECKING:
    from perfgate.cli.machines import Machine
    from perfgate.core.prediction import Prediction
    from perfgate.core.roofs import Roofs
    from perfgate.core.transfer import Link

__all__ = ["command"]


@kernel(
    "gemm",
    size("m", "Rows of A and C (tokens)."),
    size("n", "Columns of B and C."),
    size("k", "Columns of A, rows of B."),
    dtype_option,
    click.option("--out-dtype", default=None, help="Element type of C, that of A and B by default."),
    click.option("--beta", is_flag=True, help="C is read too: C = A B + beta C."),
    batch_option,
    tile_option,
)
def _gemm(roofs: "Roofs", m: int, n: int, k: int, **options: Any) -> "Prediction":
    """C[M,N] = A[M,K] B[K,N]: 2 M N K FLOP."""
    from perfgate.core.gemm import gemm

    return gemm(m, n, k, roofs=roofs, **options)


@kernel(
    "grouped-gemm",
    size("n", "Columns of each expert's weights."),
    size("k", "Rows of each expert's weights."),
    click.option("--expert-tokens", default=None, help="Tokens of each expert: 100,0,25."),
    click.option("--tokens", type=Size(), default=None, help="Tokens, spread evenly; with --experts and --top-k."),
    click.option("--experts", type=Size(), default=8, show_default=True, help="Experts."),
    click.option("--top-k", type=Size(), default=1, show_default=True, help="Experts that a token goes to."),
    dtype_option,
    tile_option,
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


@kernel(
    "attention-prefill",
    size("heads", "Query heads."),
    size("queries", "New positions."),
    click.option("--keys", type=Size(), default=None, help="Positions attended to, as many as queries by default."),
    size("head-dim", "Size of a head.", 128),
    click.option("--value-dim", type=Size(), default=None, help="Size of a value, that of a head by default."),
    click.option("--kv-heads", type=Size(), default=None, help="Key and value heads, as many as heads by default."),
    click.option("--causal", is_flag=True, help="A position attends to itself and those before it."),
    click.option("--log-sum-exp", is_flag=True, help="Written out too, for a backward pass."),
    batch_option,
    dtype_option,
)
def _attention_prefill(roofs: "Roofs", **options: Any) -> "Prediction":
    """Fused attention over many new positions: 2 P (d + dv) FLOP a head for P query-key pairs."""
    from perfgate.core.attention import attention_prefill

    return attention_prefill(roofs=roofs, **options)


@kernel(
    "attention-decode",
    size("heads", "Query heads."),
    size("context", "Positions in the cache."),
    size("head-dim", "Size of a head.", 128),
    click.option("--kv-heads", type=Size(), default=None, help="Key and value heads: fewer than heads is GQA or MQA."),
    click.option("--latent", nargs=2, type=Size(), default=None, help="MLA: sizes of latent and rotary part, 512 64."),
    size("new-tokens", "New positions a sequence.", 1),
    batch_option,
    dtype_option,
)
def _attention_decode(
    roofs: "Roofs", head_dim: int, kv_heads: int | None, latent: tuple[int, int] | None, **options: Any
) -> "Prediction":
    """Attention of few new positions against a cache: 4 N d FLOP a query head; MHA, GQA, MQA or MLA."""
    from perfgate.core.attention import attention_decode, attention_decode_latent

    if latent is not None:
        return attention_decode_latent(latent_dim=latent[0], rope_dim=latent[1], roofs=roofs, **options)
    return attention_decode(head_dim=head_dim, kv_heads=kv_heads, roofs=roofs, **options)


@kernel(
    "elementwise",
    size("count", "Elements."),
    size("reads", "Arrays read.", 1),
    size("writes", "Arrays written.", 1),
    size("flop-per-element", "Operations on each element.", 1),
    dtype_option,
)
def _elementwise(roofs: "Roofs", count: int, **options: Any) -> "Prediction":
    """An operation on each element: s N (reads + writes) bytes."""
    from perfgate.core.operators import elementwise

    return elementwise(count, roofs=roofs, **options)


@kernel("reduction", size("count", "Elements."), size("partials", "Results written.", 1), dtype_option)
def _reduction(roofs: "Roofs", count: int, **options: Any) -> "Prediction":
    """A sum or maximum: N - 1 FLOP, s N bytes."""
    from perfgate.core.operators import reduction

    return reduction(count, roofs=roofs, **options)


@kernel(
    "softmax",
    size("rows", "Rows."),
    size("columns", "Columns."),
    click.option(
        "--algorithm",
        type=click.Choice(["on-chip", "online", "safe"]),
        default="online",
        show_default=True,
        help="Moves 2, 3 or 4 N elements.",
    ),
    dtype_option,
)
def _softmax(roofs: "Roofs", rows: int, columns: int, algorithm: str, **options: Any) -> "Prediction":
    """A softmax of each row: 5 N FLOP, 2 to 4 s N bytes."""
    from perfgate.core.operators import SoftmaxAlgorithm, softmax

    return softmax(rows, columns, algorithm=SoftmaxAlgorithm(algorithm), roofs=roofs, **options)


@kernel(
    "layernorm",
    size("rows", "Rows."),
    size("columns", "Columns."),
    click.option("--rms", is_flag=True, help="RMSNorm."),
    click.option("--saves-statistics", is_flag=True, help="Mean and deviation are written, for a backward pass."),
    dtype_option,
)
def _layernorm(roofs: "Roofs", rows: int, columns: int, rms: bool, **options: Any) -> "Prediction":
    """LayerNorm or RMSNorm of each row: 8 N or 4 N FLOP, 2 s N bytes."""
    from perfgate.core.operators import Normalisation, layernorm

    kind = Normalisation.RMS if rms else Normalisation.LAYER
    return layernorm(rows, columns, normalisation=kind, roofs=roofs, **options)


@kernel(
    "conv2d",
    size("channels", "Input channels."),
    size("height", "Rows of the image."),
    size("width", "Columns of the image."),
    size("out-channels", "Kernels."),
    size("kernel", "Rows and columns of a kernel.", 3),
    size("stride", "Step.", 1),
    size("padding", "Rim of zeros.", 0),
    size("groups", "Groups of channels.", 1),
    click.option("--im2col", is_flag=True, help="Patches are written out first."),
    batch_option,
    dtype_option,
)
def _conv2d(roofs: "Roofs", **options: Any) -> "Prediction":
    """A 2-D convolution as a matrix product."""
    from perfgate.core.operators import conv2d

    return conv2d(roofs=roofs, **options)


@kernel(
    "access",
    size("count", "Elements."),
    click.option(
        "--pattern",
        type=click.Choice(["coalesced", "offset", "stride", "gather"]),
        default="coalesced",
        show_default=True,
        help="Which element each thread reads.",
    ),
    size("stride", "Distance of neighbouring reads, in elements.", 2),
    size("element-size", "Bytes of an element.", 4),
    size("fetch", "Bytes that memory moves at least.", 32),
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


@on_machines(
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


@linked(
    "transfer",
    size("size", "Bytes of one buffer."),
    size("copies", "Receivers of each buffer.", 1),
    click.option("--multicast", is_flag=True, help="The switch copies: the bytes are sent once."),
    size("items", "Buffers that one GPU sends.", 1),
    size("senders", "GPUs that send to one receiver at once.", 1),
)
def _transfer(link: "Link", size: int, **options: Any) -> "Prediction":
    """Moving buffers over a link: T = latency + bytes / (efficiency x bandwidth)."""
    from perfgate.core.transfer import transfer

    return transfer(size, link, **options)


@linked(
    "collective",
    click.option(
        "--kind",
        type=click.Choice(["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"]),
        default="all-reduce",
        show_default=True,
        help="What the ranks do together.",
    ),
    size("size", "Bytes a rank; of the whole result for all-gather and reduce-scatter."),
    size("ranks", "GPUs."),
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
