"""perfgate as a library: measure, judge and render without the command line. docs/library.md shows it at work.

``from perfgate import library``, then ``library.measure("recorded")``. A regression is a result; what keeps a
verdict from being reached is a ``PerfgateError``.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from perfgate.core.baseline import Baseline
from perfgate.core.history import ChipHistory
from perfgate.core.policy import Policy
from perfgate.core.report import CaseResult, Report
from perfgate.core.run import Run
from perfgate.core.verdict import CaseVerdict, CheckVerdict
from perfgate.errors import BaselineError, ConfigurationError, ExitCode, PerfgateError
from perfgate.storage.documents import read_document, write_baseline, write_report, write_run
from perfgate.workflow.listener import Listener, Silent

__all__ = [
    "Baseline",
    "CaseResult",
    "CaseVerdict",
    "CheckVerdict",
    "ChipHistory",
    "ExitCode",
    "Listener",
    "PerfgateError",
    "Policy",
    "Report",
    "Run",
    "history",
    "judge",
    "measure",
    "read",
    "render",
    "write",
]

FORMS = ("text", "markdown", "html", "junit", "csv", "json")


def measure(
    device: str = "auto",
    *,
    suites: Iterable[str | os.PathLike[str]] = (),
    cases: Iterable[str] = (),
    launches: int = 6,
    seed: int | None = None,
    inject: Iterable[str] = (),
    wait: bool = False,
    listener: Listener | None = None,
) -> Run:
    """Measure a device in fresh processes, as ``perfgate run`` does, sampled as its baseline is where there is one.

    Args:
        device: ``"auto"``, ``"cuda:1"``, ``"cuda:GPU-<uuid>"``, or ``"recorded"``, which needs no GPU.
        suites: ``"default"``, ``"full"``, or files with suites of your own; ``default`` when empty.
        cases: globs; all cases when empty.
        launches: fresh processes; a baseline needs 12.
        seed: of the order of cases and of a recording's draws.
        inject: rehearsed changes and faults, e.g. ``"bandwidth.copy=+3%"``.
        wait: wait for another perfgate on this GPU to end, instead of failing.
        listener: told while it goes on.

    Raises:
        PerfgateError: the device, a suite or a launch failed; ``exit_code`` says of which kind it is.
    """
    from perfgate.workflow.cases import Selection
    from perfgate.workflow.checking import known_plans
    from perfgate.workflow.devices import baseline_place, opened_device, session_seed
    from perfgate.workflow.measuring import measured
    from perfgate.workflow.suites import chosen_suites

    opened = opened_device(device)
    built_in, own = chosen_suites(tuple(os.fspath(one) for one in suites))
    selection = Selection(
        suite=built_in, own_suites=own, cases=tuple(cases), inject=tuple(inject), seed=session_seed(seed, opened)
    )
    plans = known_plans(baseline_place(None, opened), opened.gpu)
    return measured(opened, selection, launches, listener or Silent(), wait=wait, plans=plans)


def judge(
    run: Run,
    baseline: Baseline | Run | str | os.PathLike[str] | None = None,
    *,
    policy: Policy | None = None,
    cases: Iterable[str] = (),
) -> Report:
    """Judge a run in one look, as ``perfgate compare`` does.

    Args:
        run: what was measured.
        baseline: accepted sessions, another run, or a file or folder of baselines; by default ``baselines/``, for a
            recording those that ship with perfgate.
        policy: thresholds; the defaults when None.
        cases: globs: what was to be measured. A case of the baseline that the run lacks makes the check invalid.

    Raises:
        BaselineError: no baseline is of the run's GPU.
        DocumentError: a baseline cannot be read or makes no sense.
        ConfigurationError: so few launches could prove nothing.
    """
    from perfgate.workflow.cases import Selection
    from perfgate.workflow.checking import compared, selected_baseline

    found, source = _baseline_of(run, baseline)
    globs = tuple(cases)
    if globs:
        found = selected_baseline(found, Selection(cases=globs))
    return compared(found, source, run, policy or Policy())


def history(
    *places: str | os.PathLike[str], policy: Policy | None = None, cases: Iterable[str] = ()
) -> tuple[ChipHistory, ...]:
    """Return what every case did over the runs and baselines of files and folders, as ``perfgate history`` does.

    Damaged files are left out, as long as one is whole.

    Raises:
        DocumentError: a place does not exist, or no document in it is whole.
        ConfigurationError: there is no document, or no case of that name.
    """
    from perfgate.workflow.trending import recalled

    return recalled([Path(one) for one in places], policy or Policy(), tuple(cases)).chips


def render(report: Report, form: str = "text", *, run: Run | None = None) -> str:
    """Render a report.

    Args:
        report: of ``judge``.
        form: ``"text"``, ``"markdown"``, ``"html"``, ``"junit"``, ``"csv"`` or ``"json"``.
        run: with ``"html"``: shows its launches and samples too.

    Raises:
        ConfigurationError: there is no such form.
    """
    match form:
        case "text":
            from perfgate.report.terminal import render_terminal

            return render_terminal(report, width=120)
        case "markdown":
            from perfgate.report.markdown import render_markdown

            return render_markdown(report)
        case "html":
            from perfgate.report.html_page import render_html

            return render_html(report, run=run)
        case "junit":
            from perfgate.report.junit import render_junit

            return render_junit(report)
        case "csv":
            from perfgate.report.table_csv import render_csv

            return render_csv(report)
        case "json":
            from perfgate.storage.documents import render_report_json

            return render_report_json(report)
        case _:
            raise ConfigurationError(f"a report has no form {form!r}", hint=f"one of {', '.join(FORMS)}")


def read(path: str | os.PathLike[str]) -> Run | Baseline | Report:
    """Read a document of any kind, gzipped or not.

    Raises:
        DocumentError: it cannot be read or makes no sense; names the file and the place.
    """
    return read_document(Path(path))


def write(path: str | os.PathLike[str], document: Run | Baseline | Report) -> None:
    """Write a document whole or not at all; gzipped where the name ends in ``.gz``.

    Raises:
        DocumentError: it would not be read back.
        OutputError: it cannot be written there.
    """
    match document:
        case Run():
            write_run(Path(path), document)
        case Baseline():
            write_baseline(Path(path), document)
        case Report():
            write_report(Path(path), document)


def _baseline_of(run: Run, given: Baseline | Run | str | os.PathLike[str] | None) -> tuple[Baseline, str]:
    """Return what a run is judged against, and what it is called in the report."""
    from perfgate.core.device import DeviceKind
    from perfgate.storage.baselines import find_baseline
    from perfgate.workflow.accepting import base_of_document, refuse_implausible
    from perfgate.workflow.devices import baseline_folder

    if isinstance(given, Baseline | Run):
        return base_of_document(given), "given"
    place = Path(given) if given is not None else baseline_folder(DeviceKind(run.device_kind))
    search = find_baseline(place, run.gpu)
    if search.found is None:
        raise BaselineError(search.reason, hint="record one: perfgate baseline update")
    refuse_implausible(search.found.baseline, str(search.found.path))
    return search.found.baseline, search.found.path.name
