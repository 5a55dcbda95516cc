"""Arrays that a kernel of an own suite reads and writes, as declared: shape, type, and where the data is from."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perfgate.api.elements import Element, element
from perfgate.errors import ConfigurationError

# Buffers are poisoned and scanned by words.
_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument of a kernel.

    Attributes:
        shape: number of elements, or several for a reference that wants them.
        dtype: element type by name, see ``api.elements``.
    """

    shape: int | tuple[int, ...]
    dtype: str = "fp32"

    def __post_init__(self) -> None:
        element(self.dtype)
        if any(size < 1 for size in self.sizes):
            raise ConfigurationError(f"an array of shape {self.shape} has no elements", hint="every size is at least 1")

    @property
    def element(self) -> Element:
        """Its element type."""
        return element(self.dtype)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its shape as a tuple."""
        return (self.shape,) if isinstance(self.shape, int) else tuple(self.shape)

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Bytes of its elements."""
        return self.count * self.element.size_bytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of its buffer: whole words."""
        return -(-self.size_bytes // _WORD_BYTES) * _WORD_BYTES


@dataclass(frozen=True, slots=True)
class Output(Array):
    """An array that the kernel writes whole; poisoned before it runs, compared with the reference after."""


@dataclass(frozen=True, slots=True)
class Input(Array):
    """An array that the kernel reads; random and seeded, another one for each buffer set.

    Attributes:
        below: integers are uniform in [0, below); by default all patterns. Floats are uniform in (-1, 1).
        made_by: function of the kernel's own source that fills it: ``(T* out, u64 count, u64 seed)``, any grid.
        values: makes it on the host instead, from a seeded generator: slower, for data of a certain structure.
    """

    below: int | None = None
    made_by: str | None = None
    values: Callable[[np.random.Generator], np.ndarray] | None = None


@dataclass(frozen=True, slots=True)
class InOut(Input):
    """An array that the kernel reads and writes. It is filled anew before the execution that is verified."""
