"""Decode attention: one new token of each sequence against a cache of keys and values, query heads in groups.

Every output element is compared with FP64 arithmetic on recomputed inputs.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perfgate.core.attention import attention_decode_work
from perfgate.core.case import AbsentCase, Case, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Workload
from perfgate.suite.closeness import BF16_UNIT_ROUNDOFF, Comparison
from perfgate.suite.closeness import SOURCE as VERIFY_SOURCE
from perfgate.suite.filling import BF16_BYTES, WORD_BYTES, fill_uniform_bf16, poisoning
from perfgate.suite.sizes import STREAM_OVER_L2, DoesNotFitError, buffer_sets, predicted_stream_s, stream_size
from perfgate.suite.tally import Check

VERSION = 1
_SOURCE = "attention_decode.cu"
HEAD_DIM = 128
# Keys of a step and the largest group of query heads in attention_decode.cu; floats of one block's part.
_STEP_KEYS = 16
_MOST_QUERIES = 8
_PART_FLOATS = _MOST_QUERIES * (HEAD_DIM + 2)
_MOST_CONTEXT, _LEAST_CONTEXT = 16384, 256
# Standard deviations that an error may reach; FP32's and the tensor cores' own errors, beside BF16's 2^-8: scores of
# 128 products that are cut to 2^-22 err by less than 2^-15.
_DEVIATIONS = 8.0
_FP32_SHARE = 2.0**-6
# SMs of a GPU that does not tell them.
_UNKNOWN_SMS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sequences, query heads, key-value heads and positions of the cache."""

    batch: int = 8
    heads: int = 32
    kv_heads: int = 8
    context: int = _MOST_CONTEXT

    @property
    def pairs(self) -> int:
        """Pairs of a sequence and a key-value head."""
        return self.batch * self.kv_heads

    @property
    def queries(self) -> int:
        """Query heads that share keys and values."""
        return self.heads // self.kv_heads

    @property
    def query_bytes(self) -> int:
        """Size of the queries, and of the output."""
        return self.batch * self.heads * HEAD_DIM * BF16_BYTES

    @property
    def cache_bytes(self) -> int:
        """Size of the keys, and of the values."""
        return self.pairs * self.context * HEAD_DIM * BF16_BYTES

    @property
    def work(self) -> Work:
        """Work of one execution."""
        return attention_decode_work(
            heads=self.heads,
            context=self.context,
            head_dim=HEAD_DIM,
            dtype="bf16",
            pipe="bf16-tensor",
            batch=self.batch,
            kv_heads=self.kv_heads,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Knobs of attention_decode.cu (see the header of the file); ``waves`` of blocks that fit the SMs at once."""

    warps: int = 4
    blocks_per_sm: int = 2
    load: int = 2
    waves: int = 1

    @property
    def defines(self) -> dict[str, int]:
        """The knobs as the compiler gets them."""
        return {"WARPS": self.warps, "BLOCKS_PER_SM": self.blocks_per_sm, "LOAD": self.load}

    def splits(self, gpu: Gpu, shape: Shape) -> int:
        """Blocks that share a pair's context: as many as fill the SMs, no more than there are steps for each warp."""
        room = self.waves * self.blocks_per_sm * (gpu.sm_count or _UNKNOWN_SMS)
        steps = -(-shape.context // (_STEP_KEYS * self.warps))
        return max(1, min(room // shape.pairs, steps))


def attention_decode_cases(gpu: Gpu) -> tuple[Case | AbsentCase, ...]:
    """Return decode attention; absent before sm_80, and where the memory is unknown or too small for a cache."""
    name = "operator.attention_decode"
    if (reason := _lack(gpu)) is not None:
        return (AbsentCase(id=name, reason=reason),)
    try:
        context = stream_size(gpu, _MOST_CONTEXT, _LEAST_CONTEXT, lambda size: Shape(context=size).work.moved_bytes)
    except DoesNotFitError as error:
        return (AbsentCase(id=name, reason=str(error)),)
    return (attention_decode_case(gpu, Shape(context=context)),)


def _lack(gpu: Gpu) -> str | None:
    if gpu.compute_capability is None:
        return "the GPU does not tell its compute capability: whether its tensor cores have BF16 is unknown"
    if int(gpu.compute_capability.split(".")[0]) < 8:
        return f"tensor cores of compute capability {gpu.compute_capability} have no BF16"
    return None


def attention_decode_case(gpu: Gpu, shape: Shape, knobs: Knobs = Knobs()) -> Case:
    """Return decode attention of a shape, whether or not it suits the GPU."""
    sets = buffer_sets(gpu, shape.work.moved_bytes, STREAM_OVER_L2)
    sizes = f"batch={shape.batch},heads={shape.heads},kv_heads={shape.kv_heads},context={shape.context}"
    return Case(
        id=f"operator.attention_decode[{sizes}]",
        version=VERSION,
        work=replace(shape.work, footprint_bytes=sets * shape.work.moved_bytes),
        prepare=partial(_prepared, shape, sets, knobs),
        sources=(_SOURCE, "own.cu"),
        predicted_s=predicted_stream_s(gpu, shape.work.moved_bytes),
    )


def _prepared(shape: Shape, sets: int, knobs: Knobs, toolbox: Toolbox) -> Workload:
    splits = knobs.splits(toolbox.gpu, shape)
    kernel = toolbox.kernel(_SOURCE, "attention_decode", defines=knobs.defines)
    partials = toolbox.buffer(shape.pairs * splits * _PART_FLOATS * WORD_BYTES)
    arrived = toolbox.buffer(shape.pairs * WORD_BYTES)
    toolbox.write(arrived, np.zeros(shape.pairs, dtype=np.uint32))
    scale = np.float32(math.log2(math.e) / math.sqrt(HEAD_DIM))
    tolerance = BF16_UNIT_ROUNDOFF * (1 + _FP32_SHARE)
    executions, outputs, checks = [], [], []
    for index in range(sets):
        seeds = range(3 * index, 3 * index + 3)
        q, k, v = (toolbox.buffer(size) for size in (shape.query_bytes, shape.cache_bytes, shape.cache_bytes))
        for seed, source in zip(seeds, (q, k, v), strict=True):
            fill_uniform_bf16(toolbox, source, seed)
        output = toolbox.buffer(shape.query_bytes)
        args = (q, k, v, output, partials, arrived, np.uint32(shape.queries), np.uint32(shape.context), scale)
        executions.append(kernel.bind(grid=(splits, shape.pairs, 1), block=(32 * knobs.warps, 1, 1), args=args))
        outputs.append(output)
        sizes = (shape.batch * shape.heads, shape.queries, shape.context, *seeds)
        checks.append(
            Check(
                function="check_attention_decode",
                count=shape.batch * shape.heads,
                per_block=1,
                args=(output, *map(np.uint64, sizes), np.float64(weight_deviations()), np.float64(tolerance)),
                source=VERIFY_SOURCE,
            )
        )
    compared = "all elements against FP64, relative to each and to the deviation that rounded weights make"
    comparison = Comparison(toolbox, checks, tolerance=tolerance, compared=compared)
    return Workload(executions=tuple(executions), poison=poisoning(toolbox, outputs), verify=comparison.verification)


def weight_deviations() -> float:
    """Return how many deviations sqrt(sum of (w v)²) of an element count beside it.

    Weights w are rounded to BF16, by relative errors of at most u = 2^-8 with a variance of at most u²/3, which are
    independent: their sum over the keys deviates by u / sqrt(3) of sqrt(sum of (w v)²). Eight such deviations; the
    result's own rounding is u of the element.
    """
    return _DEVIATIONS / math.sqrt(3)
