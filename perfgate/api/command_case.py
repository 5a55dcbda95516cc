"""A program that measures itself: it prints times, or writes nvbench's JSON."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.api.axes import case_id
from perfgate.core.case import Case, Program, Timing, Work
from perfgate.core.toolbox import Toolbox, Workload
from perfgate.errors import ConfigurationError


def command_case(
    name: str,
    command: Sequence[str],
    *,
    work: Work | None = None,
    axes: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    sources: Sequence[str | Path] = (),
    timeout_s: float = 300.0,
    gated: bool = True,
    margin: float | None = None,
    version: int = 1,
) -> Case:
    """Return the case of a program, run once for every block.

    Its own times are taken as they are: perfgate can neither warm it up, nor verify its output, nor see what
    its events time; the report says so.

    Args:
        name: ``family.name``; with ``axes`` the id becomes ``family.name[axis=value,...]``.
        command: program and arguments. It prints times, one a line with its unit (``12.5 us``; other lines are
            passed over), or writes nvbench's JSON of one state into the file that ``{json}`` stands for:
            ``["./bench", "-b", "scan", "-a", "n=1048576", "--json", "{json}"]``.
        work: FLOP and bytes of one execution; without it there are no rates.
        axes: one combination of ``api.axes``.
        folder: working directory, absolute or relative to the file that calls this; by default that file's.
        sources: files whose change is a change of this case.
        timeout_s: longest run.
        gated: whether it is judged, or only reported.
        margin: relative change that counts as slower; a policy's own goes first.
        version: raised to make older baselines not comparable.

    Raises:
        ConfigurationError: the id or the command makes no sense.
    """
    identity = case_id(name, axes or {})
    if isinstance(command, str) or not command or not all(isinstance(one, str) for one in command):
        raise ConfigurationError(
            f"{identity}: command={command!r}", hint='write a list: ["./bench", "--json", "{json}"]'
        )
    caller = inspect.currentframe()
    here = Path(caller.f_back.f_code.co_filename).resolve().parent if caller and caller.f_back else Path()
    return Case(
        id=identity,
        version=version,
        work=work or Work(),
        prepare=_unprepared,
        sources=tuple(str((here / one).resolve()) for one in sources),
        timing=Timing.PROGRAM,
        gated=gated,
        margin=margin,
        program=Program(command=tuple(command), folder=str((here / (folder or "")).resolve()), timeout_s=timeout_s),
    )


def _unprepared(toolbox: Toolbox) -> Workload:
    del toolbox
    message = "a program is run, not prepared"
    raise AssertionError(message)
