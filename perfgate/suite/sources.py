"""What a case's kernels are: hashes of their sources, which are frozen for each version of a case."""

import hashlib
from pathlib import Path

from perfgate.core.canonical import content_sha256
from perfgate.core.case import Case, Suite
from perfgate.errors import ConfigurationError
from perfgate.resources import kernel_files


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
    try:
        for source in case.sources:
            found.update(dict.fromkeys(kernel_files(source)))
    except FileNotFoundError as error:
        raise ConfigurationError(f"{case.id}: {error}") from error
    return tuple(found)


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
