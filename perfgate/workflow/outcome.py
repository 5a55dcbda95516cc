"""What the measuring step hands to the publishing step: a file in the job's temporary folder."""

import json
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.codec import CodecError, decode, encode
from perfgate.core.report import Report
from perfgate.errors import DocumentError, ExitCode
from perfgate.storage.documents import read_report
from perfgate.storage.files import read_bytes, write_text

_FILE = "outcome.json"
_MAX_BYTES = 10**6
ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How measuring ended.

    Attributes:
        exit_code: of the check; where there is no report, of the error.
        report: file of the report; None where no verdict was reached.
        message, hint: why there is none.
        notices: sentences for people.
        details: Markdown of what the change proposes.
        results: folder of what was measured, "" where nothing was.
    """

    exit_code: int = int(ExitCode.BUG)
    report: str | None = None
    message: str = "the measurement did not come to an end"
    hint: str = "see the log of the step that measures"
    notices: tuple[str, ...] = ()
    details: str = ""
    results: str = ""

    def read_report(self) -> Report | None:
        """Read the report; raises like ``read_report`` of storage."""
        return None if self.report is None else read_report(Path(self.report))


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write the outcome into a folder.

    Raises:
        OutputError: it cannot be written.
    """
    write_text(folder / _FILE, json.dumps(encode(outcome)))


def read_outcome(folder: Path | None) -> Outcome:
    """Read the outcome from a folder; what an ended measurement leaves where there is none.

    Raises:
        DocumentError: it is not what the measuring step writes.
    """
    if folder is None or not (folder / _FILE).is_file():
        return Outcome()
    path = folder / _FILE
    try:
        return decode(Outcome, json.loads(read_bytes(path, _MAX_BYTES)))
    except (CodecError, ValueError) as error:
        raise DocumentError(str(path), f"is no outcome: {error}") from None
