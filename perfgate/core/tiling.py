"""How a matrix product is cut for the SMs: the tile that a library would take, and how tiles fill the machine.

A library has kernels for many tiles and takes the one that it expects to be fastest; so does this model.
The two constants are fitted to cuBLAS on an H200 (docs/figures/estimates.md says how well they hold).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfgate.core.case import MemoryLevel, Work
from perfgate.core.caveat import Caveat
from perfgate.core.estimate import LAUNCH_S, checked_sizes, known_memory_roof
from perfgate.core.prediction import Term, Waves
from perfgate.core.report import Bound
from perfgate.core.roofs import Roofs

# Output tile of one thread block: what cuBLAS and CUTLASS choose for large products on tensor cores and on CUDA cores.
TENSOR_TILE = (128, 256)
VECTOR_TILE = (128, 128)
_TENSOR_TILES = (TENSOR_TILE, (192, 192), (128, 128), (64, 128), (64, 64), (32, 128), (32, 64), (16, 64))
_VECTOR_TILES = (TENSOR_TILE, VECTOR_TILE, (64, 256), (64, 128), (64, 64), (32, 128), (32, 64))

# A step of K costs a tile its products and, not wholly hidden, the loads of its rows and columns: rows x columns
# + 20 (rows + columns). A tile of 64 x 64 then runs at 0.76 of 128 x 256; cuBLAS: 0.77 (FP32).
_OPERANDS = 20


def _cost(rows: int, columns: int) -> float:
    return rows * columns + _OPERANDS * (rows + columns)


_FULL_COST = _cost(*TENSOR_TILE) / math.prod(TENSOR_TILE)
# First operands in and last tile out, which nothing overlaps: two trips to memory and the barriers between.
RAMP_S = 2e-6
_SPLITS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_LEAST_SPLIT_K = 256
_ACCUMULATOR_BYTES = 4
# From this share of the SMs' time on a product is said to fill the machine.
FULL = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How a product is cut, and what that costs beside its compute and memory terms.

    Attributes:
        waves: None for a vector against a matrix, which is not tiled, and where the SM count is unknown.
        terms: what does not overlap.
    """

    waves: Waves | None
    terms: tuple[Term, ...]


def best_tiling(
    products: Sequence[tuple[int, int]],
    k: int,
    *,
    work: Work,
    roofs: Roofs,
    tile: tuple[int, int] | None = None,
    may_split: bool = False,
) -> Tiling:
    """Return the fastest tiling of products that run together.

    Args:
        products: rows and columns of each.
        k: common inner size.
        work: of all of them.
        roofs: of the GPU.
        tile: rows and columns where they are given; then K is not split.
        may_split: whether K may be split over SMs that would stay idle, and the parts added up after.

    Raises:
        ConfigurationError: the tile's sizes are not positive, or the memory roof is unknown.
    """
    if tile is not None:
        checked_sizes(tile_rows=tile[0], tile_columns=tile[1])
    outputs = sum(m * n for m, n in products)
    candidates = _candidates(products, k, work.pipe, roofs, tile, may_split)
    options = [_tiling(waves, outputs, roofs) for waves in candidates]
    if not options:
        return _tiling(None, outputs, roofs)
    return min(options, key=lambda one: _time_s(one, work, roofs))


def _candidates(
    products: Sequence[tuple[int, int]],
    k: int,
    pipe: str | None,
    roofs: Roofs,
    tile: tuple[int, int] | None,
    may_split: bool,
) -> Iterator[Waves]:
    is_vector = all(min(one) == 1 for one in products)
    if not roofs.sm_count or (is_vector and tile is None):
        return
    known = _TENSOR_TILES if "-tensor" in (pipe or "") else _VECTOR_TILES
    tiles = (tile,) if tile is not None else dict.fromkeys(one for pair in known for one in (pair, pair[::-1]))
    outputs = sum(m * n for m, n in products)
    for rows, columns in tiles:
        count = sum(-(-m // rows) * -(-n // columns) for m, n in products)
        # No tile is better than the one that roofs are measured with.
        cost = max(_cost(rows, columns), _FULL_COST * rows * columns)
        share = outputs * _FULL_COST / (count * cost)
        splits = (1, *_SPLITS) if may_split and tile is None and count < roofs.sm_count else (1,)
        for split in splits:
            if split == 1 or k // split >= _LEAST_SPLIT_K:
                yield Waves(
                    tile_m=rows,
                    tile_n=columns,
                    tiles=count * split,
                    sm_count=roofs.sm_count,
                    splits=split,
                    tile_share=share,
                )


def _tiling(waves: Waves | None, outputs: int, roofs: Roofs) -> Tiling:
    ramp = Term(
        name="ramp",
        time_s=RAMP_S,
        formula="first operands in, last tile out, on cuBLAS",
        bound=Bound.LATENCY,
        overlaps=False,
    )
    if waves is None or waves.splits == 1:
        return Tiling(waves=waves, terms=(ramp,))
    launch_s = LAUNCH_S if roofs.launch_s is None else roofs.launch_s
    memory_per_s = known_memory_roof(roofs, MemoryLevel.DRAM).best_per_s or 0.0
    parts_bytes = waves.splits * outputs * _ACCUMULATOR_BYTES
    added = Term(
        name="split",
        time_s=launch_s + RAMP_S + parts_bytes / memory_per_s,
        formula=f"one more kernel adds {waves.splits} parts of K",
        bound=Bound.LATENCY,
        overlaps=False,
    )
    return Tiling(waves=waves, terms=(ramp, added))


def _time_s(tiling: Tiling, work: Work, roofs: Roofs) -> tuple[float, float]:
    """Predicted time as far as the tiling decides it; among equals the one that computes least long."""
    compute, memory = roofs.compute_roof(work.pipe), known_memory_roof(roofs, work.memory_level)
    rate = compute.best_per_s if compute is not None else None
    compute_s = work.work_flop / (rate * tiling.waves.rate_share) if rate and tiling.waves is not None else 0.0
    memory_s = work.moved_bytes / memory.best_per_s if memory.best_per_s else 0.0
    return max(compute_s, memory_s) + sum(term.time_s for term in tiling.terms), compute_s


def wave_caveats(waves: Waves | None) -> tuple[Caveat, ...]:
    """Return a caveat where the last wave leaves a tenth of the SMs' time unused."""
    if waves is None or waves.factor >= FULL:
        return ()
    message = (
        f"{waves.tiles} tiles of {waves.tile_m}x{waves.tile_n} on {waves.sm_count} SMs use {waves.factor:.0%} of "
        f"{waves.waves} wave{'s' if waves.waves > 1 else ''}"
    )
    return (
        Caveat(
            code="wave-quantisation", message=message, remedy="smaller tiles, split-K or stream-K fill the last wave"
        ),
    )
