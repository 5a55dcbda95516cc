"""``perfgate action``: what action.yml calls. Inputs come from the environment; the runner's files take outputs."""

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfgate.errors import ConfigurationError, ExitCode, PerfgateError

if TYPE_CHECKING:
    from perfgate.workflow.action import Step
    from perfgate.workflow.listener import Listener
    from perfgate.workflow.outcome import Outcome
    from perfgate.workflow.publishing import Published

_STATE_VARIABLE = "PERFGATE_STATE"
_TOKEN_VARIABLE = "PERFGATE_GITHUB_TOKEN"  # noqa: S105 - its name


@click.group()
def command() -> None:
    """Carry out a step of the GitHub Action; see docs/action.md."""


@command.command()
def measure() -> int:
    """Measure and judge, without a token; leave the rest to the step `publish`."""
    from perfgate.github.commands import append_outputs
    from perfgate.github.runner import runner_of
    from perfgate.workflow.outcome import ERROR, Outcome, write_outcome

    runner = runner_of(os.environ)
    state = Path(tempfile.mkdtemp(prefix="perfgate-", dir=runner.temp))
    append_outputs(runner.output_file, {"verdict": ERROR, "state": str(state)})
    if os.environ.get(_TOKEN_VARIABLE):
        raise ConfigurationError("the step that measures got a token", hint="give it to the step publish alone")
    with _silenced():
        try:
            outcome = _measured(_step(), state)
        except PerfgateError as error:
            tell_error(error)
            outcome = Outcome(exit_code=int(error.exit_code), message=error.message, hint=error.hint)
        except KeyboardInterrupt:
            outcome = Outcome(exit_code=int(ExitCode.INTERRUPTED), message="interrupted", hint="run the job again")
        except Exception as error:
            traceback.print_exc()
            message = f"a bug in perfgate: {type(error).__name__}"
            outcome = Outcome(exit_code=int(ExitCode.BUG), message=message, hint="please report the log of this step")
    write_outcome(state, outcome)
    # The publishing step decides: a slowdown may be accepted, which only GitHub knows.
    return int(ExitCode.PASSED) if outcome.report is not None or not outcome.message else outcome.exit_code


@command.command()
def publish() -> int:
    """Tell what the step `measure` found, write the outputs, and exit by the verdict."""
    from perfgate.github.commands import append_outputs
    from perfgate.github.runner import runner_of
    from perfgate.workflow.inputs import Mode
    from perfgate.workflow.outcome import ERROR

    runner = runner_of(os.environ)
    append_outputs(runner.output_file, {"verdict": ERROR, "exit-code": str(int(ExitCode.BUG))})
    with _silenced():
        step = _step(token=os.environ.get(_TOKEN_VARIABLE, "").strip() or None)
    match step.inputs.mode:
        case Mode.CHECK:
            return _publish_check(step)
        case Mode.COMMENT:
            return _publish_comment(step)
        case Mode.UPDATE_BASELINE:
            return _publish_baseline(step)


def tell_error(error: PerfgateError) -> None:
    """Print an error into the log."""
    from perfgate.cli.view import tell

    tell(f"perfgate: error: {error.message}")
    if error.hint:
        tell(f"perfgate: hint: {error.hint}")


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep the runner from taking for a command what is printed meanwhile: names and messages are anybody's."""
    from perfgate.github.commands import Silence

    silence = Silence()
    print(silence.begin, flush=True)
    try:
        yield
    finally:
        sys.stderr.flush()
        print(f"\n{silence.end}", flush=True)


def _step(token: str | None = None) -> "Step":
    from perfgate.github.event import read_event
    from perfgate.github.runner import runner_of
    from perfgate.workflow.action import Step
    from perfgate.workflow.inputs import parse_inputs

    runner, inputs = runner_of(os.environ), parse_inputs(os.environ)
    folder = runner.workspace / inputs.working_directory
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigurationError(
            f"input working-directory: {inputs.working_directory}: {error.strerror}", hint="check the repository out"
        ) from None
    return Step(inputs=inputs, event=read_event(os.environ), runner=runner, folder=Path.cwd(), token=token)


def _measured(step: "Step", state: Path) -> "Outcome":
    from perfgate.cli.progress import TerminalProgress
    from perfgate.cli.results import RUN_FILE, emptied_folder
    from perfgate.storage.documents import write_run
    from perfgate.workflow.action import measured_session
    from perfgate.workflow.inputs import Mode
    from perfgate.workflow.outcome import Outcome

    listener = TerminalProgress(quiet=False)
    nothing = Outcome(exit_code=int(ExitCode.PASSED), message="", hint="")
    match step.inputs.mode:
        case Mode.CHECK:
            return _checked(step, state, listener)
        case Mode.UPDATE_BASELINE if step.inputs.run is None:
            folder = emptied_folder(step.inputs.output)
            write_run(folder / RUN_FILE, measured_session(step, listener))
            return nothing
        case Mode.UPDATE_BASELINE | Mode.COMMENT:
            return nothing


def _checked(step: "Step", state: Path, listener: "Listener") -> "Outcome":
    from perfgate.cli.results import PROPOSED_FILE, REPORT_FILE, delivered, emptied_folder
    from perfgate.cli.view import current_view, show
    from perfgate.report.terminal import render_terminal
    from perfgate.storage.documents import render_baseline_json, write_report
    from perfgate.storage.files import write_text
    from perfgate.workflow.action import measured_change
    from perfgate.workflow.outcome import Outcome

    folder = emptied_folder(step.inputs.output)
    change = measured_change(step, listener)
    report = change.result.report
    view = current_view(no_color=True)
    show(render_terminal(report, width=view.width, color=False, unicode=view.unicode))
    write_report(state / REPORT_FILE, report)
    delivered(folder, change.result)
    if change.first_baseline is not None:
        write_text(folder / PROPOSED_FILE, render_baseline_json(change.first_baseline))
    return Outcome(
        exit_code=report.exit_code,
        report=str(state / REPORT_FILE),
        message="",
        hint="",
        notices=change.notices,
        details=change.proposed.markdown,
    )


def _publish_check(step: "Step") -> int:
    from perfgate.workflow.action import check_story
    from perfgate.workflow.outcome import read_outcome
    from perfgate.workflow.publishing import Desk, published

    state = os.environ.get(_STATE_VARIABLE, "")
    story = check_story(step, read_outcome(Path(state) if state else None))
    pull = step.event.pull
    desk = Desk(
        api=step.api(),
        inputs=step.inputs,
        pull=pull.number if pull is not None else None,
        head_sha=pull.head_sha if pull is not None else step.runner.sha,
        has_check_run=bool(step.inputs.check_run),
    )
    return _written(step, published(desk, story)).code


def _publish_comment(step: "Step") -> int:
    from perfgate.workflow.commenting import comment_story
    from perfgate.workflow.publishing import Desk, published

    api = step.api()
    with _silenced():
        told = comment_story(step, api)
    if told.story is None:
        return _nothing_told(step, told.reason)
    pull = told.pull
    desk = Desk(
        api=api,
        inputs=step.inputs,
        pull=pull.number if pull is not None else None,
        head_sha=pull.head_sha if pull is not None else step.runner.sha,
        has_check_run=step.inputs.check_run is not False,
    )
    done = _written(step, published(desk, told.story))
    # The verdict stands beside the commit; this job fails only where it could not say it.
    if not done.story.reports:
        return done.story.exit_code
    return int(ExitCode.PUBLISH if done.troubles else ExitCode.PASSED)


def _publish_baseline(step: "Step") -> int:
    from perfgate.github.commands import append_outputs, append_summary
    from perfgate.workflow.proposing import new_baseline, propose
    from perfgate.workflow.rejudging import found_runs, only_run

    runner = step.runner
    if step.inputs.run is None:
        code = ExitCode.PASSED if (step.inputs.output / "run.json").is_file() else ExitCode.DEVICE
        append_outputs(
            runner.output_file, {"verdict": "measured" if not code else "error", "exit-code": str(int(code))}
        )
        return int(code)
    api = step.api()
    if api is None:
        raise ConfigurationError("mode update-baseline with a run needs a token", hint="pass github-token")
    with _silenced():
        run = only_run(found_runs(step.inputs.run))
        new = new_baseline(run, step.places, reason=step.inputs.reason, run_url=runner.run_url)
        address = propose(api, new, step.places, base_ref=os.environ.get("GITHUB_REF_NAME", ""))
    append_summary(runner.summary_file, f"{new.body}\n[Pull request]({address})\n")
    append_outputs(runner.output_file, {"verdict": "proposed", "exit-code": "0", "gpu": run.gpu.name})
    return int(ExitCode.PASSED)


def _written(step: "Step", done: "Published") -> "Published":
    """Write reports, summary, annotations and outputs of what was published."""
    from perfgate.cli.results import MARKDOWN_FILE, REPORT_FILE
    from perfgate.github.commands import append_outputs, append_summary, render_annotation
    from perfgate.storage.documents import write_report
    from perfgate.storage.files import write_text
    from perfgate.workflow.publishing import annotations_of, located_annotations, summary_text
    from perfgate.workflow.suites import chosen_suites

    story, runner = done.story, step.runner
    summary = summary_text(story, done.troubles)
    outputs = {
        "verdict": story.verdict,
        "exit-code": str(story.exit_code),
        "regressed-count": str(story.regressed_count),
        "gpu": ", ".join(dict.fromkeys(report.gpu.name for report in story.reports)),
    }
    if story.reports:
        folder = step.inputs.output
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / MARKDOWN_FILE, summary)
        write_report(folder / REPORT_FILE, story.reports[0])
        outputs["summary-path"] = str((folder / MARKDOWN_FILE).absolute())
        outputs["report-path"] = str((folder / REPORT_FILE).absolute())
    suite, _ = chosen_suites(step.inputs.suites)
    located = tuple(note for report in story.reports for note in located_annotations(report, suite, runner.workspace))
    for annotation in annotations_of(story, done.code, done.troubles, located):
        print(render_annotation(annotation), flush=True)
    append_summary(runner.summary_file, summary)
    append_outputs(runner.output_file, outputs)
    return done


def _nothing_told(step: "Step", reason: str) -> int:
    from perfgate.github.commands import Annotation, append_outputs, append_summary, render_annotation
    from perfgate.report.escape import escaped

    print(render_annotation(Annotation(level="notice", title="perfgate", message=f"Nothing to tell: {reason}.")))
    append_summary(step.runner.summary_file, f"perfgate: nothing to tell: {escaped(reason)}.\n")
    append_outputs(step.runner.output_file, {"verdict": "none", "exit-code": "0"})
    return int(ExitCode.PASSED)
