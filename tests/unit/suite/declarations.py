"""What the .cu files say about themselves: signatures of their kernels, FLOP and bytes of their headers."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfgate.resources import resource_folder

_KERNEL = re.compile(
    r'extern "C" __global__ void(?: [A-Z]+)?(?P<bounds> __launch_bounds__\([^)]*\))?\s+(?P<name>\w+)\((?P<args>[^)]*)\)'
)
# Sources that check outputs: they are never timed, and no part of what a case's version freezes.
CHECKING = frozenset({"verify.cu", "product_verify.cu", "operator_verify.cu", "attention_verify.cu"})
_NUMPY_NAMES = {"u32": "uint32", "u64": "uint64", "float": "float32", "double": "float64"}


def kernel_files() -> tuple[Path, ...]:
    return tuple(sorted(resource_folder("kernels").glob("*.cu")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters as "pointer" or the name of a numpy type, and as C++ declares them."""

    parameters: tuple[str, ...]
    declared: tuple[str, ...]


@cache
def signatures(source: str) -> dict[str, Signature]:
    text = (resource_folder("kernels") / source).read_text(encoding="utf-8")
    found = {}
    for kernel in _KERNEL.finditer(text):
        declared = [_declared(one) for one in kernel["args"].split(",") if one.strip()]
        found[kernel["name"]] = Signature(
            parameters=tuple("pointer" if one.endswith("*") else _NUMPY_NAMES[one] for one in declared),
            declared=tuple(declared),
        )
    return found


def _declared(parameter: str) -> str:
    """``"const uint4* __restrict__ in"`` without the name: ``"const uint4*"``."""
    return " ".join(parameter.replace("__restrict__", "").split()[:-1])


def header_formula(source: str, quantity: str, kernel: str | None = None) -> str:
    """The formula after ``FLOP:`` or ``Bytes:``; of one kernel where the line lists several."""
    text = (resource_folder("kernels") / source).read_text(encoding="utf-8")
    line = re.search(rf"^// {quantity}:\s*(.*)$", text, re.MULTILINE)
    assert line is not None, f"{source} declares no {quantity}"
    formula = re.sub(r"\([a-z ]*\)$", "", line[1].strip()).strip()
    if kernel is None:
        return formula
    parts = dict(part.strip().split(" ", 1) for part in formula.split(","))
    return parts[kernel]


def evaluated(formula: str, **values: int) -> int:
    """Evaluate a formula in which a space is a product: ``"4 (m k + n k)"``."""
    explicit = re.sub(r"(?<=[\w)]) +(?=[\w(])", "*", formula)
    assert re.fullmatch(r"[\w*+() -]+", explicit), formula
    return int(eval(explicit, {"__builtins__": {}}, dict(values)))
