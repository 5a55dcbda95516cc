"""A result told to people: comment, check run, job summary, annotations. None of it changes a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.core.report import CaseResult, Report
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import ExitCode, PerfgateError, PublishError
from perfgate.github.api import Api
from perfgate.github.checks import CheckRun, Conclusion, post_check_run
from perfgate.github.commands import MAX_ANNOTATIONS, MAX_SUMMARY_BYTES, Annotation, Level
from perfgate.github.comments import RunId, post_comment
from perfgate.github.pulls import ACCEPTED_LABEL, fetch_accepter
from perfgate.report.comment import render_comment, render_failure, render_headline, worst
from perfgate.workflow.inputs import Inputs, Wish
from perfgate.workflow.outcome import ERROR

# Below GitHub's limit with the hidden lines; each rung is tried where it finds the one before too long.
RUNGS_BYTES = (59_000, 30_000, 12_000, 4_000)
_ACCEPTABLE = (CheckVerdict.REGRESSED, CheckVerdict.SUSPECTED)
_SLOWER = (CaseVerdict.REGRESSED, CaseVerdict.SUSPECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is told.

    Attributes:
        reports: of the checks; empty where no verdict was reached.
        exit_code: of the check as a whole.
        notices: sentences for people; details: Markdown.
        message, hint: why there is no verdict.
        run: workflow run that measured; run_url: its page.
    """

    reports: tuple[Report, ...]
    exit_code: int
    run: RunId
    run_url: str
    notices: tuple[str, ...] = ()
    details: str = ""
    message: str = ""
    hint: str = ""

    @property
    def verdict(self) -> str:
        """The verdict, or ``error``."""
        return str(worst(self.reports)) if self.reports else ERROR

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        return render_headline(self.reports) if self.reports else "no verdict"

    @property
    def regressed_count(self) -> int:
        """How many gated cases are slower, over all reports."""
        return sum(case.verdict is CaseVerdict.REGRESSED for report in self.reports for case in report.cases)

    def markdown(self, limit_bytes: int) -> str:
        """Render it for people."""
        if not self.reports:
            return render_failure(self.message, self.hint, run_url=self.run_url)
        return render_comment(
            self.reports,
            limit_bytes=limit_bytes,
            notices=self.notices,
            details=self.details,
            run_url=self.run_url,
        )


def accepted_by_label(story: Story, api: Api, pull: int) -> Story:
    """Return the story with slowdowns accepted where somebody who may has labelled the pull request so.

    Raises:
        PublishError: GitHub does not say.
    """
    if not any(_is_acceptable(report) for report in story.reports):
        return story
    login = fetch_accepter(api, pull)
    if login is None:
        return story
    reports = tuple(_accepted(report, login) if _is_acceptable(report) else report for report in story.reports)
    return replace(
        story,
        reports=reports,
        exit_code=exit_code_of(reports),
        notices=(f"The slowdown is accepted: {login} labelled this pull request {ACCEPTED_LABEL}.", *story.notices),
    )


def _is_acceptable(report: Report) -> bool:
    return report.verdict in _ACCEPTABLE and report.exit_code in (ExitCode.REGRESSED, ExitCode.UNDECIDED)


def _accepted(report: Report, login: str) -> Report:
    def accepted(case: CaseResult) -> CaseResult:
        is_slower = case.gated and case.verdict in _SLOWER and case.accepted is None
        return replace(case, accepted=f"label {ACCEPTED_LABEL}, set by {login}") if is_slower else case

    step = "After the merge run the workflow that updates the baseline, so that other pull requests do not stay red."
    cases = tuple(map(accepted, report.cases))
    return replace(report, cases=cases, exit_code=int(ExitCode.PASSED), next_step=step)


def _with_label_hint(report: Report) -> Report:
    if not _is_acceptable(report):
        return report
    hint = (
        f"Somebody with triage right can accept it here: label the pull request {ACCEPTED_LABEL}, then re-run the job."
    )
    return replace(report, next_step=f"{report.next_step} {hint}".strip())


def step_exit_code(story: Story, fail_on: frozenset[CheckVerdict] | None) -> int:
    """Return the exit code of the job's step: the check's own, but for verdicts that do not fail it.

    An error, where no verdict was reached, always fails.
    """
    if fail_on is None or not story.reports:
        return story.exit_code
    failing = [report for report in story.reports if report.verdict in fail_on and not _is_accepted(report)]
    if not failing:
        return int(ExitCode.PASSED)
    return exit_code_of(failing) or int(ExitCode.UNDECIDED)


def exit_code_of(reports: Sequence[Report]) -> int:
    """Return the exit code of several checks: that of the worst verdict among those that fail."""
    failing = [report for report in reports if report.exit_code != ExitCode.PASSED]
    if not failing:
        return int(ExitCode.PASSED)
    verdict = worst(failing)
    return next(report.exit_code for report in failing if report.verdict is verdict)


def _is_accepted(report: Report) -> bool:
    return report.verdict in _ACCEPTABLE and report.exit_code == ExitCode.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a story is published.

    Attributes:
        api: GitHub; None without a token.
        inputs: the wishes.
        pull: number of the pull request; None without one.
        head_sha: commit that a check run is about.
        has_check_run: whether a check run is posted.
    """

    api: Api | None
    inputs: Inputs
    pull: int | None
    head_sha: str
    has_check_run: bool

    def post_comment(self, story: Story, code: int) -> None:
        """Post the comment where there is a pull request and it is wanted; raises PublishError."""
        if self.api is None or self.pull is None or self.inputs.comment is Wish.NEVER:
            return
        # Without a verdict there is nothing worth a new comment; an old one must not go on saying "passed".
        is_worth_one = bool(story.reports) and (self.inputs.comment is Wish.ALWAYS or code != ExitCode.PASSED)
        bodies = tuple(dict.fromkeys(story.markdown(limit) for limit in RUNGS_BYTES))
        post_comment(
            self.api, self.pull, name=self.inputs.name, run=story.run, bodies=bodies, only_update=not is_worth_one
        )

    def post_check_run(self, story: Story, code: int) -> None:
        """Post the check run where it is wanted; raises PublishError."""
        if self.api is None or not (self.has_check_run and self.head_sha):
            return
        name = self.inputs.name
        check = CheckRun(
            name=name if name == "perfgate" else f"perfgate ({name})",
            head_sha=self.head_sha,
            conclusion=_conclusion(story, code),
            title=story.headline,
            summary=story.markdown(RUNGS_BYTES[0]),
            external_id=f"{name}:{story.run.id}:{story.run.attempt}",
            details_url=story.run_url,
        )
        post_check_run(self.api, check)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was told, the exit code of the step, and what could not be delivered."""

    story: Story
    code: int
    troubles: tuple[PerfgateError, ...] = ()


def published(desk: Desk, story: Story) -> Published:
    """Ask GitHub whether a slowdown is accepted, then post; what GitHub refuses changes no verdict."""
    troubles: list[PerfgateError] = []
    if desk.api is not None and desk.pull is not None:
        try:
            story = accepted_by_label(story, desk.api, desk.pull)
        except PublishError as error:
            troubles.append(error)
    code = step_exit_code(story, desk.inputs.fail_on)
    if desk.pull is not None:
        story = replace(story, reports=tuple(_with_label_hint(report) for report in story.reports))
    # Whoever ended it, or the newer commit for which it was ended, is not told.
    posts = () if code == ExitCode.INTERRUPTED else (desk.post_comment, desk.post_check_run)
    for post in posts:
        try:
            post(story, code)
        except PublishError as error:  # noqa: PERF203 - twice
            troubles.append(error)
    return Published(story=story, code=code, troubles=tuple(troubles))


def _conclusion(story: Story, code: int) -> Conclusion:
    if code != ExitCode.PASSED:
        return "failure"
    return "success" if story.verdict == CheckVerdict.PASSED else "neutral"


def summary_text(story: Story, troubles: tuple[PerfgateError, ...]) -> str:
    """Return the job summary: all that there is, and what could not be delivered elsewhere."""
    text = story.markdown(MAX_SUMMARY_BYTES - 20_000)
    lines = "".join(f"- {render_trouble(error)}\n" for error in troubles[:10])
    return f"{text}\n{lines}" if lines else text


def render_trouble(error: PerfgateError) -> str:
    """Render what could not be delivered as plain text within Markdown."""
    from perfgate.report.escape import escaped

    return escaped(f"Not delivered: {error.message} {error.hint}".strip())


def annotations_of(
    story: Story, code: int, troubles: tuple[PerfgateError, ...], located: tuple[Annotation, ...] = ()
) -> tuple[Annotation, ...]:
    """Return what is annotated: the verdict, notices, sources of slower cases, undelivered reports; ten at most."""
    title = f"perfgate: {story.headline}"
    if not story.reports:
        head = [Annotation(level="error", title=title, message=f"{story.message} {story.hint}".strip())]
    else:
        text = " ".join(report.summary for report in story.reports)
        is_quiet = code == ExitCode.PASSED and story.verdict == CheckVerdict.PASSED
        level: Level = "error" if code != ExitCode.PASSED else "warning"
        head = [] if is_quiet else [Annotation(level=level, title=title, message=text)]
    notices = [Annotation(level="notice", title="perfgate", message=one) for one in story.notices]
    warnings = [
        Annotation(level="warning", title="perfgate: not delivered", message=f"{one.message} {one.hint}".strip())
        for one in troubles
    ]
    return (*head, *notices, *warnings, *located)[:MAX_ANNOTATIONS]


def located_annotations(report: Report, suite: str, workspace: Path) -> tuple[Annotation, ...]:
    """Return an annotation on the source of each slower case whose source lies in the workspace.

    Those of built-in cases do only where perfgate checks itself. Own suites are never loaded here: they are the
    change's code.
    """
    if not suite:
        return ()
    from perfgate.suite import built_in_suite
    from perfgate.suite.sources import source_files

    slower = {case.id: case for case in report.cases if case.verdict in _SLOWER and case.gated}
    if not slower:
        return ()
    top = workspace.resolve()
    found = []
    for case in built_in_suite(suite, report.gpu).cases:
        sources = source_files(case) if case.id in slower else ()
        if sources and sources[0].is_relative_to(top):
            result = slower[case.id]
            change = f" by {result.change.value * 100:+.2f} %" if result.change is not None else ""
            place = sources[0].relative_to(top).as_posix()
            found.append(
                Annotation(level="warning", title="perfgate", message=f"{case.id} is slower{change}", file=place)
            )
    return tuple(found)
