"""How well launches and sessions agree: spreads of recorded runs by chip, board and kind of host. Needs no GPU.

    python benchmarks/sessions.py RUN.json... [--json FILE]

Takes run documents, or folders of them. Sessions are put together only where case, version, sources, plan
and unit are the same; rehearsed ones are left out. All spreads are relative:

- *launches*: standard deviation of a session's launches over their mean; root mean square of the sessions,
  and the worst of them;
- *sessions*: range of the session medians of one chip, over their median; the widest chip;
- *chips*: range of the chips' medians on one board, over their median; the widest board;
- *hosts*: range of the medians by kind of host (CPU, driver, system) on one board; the widest board.
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path

from perfgate.core.case import Unit
from perfgate.core.run import Run
from perfgate.core.summary import launch_statistics
from perfgate.storage.documents import read_run

# What the measuring is held to, by case: between launches of a session, and between chips of a board.
LAUNCH_TARGETS = {"bandwidth.*": 8e-4, "gemm.fp32*": 8e-4, "launch.gap": 0.05, "launch.graph_node": 5e-3}
CHIP_TARGETS = {"bandwidth.*": 1.5e-3, "gemm.fp32*": 1.5e-3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One case in one session.

    Attributes:
        chip, board, host: whose it is.
        launches: statistic of each launch, in the case's unit.
    """

    chip: str
    board: str
    host: str
    launches: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the launches."""
        return statistics.median(self.launches)

    @property
    def spread(self) -> float | None:
        """Coefficient of variation of the launches; None for fewer than two."""
        if len(self.launches) < 2:
            return None
        return statistics.stdev(self.launches) / statistics.fmean(self.launches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The spreads of one case; None where there is nothing to compare.

    Attributes:
        case: id.
        unit: ``"s"``, or ``"cycles"`` where the case is judged in cycles.
        sources: first digits of the hash of its sources.
        sessions, chips, boards, hosts: how many took part.
        median: of the session medians, in ``unit``.
    """

    case: str
    unit: str
    sources: str
    sessions: int
    chips: int
    boards: int
    hosts: int
    median: float
    between_launches: float | None
    between_launches_worst: float | None
    between_sessions: float | None
    between_chips: float | None
    between_hosts: float | None

    @property
    def misses(self) -> tuple[str, ...]:
        """Targets that are not met."""
        checks = (
            ("launches", self.between_launches, _target(self.case, LAUNCH_TARGETS)),
            ("chips", self.between_chips, _target(self.case, CHIP_TARGETS)),
        )
        return tuple(name for name, value, limit in checks if value is not None and limit is not None and value > limit)


def agreements(runs: Iterable[Run]) -> list[Agreement]:
    """Return the spreads of every case, by id; a case whose sources or plan differ has several entries."""
    groups: dict[tuple[str, ...], list[Session]] = {}
    for run in runs:
        if run.injected:
            continue
        for case_id, info in run.cases.items():
            launches = launch_statistics(run, case_id, info.unit)
            if launches:
                key = (case_id, str(info.unit), (info.source_sha256 or "")[:7], str(info.version), str(info.plan))
                groups.setdefault(key, []).append(_session(run, launches))
    return [_agreement(key, sessions) for key, sessions in sorted(groups.items())]


def _session(run: Run, launches: tuple[float, ...]) -> Session:
    gpu, environment = run.gpu, run.environment
    host = (environment.cpu_model, environment.os, environment.driver_version)
    return Session(
        chip=gpu.chip or "unknown",
        board=gpu.board_part_number or gpu.pci_subsystem_id or gpu.name,
        host=", ".join(part for part in host if part),
        launches=launches,
    )


def _agreement(key: Sequence[str], sessions: list[Session]) -> Agreement:
    boards = _by(sessions, lambda session: session.board)
    spreads = [session.spread for session in sessions if session.spread is not None]
    return Agreement(
        case=key[0],
        unit=key[1],
        sources=key[2],
        sessions=len(sessions),
        chips=len({session.chip for session in sessions}),
        boards=len(boards),
        hosts=len({session.host for session in sessions}),
        median=statistics.median(session.median for session in sessions),
        between_launches=math.sqrt(statistics.fmean(spread**2 for spread in spreads)) if spreads else None,
        between_launches_worst=max(spreads, default=None),
        between_sessions=_widest(
            [session.median for session in chip] for chip in _by(sessions, lambda session: session.chip).values()
        ),
        between_chips=_widest(_medians(board, lambda session: session.chip) for board in boards.values()),
        between_hosts=_widest(_medians(board, lambda session: session.host) for board in boards.values()),
    )


def _by(sessions: Iterable[Session], key: Callable[[Session], str]) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in sessions:
        found.setdefault(key(session), []).append(session)
    return found


def _medians(sessions: Iterable[Session], key: Callable[[Session], str]) -> list[float]:
    return [statistics.median(session.median for session in group) for group in _by(sessions, key).values()]


def _widest(groups: Iterable[list[float]]) -> float | None:
    ranges = [(max(group) - min(group)) / statistics.median(group) for group in groups if len(group) > 1]
    return max(ranges, default=None)


def _target(case_id: str, targets: Mapping[str, float]) -> float | None:
    return next((limit for pattern, limit in targets.items() if fnmatch(case_id, pattern)), None)


def rendered(found: Sequence[Agreement]) -> str:
    """Render a Markdown table."""
    lines = [
        "| case | sources | sessions | chips | median | launches (worst) | sessions | chips | hosts | misses |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        value = f"{one.median:.0f} cycles" if one.unit == Unit.CYCLES else f"{one.median * 1e6:.4g} µs"
        lines.append(
            f"| {one.case} | {one.sources} | {one.sessions} | {one.chips} | {value}"
            f" | {_percent(one.between_launches)} ({_percent(one.between_launches_worst)})"
            f" | {_percent(one.between_sessions)} | {_percent(one.between_chips)} | {_percent(one.between_hosts)}"
            f" | {', '.join(one.misses) or '—'} |"
        )
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.3%}" if value < 0.01 else f"{value:.1%}"


def documents(places: Iterable[Path]) -> list[Path]:
    """Return files as they are given, and the run documents of folders in order."""
    return [
        file
        for place in places
        for file in (sorted((*place.rglob("*.json"), *place.rglob("*.json.gz"))) if place.is_dir() else [place])
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run documents, or folders of them")
    parser.add_argument("--json", type=Path, help="also write the spreads there")
    arguments = parser.parse_args()
    found = agreements(read_run(file) for file in documents(arguments.runs))
    print(rendered(found))
    if arguments.json:
        rows = [{**asdict(one), "misses": one.misses} for one in found]
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
