"""Mode ``comment``: numbers of other jobs judged again and told, by code and rules that the change has no part in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.errors import ConfigurationError, DocumentError, ExitCode, PerfgateError
from perfgate.github.api import Api
from perfgate.github.comments import RunId
from perfgate.github.event import PullRequest, WorkflowRun
from perfgate.github.pulls import fetch_pull_of_run
from perfgate.workflow.action import Step
from perfgate.workflow.base import Base, base_of_event, base_of_pull, base_of_ref, laid_out
from perfgate.workflow.proposed import proposed_change
from perfgate.workflow.publishing import Story, exit_code_of
from perfgate.workflow.rejudging import found_runs, of_commit, rejudged

# Where nothing was measured because nobody let it run to its end.
_ENDED_ON_PURPOSE = frozenset({"cancelled", "skipped", "stale"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is told, and on which pull request; no story where there is nothing to tell, and why."""

    story: Story | None
    pull: PullRequest | None = None
    reason: str = ""


def comment_story(step: Step, api: Api | None) -> Told:
    """Judge what other jobs measured by the base's baseline and policy.

    Raises:
        PerfgateError: a document is malformed, the base cannot be read, GitHub does not answer.
    """
    told_by = step.event.workflow_run
    if told_by is None:
        return _story(step, step.event.pull, step.runner.run)
    if not told_by.event.startswith("pull_request"):
        return Told(story=None, reason=f"the other workflow ran for the event {told_by.event}")
    if api is None:
        raise ConfigurationError("mode comment needs a token", hint="pass github-token")
    pull = fetch_pull_of_run(api, told_by)
    if pull is None:
        return Told(story=None, reason=f"no open pull request has the head {told_by.head_sha[:12]} any more")
    return _story(step, pull, RunId(id=told_by.id, attempt=told_by.attempt))


def _story(step: Step, pull: PullRequest | None, run: RunId) -> Told:
    url = step.runner.url_of_run(run)
    paths = found_runs(step.folder / (step.inputs.run or step.inputs.output))
    if not paths:
        return _nothing_measured(step.event.workflow_run, pull, run, url)
    try:
        story = _judged(step, pull, paths, Story(reports=(), exit_code=0, run=run, run_url=url))
    except PerfgateError as error:
        code = int(error.exit_code)
        story = Story(reports=(), exit_code=code, run=run, run_url=url, message=error.message, hint=error.hint)
    return Told(story=story, pull=pull)


def _judged(step: Step, pull: PullRequest | None, paths: Sequence[Path], story: Story) -> Story:
    base, head = _base(step, pull)
    proposed = proposed_change(base, step.places, head)
    with laid_out(base, step.places) as layout:
        is_named = step.inputs.baseline is not None
        reports = tuple(rejudged(path, layout, step.selection(), is_baseline_named=is_named) for path in paths)
    if pull is not None:
        reports = tuple(of_commit(report, pull.head_sha) for report in reports)
    return replace(
        story,
        reports=reports,
        exit_code=exit_code_of(reports),
        notices=proposed.sentences,
        details=proposed.markdown,
    )


def _base(step: Step, pull: PullRequest | None) -> tuple[Base, str | None]:
    """Return the base, and the commit that the change is read from."""
    if step.inputs.base_ref:
        return base_of_ref(step.folder, step.inputs.base_ref), None
    if step.event.workflow_run is not None and pull is not None:
        return base_of_pull(step.folder, pull, step.runner.address, step.token)
    base = base_of_event(step.folder, step.event, step.runner.address, step.token)
    return base, base.repository.commit_id("HEAD")


def _nothing_measured(told_by: WorkflowRun | None, pull: PullRequest | None, run: RunId, url: str) -> Told:
    """A gate that left no numbers failed, unless somebody ended it: a change may have taken the step out."""
    if told_by is None:
        raise DocumentError("run", "no run.json was found", hint="download the artifacts of the measuring jobs first")
    if told_by.conclusion in _ENDED_ON_PURPOSE:
        return Told(story=None, reason=f"the other workflow was {told_by.conclusion}")
    story = Story(
        reports=(),
        exit_code=int(ExitCode.DEVICE),
        run=run,
        run_url=url,
        message=f"The workflow that measures ended ({told_by.conclusion or 'unknown'}) without a measurement.",
        hint="See its log.",
    )
    return Told(story=story, pull=pull)
