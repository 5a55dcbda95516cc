"""Putting data into buffers on the device: what the cases read, and the poison that an output must overwrite."""

from collections.abc import Callable, Sequence

import numpy as np

from perfgate.core.toolbox import Buffer, Toolbox

WORD_BYTES = 4
BF16_BYTES = 2
THREADS = 256
# Enough blocks to fill any GPU; kernels that are not timed loop over the rest.
_MOST_BLOCKS = 65536
# NaN in every float format, and no word that a case writes as a number.
POISON = np.uint32(0xFFFFFFFF)


def covering_grid(count: int, per_block: int = THREADS) -> tuple[int, int, int]:
    """Return a grid for kernels that loop over ``count`` items, ``per_block`` a block at once."""
    return (max(1, min(-(-count // per_block), _MOST_BLOCKS)), 1, 1)


def fill_uniform(toolbox: Toolbox, buffer: Buffer, seed: int) -> None:
    """Fill with FP32 numbers uniform in (-1, 1)."""
    _fill(toolbox, "fill_uniform", buffer, np.uint64(seed))()


def fill_normal_patterns(toolbox: Toolbox, buffer: Buffer, seed: int) -> None:
    """Fill with random 32-bit patterns, each a normal finite FP32 number."""
    _fill(toolbox, "fill_normal_patterns", buffer, np.uint64(seed))()


def fill_uniform_bf16(toolbox: Toolbox, buffer: Buffer, seed: int) -> None:
    """Fill with BF16 numbers uniform in (-1, 1): the odd multiples of 2^-8, so that few steps stay exact."""
    count = buffer.size_bytes // BF16_BYTES
    toolbox.kernel("own.cu", "fill_uniform_bf16").bind(
        grid=covering_grid(count), block=(THREADS, 1, 1), args=(buffer, np.uint64(count), np.uint64(seed))
    )()


def poisoning(toolbox: Toolbox, outputs: Sequence[Buffer], word: np.uint32 = POISON) -> Callable[[], None]:
    """Return a callable that fills outputs with a word that no result has, by default NaN."""
    commands = [_fill(toolbox, "fill_word", output, word) for output in outputs]

    def poison() -> None:
        for command in commands:
            command()

    return poison


def _fill(toolbox: Toolbox, function: str, buffer: Buffer, value: np.generic) -> Callable[[], None]:
    count = buffer.size_bytes // WORD_BYTES
    return toolbox.kernel("data.cu", function).bind(
        grid=covering_grid(count), block=(THREADS, 1, 1), args=(buffer, np.uint64(count), value)
    )
