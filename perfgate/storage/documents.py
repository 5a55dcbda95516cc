"""Runs, baselines and reports as files and as text: the only way in and out.

Reading: bounded bytes, strict JSON, format and version, schema, types, sense. Writing: the same
checks, then the canonical text, so that what was read is written back byte for byte.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from perfgate.core.baseline import Baseline, BaselineSession
from perfgate.core.canonical import significant
from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.fleet_report import FleetReport
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.storage.files import locked, read_bytes, write_text
from perfgate.storage.formats import BASELINE, FLEET, FORMATS, REPORT, RUN, Format, content_of, format_of
from perfgate.storage.json_text import parse_json, refuse_unfit, render_json
from perfgate.storage.privacy import without_private_text
from perfgate.storage.schema import refuse_invalid
from perfgate.storage.sense import refuse_senseless

T = TypeVar("T", Run, Baseline, Report, FleetReport)

# Where the kind is not known before it is read, the largest one sets the bound.
MAX_BYTES = max(one.max_bytes for one in FORMATS.values())


def read_run(path: Path) -> Run:
    """Read a run document, gzipped or not.

    Raises:
        DocumentError: it cannot be read or makes no sense; names the file and the place.
    """
    return _read(RUN, read_bytes(path, RUN.max_bytes), str(path))


def read_baseline(path: Path) -> Baseline:
    """Read a baseline document; raises like ``read_run``."""
    return _read(BASELINE, read_bytes(path, BASELINE.max_bytes), str(path))


def read_report(path: Path) -> Report:
    """Read a report document; raises like ``read_run``."""
    return _read(REPORT, read_bytes(path, REPORT.max_bytes), str(path))


def read_document(path: Path) -> Run | Baseline | Report:
    """Read a document of any kind, as it says it is: for commands that take several. Raises like ``read_run``."""
    data, source = read_bytes(path, MAX_BYTES), str(path)
    value = parse_json(data, source, MAX_BYTES)
    found = format_of(value, source)
    document: Run | Baseline | Report = _parsed(found, value, source)
    return document


def parse_run(text: bytes | str, source: str) -> Run:
    """Parse a run document; ``source`` names it in errors. Raises like ``read_run``."""
    return _read(RUN, text, source)


def parse_checked_run(text: str, source: str) -> Run:
    """Parse what ``render_run_json`` made and for whose bytes a hash vouches, in a third of the time of ``parse_run``.

    It fitted when it was made; its types are looked at again.

    Raises:
        DocumentError: it is no run document.
    """
    try:
        return decode(Run, content_of(json.loads(text), RUN, source))
    except ValueError as error:
        raise DocumentError(source, str(error)) from None
    except CodecError as error:
        raise DocumentError(source, error.reason, pointer=error.pointer) from None


def parse_baseline(text: bytes | str, source: str) -> Baseline:
    """Parse a baseline document; raises like ``read_run``."""
    return _read(BASELINE, text, source)


def parse_report(text: bytes | str, source: str) -> Report:
    """Parse a report document; raises like ``read_run``."""
    return _read(REPORT, text, source)


def render_run_json(run: Run, source: str = "run") -> str:
    """Render a run document.

    Raises:
        DocumentError: the run would not be read back; names the place.
    """
    return _rendered(RUN, run, source)


def render_baseline_json(baseline: Baseline, source: str = "baseline") -> str:
    """Render a baseline document, numbers to 6 significant digits; raises like ``render_run_json``."""
    return _rendered(BASELINE, baseline, source)


def render_report_json(report: Report, source: str = "report") -> str:
    """Render a report document: what ``compare --json`` prints; raises like ``render_run_json``."""
    return _rendered(REPORT, report, source)


def render_fleet_json(report: FleetReport, source: str = "fleet report") -> str:
    """Render the report on a fleet; raises like ``render_run_json``."""
    return _rendered(FLEET, report, source)


def parse_fleet(text: bytes | str, source: str) -> FleetReport:
    """Parse the report on a fleet; raises like ``read_run``."""
    return _read(FLEET, text, source)


def write_run(path: Path, run: Run) -> None:
    """Write a run document whole or not at all; gzipped when the name ends in ``.gz``.

    Raises:
        DocumentError: the run would not be read back.
        OutputError: it cannot be written there.
    """
    write_text(path, render_run_json(run, str(path)))


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline document; raises like ``write_run``. To add to one, use ``update_baseline``."""
    text = render_baseline_json(baseline, str(path))
    with locked(path):
        write_text(path, text)


def write_report(path: Path, report: Report) -> None:
    """Write a report document; raises like ``write_run``."""
    write_text(path, render_report_json(report, str(path)))


def _read(wanted: Format[T], data: bytes | str, source: str) -> T:
    return _parsed(wanted, parse_json(data, source, wanted.max_bytes), source)


def _parsed(wanted: Format[T], value: Any, source: str) -> T:
    return _checked(wanted, content_of(value, wanted, source), source)


def _checked(wanted: Format[T], content: dict[str, Any], source: str) -> T:
    refuse_invalid({"format": wanted.tag} | content, wanted.name, source)
    try:
        document = decode(wanted.content, content)
    except CodecError as error:
        raise DocumentError(source, error.reason, pointer=error.pointer) from None
    if isinstance(document, Baseline):
        document = replace(document, sessions=tuple(sorted(document.sessions, key=_moment)))
    refuse_senseless(document, source)
    return document


def _moment(session: BaselineSession) -> tuple[str, str]:
    return session.provenance.recorded_utc, session.chip or ""


def _place(session: dict[str, Any]) -> tuple[str, str]:
    """Return where a session stands in a file: by chip, then by time.

    Branches that add sessions of different chips then change different places of the text, and git joins them.
    """
    return session["chip"] or "", session["provenance"]["recorded_utc"]


def _rendered(wanted: Format[T], document: T, source: str) -> str:
    content = without_private_text(encode(document, sorted_maps=wanted.sorted_maps))
    refuse_unfit(content, source)
    if wanted is BASELINE:
        content = significant(content)
        content["sessions"].sort(key=_place)
    _checked(wanted, content, source)
    return render_json({"format": wanted.tag} | content, wanted.expanded_levels)
