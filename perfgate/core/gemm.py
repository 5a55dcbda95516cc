"""Matrix products: single, grouped (experts), and the sizes at which they stop being memory-bound."""

import math
from collections.abc import Sequence
from fractions import Fraction

from perfgate.core.case import Work
from perfgate.core.estimate import (
    checked_count,
    checked_dtype,
    checked_sizes,
    known_ridge,
    matrix_pipe,
    prediction,
)
from perfgate.core.peaks import DTYPE_BITS, element_bytes
from perfgate.core.prediction import Prediction, Threshold, Waves
from perfgate.core.roofs import Roofs
from perfgate.core.tiling import FULL, TENSOR_TILE, VECTOR_TILE, best_tiling, wave_caveats
from perfgate.errors import ConfigurationError


def gemm_work(
    m: int,
    n: int,
    k: int,
    *,
    dtype: str,
    pipe: str | None = None,
    out_dtype: str | None = None,
    beta: bool = False,
    batch: int = 1,
) -> Work:
    """Return the work of C = A B (+ beta C): 2 M N K FLOP; A and B read once, C written once.

    The 2 is a convention (one multiply and one add a term; exactly M N (2K - 1)).
    """
    out_dtype = out_dtype or dtype
    out_bytes = element_bytes(m * n, out_dtype) * batch
    inputs_bytes = (element_bytes(m * k, dtype) + element_bytes(k * n, dtype)) * batch
    return Work(
        work_flop=2 * m * n * k * batch,
        read_bytes=inputs_bytes + (out_bytes if beta else 0),
        write_bytes=out_bytes,
        dtype=dtype,
        pipe=pipe,
    )


def gemm(
    m: int,
    n: int,
    k: int,
    *,
    dtype: str,
    roofs: Roofs,
    out_dtype: str | None = None,
    beta: bool = False,
    batch: int = 1,
    tile: tuple[int, int] | None = None,
) -> Prediction:
    """Predict C[M,N] = A[M,K] B[K,N] (+ beta C).

    Raises:
        ConfigurationError: a size is not positive, a type is unknown or the GPU lacks it.
    """
    checked_sizes(m=m, n=n, k=k, batch=batch)
    pipe = matrix_pipe(dtype, roofs)
    out_dtype = checked_dtype(out_dtype or dtype)
    work = gemm_work(m, n, k, dtype=dtype, pipe=pipe, out_dtype=out_dtype, beta=beta, batch=batch)
    tiling = best_tiling([(m, n)] * batch, k, work=work, roofs=roofs, tile=tile, may_split=True)
    tile_m, tile_n = tile or (TENSOR_TILE if "-tensor" in pipe else VECTOR_TILE)
    ridge = known_ridge(pipe, roofs)
    square = square_crossing(ridge, dtype, out_dtype, beta=beta)
    rows = row_crossing(ridge, n, k, dtype, out_dtype, beta=beta)
    thresholds = [
        Threshold(symbol="M = N = K", size=square, meaning="the roofs cross here: larger is compute-bound"),
        Threshold(
            symbol=f"M at N={n}, K={k}",
            size=rows,
            meaning="rows (tokens) against these weights from which the product is compute-bound",
        ),
    ]
    full = _filling_square(square, tile_m, tile_n, roofs.sm_count)
    if full is not None:
        thresholds.append(
            Threshold(
                symbol="M = N = K",
                size=full,
                meaning=f"first to keep the SMs {FULL:.0%} busy in {tile_m}x{tile_n} tiles",
            )
        )
    shape = f"{m} x {n} x {k}" + (f", batch {batch}" if batch > 1 else "")
    return prediction(
        kind="gemm",
        subject=f"{shape}, {_types(dtype, out_dtype)}",
        work=work,
        roofs=roofs,
        waves=tiling.waves,
        terms=tiling.terms,
        thresholds=tuple(thresholds),
        caveats=wave_caveats(tiling.waves),
    )


def grouped_gemm(
    expert_tokens: Sequence[int],
    n: int,
    k: int,
    *,
    dtype: str,
    roofs: Roofs,
    tile: tuple[int, int] | None = None,
) -> Prediction:
    """Predict the products of experts: m_e tokens of each against its own K x N weights.

    FLOP: sum 2 m_e N K. Bytes: the weights of every expert that has a token, and its tokens in and out.

    Raises:
        ConfigurationError: no expert has a token, a count is negative, a type is unknown or lacking.
    """
    checked_sizes(n=n, k=k)
    for tokens in expert_tokens:
        checked_count("tokens of an expert", tokens, least=0)
    touched = [tokens for tokens in expert_tokens if tokens]
    if not touched:
        raise ConfigurationError("grouped-gemm needs at least one expert with a token")
    pipe = matrix_pipe(dtype, roofs)
    works = [gemm_work(tokens, n, k, dtype=dtype) for tokens in touched]
    work = Work(
        work_flop=sum(one.work_flop for one in works),
        read_bytes=sum(one.read_bytes for one in works),
        write_bytes=sum(one.write_bytes for one in works),
        dtype=dtype,
        pipe=pipe,
    )
    tiling = best_tiling([(tokens, n) for tokens in touched], k, work=work, roofs=roofs, tile=tile)
    return prediction(
        kind="grouped-gemm",
        subject=f"{sum(touched)} tokens on {len(touched)} of {len(expert_tokens)} experts, {k} x {n}, {dtype.upper()}",
        work=work,
        roofs=roofs,
        waves=tiling.waves,
        terms=tiling.terms,
        thresholds=(
            Threshold(
                symbol="tokens an expert",
                size=row_crossing(known_ridge(pipe, roofs), n, k, dtype, dtype),
                meaning="from which its product is compute-bound; below, reading its weights decides",
            ),
        ),
        caveats=wave_caveats(tiling.waves),
    )


def balanced_tokens(tokens: int, experts: int, top_k: int) -> tuple[int, ...]:
    """Return tokens of each expert when ``tokens`` x ``top_k`` assignments spread evenly.

    Raises:
        ConfigurationError: a size is not positive, or a token is sent to more experts than there are.
    """
    checked_sizes(tokens=tokens, experts=experts, top_k=top_k)
    if top_k > experts:
        raise ConfigurationError(f"top-k {top_k} is more than the {experts} experts")
    each, rest = divmod(tokens * top_k, experts)
    return tuple(each + (index < rest) for index in range(experts))


def square_crossing(ridge: Fraction, dtype: str, out_dtype: str, *, beta: bool = False) -> int:
    """Return the smallest M = N = K whose intensity reaches the ridge point: 1.5 s R for one type of s bytes.

    Only where the roofs cross, not where the machine is full: 887 on an H100 in BF16 are 28 tiles for 132 SMs.
    """
    size, out_size = _sizes(dtype, out_dtype, beta=beta)
    return math.ceil(ridge * (2 * size + out_size) / 2)


def row_crossing(ridge: Fraction, n: int, k: int, dtype: str, out_dtype: str, *, beta: bool = False) -> int | None:
    """Return the smallest M whose product with K x N weights reaches the ridge point; None where none does.

    M* = 1 / (2 / (s R) - 1 / N - 1 / K) for one type of s bytes: 363 tokens on an H100 in BF16 for K = 7168, N = 2048.
    """
    size, out_size = _sizes(dtype, out_dtype, beta=beta)
    slack = 2 * n * k - ridge * (size * k + out_size * n)
    return math.ceil(ridge * size * k * n / slack) if slack > 0 else None


def _sizes(dtype: str, out_dtype: str, *, beta: bool) -> tuple[Fraction, Fraction]:
    return Fraction(DTYPE_BITS[dtype], 8), Fraction(DTYPE_BITS[out_dtype], 8) * (2 if beta else 1)


def _filling_square(crossing: int, tile_m: int, tile_n: int, sm_count: int | None) -> int | None:
    """Smallest multiple of the tile, at or beyond the crossing, whose last wave is nearly full."""
    if not sm_count:
        return None
    step = math.lcm(tile_m, tile_n)
    size = -(-crossing // step) * step
    while (
        Waves(tile_m=tile_m, tile_n=tile_n, tiles=-(-size // tile_m) * -(-size // tile_n), sm_count=sm_count).factor
        < FULL
    ):
        size += step
    return size


def _types(dtype: str, out_dtype: str) -> str:
    return dtype.upper() if dtype == out_dtype else f"{dtype.upper()} to {out_dtype.upper()}"
