"""A judged fleet for machines: CSV, OpenMetrics text, and the list of nodes to drain."""

import csv
import io
from collections.abc import Mapping

from perfgate.core.fleet_report import FleetReport, Standing, seats_named
from perfgate.report.table_csv import cell

COLUMNS = (
    "node",
    "gpu",
    "board",
    "chip",
    "standing",
    "case",
    "median_s",
    "change",
    "slow_against",
    "margin",
    "p_value",
)


def render_fleet_csv(report: FleetReport) -> str:
    """Render one line a GPU and case; a GPU without any case has one line with its standing."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for member in report.members:
        board = report.identities[member.identity].board_part_number if member.identity is not None else None
        start = (member.seat.node, member.seat.gpu, board, member.chip, str(member.standing))
        slow = {one.id: one for one in member.slow}
        for case_id, value_s in member.values_s.items():
            found = slow.get(case_id)
            writer.writerow(
                (
                    *map(cell, start),
                    case_id,
                    f"{value_s:.6g}",
                    f"{member.changes[case_id]:.6g}" if case_id in member.changes else "",
                    found.against if found else "",
                    f"{found.margin:.6g}" if found and found.margin is not None else "",
                    f"{found.p_value:.3g}" if found and found.p_value is not None else "",
                )
            )
        if not member.values_s:
            writer.writerow((*map(cell, start), *[""] * (len(COLUMNS) - len(start))))
    return buffer.getvalue()


def render_openmetrics(report: FleetReport) -> str:
    """Render metrics (OpenMetrics 1.0 text), also read by the node exporter's textfile collector."""
    standing, change, time = [], [], []
    for member in report.members:
        place = {"node": member.seat.node, "gpu": str(member.seat.gpu), **_labels(member.seat.labels)}
        standing += [
            f"perfgate_gpu_standing{_labelled({**place, 'standing': str(one)})} {int(member.standing is one)}"
            for one in Standing
        ]
        for case_id, value_s in member.values_s.items():
            named = _labelled({**place, "case": case_id})
            time.append(f"perfgate_case_time_seconds{named} {value_s:.9g}")
            if case_id in member.changes:
                change.append(f"perfgate_case_peer_change_ratio{named} {member.changes[case_id]:.6g}")
    families = (
        ("perfgate_gpu_standing", "", "1 for what was concluded about a GPU.", standing),
        ("perfgate_case_time_seconds", "seconds", "Median time of one execution.", time),
        ("perfgate_case_peer_change_ratio", "ratio", "Time relative to the median of the peers, less 1.", change),
    )
    lines: list[str] = []
    for name, unit, text, samples in families:
        lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]
        lines += samples
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels under names that OpenMetrics allows."""
    return {
        "label_" + "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name): value
        for name, value in labels.items()
    }


def _labelled(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    r"""Return a label's value with backslash, quote and line feed escaped, as the format asks."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def render_drain_list(report: FleetReport, hosts: Mapping[str, str]) -> str:
    """Render the host names of nodes with a GPU that is slow, invalid or missing, worst first, one a line."""
    seats = seats_named(report.members, Standing.SLOW, Standing.INVALID, Standing.MISSING)
    return "".join(f"{hosts[node]}\n" for node in dict.fromkeys(seat.node for seat in seats))
