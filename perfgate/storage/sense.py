"""What a schema cannot say: whether the parts of a document fit each other."""

from collections import Counter
from collections.abc import Iterable

from perfgate.core.baseline import Baseline, BaselineSession
from perfgate.core.fleet_report import FleetReport
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.shims import assert_never
from perfgate.storage.json_text import pointer_part


def refuse_senseless(document: Run | Baseline | Report | FleetReport, source: str) -> None:
    """Refuse a document whose parts contradict each other.

    Raises:
        DocumentError: with the place.
    """
    match document:
        case Run():
            problems = _run_problems(document)
        case Baseline():
            problems = _baseline_problems(document)
        case Report():
            problems = _report_problems(document)
        case FleetReport():
            problems = _fleet_problems(document)
        case _:
            assert_never(document)
    for pointer, message in problems:
        raise DocumentError(source, message, pointer=pointer)


def _run_problems(run: Run) -> Iterable[tuple[str, str]]:
    for case_id, info in run.cases.items():
        if info.family != case_id.split(".", 1)[0]:
            yield f"/cases/{pointer_part(case_id)}/family", f"{info.family!r} is not the family of {case_id!r}"
    previous = -1
    for position, launch in enumerate(run.launches):
        if launch.index <= previous:
            yield f"/launches/{position}/index", f"{launch.index} does not come after {previous}"
        previous = launch.index
        for case_id in launch.cases:
            if case_id not in run.cases:
                yield f"/launches/{position}/cases/{pointer_part(case_id)}", "the run's 'cases' do not describe it"


def _baseline_problems(baseline: Baseline) -> Iterable[tuple[str, str]]:
    for name in ("chip", "power_limit_w"):
        if getattr(baseline.gpu, name) is not None:
            yield f"/gpu/{name}", "belongs to a session, not to the GPUs that share this baseline"
    for position, session in enumerate(baseline.sessions):
        yield from _session_problems(session, f"/sessions/{position}")


def _session_problems(session: BaselineSession, pointer: str) -> Iterable[tuple[str, str]]:
    for case_id in session.refreshed.keys() - session.cases.keys():
        yield f"{pointer}/refreshed/{pointer_part(case_id)}", "the session has no such case"
    for case_id, case in session.cases.items():
        count = len(case.launch_medians_s)
        if case.launch_cycles is not None and len(case.launch_cycles) != count:
            place = f"{pointer}/cases/{pointer_part(case_id)}/launch_cycles"
            yield place, f"has {len(case.launch_cycles)} values where launch_medians_s has {count}"


def _report_problems(report: Report) -> Iterable[tuple[str, str]]:
    for case_id, count in Counter(case.id for case in report.cases).items():
        if count > 1:
            yield "/cases", f"judges {case_id!r} {count} times"
    for position, case in enumerate(report.cases):
        for name in ("baseline", "candidate", "change", "change_widened", "first_change"):
            estimate = getattr(case, name)
            if estimate is None or estimate.low is None or estimate.high is None:
                continue
            if estimate.low > estimate.high:
                yield f"/cases/{position}/{name}", f"the interval from {estimate.low} to {estimate.high} is reversed"


def _fleet_problems(report: FleetReport) -> Iterable[tuple[str, str]]:
    boards = len(report.identities)
    places = [(f"/members/{place}", one.identity) for place, one in enumerate(report.members)]
    places += [(f"/cases/{place}", one.identity) for place, one in enumerate(report.cases)]
    for pointer, identity in places:
        if identity is not None and identity >= boards:
            yield f"{pointer}/identity", f"there are only {boards} identities"
