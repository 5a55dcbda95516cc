"""Filling the arrays of a case on the device, and the poison that an output must overwrite."""

from collections.abc import Callable, Sequence

import numpy as np

from perfgate.api.arrays import Array, Input
from perfgate.api.elements import Element
from perfgate.core.toolbox import Buffer, Toolbox
from perfgate.errors import ConfigurationError
from perfgate.suite.filling import THREADS, covering_grid, fill_uniform
from perfgate.suite.tally import Check, Scan, exact_verification

_SOURCE = "own.cu"


def fill_input(toolbox: Toolbox, declared: Input, buffer: Buffer, seed: int, source: str | None) -> None:
    """Fill an array with the data that it declares.

    Args:
        toolbox: the device.
        declared: shape, type and where the data is from.
        buffer: its memory.
        seed: tells buffer sets and arguments apart.
        source: file of the kernel that makes it, for ``made_by``.

    Raises:
        ConfigurationError: the data does not have the declared size or type.
    """
    count, kind = np.uint64(declared.count), declared.element
    if declared.values is not None:
        toolbox.write(buffer, _host_values(declared, seed))
    elif declared.made_by is not None:
        if source is None:
            raise ConfigurationError(f"made_by={declared.made_by!r} needs a kernel's source")
        _run(toolbox, source, declared.made_by, declared.count, (buffer, count, np.uint64(seed)))
    elif kind.name == "fp32":
        fill_uniform(toolbox, buffer, seed)
    elif kind.is_float:
        _run(toolbox, _SOURCE, f"fill_uniform_{kind.name}", declared.count, (buffer, count, np.uint64(seed)))
    else:
        limit, width = np.uint64(declared.below or 0), np.uint32(kind.size_bytes)
        _run(toolbox, _SOURCE, "fill_integers", declared.count, (buffer, count, np.uint64(seed), limit, width))


def poison_scan(toolbox: Toolbox, outputs: Sequence[tuple[Array, Buffer]]) -> Callable[[], str]:
    """Return a callable that names what was left unwritten, "" where nothing was; floats only: an integer may be -1."""
    floats = [(declared, buffer) for declared, buffer in outputs if declared.element.is_float]
    checks = [
        Check(
            function="count_poison",
            count=declared.buffer_bytes // 4,
            args=(buffer, np.uint64(declared.buffer_bytes // 4)),
            source=_SOURCE,
        )
        for declared, buffer in floats
    ]
    scan = Scan(toolbox, checks)

    def unwritten() -> str:
        found = exact_verification(scan.found(), "words were left unwritten")
        return "" if found.passed else found.detail

    return unwritten


def _run(toolbox: Toolbox, source: str, function: str, count: int, args: Sequence[Buffer | np.generic]) -> None:
    toolbox.kernel(source, function).bind(grid=covering_grid(count), block=(THREADS, 1, 1), args=tuple(args))()


def _host_values(declared: Input, seed: int) -> np.ndarray:
    assert declared.values is not None  # noqa: S101 - narrows the type
    made = np.asarray(declared.values(np.random.default_rng(seed)))
    if made.size != declared.count:
        raise ConfigurationError(f"values= made {made.size} elements of {declared.count}")
    return _stored(made, declared.element)


def _stored(values: np.ndarray, kind: Element) -> np.ndarray:
    if kind.name == "bf16" and values.dtype != kind.storage:
        # Cut, not rounded: the reference sees the same numbers.
        words: np.ndarray = values.astype(np.float32).view(np.uint32)
        cut: np.ndarray = words >> np.uint32(16)
        return cut.astype(np.uint16)
    return np.ascontiguousarray(values, dtype=kind.storage)
