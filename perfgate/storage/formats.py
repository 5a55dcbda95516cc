"""Which kinds and versions of documents there are, and how an old one becomes a new one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from perfgate.core.baseline import Baseline
from perfgate.core.fleet_report import FleetReport
from perfgate.core.report import Report
from perfgate.core.run import Run
from perfgate.errors import DocumentError
from perfgate.storage.json_text import shown

T = TypeVar("T")

_FORMAT = re.compile(r"perfgate\.([a-z]+)/([1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Generic[T]):
    """One kind of document.

    Attributes:
        name: as in the document's ``format``: ``perfgate.NAME/VERSION``.
        content: what it decodes to.
        version: the version that is written.
        max_bytes: most that is parsed.
        expanded_levels: levels that are laid out one item a line.
        sorted_maps: whether maps are written sorted by key; a policy's margins keep their order, the last match wins.
        migrations: by old version, what turns its JSON value into that of the next version.
    """

    name: str
    content: type[T]
    version: int
    max_bytes: int
    expanded_levels: int
    sorted_maps: bool = True
    migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The value of ``format`` in a document that is written now."""
        return f"perfgate.{self.name}/{self.version}"


# 100 cases x 30 launches x 1,000 samples x 21 bytes are 63 MB, six times the full suite.
RUN = Format(name="run", content=Run, version=1, max_bytes=64 * 10**6, expanded_levels=4)
# 1.5 kB a case and session: 100 cases in 100 sessions. Sessions are pruned long before.
BASELINE = Format(name="baseline", content=Baseline, version=1, max_bytes=16 * 10**6, expanded_levels=4)
# 3 kB a case with its causes and caveats: 1,000 cases leave room for extensions.
REPORT = Format(name="report", content=Report, version=1, max_bytes=16 * 10**6, expanded_levels=2, sorted_maps=False)
# 1 kB a GPU with 16 cases: 10,000 GPUs, and room for as many again that are slow.
FLEET = Format(name="fleet", content=FleetReport, version=1, max_bytes=64 * 10**6, expanded_levels=2, sorted_maps=False)

FORMATS: Mapping[str, Format[Any]] = {one.name: one for one in (RUN, BASELINE, REPORT, FLEET)}


def format_of(document: Any, source: str) -> Format[Any]:
    """Return the format that a document says it has, whatever its version.

    Raises:
        DocumentError: it is no document of perfgate.
    """
    name, _, _ = _named(document, source)
    return FORMATS[name]


def content_of(document: Any, wanted: Format[Any], source: str) -> dict[str, Any]:
    """Return a document's content in the newest version of its kind, without ``format``.

    Raises:
        DocumentError: no document of perfgate, of another kind, of a newer version, or of one that is
            no longer read.
    """
    name, version, tag = _named(document, source)
    if name != wanted.name:
        message = f"is a {name} ({tag}), but a {wanted.name} is wanted here"
        raise DocumentError(source, message, pointer="/format", hint=f"give a document of format {wanted.tag}")
    if version > wanted.version:
        message = f"has format {tag}; this perfgate reads {wanted.name} documents up to version {wanted.version}"
        raise DocumentError(source, message, pointer="/format", hint="upgrade perfgate to the version that wrote it")
    content = {key: value for key, value in document.items() if key != "format"}
    for old in range(version, wanted.version):
        if old not in wanted.migrations:
            message = f"has format {tag}, which this perfgate no longer reads"
            raise DocumentError(source, message, pointer="/format", hint=f"write it again as {wanted.tag}")
        content = wanted.migrations[old](content)
    return content


def _named(document: Any, source: str) -> tuple[str, int, str]:
    if not isinstance(document, dict) or "format" not in document:
        raise DocumentError(source, "is no document of perfgate: it has no field 'format'")
    tag = document["format"]
    parts = _FORMAT.fullmatch(tag) if isinstance(tag, str) else None
    if parts is None or parts[1] not in FORMATS:
        raise DocumentError(source, f"format {shown(tag)} is none of perfgate's", pointer="/format")
    return parts[1], int(parts[2]), parts[0]
