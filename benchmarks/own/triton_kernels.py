"""A softmax over rows in Triton."""

import triton
import triton.language as tl


@triton.jit
def softmax_rows(out, values, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    inside = place < columns
    x = tl.load(values + row * columns + place, mask=inside, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * columns + place, x / tl.sum(x, axis=0), mask=inside)
