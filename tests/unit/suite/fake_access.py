"""The kernels of access.cu, onchip.cu and peer.cu in numpy, for FakeToolbox."""

from collections.abc import Callable

import numpy as np

from tests.unit.suite.fake_toolbox import Bind, _tally, random_bits, random_normal_patterns, tile_sums


def random_indices(seed: int, count: int, limit: int) -> np.ndarray:
    """index.cuh, for places 0 to count - 1."""
    return ((random_bits(seed, count) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32)


def strided(words: np.ndarray, *, width: int, offset: int, stride: int, count: int) -> np.ndarray:
    """Return ``count`` elements of ``width`` words, as access_copy reads them."""
    return words.reshape(-1, width)[offset + np.arange(count) * stride]


def round_robin_sums(sums: np.ndarray, tiles: int, blocks: int) -> np.ndarray:
    """Return the sum of the tiles t, t + blocks, ... below ``tiles`` for each block, tile t being t % len(sums)."""
    order = np.arange(tiles)
    totals = np.zeros(blocks, dtype=np.uint64)
    np.add.at(totals, order % blocks, sums[order % len(sums)].astype(np.uint64))
    return totals.astype(np.uint32)


def _copy(bind: Bind) -> None:
    source, target, offset, stride, count = bind.args
    width = int(bind.defines["WIDTH"])
    words = source.view(np.uint32)
    whole = words[: len(words) // width * width]
    found = strided(whole, width=width, offset=int(offset), stride=int(stride), count=int(count))
    target.view(np.uint32)[: found.size] = found.ravel()


def _gather(bind: Bind) -> None:
    source, indices, target, count = bind.args
    target.view(np.uint32)[: int(count)] = source.view(np.uint32)[indices.view(np.uint32)[: int(count)]]


def _indices(bind: Bind) -> None:
    target, count, seed, limit = bind.args
    target.view(np.uint32)[: int(count)] = random_indices(int(seed), int(count), int(limit))


def _check_strided(bind: Bind) -> None:
    target, count, width, offset, stride, seed, found = bind.args
    elements = -(-int(count) // int(width))
    last = (int(offset) + (elements - 1) * int(stride) + 1) * int(width)
    expected = strided(
        random_normal_patterns(int(seed), last),
        width=int(width),
        offset=int(offset),
        stride=int(stride),
        count=elements,
    )
    _tally(found, target.view(np.uint32)[: int(count)] != expected.ravel()[: int(count)])


def _check_gather(bind: Bind) -> None:
    target, count, seed, seed_indices, limit, found = bind.args
    places = random_indices(int(seed_indices), int(count), int(limit)).astype(np.int64)
    expected = random_normal_patterns(int(seed), int(limit))[places]
    _tally(found, target.view(np.uint32)[: int(count)] != expected)


def _tile_words(bind: Bind) -> int:
    return int(bind.defines["BLOCK"]) * int(bind.defines["UNROLL"]) * 4


def _l2(bind: Bind) -> None:
    source, partials, vectors, passes = bind.args
    sums = tile_sums(source.view(np.uint32)[: 4 * int(vectors)], _tile_words(bind))
    partials.view(np.uint32)[:] = round_robin_sums(sums, len(sums) * int(passes), bind.grid[0])


def _shared(bind: Bind) -> None:
    source, partials, passes = bind.args
    with np.errstate(over="ignore"):
        partials.view(np.uint32)[:] = tile_sums(source.view(np.uint32), _tile_words(bind)) * np.uint32(passes)


def _check_rereads(bind: Bind) -> None:
    partials, count, words, tile_words, tiles, times, seed, found = bind.args
    sums = tile_sums(random_normal_patterns(int(seed), int(words)), int(tile_words))
    with np.errstate(over="ignore"):
        expected = round_robin_sums(sums, int(tiles), int(count)) * np.uint32(times)
    _tally(found, partials.view(np.uint32)[: int(count)] != expected)


def _exchange(bind: Bind) -> None:
    sent, sent_to, fetched, fetched_to, _ = bind.args
    for source, target in ((sent, sent_to), (fetched, fetched_to)):
        target.view(np.uint32)[:] = source.view(np.uint32)


ACCESS_KERNELS: dict[str, Callable[[Bind], None]] = {
    "access_copy": _copy,
    "access_gather": _gather,
    "access_indices": _indices,
    "check_strided": _check_strided,
    "check_gather": _check_gather,
    "onchip_l2": _l2,
    "onchip_shared": _shared,
    "check_rereads": _check_rereads,
    "peer_exchange": _exchange,
}
