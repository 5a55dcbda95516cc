"""Runs that another job measured, judged again by trusted code: nothing that job wrote but its numbers is used."""

from dataclasses import replace
from pathlib import Path

from perfgate.core.device import DeviceKind
from perfgate.core.gate import judge
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.errors import DocumentError, ExitCode
from perfgate.resources import resource_folder
from perfgate.storage.baselines import find_baseline
from perfgate.storage.documents import read_run
from perfgate.workflow.accepting import now_utc
from perfgate.workflow.base import Layout
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import compared, selected_baseline, shown

RUN_FILE = "run.json"
CONFIRMATION_FILE = "confirmation.json"
# A matrix has 256 jobs at most; nobody has that many kinds of GPU.
_MAX_RUNS = 32


def found_runs(place: Path) -> tuple[Path, ...]:
    """Return the run documents of a file or folder, and of the folders in it, sorted by path.

    Raises:
        DocumentError: there are too many.
    """
    if place.is_file():
        return (place,)
    paths = sorted((*place.glob(RUN_FILE), *place.glob(f"*/{RUN_FILE}")))
    found = tuple(path for path in paths if path.is_file() and not path.is_symlink())
    if len(found) > _MAX_RUNS:
        raise DocumentError(str(place), f"holds {len(found)} runs, more than {_MAX_RUNS}")
    return found


def rejudged(path: Path, layout: Layout, selection: Selection, *, is_baseline_named: bool) -> Report:
    """Judge a run document, and the confirmation beside it, by a base's baseline and policy.

    Raises:
        DocumentError: a document is malformed.
        ConfigurationError: the policy is wrong.
    """
    run = read_run(path)
    beside = path.with_name(CONFIRMATION_FILE)
    confirmation = read_run(beside) if beside.is_file() and not beside.is_symlink() else None
    policy = layout.effective_policy()
    is_shipped = run.device_kind == DeviceKind.RECORDED and not is_baseline_named
    place = resource_folder("baselines") if is_shipped else layout.baseline
    search = find_baseline(place, run.gpu)
    if search.found is not None:
        baseline = selected_baseline(search.found.baseline, selection)
        return compared(baseline, search.found.path.name, run, policy, confirmation)
    nearest = search.nearest
    report = judge(
        baseline=nearest.baseline if nearest else None,
        candidate=run,
        policy=policy,
        created_utc=now_utc(),
        baseline_source=nearest.path.name if nearest else place.name,
    )
    # The first run passes, here as there: a base without any baseline has nothing to protect.
    code = report.exit_code if nearest else int(ExitCode.PASSED)
    return replace(shown(report, run), exit_code=code)


def of_commit(report: Report, sha: str) -> Report:
    """Return the report as being about a commit: what a run says of itself is its writer's claim."""
    return replace(report, environment=replace(report.environment, commit=sha, dirty=None))


def only_run(paths: tuple[Path, ...]) -> Run:
    """Read the one run document that there is.

    Raises:
        DocumentError: there is none, or more than one.
    """
    if len(paths) != 1:
        raise DocumentError("run", f"names {len(paths)} run documents, not one", hint="name the file run.json")
    return read_run(paths[0])
