"""Colours, shapes and sizes of the pictures, and the dark dress of an SVG."""

from perfgate.core.verdict import CaseVerdict

INK = "#1f2328"
MUTED = "#59636e"
GRID = "#d8dee4"
PAPER = "#ffffff"
ROOF = "#24292f"
UNJUDGED = "#2f6fba"

# Readable on white and on near-black; red and green differ in lightness too.
VERDICT_COLORS = {
    CaseVerdict.REGRESSED: "#d1242f",
    CaseVerdict.IMPROVED: "#2da44e",
    CaseVerdict.UNCHANGED: "#2f6fba",
    CaseVerdict.SUSPECTED: "#d4670a",
    CaseVerdict.INCONCLUSIVE: "#b08800",
    CaseVerdict.NEW: "#8250df",
    CaseVerdict.MISSING: "#6e7781",
    CaseVerdict.NOT_COMPARABLE: "#6e7782",
    CaseVerdict.INVALID: "#bf3989",
    CaseVerdict.NOT_GATED: "#768390",
}

# What each colour becomes where the reader's system is dark.
DARK = {INK: "#e6edf3", MUTED: "#9198a1", GRID: "#30363d", PAPER: "#0d1117", ROOF: "#e6edf4"}

_SHAPES = ("o", "s", "^", "D", "P", "X", "v", "h", "*", "p")
_KNOWN_SHAPES = {"bandwidth": "o", "gemm": "s", "operators": "^", "attention": "D", "pattern": "P", "launch": "X"}


def family_shapes(families: list[str]) -> dict[str, str]:
    """Return a marker for each family: built-in families keep theirs, the others take what is left in order."""
    shapes = {family: _KNOWN_SHAPES[family] for family in families if family in _KNOWN_SHAPES}
    left = [shape for shape in _SHAPES if shape not in shapes.values()]
    for index, family in enumerate(family for family in dict.fromkeys(families) if family not in shapes):
        shapes[family] = left[index % len(left)]
    return shapes


def case_color(verdict: CaseVerdict | None) -> str:
    """Return the colour of a case."""
    return UNJUDGED if verdict is None else VERDICT_COLORS[verdict]


def with_dark_dress(svg: str) -> str:
    """Return an SVG that follows the reader's light or dark setting: its colours are replaced by a style sheet."""
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark} !important}}'
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    sheet = f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"
    head, opening, rest = svg.partition("<defs>")
    return f"{head}{opening}{sheet}{rest}"
