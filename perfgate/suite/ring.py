"""The order in which a chain walks through the nodes of a ring, as ring.cuh has it."""

_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)


def shuffled(number: int, bits: int) -> int:
    """Return the image of a number below 2^bits under a bijection of these numbers."""
    mask, half = (1 << bits) - 1, (bits + 1) // 2
    for factor in _FACTORS:
        number = number * factor & mask
        number ^= number >> half
    return number


def ring_node(step: int, window_bits: int) -> int:
    """Return the node at a step: windows of 2^window_bits neighbours one after the other, each in random order."""
    inside = step & ((1 << window_bits) - 1)
    return step - inside + shuffled(inside, window_bits)
