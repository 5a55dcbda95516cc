"""Options that several commands share, spelled once; the action's inputs use the same words."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from perfgate.core.device import Device
    from perfgate.workflow.cases import Selection

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLock:
    """``--lock-clocks`` was given; ``clock_mhz`` is None without a number."""

    clock_mhz: int | None


def _clock(context: click.Context, parameter: click.Parameter, value: str | None) -> ClockLock | None:
    del context, parameter
    if value is None or value == "default":
        return None if value is None else ClockLock(clock_mhz=None)
    if not value.isdecimal() or not 1 <= int(value) <= 100_000:
        raise click.BadParameter(f"{value!r} is not a clock in MHz, e.g. 1200")
    return ClockLock(clock_mhz=int(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """The measuring options of a command, as they were given."""

    device: str
    suite: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    launches: int | None = None
    seed: int | None = None
    inject: tuple[str, ...] = ()
    lock_clocks: ClockLock | None = None
    wait: bool = False

    def selection(self, device: "Device", policy: Path | None = None) -> "Selection":
        """Return what they select on a device; without ``--suite`` what the policy names."""
        from perfgate.storage.policy import read_policy
        from perfgate.workflow.cases import Selection
        from perfgate.workflow.devices import session_seed
        from perfgate.workflow.suites import chosen_suites

        built_in, own = chosen_suites(self.suite or read_policy(policy, Path.cwd()).suites)
        return Selection(
            suite=built_in,
            own_suites=own,
            cases=self.cases,
            inject=self.inject,
            seed=session_seed(self.seed, device),
            lock_clocks=self.lock_clocks is not None,
            clock_mhz=self.lock_clocks.clock_mhz if self.lock_clocks else None,
        )


def device_option(function: F) -> F:
    """``--device``: where the times come from."""
    return click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        help="auto, cuda, cuda:N, cuda:GPU-<uuid>, recorded or recorded:FILE (needs no GPU).",
    )(function)


def measuring_options(function: Callable[..., int]) -> Callable[..., int]:
    """On which device what is measured, and how often: given to the command as one ``measuring``."""

    @functools.wraps(function)
    def bundled(**given: Any) -> int:
        names = [field.name for field in fields(Measuring)]
        return function(measuring=Measuring(**{name: given.pop(name) for name in names}), **given)

    for option in reversed(
        (
            click.option(
                "--suite",
                multiple=True,
                metavar="NAME|FILE",
                help="default, full, or a file with cases of your own (repeatable); default: default.",
            ),
            click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these cases (repeatable)."),
            click.option("--launches", type=int, metavar="N", help="Fresh processes; default by policy: 6."),
            click.option("--seed", type=int, default=None, metavar="N", help="Order of cases, draws of a recording."),
            click.option(
                "--inject",
                multiple=True,
                metavar="CASE=CHANGE",
                help="Rehearse a change, e.g. 'bandwidth.copy=+3%' (repeatable); outputs say INJECTED.",
            ),
            click.option(
                "--lock-clocks",
                is_flag=False,
                flag_value="default",
                metavar="[MHZ]",
                callback=_clock,
                help="Lock the SM clock while measuring (needs root); restored on every way out.",
            ),
            click.option("--wait", is_flag=True, help="Wait for another perfgate on this GPU to end."),
        )
    ):
        bundled = option(bundled)
    return device_option(bundled)


def policy_option(function: F) -> F:
    """``--policy``: thresholds."""
    return click.option(
        "--policy",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Policy; default perfgate.toml, else [tool.perfgate] in pyproject.toml.",
    )(function)


def baseline_option(function: F) -> F:
    """``--baseline``: file or folder of baselines."""
    return click.option(
        "--baseline",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Baseline file or folder; default baselines/, for a recording those that ship with perfgate.",
    )(function)


def output_option(function: F) -> F:
    """``--output``: where results are written."""
    return click.option(
        "--output",
        type=click.Path(path_type=Path),
        default=Path("perfgate-results"),
        show_default=True,
        metavar="DIR",
        help="Folder for run.json, report.json and report.md; emptied first.",
    )(function)


def view_options(function: F) -> F:
    """How much is said, and how."""
    for option in reversed(
        (
            click.option("--json", "as_json", is_flag=True, help="Print the document instead of the report."),
            click.option("--quiet", "-q", is_flag=True, help="No progress."),
            click.option("--no-color", is_flag=True, help="No colour (NO_COLOR is honoured too)."),
        )
    ):
        function = option(function)
    return function


def verbose_option(function: F) -> F:
    """``--verbose``: the whole report."""
    return click.option("--verbose", "-v", is_flag=True, help="Everything: all cases, policy, environment.")(function)


def against_options(function: F) -> F:
    """``--against`` and what belongs to it."""
    for option in reversed(
        (
            click.option(
                "--against",
                metavar="REF",
                help="Measure REF and the working tree in turn and judge by that; needs no baseline.",
            ),
            click.option("--control", is_flag=True, help="With --against: measure what is the same on both sides too."),
            click.option("--build", metavar="COMMAND", help="With --against: builds each side, in its own folder."),
        )
    ):
        function = option(function)
    return function
