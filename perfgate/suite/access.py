"""Copies whose reads are not whole lines in a row: narrow, off alignment, strided, gathered.

All are of 32-bit words, random ones; what was written is compared bit by bit with recomputed words. The
arrays are as large as the streams': a line that was fetched for one word is not found again for the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from perfgate.core.case import AbsentCase, Case, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Kernel, Toolbox, Workload
from perfgate.suite.filling import THREADS, WORD_BYTES, covering_grid, fill_normal_patterns
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
_SOURCE = "access.cu"
# Of the elements of its array a gather reads so many, each a fetch of its own.
_GATHERED_SHARE = 16
# What memory moves for a word that is fetched alone: two sectors.
_FETCH_BYTES = 64
_OFF_ALIGNMENT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Knobs:
    """Of access.cu; see the header of the file."""

    block: int
    unroll: int
    load: int = 1
    store: int = 1
    width: int = 1

    @property
    def defines(self) -> Mapping[str, int]:
        return {
            "WIDTH": self.width,
            "BLOCK": self.block,
            "UNROLL": self.unroll,
            "LOAD": self.load,
            "STORE": self.store,
        }

    def kernel(self, toolbox: Toolbox, name: str) -> Kernel:
        return toolbox.kernel(_SOURCE, f"access_{name}", defines=self.defines)

    def tiles(self, elements: int) -> tuple[int, int, int]:
        return (-(-elements // (self.block * self.unroll)), 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of elements of ``knobs.width`` words, ``stride`` elements apart, from element ``offset`` on."""

    name: str
    axis: str
    knobs: _Knobs
    stride: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Words that are written and bytes that they are read from, in each buffer set."""

    words: int
    span_bytes: int
    sets: int


# Knobs: the best of benchmarks/sweep_access.py on an H200 (docs/figures/bandwidth.md).
_GATHER = _Knobs(block=1024, unroll=16, load=2)
_COPIES = (
    *(
        _Copy(
            name="vector_copy", axis=f"width={width}", knobs=_Knobs(block=128, unroll=4 // width, load=2, width=width)
        )
        for width in (1, 2, 4)
    ),
    _Copy(
        name="misaligned",
        axis=f"offset={_OFF_ALIGNMENT}",
        knobs=_Knobs(block=128, unroll=4, load=2),
        offset=_OFF_ALIGNMENT,
    ),
    *(
        _Copy(name="strided", axis=f"stride={stride}", knobs=knobs, stride=stride)
        for stride, knobs in (
            (2, _Knobs(block=1024, unroll=8, load=0)),
            (4, _Knobs(block=512, unroll=2, load=0)),
            (8, _Knobs(block=512, unroll=4, load=0)),
            (16, _Knobs(block=1024, unroll=1, load=2)),
        )
    ),
)


def gather_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return the random gather; absent where the memory is unknown or too small to beat the L2 cache."""
    try:
        span_bytes = array_bytes(gpu)
        words = span_bytes // WORD_BYTES // _GATHERED_SHARE
        set_bytes = span_bytes + 2 * words * WORD_BYTES
        layout = _Layout(words=words, span_bytes=span_bytes, sets=buffer_sets(gpu, set_bytes, STREAM_OVER_L2))
        footprint_bytes = checked_footprint(gpu, layout.sets * set_bytes)
    except DoesNotFitError as error:
        return (AbsentCase(id="bandwidth.gather", reason=str(error)),)
    return (
        Case(
            id=f"bandwidth.gather[bytes={size_axis(span_bytes)}]",
            version=VERSION,
            work=Work(
                read_bytes=2 * words * WORD_BYTES,
                write_bytes=words * WORD_BYTES,
                footprint_bytes=footprint_bytes,
            ),
            prepare=partial(_prepared_gather, layout),
            sources=(_SOURCE, "data.cu"),
            predicted_s=predicted_stream_s(gpu, words * (_FETCH_BYTES + 2 * WORD_BYTES)),
        ),
    )


def access_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return copies by width, off alignment and by stride; absent where the streams are."""
    return tuple(_case(gpu, copy) for copy in _COPIES)


def _case(gpu: Gpu, copy: _Copy) -> Case | AbsentCase:
    try:
        span_bytes = array_bytes(gpu)
        words = span_bytes // WORD_BYTES // copy.stride
        set_bytes = span_bytes + words * WORD_BYTES
        layout = _Layout(words=words, span_bytes=span_bytes, sets=buffer_sets(gpu, set_bytes, STREAM_OVER_L2))
        footprint_bytes = checked_footprint(gpu, layout.sets * set_bytes)
    except DoesNotFitError as error:
        return AbsentCase(id=f"bandwidth.{copy.name}[{copy.axis}]", reason=str(error))
    fetched_bytes = min(copy.stride * WORD_BYTES, _FETCH_BYTES)
    return Case(
        id=f"bandwidth.{copy.name}[bytes={size_axis(span_bytes)},{copy.axis}]",
        version=VERSION,
        work=Work(read_bytes=words * WORD_BYTES, write_bytes=words * WORD_BYTES, footprint_bytes=footprint_bytes),
        prepare=partial(_prepared_copy, copy, layout),
        sources=(_SOURCE, "data.cu"),
        predicted_s=predicted_stream_s(gpu, words * (fetched_bytes + WORD_BYTES)),
    )


def _filled(toolbox: Toolbox, size_bytes: int, seed: int) -> Buffer:
    buffer = toolbox.buffer(size_bytes)
    fill_normal_patterns(toolbox, buffer, seed)
    return buffer


def _prepared_copy(copy: _Copy, layout: _Layout, toolbox: Toolbox) -> Workload:
    kernel, width = copy.knobs.kernel(toolbox, "copy"), copy.knobs.width
    elements = layout.words // width
    executions, outputs, checks = [], [], []
    for seed in range(layout.sets):
        source = _filled(toolbox, layout.span_bytes + copy.offset * width * WORD_BYTES, seed)
        target = toolbox.buffer(layout.words * WORD_BYTES)
        place = (np.uint64(copy.offset), np.uint64(copy.stride))
        executions.append(
            kernel.bind(
                grid=copy.knobs.tiles(elements),
                block=(copy.knobs.block, 1, 1),
                args=(source, target, *place, np.uint64(elements)),
            )
        )
        outputs.append(target)
        words = np.uint64(layout.words)
        checks.append(
            Check(
                function="check_strided",
                count=layout.words,
                args=(target, words, np.uint64(width), *place, np.uint64(seed)),
            )
        )
    return exact_workload(toolbox, executions, outputs, checks, "all words against the recomputed source")


def _prepared_gather(layout: _Layout, toolbox: Toolbox) -> Workload:
    kernel, words = _GATHER.kernel(toolbox, "gather"), np.uint64(layout.words)
    limit = np.uint64(layout.span_bytes // WORD_BYTES)
    executions, outputs, checks = [], [], []
    for index in range(layout.sets):
        seed, seed_indices = 2 * index, np.uint64(2 * index + 1)
        source = _filled(toolbox, layout.span_bytes, seed)
        indices, target = (toolbox.buffer(layout.words * WORD_BYTES) for _ in range(2))
        toolbox.kernel(_SOURCE, "access_indices", defines=_GATHER.defines).bind(
            grid=covering_grid(layout.words), block=(THREADS, 1, 1), args=(indices, words, seed_indices, limit)
        )()
        executions.append(
            kernel.bind(
                grid=_GATHER.tiles(layout.words),
                block=(_GATHER.block, 1, 1),
                args=(source, indices, target, words),
            )
        )
        outputs.append(target)
        checks.append(
            Check(
                function="check_gather",
                count=layout.words,
                args=(target, words, np.uint64(seed), seed_indices, limit),
            )
        )
    return exact_workload(toolbox, executions, outputs, checks, "all words against those at the recomputed places")
