"""The folder of a fleet: a run for every GPU, and what was to be measured and did not come.

``runs/NODE/GPU.json.gz``, beside them ``fleet.json``, and in ``condensed/`` the same runs without their samples: what
judging thousands of them takes, read in a twentieth of the time. Their first line has the hashes of the file that they
were made of and of the rest of themselves: of another file, or damaged, they are passed over. A folder of runs that
somebody else wrote, by ``srun`` say, does as well: node and GPU are then read from the names of the files.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.condensed import condensed
from perfgate.core.fleet import Seat, Vacancy
from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.storage.documents import parse_checked_run, read_run, render_run_json, write_run
from perfgate.storage.files import make_folder, read_bytes, write_text
from perfgate.storage.formats import RUN
from perfgate.storage.json_text import parse_json

MANIFEST = "fleet.json"
RUNS = "runs"
CONDENSED = "condensed"
_FORMAT = "perfgate.fleet-runs/1"
_MAX_BYTES = 64 * 2**20
_SUFFIXES = (".json", ".json.gz")
_NUMBERED = re.compile(r"(?P<node>.+)[-_.](?P<gpu>\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetManifest:
    """What a fleet was asked to measure.

    Attributes:
        arguments: of every ``perfgate run``, without what differs by GPU; a resumed call has to ask for the same.
        concurrency: what worked at the same time.
        seats: all GPUs of the fleet.
        vacancies: those of which no run came, and why.
    """

    arguments: tuple[str, ...]
    concurrency: str
    seats: tuple[Seat, ...]
    vacancies: tuple[Vacancy, ...] = ()
    extensions: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A file that should be a run, and whose."""

    seat: Seat
    path: Path


def run_path(folder: Path, seat: Seat) -> Path:
    """Return where the run of a seat is kept; a node's name is made fit for a file."""
    return folder / RUNS / re.sub(r"[^A-Za-z0-9._-]", "_", seat.node) / f"{seat.gpu}.json.gz"


def write_seat_run(folder: Path, seat: Seat, run: Run) -> None:
    """Keep the run of a seat.

    Raises:
        DocumentError: the run would not be read back.
        OutputError: it cannot be written.
    """
    path = run_path(folder, seat)
    make_folder(path.parent)
    write_run(path, run)
    brief = _condensed_path(folder, path)
    make_folder(brief.parent)
    text = render_run_json(condensed(run), str(brief))
    write_text(brief, f"{_sha256(read_bytes(path, RUN.max_bytes))} {_sha256(text.encode())}\n{text}")


def read_seat_run(folder: Path, stored: "StoredRun") -> Run:
    """Read what is judged of a seat's run: its condensed form where that is of this very file, else the file.

    Raises:
        DocumentError: the file is damaged.
    """
    brief = _condensed_path(folder, stored.path)
    if brief.is_file():
        with contextlib.suppress(DocumentError, UnicodeDecodeError):
            hashes, _, text = read_bytes(brief, RUN.max_bytes).partition(b"\n")
            if hashes.decode() == f"{_sha256(read_bytes(stored.path, RUN.max_bytes))} {_sha256(text)}":
                return parse_checked_run(text.decode(), str(brief))
    return read_run(stored.path)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _condensed_path(folder: Path, path: Path) -> Path:
    return folder / CONDENSED / path.parent.name / path.name.removesuffix(".json.gz")


def write_manifest(folder: Path, manifest: FleetManifest) -> None:
    """Write what a fleet was asked to measure.

    Raises:
        OutputError: it cannot be written.
    """
    content = {"format": _FORMAT} | encode(manifest)
    write_text(make_folder(folder) / MANIFEST, json.dumps(content, indent=1) + "\n")


def read_manifest(folder: Path) -> FleetManifest | None:
    """Read what a fleet was asked to measure; None where the folder does not say.

    Raises:
        DocumentError: the file is damaged, or of another version.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    source = str(path)
    content = parse_json(read_bytes(path, _MAX_BYTES), source, _MAX_BYTES)
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise DocumentError(source, f"its format is not {_FORMAT!r}")
    try:
        return decode(FleetManifest, content)
    except CodecError as error:
        raise DocumentError(source, error.reason, pointer=error.pointer) from None


def stored_runs(folder: Path, manifest: FleetManifest | None) -> tuple[StoredRun, ...]:
    """Return the files of a folder that should be runs, by node and GPU.

    Raises:
        DocumentError: there is no such folder, or two files are of one GPU.
    """
    if not folder.is_dir():
        raise DocumentError(str(folder), "there is no such folder")
    known = {run_path(folder, seat): seat for seat in manifest.seats} if manifest is not None else {}
    found: dict[tuple[str, int], StoredRun] = {}
    # Beside the runs of a fleet lie its second measurements and its reports.
    place = folder / RUNS if manifest is not None else folder
    for path in sorted(path for path in place.rglob("*.json*") if path.name.endswith(_SUFFIXES)):
        if not path.is_file():
            continue
        seat = known.get(path) or seat_of(path)
        other = found.get((seat.node, seat.gpu))
        if other is not None:
            raise DocumentError(str(path), f"it is of the same GPU, {seat.name}, as {other.path}")
        found[seat.node, seat.gpu] = StoredRun(seat=seat, path=path)
    return tuple(found[key] for key in sorted(found))


def seat_of(path: Path) -> Seat:
    """Read node and GPU from a file's name: ``NODE/3.json``, ``NODE-3.json``, else GPU 0 of a node of that name."""
    stem = path.name.removesuffix(".gz").removesuffix(".json")
    if stem.isdecimal() and path.parent.name:
        return Seat(node=path.parent.name, gpu=int(stem))
    numbered = _NUMBERED.fullmatch(stem)
    if numbered is not None:
        return Seat(node=numbered["node"], gpu=int(numbered["gpu"]))
    return Seat(node=stem, gpu=0)
