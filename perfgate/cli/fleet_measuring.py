"""Options of the commands that measure a fleet, and what they do."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from perfgate.core.fleet import Seat
    from perfgate.storage.baselines import StoredBaseline
    from perfgate.storage.fleet_folder import FleetManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMeasuring:
    """The measuring options of a fleet, as they were given."""

    address: str | None
    concurrency: str
    device: str
    suite: tuple[str, ...]
    cases: tuple[str, ...]
    launches: int | None
    seed: int | None
    inject: tuple[str, ...]
    timeout: float
    placement_timeout: float
    resume: bool

    @property
    def arguments(self) -> tuple[str, ...]:
        """What every ``perfgate run`` is told."""
        words = ["--device", self.device]
        for name, values in (("--suite", self.suite), ("--case", self.cases), ("--inject", self.inject)):
            for value in values:
                words += [name, value]
        for name, number in (("--launches", self.launches), ("--seed", self.seed)):
            if number is not None:
                words += [name, str(number)]
        return tuple(words)

    def measured(
        self,
        folder: Path,
        *,
        quiet: bool,
        only: "Sequence[Seat] | None" = None,
        baselines: "Sequence[StoredBaseline]" = (),
    ) -> "FleetManifest":
        """Measure a fleet into a folder."""
        from perfgate.core.fleet import Concurrency
        from perfgate.workflow.fleet_measuring import FleetPlan, measured_fleet

        plan = FleetPlan(
            arguments=self.arguments,
            concurrency=Concurrency(self.concurrency),
            address=self.address,
            timeout_s=self.timeout,
            placement_s=self.placement_timeout,
            baselines={one.path.name: one.path.read_bytes() for one in baselines},
        )
        return measured_fleet(
            folder, plan, resume=self.resume and only is None, only=only, heard=_silent if quiet else _told
        )


def _silent(seat: "Seat", reason: str | None, done: int, count: int) -> None:
    del seat, reason, done, count


def _told(seat: "Seat", reason: str | None, done: int, count: int) -> None:
    from perfgate.cli.view import tell

    tell(f"perfgate: {done} of {count}: {seat.name}{f': {reason}' if reason else ''}")


def fleet_measuring_options(function: Callable[..., int]) -> Callable[..., int]:
    """On which cluster what is measured: given to the command as one ``measuring``."""

    @functools.wraps(function)
    def bundled(**given: Any) -> int:
        names = [field.name for field in fields(FleetMeasuring)]
        return function(measuring=FleetMeasuring(**{name: given.pop(name) for name in names}), **given)

    wrapped: Callable[..., int] = bundled
    for option in reversed(
        (
            click.option(
                "--address", metavar="ADDRESS", help="Ray cluster: auto, HOST:PORT, ray://...; default: this machine."
            ),
            click.option(
                "--concurrency",
                type=click.Choice(["gpu", "node", "all"]),
                default="gpu",
                show_default=True,
                help="What works at the same time: one GPU of a node, all of a node, all of the fleet. Recorded; runs "
                "of different kinds are not compared.",
            ),
            click.option("--device", default="cuda", show_default=True, metavar="DEVICE", help="As of perfgate run."),
            click.option(
                "--suite", multiple=True, metavar="NAME|FILE", help="As of perfgate run; files on every node."
            ),
            click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these cases (repeatable)."),
            click.option("--launches", type=int, metavar="N", help="Fresh processes a GPU; default by policy: 6."),
            click.option("--seed", type=int, metavar="N", help="Order of cases, draws of a recording."),
            click.option("--inject", multiple=True, metavar="CASE=CHANGE", help="Rehearse a change on every GPU."),
            click.option("--timeout", type=float, default=1800.0, show_default=True, metavar="S", help="Longest run."),
            click.option(
                "--placement-timeout",
                type=float,
                default=300.0,
                show_default=True,
                metavar="S",
                help="How long to wait for GPUs that other work of the cluster holds.",
            ),
            click.option("--resume", is_flag=True, help="Keep the runs that RUNS holds, and measure the rest."),
        )
    ):
        wrapped = option(wrapped)
    return wrapped
