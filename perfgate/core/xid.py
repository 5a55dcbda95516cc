"""Xid errors: the numbers by which NVIDIA's driver reports what went wrong on a GPU, in words.

Source: NVIDIA, XID Errors, Xid catalog.
"""

from collections.abc import Iterable

_MEANINGS = {
    13: "graphics engine exception: a kernel's illegal access or instruction",
    31: "memory page fault: a kernel's illegal address",
    32: "corrupted push buffer stream",
    43: "a program's kernel was stopped",
    45: "a program's work was torn down",
    48: "uncorrectable ECC error",
    61: "internal microcontroller breakpoint",
    62: "internal microcontroller halt",
    63: "a memory row was remapped",
    64: "remapping a memory row failed",
    68: "video processor exception",
    69: "graphics engine class error",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many corrected ECC errors",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "context switch timeout",
    119: "the GPU's system processor does not answer",
    120: "error of the GPU's system processor",
    140: "unrecovered ECC error",
    154: "the GPU needs recovery",
}
# A kernel of somebody's own makes them, and the GPU is sound.
_OF_PROGRAMS = frozenset({13, 31, 32, 43, 45, 68, 69, 109})


def xid_text(numbers: Iterable[int]) -> str:
    """Render Xid errors: ``"Xid 31 (memory page fault: ...), Xid 43"``; each once, in the order they came."""
    return ", ".join(
        f"Xid {number} ({_MEANINGS[number]})" if number in _MEANINGS else f"Xid {number}"
        for number in dict.fromkeys(numbers)
    )


def is_of_program(number: int) -> bool:
    """Tell whether an Xid speaks of a program's own fault, not of the GPU's."""
    return number in _OF_PROGRAMS
