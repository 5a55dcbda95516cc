"""``history``: runs and baselines of files and folders, and what every case did over them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.baseline import Baseline
from perfgate.core.history import ChipHistory, HistorySource, histories, source_of_baseline, source_of_run
from perfgate.core.policy import Policy
from perfgate.core.run import Run
from perfgate.core.selection import matching, near_names
from perfgate.errors import BaselineError, ConfigurationError, DocumentError
from perfgate.storage.documents import read_document

_SUFFIXES = (".json", ".json.gz")
# Whoever has more names a folder in it.
_MOST_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What files and folders hold.

    Attributes:
        chips: the history of every chip.
        damaged: files that are no documents, each with what is wrong.
        set_aside: files that say nothing of unchanged code, each with the reason.
    """

    chips: tuple[ChipHistory, ...]
    damaged: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()


def recalled(places: Iterable[Path], policy: Policy, cases: tuple[str, ...] = ()) -> Recalled:
    """Read every run and baseline of some files, and of folders with all that is in them.

    A damaged file is named and left out: what the others say is not lost. Reports repeat what their
    runs say, so they are passed over.

    Raises:
        DocumentError: a place does not exist, or every document is damaged.
        ConfigurationError: there is no document, or no case of that name.
    """
    sources: list[HistorySource] = []
    damaged: list[str] = []
    set_aside: list[str] = []
    asked = list(places)
    first: DocumentError | None = None
    for path in _files(asked):
        try:
            document = read_document(path)
        except DocumentError as error:
            damaged.append(error.message)
            first = first or error
            continue
        try:
            sources += _sources(document)
        except BaselineError as error:
            set_aside.append(f"{path}: {error.message}")
    if not sources:
        if first is not None:
            raise first
        named = ", ".join(map(str, asked))
        why = f"; set aside: {'; '.join(set_aside)}" if set_aside else ""
        raise ConfigurationError(
            f"no run and no baseline in {named}{why}", hint="name run documents, baselines, or folders of them"
        )
    _refuse_unknown(cases, sources)
    chips = histories(sources, policy, cases)
    return Recalled(chips=chips, damaged=tuple(damaged), set_aside=tuple(set_aside))


def _sources(document: object) -> list[HistorySource]:
    match document:
        case Run():
            return [source_of_run(document)]
        case Baseline():
            return [source_of_baseline(document)]
        case _:
            return []


def _refuse_unknown(cases: tuple[str, ...], sources: list[HistorySource]) -> None:
    ids = tuple(dict.fromkeys(one for source in sources for session in source.sessions for one in session.cases))
    for glob in cases:
        if not matching(ids, glob):
            near = near_names(glob, ids)
            hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(ids[:5])}"
            raise ConfigurationError(f"no case is named {glob!r}", hint=hint)


def _files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the documents of places, those of folders by name; a link is not followed into another folder."""
    for place in places:
        try:
            is_folder = place.is_dir()
        except (OSError, ValueError) as error:
            raise DocumentError(str(place), f"cannot be read: {error}") from None
        if not is_folder:
            yield place
            continue
        found = sorted(_documents_in(place))
        if len(found) > _MOST_FILES:
            raise ConfigurationError(
                f"{place} holds {len(found)} documents, the most is {_MOST_FILES}", hint="name a folder in it"
            )
        yield from found


def _documents_in(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if name.endswith(_SUFFIXES) and not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path
