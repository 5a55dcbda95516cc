"""The second panel of the roofline picture: cases without FLOP, each against the roof that bounds it."""

from typing import TYPE_CHECKING

from perfgate.core.units import percent_text, time_text
from perfgate.report.figure_style import GRID, INK, MUTED, PAPER, ROOF, case_color, text_size
from perfgate.report.roofline_chart import ChartCase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_POINTS = 7.5
_LONGEST = 64  # characters of a name; the tables have the rest
_VISIBLE_ARROW = 0.008  # share of the axis


def draw_rows(axes: "Axes", rows: tuple[ChartCase, ...], shapes: dict[str, str]) -> None:
    """Draw one line a case: how much of its roof it reaches, the measured roof as a tick; time alone for what waits."""
    shares = [share for case in rows for share in (_share(case), _share_before(case)) if share is not None]
    high = 1.04 * max(1.0, *shares, 0.0)
    axes.set(xlim=(0, high), ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), [_name(case) for case in rows])
    axes.tick_params(axis="y", length=0, labelsize=_LABEL_POINTS, labelcolor=INK)
    axes.tick_params(axis="x", colors=MUTED, labelsize=8, length=3)
    axes.xaxis.set_major_formatter(lambda value, _: percent_text(value, decimals=0))
    axes.set_xlabel(
        "share of the theoretical roof (of the measured one where none is known)",
        color=INK,
        fontsize=9,
    )
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.axvline(1.0, color=MUTED, linewidth=1.0, linestyle=(0, (5, 3)), zorder=2)
    for name, spine in axes.spines.items():
        spine.set_visible(name == "bottom")
        spine.set_color(MUTED)
    for row, case in enumerate(rows):
        _draw_row(axes, row, case, shapes[case.family])


def name_width(rows: tuple[ChartCase, ...]) -> float:
    """Return the room that names need left of the rows [points]."""
    return max(text_size(_name(case), _LABEL_POINTS)[0] for case in rows) + 10


def result_width(rows: tuple[ChartCase, ...]) -> float:
    """Return the room that results need right of the rows [points]."""
    return max(text_size(_row_text(case), _LABEL_POINTS, "bold")[0] for case in rows) + 18


def _name(case: ChartCase) -> str:
    if len(case.id) <= _LONGEST:
        return case.id
    half = _LONGEST // 2
    return f"{case.id[:half]}\N{HORIZONTAL ELLIPSIS}{case.id[-half:]}"


def _share(case: ChartCase) -> float | None:
    return case.of_theoretical if case.of_theoretical is not None else case.of_measured


def _share_before(case: ChartCase) -> float | None:
    """Share of the baseline; None where nothing moved."""
    share = _share(case)
    return share * case.time_s / case.baseline_s if share is not None and case.baseline_s and case.is_moved else None


def _draw_row(axes: "Axes", row: int, case: ChartCase, shape: str) -> None:
    color, share = case_color(case.verdict), _share(case)
    if share is not None:
        axes.plot((0, share), (row, row), color=color, linewidth=1.2, alpha=0.55, zorder=3)
        if case.of_measured and case.of_theoretical:
            roof = case.of_theoretical / case.of_measured
            axes.plot((roof, roof), (row - 0.38, row + 0.38), color=ROOF, linewidth=2.0, zorder=4)
        if case.low_s and case.high_s:
            ends = (share * case.time_s / case.high_s, share * case.time_s / case.low_s)
            axes.plot(ends, (row, row), color=color, linewidth=3.2, zorder=4)
        axes.plot(
            [share], [row], marker=shape, markersize=8, color=color, markeredgecolor=PAPER, markeredgewidth=0.8,
            linestyle="none", zorder=6, clip_on=False, gid=f"row-{row}",
        )  # fmt: skip
        _draw_move(axes, row, case, share, shape)
    weight = "bold" if case.is_moved else "normal"
    axes.annotate(
        _row_text(case), (1, row), xycoords=("axes fraction", "data"), xytext=(10, 0), textcoords="offset points",
        fontsize=_LABEL_POINTS, color=color if weight == "bold" else INK, fontweight=weight, ha="left", va="center",
    )  # fmt: skip


def _draw_move(axes: "Axes", row: int, case: ChartCase, share: float, shape: str) -> None:
    before = _share_before(case)
    if before is None or abs(before - share) < _VISIBLE_ARROW * axes.get_xlim()[1]:
        return
    color = case_color(case.verdict)
    axes.plot([before], [row], marker=shape, markersize=8, color=color, markerfacecolor=PAPER, zorder=5)
    axes.annotate(
        "", (share, row), xytext=(before, row), zorder=7,
        arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.5, "shrinkA": 3, "shrinkB": 3},
    )  # fmt: skip


def _row_text(case: ChartCase) -> str:
    parts = [case.rate_text]
    if case.of_measured is not None:
        parts.append(f"{percent_text(case.of_measured, decimals=0)} of {case.roof}")
    if case.rate_per_s is not None:
        parts.append(time_text(case.time_s))
    if case.change is not None and case.is_moved:
        parts.append(f"time {percent_text(case.change, signed=True, decimals=1)}")
    return ", ".join(parts)
