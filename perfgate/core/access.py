"""Access patterns: how much of what memory moves a copy asked for.

Memory moves sectors of 32 bytes, four to a cache line of 128 (CUDA C++ Best Practices Guide, 10.2.1);
DRAM may fetch two sectors at once. Waste counts in bytes: a scattered 4-byte element costs a sector, 8
times its size, not 32 transactions to 1.
"""

from dataclasses import replace

from perfgate.core.case import Work
from perfgate.core.caveat import Caveat
from perfgate.core.estimate import checked_sizes, prediction
from perfgate.core.prediction import Prediction
from perfgate.core.roofs import Roofs
from perfgate.errors import ConfigurationError
from perfgate.shims import StrEnum

SECTOR_BYTES = 32
_INDEX_BYTES = 4
# One element off alignment costs about a tenth on a V100, since neighbouring warps reuse the extra sector
# (CUDA C++ Best Practices Guide, 10.2.1.3); nothing like the quarter to half of folklore.
_OFFSET_SHARE = 0.9


class AccessPattern(StrEnum):
    """Which element each thread of a copy reads; writing is contiguous."""

    COALESCED = "coalesced"  # out[i] = in[i]
    OFFSET = "offset"  # out[i] = in[i + 1]
    STRIDE = "stride"  # out[i] = in[i * stride]
    GATHER = "gather"  # out[i] = in[index[i]], index random


def access(
    count: int,
    *,
    roofs: Roofs,
    pattern: AccessPattern = AccessPattern.COALESCED,
    stride: int = 2,
    element_size_bytes: int = 4,
    fetch_bytes: int = SECTOR_BYTES,
) -> Prediction:
    """Predict a copy of ``count`` elements that reads in a pattern.

    Stride: min(stride x e, fetch) bytes read an element, e written: of a 4-byte copy 1, 2/3, 2/5, 2/9
    are useful at strides 1, 2, 4, 8 and beyond. Gather: index, a whole fetch and the write. Offset: 0.9
    of the coalesced rate, measured.

    Raises:
        ConfigurationError: a size is not positive, or an element is larger than a fetch.
    """
    checked_sizes(count=count, stride=stride, element_size=element_size_bytes, fetch=fetch_bytes)
    if element_size_bytes > fetch_bytes:
        raise ConfigurationError(f"an element of {element_size_bytes} bytes is larger than a fetch of {fetch_bytes}")
    read_bytes, index_bytes = element_size_bytes, 0
    if pattern is AccessPattern.STRIDE:
        read_bytes = min(stride * element_size_bytes, fetch_bytes)
    elif pattern is AccessPattern.GATHER:
        read_bytes, index_bytes = fetch_bytes, _INDEX_BYTES
    work = Work(read_bytes=count * (read_bytes + index_bytes), write_bytes=count * element_size_bytes)
    useful = count * 2 * element_size_bytes
    named = f"stride {stride}" if pattern is AccessPattern.STRIDE else pattern.value
    caveats = []
    if pattern is AccessPattern.GATHER:
        message = "an upper bound of the rate: address translation and row misses of DRAM lower it further"
        caveats.append(Caveat(code="upper-bound", message=message))
    if fetch_bytes == SECTOR_BYTES and read_bytes > element_size_bytes:
        message = (
            "counted in sectors of 32 bytes: where DRAM fetches 64, wide strides and gathers cost up to twice that"
        )
        caveats.append(Caveat(code="fetch-size", message=message))
    found = prediction(
        kind="access",
        subject=f"{named} copy of {count} elements of {element_size_bytes} B",
        work=work,
        roofs=roofs,
        caveats=tuple(caveats),
    )
    if pattern is AccessPattern.OFFSET:
        terms = tuple(
            replace(term, time_s=term.time_s / _OFFSET_SHARE, formula=f"{term.formula} / {_OFFSET_SHARE}")
            if term.name == "memory"
            else term
            for term in found.terms
        )
        found = replace(found, terms=terms)
    return replace(found, useful_bytes=useful)
