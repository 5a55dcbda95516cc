"""Which machines and links a prediction is for, from the options that name them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.core.roofs import Roofs
from perfgate.core.run import Run
from perfgate.errors import ConfigurationError

if TYPE_CHECKING:
    from perfgate.core.latency import Latency
    from perfgate.core.transfer import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A GPU to predict for.

    Attributes:
        roofs: measured ones where there is a run.
        sustained: what predictions use, ``core.roofs.sustained_roofs``.
        clock_hz: SM clock, measured where there is a run; None where it is unknown.
        run: what was measured on it; None for a row of the table.
    """

    roofs: Roofs
    sustained: Roofs
    clock_hz: float | None
    run: Run | None = None


def chosen_machines(names: Sequence[str], run_path: Path | None) -> list[Machine]:
    """Return the run's machine first, then the rows of the table.

    Raises:
        ConfigurationError: none is named, or one is unknown.
        DocumentError: the run cannot be read.
    """
    from perfgate.core.gpu_table import gpu_sheet
    from perfgate.core.roofs import sheet_roofs
    from perfgate.storage.gpu_table import read_gpu_table

    table = read_gpu_table()
    machines = [] if run_path is None else [_measured_machine(run_path)]
    for name in names:
        sheet = gpu_sheet(table, name)
        roofs = sheet_roofs(sheet, table)
        machines.append(Machine(roofs=roofs, sustained=roofs, clock_hz=sheet.sm_clock_hz))
    if not machines:
        raise ConfigurationError(
            "no machine is named", hint="give --gpu H200 (repeatable), or --run RUN.json for its measured roofs"
        )
    return machines


def _measured_machine(path: Path) -> Machine:
    from perfgate.core.roofs import measured_roofs, sustained_roofs
    from perfgate.core.summary import median_or_none
    from perfgate.storage.documents import read_run
    from perfgate.storage.gpu_table import read_gpu_table

    run, table = read_run(path), read_gpu_table()
    clock_hz = median_or_none(
        block.sm_clock_hz for launch in run.launches for case in launch.cases.values() for block in case.valid_blocks
    )
    return Machine(
        roofs=measured_roofs(run, table),
        sustained=sustained_roofs(run, table),
        clock_hz=clock_hz or run.gpu.sm_clock_max_hz,
        run=run,
    )


def chosen_links(names: Sequence[str]) -> list["Link"]:
    """Return links by id.

    Raises:
        ConfigurationError: none is named, or one is unknown.
    """
    from perfgate.core.transfer import link_named
    from perfgate.storage.gpu_table import read_link_table

    table = read_link_table()
    if not names:
        known = ", ".join(link.id for link in table.links)
        raise ConfigurationError("no link is named", hint=f"give --link ID (repeatable): {known}")
    return [link_named(table, name) for name in names]


def parse_counts(text: str) -> tuple[int, ...]:
    """Parse ``"100,0,25"``.

    Raises:
        ConfigurationError: a part is not a whole number.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ConfigurationError(f"{text!r} is not a list of whole numbers", hint="write 100,0,25")
    return tuple(int(part) for part in parts)


def parse_steps(texts: Sequence[str]) -> list[tuple["Latency", int]]:
    """Parse ``"shuffle=5"``; a bare name counts once.

    Raises:
        ConfigurationError: an operation is unknown, or a count is not a whole number.
    """
    from perfgate.core.latency import latency_named
    from perfgate.storage.gpu_table import read_latency_table

    table, steps = read_latency_table(), []
    for text in texts:
        name, separator, count = text.partition("=")
        if separator and not count.isdecimal():
            raise ConfigurationError(f"--step {text!r}: {count!r} is not a whole number", hint="write shuffle=5")
        steps.append((latency_named(table, name), int(count) if separator else 1))
    return steps
