"""Element types of arrays in own suites: how they are stored, filled, read back and how exact they are."""

from dataclasses import dataclass

import numpy as np

from perfgate.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element type.

    Attributes:
        name: as in ``Work.dtype``.
        storage: numpy type of the same width.
        tolerance: largest relative error that a result may have where a case names none: some roundings
            of the type for floats, none for integers.
    """

    name: str
    storage: "np.dtype[np.generic]"
    tolerance: float

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return self.storage.itemsize

    @property
    def is_float(self) -> bool:
        """Whether the poison is not a number of this type."""
        return self.tolerance > 0

    def decoded(self, stored: np.ndarray) -> np.ndarray:
        """Return stored elements as numbers that numpy computes with: BF16 becomes FP32."""
        if self.name == "bf16":
            wide: np.ndarray = stored.astype(np.uint32) << np.uint32(16)
            return wide.view(np.float32)
        return stored


_FLOATS = (("fp64", np.float64, 1e-12), ("fp32", np.float32, 1e-5), ("fp16", np.float16, 5e-3))
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

ELEMENTS: dict[str, Element] = {
    **{name: Element(name=name, storage=np.dtype(kind), tolerance=error) for name, kind, error in _FLOATS},
    "bf16": Element(name="bf16", storage=np.dtype(np.uint16), tolerance=3e-2),
    **{name: Element(name=name, storage=np.dtype(name), tolerance=0.0) for name in _INTEGERS},
}


def element(name: str) -> Element:
    """Return an element type by its name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    if name not in ELEMENTS:
        raise ConfigurationError(f"element type {name!r} is unknown", hint=f"one of {', '.join(ELEMENTS)}")
    return ELEMENTS[name]
