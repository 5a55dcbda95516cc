"""Streaming through device memory: read, write, copy and triad, the measured memory roof.

Arrays are random words (uniform numbers for triad); outputs are compared bit by bit with values
recomputed on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Timing, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Toolbox, Workload
from perfgate.suite.filling import WORD_BYTES, fill_normal_patterns, fill_uniform
from perfgate.suite.sizes import (
    STREAM_OVER_L2,
    DoesNotFitError,
    array_bytes,
    buffer_sets,
    checked_footprint,
    predicted_stream_s,
    size_axis,
)
from perfgate.suite.tally import Check, exact_workload

VERSION = 1
SOURCE = "bandwidth.cu"
_VECTOR_BYTES = 16
_SCALE = np.float32(0.75)
_CHUNK_BYTES = 2**30
# Of the memory that a sweep reads; the rest is the driver's, and what else runs on a GPU with a display.
_SWEPT_SHARE = 0.9
_FEWEST_CHUNKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kernel of bandwidth.cu: its arrays, its work a word, its knobs (see the header of the file)."""

    name: str
    reads: int
    writes: int
    flop_per_word: int = 0
    block: int = 256
    unroll: int = 4
    load: int = 1
    store: int = 1

    @property
    def arrays(self) -> int:
        """Arrays of a buffer set."""
        return self.reads + self.writes

    @property
    def defines(self) -> Mapping[str, int]:
        """The knobs as the compiler is told them."""
        return {"BLOCK": self.block, "UNROLL": self.unroll, "LOAD": self.load, "STORE": self.store}

    @property
    def tile_bytes(self) -> int:
        """What a block moves at once of each array."""
        return self.block * self.unroll * _VECTOR_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A stream at one size."""

    stream: Stream
    array_bytes: int
    sets: int

    @property
    def words(self) -> int:
        """32-bit words of an array."""
        return self.array_bytes // WORD_BYTES

    @property
    def tiles(self) -> int:
        """Tiles of an array, the last one maybe not whole."""
        return -(-self.array_bytes // self.stream.tile_bytes)

    def execution(self, toolbox: Toolbox, *args: Buffer | np.generic) -> Callable[[], None]:
        """Bind the kernel, one block a tile; the number of vectors comes last."""
        kernel = toolbox.kernel(SOURCE, f"bandwidth_{self.stream.name}", defines=self.stream.defines)
        vectors = np.uint64(self.array_bytes // _VECTOR_BYTES)
        return kernel.bind(grid=(self.tiles, 1, 1), block=(self.stream.block, 1, 1), args=(*args, vectors))

    def arrays(self, toolbox: Toolbox) -> list[Buffer]:
        """Return one array a buffer set."""
        return [toolbox.buffer(self.array_bytes) for _ in range(self.sets)]


def prepared_read(layout: Layout, toolbox: Toolbox, inputs: Sequence[Buffer]) -> Workload:
    """Prepare reads of arrays, wherever they are: each block's words are summed modulo 2^32, exact in any order."""
    partials = [toolbox.buffer(layout.tiles * WORD_BYTES) for _ in inputs]
    for seed, source in enumerate(inputs):
        fill_normal_patterns(toolbox, source, seed)
    tile_words = np.uint64(layout.stream.tile_bytes // WORD_BYTES)
    checks = [
        Check(
            function="check_read",
            count=layout.tiles,
            per_block=1,
            args=(target, np.uint64(layout.tiles), np.uint64(layout.words), tile_words, np.uint64(seed)),
        )
        for seed, target in enumerate(partials)
    ]
    executions = [layout.execution(toolbox, *buffers) for buffers in zip(inputs, partials, strict=True)]
    return exact_workload(toolbox, executions, partials, checks, "sums of all words by tile against recomputed ones")


def prepared_write(layout: Layout, toolbox: Toolbox, outputs: Sequence[Buffer]) -> Workload:
    """Prepare writes of arrays, wherever they are."""
    seeds = [np.uint32(index) for index in range(layout.sets)]
    checks = [
        Check(function="check_write", count=layout.words, args=(target, np.uint64(layout.words), seed))
        for seed, target in zip(seeds, outputs, strict=True)
    ]
    executions = [layout.execution(toolbox, target, seed) for seed, target in zip(seeds, outputs, strict=True)]
    return exact_workload(toolbox, executions, outputs, checks, "all words against the pattern")


def _prepared_read(layout: Layout, toolbox: Toolbox) -> Workload:
    return prepared_read(layout, toolbox, layout.arrays(toolbox))


def _prepared_write(layout: Layout, toolbox: Toolbox) -> Workload:
    return prepared_write(layout, toolbox, layout.arrays(toolbox))


def _prepared_copy(layout: Layout, toolbox: Toolbox) -> Workload:
    inputs, outputs = layout.arrays(toolbox), layout.arrays(toolbox)
    for seed, source in enumerate(inputs):
        fill_normal_patterns(toolbox, source, seed)
    checks = [
        Check(function="check_copy", count=layout.words, args=(target, np.uint64(layout.words), np.uint64(seed)))
        for seed, target in enumerate(outputs)
    ]
    executions = [layout.execution(toolbox, *buffers) for buffers in zip(inputs, outputs, strict=True)]
    return exact_workload(toolbox, executions, outputs, checks, "all words against the recomputed source")


def _prepared_triad(layout: Layout, toolbox: Toolbox) -> Workload:
    added, scaled, outputs = (layout.arrays(toolbox) for _ in range(3))
    seeds = [(np.uint64(2 * index), np.uint64(2 * index + 1)) for index in range(layout.sets)]
    for (seed_added, seed_scaled), one, other in zip(seeds, added, scaled, strict=True):
        fill_uniform(toolbox, one, int(seed_added))
        fill_uniform(toolbox, other, int(seed_scaled))
    checks = [
        Check(function="check_triad", count=layout.words, args=(target, np.uint64(layout.words), *pair, _SCALE))
        for pair, target in zip(seeds, outputs, strict=True)
    ]
    executions = [layout.execution(toolbox, *buffers, _SCALE) for buffers in zip(added, scaled, outputs, strict=True)]
    return exact_workload(toolbox, executions, outputs, checks, "all elements against fused multiply-adds, bit by bit")


# Knobs: the best of benchmarks/sweep_bandwidth.py on an H200, but for triad, where the fastest varies six times as
# much between processes (docs/figures/bandwidth.md).
READ = Stream(name="read", reads=1, writes=0, block=1024, unroll=8)
WRITE = Stream(name="write", reads=0, writes=1, block=1024, unroll=1)
_STREAMS: tuple[tuple[Stream, Callable[[Layout, Toolbox], Workload]], ...] = (
    (READ, _prepared_read),
    (WRITE, _prepared_write),
    (Stream(name="copy", reads=1, writes=1, block=128, unroll=1, load=0), _prepared_copy),
    (Stream(name="triad", reads=2, writes=1, flop_per_word=2, block=256, unroll=4), _prepared_triad),
)


def bandwidth_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the streaming cases; absent where the memory is unknown or too small to beat the L2 cache."""
    return tuple(_case(gpu, stream, prepare) for stream, prepare in _STREAMS)


def sweep_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the read of nine tenths of the memory, chunk by chunk, whose value is the slowest chunk's time.

    Reported, not gated: what is slow there is a part of the memory, not a kernel.
    """
    chunks = int((gpu.memory_bytes or 0) * _SWEPT_SHARE) // _CHUNK_BYTES
    if chunks < _FEWEST_CHUNKS:
        reason = f"nine tenths of {gpu.memory_bytes} bytes" if gpu.memory_bytes else "an unknown memory"
        return (AbsentCase(id="bandwidth.sweep", reason=f"{reason} has no {_FEWEST_CHUNKS} chunks of 1 GiB"),)
    return (
        Case(
            id=f"bandwidth.sweep[chunk={size_axis(_CHUNK_BYTES)}]",
            version=VERSION,
            work=Work(read_bytes=_CHUNK_BYTES, footprint_bytes=chunks * _CHUNK_BYTES),
            prepare=partial(_prepared_read, Layout(stream=READ, array_bytes=_CHUNK_BYTES, sets=chunks)),
            sources=(SOURCE, "data.cu"),
            timing=Timing.SLOWEST,
            gated=False,
            predicted_s=predicted_stream_s(gpu, _CHUNK_BYTES),
        ),
    )


def _case(gpu: Gpu, stream: Stream, prepare: Callable[[Layout, Toolbox], Workload]) -> Case | AbsentCase:
    try:
        size_bytes = array_bytes(gpu)
        sets = buffer_sets(gpu, stream.arrays * size_bytes, STREAM_OVER_L2)
        footprint_bytes = checked_footprint(gpu, sets * stream.arrays * size_bytes)
    except DoesNotFitError as error:
        return AbsentCase(id=f"bandwidth.{stream.name}", reason=str(error))
    return Case(
        id=f"bandwidth.{stream.name}[bytes={size_axis(size_bytes)}]",
        version=VERSION,
        work=Work(
            work_flop=stream.flop_per_word * size_bytes // WORD_BYTES,
            read_bytes=stream.reads * size_bytes,
            write_bytes=stream.writes * size_bytes,
            footprint_bytes=footprint_bytes,
            dtype="fp32" if stream.flop_per_word else None,
            pipe="fp32" if stream.flop_per_word else None,
        ),
        prepare=partial(prepare, Layout(stream=stream, array_bytes=size_bytes, sets=sets)),
        sources=(SOURCE, "data.cu"),
        predicted_s=predicted_stream_s(gpu, stream.arrays * size_bytes),
    )
