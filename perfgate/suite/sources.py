"""What a case's kernels are: hashes of their sources, which are frozen for each version of a case."""

import hashlib
import re
from pathlib import Path

from perfgate.core.canonical import content_sha256
from perfgate.core.case import Case, Suite
from perfgate.errors import ConfigurationError
from perfgate.resources import resource_folder

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def source_sha256(case: Case) -> str | None:
    """Return the hash over the sources of a case and the headers that they include; None without sources.

    Line endings do not count, nor do folders: names and contents do.

    Raises:
        ConfigurationError: a source does not exist.
    """
    if not case.sources:
        return None
    digest = hashlib.sha256()
    for path in source_files(case):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files(case: Case) -> tuple[Path, ...]:
    """Return the sources of a case in order, each followed by the headers that it includes with quotes, each once.

    Raises:
        ConfigurationError: a source does not exist.
    """
    found: dict[Path, None] = {}
    for source in case.sources:
        path = Path(source)
        path = path if path.is_absolute() else resource_folder("kernels") / source
        if not path.is_file():
            raise ConfigurationError(
                f"{case.id}: kernel source {source} does not exist",
                hint="a source is an absolute path or a file of the kernels folder",
            )
        _collect(path.resolve(), found)
    return tuple(found)


def _collect(path: Path, found: dict[Path, None]) -> None:
    if path in found:
        return
    found[path] = None
    for name in _INCLUDE.findall(path.read_bytes()):
        header = (path.parent / name.decode()).resolve()
        if header.is_file():
            _collect(header, found)


def suite_sha256(suite: Suite) -> str:
    """Return the hash of what a suite measures: ids, versions, work, units, timing and sources of its cases."""
    return content_sha256(
        [
            {
                "id": case.id,
                "version": case.version,
                "timing": case.timing.value,
                "unit": case.unit.value,
                "work": case.work,
                "source_sha256": source_sha256(case),
            }
            for case in sorted(suite.cases, key=lambda case: case.id)
        ]
    )
