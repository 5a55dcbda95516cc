"""Progress on a terminal: a bar on stderr that says what is being done; plain notices elsewhere."""

import sys
from typing import Any

from perfgate.cli.view import tell


class TerminalProgress:
    """A Listener that draws on stderr while it is a terminal, and only prints notices where it is not."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._progress: Any = None
        self._task: Any = None
        self._cases = 0

    def begins(self, launches: int, cases: int) -> None:
        """See workflow.listener.Listener."""
        self._cases = cases
        if self._quiet or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[launch]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[step]}", style="dim", markup=False),  # ids hold brackets
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
        self._task = self._progress.add_task("launches", total=launches * cases, launch=f"0/{launches}", step="")
        self._launches = launches

    def progresses(self, launch: int, done_cases: int, case_id: str, phase: str) -> None:
        """See workflow.listener.Listener."""
        if self._progress is not None:
            self._progress.update(
                self._task,
                completed=launch * self._cases + done_cases,
                launch=f"{launch + 1}/{self._launches}",
                step=f"{case_id} {phase}",
            )

    def notices(self, message: str) -> None:
        """See workflow.listener.Listener."""
        if self._quiet:
            return
        if self._progress is not None:
            self._progress.console.print(f"perfgate: {message}", markup=False, highlight=False)
        else:
            tell(f"perfgate: {message}")

    def ends(self) -> None:
        """See workflow.listener.Listener."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
