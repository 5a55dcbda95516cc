"""Runs that another job measured, judged again by trusted code: nothing that job wrote but its numbers is used."""

from dataclasses import replace
from pathlib import Path

from perfgate.core.against import judged_against
from perfgate.core.caveat import Caveat
from perfgate.core.device import DeviceKind
from perfgate.core.gate import judge
from perfgate.core.policy import Policy
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.core.sides import is_same_session, sides_of
from perfgate.errors import DocumentError, ExitCode
from perfgate.resources import resource_folder
from perfgate.storage.baselines import find_baseline
from perfgate.storage.documents import read_run
from perfgate.workflow.accepting import now_utc
from perfgate.workflow.against import told
from perfgate.workflow.base import Layout
from perfgate.workflow.cases import Selection
from perfgate.workflow.checking import compared, selected_baseline, shown
from perfgate.workflow.gating_by_base import first_passes
from perfgate.workflow.stored import stored_verdict

RUN_FILE = "run.json"
CONFIRMATION_FILE = "confirmation.json"
BASE_FILE = "base.json"
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
    """Judge a run document by a base's baseline and policy, or by the run of the base beside it.

    A run that was confirmed has the confirmation beside it.

    Raises:
        DocumentError: a document is malformed.
        ConfigurationError: the policy is wrong.
    """
    run = read_run(path)
    policy = layout.effective_policy()
    is_shipped = run.device_kind == DeviceKind.RECORDED and not is_baseline_named
    place = resource_folder("baselines") if is_shipped else layout.baseline
    base = _beside(path, BASE_FILE)
    if base is not None:
        return _rejudged_against(str(path), base, run, policy, stored_verdict(place, base, selection, policy))
    confirmation = _beside(path, CONFIRMATION_FILE)
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


def _beside(path: Path, name: str) -> Run | None:
    place = path.with_name(name)
    return read_run(place) if place.is_file() and not place.is_symlink() else None


def _rejudged_against(source: str, base: Run, head: Run, policy: Policy, stored: Caveat | None) -> Report:
    """Judge two runs of one session by their pairs."""
    if not is_same_session(base, head):
        raise DocumentError(source, f"and the {BASE_FILE} beside it are not of one GPU and method")
    try:
        sides = sides_of(base, head)
    except ValueError as error:
        raise DocumentError(source, f"and the {BASE_FILE} beside it do not fit: {error}") from None
    commit = (base.environment.commit or "unknown")[:12]
    sides = replace(sides, base_name=f"base {commit}, measured in turn" if sides.pairs else f"base {commit}")
    report = told(shown(judged_against(sides, policy, now_utc()), sides.head), () if stored is None else (stored,))
    return first_passes(report)


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
