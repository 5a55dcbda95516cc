"""Attention: prefill (many queries) and decode (few queries against a cache), with shared and latent keys."""

import math
from fractions import Fraction

from perfgate.core.case import Work
from perfgate.core.estimate import checked_dtype, checked_sizes, known_ridge, matrix_pipe, prediction
from perfgate.core.peaks import DTYPE_BITS, element_bytes
from perfgate.core.prediction import Prediction, Threshold
from perfgate.core.roofs import Roofs
from perfgate.errors import ConfigurationError


def attention_prefill(
    *,
    heads: int,
    queries: int,
    head_dim: int,
    dtype: str,
    roofs: Roofs,
    batch: int = 1,
    kv_heads: int | None = None,
    keys: int | None = None,
    value_dim: int | None = None,
    causal: bool = False,
    log_sum_exp: bool = False,
) -> Prediction:
    """Predict softmax(Q K^T) V over ``queries`` new positions, fused (the scores never leave the chip).

    P query-key pairs a head: Nq Nk in full; causal Nq Nk - Nq (Nq - 1) / 2, which is N (N + 1) / 2 for
    Nq = Nk = N. FLOP 2 B Hq P (d + dv); bytes s B (Hq Nq + Hkv Nk) (d + dv), and 4 B Hq Nq for the
    log-sum-exp that a backward pass needs; one exponential a pair, on units that may bound it.

    Raises:
        ConfigurationError: a size is not positive, heads are not a multiple of kv_heads, causal with
            fewer keys than queries, or a type that is unknown or lacking.
    """
    kv_heads, keys, value_dim = kv_heads or heads, keys or queries, value_dim or head_dim
    checked_sizes(batch=batch, heads=heads, kv_heads=kv_heads, queries=queries, keys=keys)
    checked_sizes(head_dim=head_dim, value_dim=value_dim)
    group = _group(heads, kv_heads)
    if causal and keys < queries:
        raise ConfigurationError(f"causal attention needs at least as many keys ({keys}) as queries ({queries})")
    pipe = matrix_pipe(dtype, roofs)
    pairs = queries * keys - (queries * (queries - 1) // 2 if causal else 0)
    widths = head_dim + value_dim
    work = Work(
        work_flop=2 * batch * heads * pairs * widths,
        read_bytes=element_bytes(batch * (heads * queries * head_dim + kv_heads * keys * widths), dtype),
        write_bytes=element_bytes(batch * heads * queries * value_dim, dtype)
        + (4 * batch * heads * queries if log_sum_exp else 0),
        dtype=dtype,
        pipe=pipe,
    )
    ridge = known_ridge(pipe, roofs)
    crossing = math.ceil(ridge * Fraction(DTYPE_BITS[dtype], 8) * (1 + Fraction(1, group)) / 2)
    if causal:
        crossing = math.ceil(ridge * Fraction(DTYPE_BITS[dtype], 8) * (1 + Fraction(1, group)) - 1)
    shape = f"{queries} queries, {keys} keys, {heads} heads" + (f" over {kv_heads}" if group > 1 else "")
    return prediction(
        kind="attention-prefill",
        subject=f"{'causal' if causal else 'full'}, {shape} of {head_dim}, batch {batch}, {dtype.upper()}",
        work=work,
        roofs=roofs,
        exponentials=batch * heads * pairs,
        thresholds=(
            Threshold(
                symbol="queries = keys",
                size=crossing,
                meaning=f"from which {'causal' if causal else 'full'} attention is compute-bound, at any head size",
            ),
        ),
    )


def attention_decode_work(
    *,
    heads: int,
    context: int,
    head_dim: int,
    dtype: str,
    pipe: str,
    batch: int = 1,
    kv_heads: int | None = None,
    value_dim: int | None = None,
    new_tokens: int = 1,
) -> Work:
    """Return the work of ``new_tokens`` queries a sequence against a cache of ``context`` positions.

    FLOP 2 B Hq t N (d + dv), which is 4 N d a query head; bytes s B Hkv N (d + dv) and the queries and
    outputs.

    Raises:
        ConfigurationError: a size is not positive, heads are not a multiple of kv_heads, or a type is unknown.
    """
    kv_heads, value_dim = kv_heads or heads, value_dim or head_dim
    checked_sizes(batch=batch, heads=heads, kv_heads=kv_heads, context=context, head_dim=head_dim)
    checked_sizes(value_dim=value_dim, new_tokens=new_tokens)
    _group(heads, kv_heads)
    widths, queries = head_dim + value_dim, batch * heads * new_tokens
    return _decode_work(
        flop=2 * queries * context * widths,
        read_elements=batch * kv_heads * context * widths + queries * head_dim,
        write_elements=queries * value_dim,
        dtype=dtype,
        pipe=pipe,
    )


def attention_decode(
    *,
    heads: int,
    context: int,
    head_dim: int,
    dtype: str,
    roofs: Roofs,
    batch: int = 1,
    kv_heads: int | None = None,
    value_dim: int | None = None,
    new_tokens: int = 1,
) -> Prediction:
    """Predict ``new_tokens`` queries a sequence against a cache of ``context`` positions (MHA, GQA, MQA).

    Intensity about 2 g t / s with g = Hq / Hkv: 1 for MHA in BF16, whatever batch and context.

    Raises:
        ConfigurationError: a size is not positive, heads are not a multiple of kv_heads, or a type is lacking.
    """
    kv_heads, value_dim = kv_heads or heads, value_dim or head_dim
    work = attention_decode_work(
        heads=heads,
        context=context,
        head_dim=head_dim,
        dtype=dtype,
        pipe=matrix_pipe(dtype, roofs),
        batch=batch,
        kv_heads=kv_heads,
        value_dim=value_dim,
        new_tokens=new_tokens,
    )
    group = _group(heads, kv_heads)
    named = "MHA" if group == 1 else "MQA" if kv_heads == 1 else f"GQA of {group}"
    return _decode(
        subject=f"{named}, {heads} heads of {head_dim}, context {context}, batch {batch}, {dtype.upper()}",
        work=work,
        exponentials=batch * heads * new_tokens * context,
        flop_per_element=Fraction(2 * group),
        dtype=dtype,
        roofs=roofs,
    )


def attention_decode_latent(
    *,
    heads: int,
    context: int,
    dtype: str,
    roofs: Roofs,
    batch: int = 1,
    latent_dim: int = 512,
    rope_dim: int = 64,
    new_tokens: int = 1,
) -> Prediction:
    """Predict decode with latent keys and values that all heads share (MLA, absorbed form).

    FLOP 2 B H t N (2 dc + dr); bytes s B N (dc + dr) and queries and outputs. With 128 heads, 512 + 64 and
    BF16 the intensity is about 242: near the ridge, so decode is not always memory-bound.

    Raises:
        ConfigurationError: a size is not positive, or a type is unknown or lacking.
    """
    checked_sizes(batch=batch, heads=heads, context=context, latent_dim=latent_dim, rope_dim=rope_dim)
    checked_sizes(new_tokens=new_tokens)
    read, attended = latent_dim + rope_dim, 2 * latent_dim + rope_dim
    return _decode(
        subject=f"MLA, {heads} heads on {latent_dim} + {rope_dim}, context {context}, batch {batch}, {dtype.upper()}",
        work=_decode_work(
            flop=2 * batch * heads * new_tokens * context * attended,
            read_elements=batch * context * read + batch * heads * new_tokens * read,
            write_elements=batch * heads * new_tokens * latent_dim,
            dtype=dtype,
            pipe=matrix_pipe(dtype, roofs),
        ),
        exponentials=batch * heads * new_tokens * context,
        flop_per_element=Fraction(2 * heads * attended, read),
        dtype=dtype,
        roofs=roofs,
    )


def _decode_work(*, flop: int, read_elements: int, write_elements: int, dtype: str, pipe: str) -> Work:
    checked_dtype(dtype)
    return Work(
        work_flop=flop,
        read_bytes=element_bytes(read_elements, dtype),
        write_bytes=element_bytes(write_elements, dtype),
        dtype=dtype,
        pipe=pipe,
    )


def _decode(
    *, subject: str, work: Work, exponentials: int, flop_per_element: Fraction, dtype: str, roofs: Roofs
) -> Prediction:
    ridge = known_ridge(matrix_pipe(dtype, roofs), roofs)
    needed = math.ceil(ridge * Fraction(DTYPE_BITS[dtype], 8) / flop_per_element)
    return prediction(
        kind="attention-decode",
        subject=subject,
        work=work,
        roofs=roofs,
        exponentials=exponentials,
        thresholds=(
            Threshold(
                symbol="new tokens a sequence",
                size=needed,
                meaning="from which decode is compute-bound (long context); batch and context do not move it",
            ),
        ),
    )


def _group(heads: int, kv_heads: int) -> int:
    if heads % kv_heads:
        raise ConfigurationError(f"heads ({heads}) must be a multiple of kv-heads ({kv_heads})")
    return heads // kv_heads
