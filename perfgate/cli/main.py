"""The command's door: parses arguments, lets one command run, turns every ending into an exit code.

Exit 1 means "regressed" and nothing else, so click never exits by itself here, and every other way
out has its own code. Commands are imported when they are called: ``--help`` answers at once.
"""

import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

from perfgate import __version__
from perfgate.cli.view import open_streams, silence, tell
from perfgate.errors import ExitCode, PerfgateError

# Name, module, one line for --help: listed here, so that help needs no command's module.
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("perfgate.cli.check", "Measure this GPU and judge it against its baseline (the main job)."),
    "run": ("perfgate.cli.run", "Measure only, and write a run document."),
    "compare": ("perfgate.cli.compare", "Judge only: a baseline or run against a run; needs no GPU."),
    "baseline": ("perfgate.cli.baseline", "Update, show, compare, list and validate baselines."),
    "roofline": ("perfgate.cli.roofline", "Measured and theoretical roofs, and where each case sits."),
    "estimate": ("perfgate.cli.estimate", "Predicted times of kernels and transfers; needs no GPU."),
    "fleet": ("perfgate.cli.fleet", "Every GPU of many machines, on Ray or from a folder of runs: which is slow."),
    "calibrate": ("perfgate.cli.calibrate", "What this machine can detect: noise, false alarms, smallest change."),
    "history": ("perfgate.cli.history", "Trend of every case over runs and baseline sessions: steps, slow drift."),
    "init": ("perfgate.cli.init", "Write policy, example suite and workflow into this repository."),
    "doctor": ("perfgate.cli.doctor", "What of GPU, driver, compiler and permissions works here."),
    "report": ("perfgate.cli.report", "Render a report or a run again: terminal, Markdown, HTML, JSON, JUnit, CSV."),
    "comment": ("perfgate.cli.comment", "Post or update the comment on a pull request."),
    "action": ("perfgate.cli.action", "What the GitHub Action calls."),
}
HIDDEN: dict[str, str] = {
    "launch": "perfgate.cli.launch",
    "describe": "perfgate.cli.describe",
    "profile": "perfgate.cli.profiling",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of COMMANDS."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        module = COMMANDS[cmd_name][0] if cmd_name in COMMANDS else HIDDEN.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest near names for an unknown command."""
        if args and args[0] not in COMMANDS and args[0] not in HIDDEN and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            suggestion = f" Did you mean {near[0]!r}?" if near else f" Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}.{suggestion}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="perfgate", message="%(prog)s %(version)s")
def root() -> None:
    """Performance-regression gate for NVIDIA GPUs.

    Measures a fixed set of CUDA kernels, compares the medians with the baseline of this GPU and fails
    when one is slower. Exit codes: 0 passed, 1 regressed, 2 usage, 3 bad document, 4 no comparable
    baseline, 5 GPU or compiler failure, 6 wrong output, 7 GitHub, 8 suspected or invalid, 130 interrupted.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; never raises."""
    open_streams()
    try:
        code = root.main(args=list(arguments), prog_name="perfgate", standalone_mode=False)
        return int(code or 0)
    except PerfgateError as error:
        print_error(error)
        return int(error.exit_code)
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        tell(text.getvalue())
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.exceptions.Abort):
        tell("perfgate: interrupted")
        return int(ExitCode.INTERRUPTED)
    except SystemExit as error:
        if not error.code:  # how click ends after it has completed a line for a shell
            return int(ExitCode.PASSED)
        # How click ends where help has no reader left, with 1; a result's reader may go away (see view.show).
        silence(sys.stdout)
        return int(ExitCode.INTERRUPTED)
    except Exception:
        import traceback

        tell(traceback.format_exc())
        tell("perfgate: this is a bug in perfgate; please report it with the lines above")
        return int(ExitCode.BUG)


def print_error(error: PerfgateError) -> None:
    """Say what happened and what to do, on stderr; under GitHub Actions also as an annotation."""
    tell(f"perfgate: error: {error.message}")
    if error.hint:
        tell(f"perfgate: hint: {error.hint}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = f"{error.message} {error.hint}".strip()
        escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        tell(f"::error title=perfgate::{escaped}")
