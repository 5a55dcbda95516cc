"""The folder of baselines: one file for one GPU identity, found by identity and changed under a lock."""

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.baseline import Baseline
from perfgate.core.gpu import Difference, Gpu, identity_differences
from perfgate.errors import DocumentError
from perfgate.storage.documents import parse_baseline, read_baseline, render_baseline_json
from perfgate.storage.files import locked, read_bytes, stored_bytes, write_text
from perfgate.storage.formats import BASELINE

_SUFFIXES = (".json", ".json.gz")
_MAX_SLUG_CHARACTERS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A baseline and the file that it was read from."""

    path: Path
    baseline: Baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSearch:
    """What a search for a GPU's baseline found.

    Attributes:
        found: the baseline of the GPU's identity; None when there is none.
        nearest: when none was found, the one that differs in the fewest identity fields.
        differences: the fields in which the nearest differs.
        searched: the files that were read.
        place: the file or folder that was searched.
    """

    found: StoredBaseline | None
    nearest: StoredBaseline | None
    differences: tuple[Difference, ...]
    searched: tuple[Path, ...]
    place: Path

    @property
    def reason(self) -> str:
        """Why no baseline is comparable, in a sentence; empty when one was found."""
        if self.found is not None:
            return ""
        if self.nearest is None:
            return f"{self.place} holds no baseline"
        fields = "; ".join(
            f"{one.field} is {one.candidate} here and {one.baseline} in the baseline" for one in self.differences
        )
        return f"the nearest baseline, {self.nearest.path}, is of another GPU: {fields}"


def baseline_path(folder: Path, gpu: Gpu) -> Path:
    """Return the file name that a GPU's baseline has by default: made of name, board and MIG profile."""
    parts = [gpu.name, gpu.board_part_number or "unknown-board"]
    if gpu.mig_profile is not None:
        parts.append(f"mig-{gpu.mig_profile}")
    slug = "_".join(re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-.") or "gpu" for part in parts)
    return folder / f"{slug[:_MAX_SLUG_CHARACTERS]}.json"


def list_baselines(folder: Path) -> tuple[StoredBaseline, ...]:
    """Read every baseline of a folder, by file name; none when the folder does not exist.

    Raises:
        DocumentError: a file ``*.json`` or ``*.json.gz`` in it is no baseline, or a link out of it; none is skipped.
    """
    try:
        names = sorted(path for path in folder.iterdir() if _is_baseline_name(path.name))
        _refuse_strays(names, folder)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise DocumentError(str(folder), f"cannot be listed: {error.strerror}") from None
    return tuple(StoredBaseline(path=path, baseline=read_baseline(path)) for path in names)


def find_baseline(path_or_folder: Path, gpu: Gpu) -> BaselineSearch:
    """Look for the baseline of a GPU's identity in a folder, or see whether one file is it.

    Raises:
        DocumentError: a file is broken, or two files are baselines of this GPU.
    """
    if _is_folder(path_or_folder) or not path_or_folder.exists():
        candidates = list_baselines(path_or_folder)
    else:
        candidates = (StoredBaseline(path=path_or_folder, baseline=read_baseline(path_or_folder)),)
    return _searched(candidates, gpu, path_or_folder)


def baseline_target(path_or_folder: Path, gpu: Gpu) -> Path:
    """Return the file that an update for a GPU belongs into: its baseline's, else a free name.

    Two identities can share name and board (error correction on and off): the second gets a number.

    Raises:
        DocumentError: like ``find_baseline``.
    """
    if path_or_folder.name.endswith(_SUFFIXES) and not _is_folder(path_or_folder):
        return path_or_folder
    # Listed before they are read: a file that appears meanwhile is this GPU's, of another update, and is added to.
    taken: set[Path] = set()
    with contextlib.suppress(OSError):  # what keeps a folder from being listed is told by what follows
        taken.update(path_or_folder.iterdir())
    found = find_baseline(path_or_folder, gpu).found
    if found is not None:
        return found.path
    first = baseline_path(path_or_folder, gpu)
    numbered = (first.with_name(f"{first.stem}-{number}.json") for number in range(2, 1000))
    return next(path for path in (first, *numbered) if path not in taken)


def update_baseline(path: Path, change: Callable[[Baseline | None], Baseline]) -> Baseline:
    """Replace a baseline by what ``change`` makes of it, under a lock: no other update is lost.

    ``change`` receives None when there is no file yet. Returns what was stored, as reading gives it.

    Raises:
        DocumentError: what is there, or what ``change`` made, is no valid baseline.
        OutputError: it cannot be locked or written.
    """
    with locked(path):
        before = read_baseline(path) if path.exists() else None
        text = render_baseline_json(change(before), str(path))
        write_text(path, text)
    return parse_baseline(text, str(path))


def rewritten_baseline(path: Path) -> bool:
    """Write a baseline again as it would be written today, under its lock; return whether that changed the file.

    Raises:
        DocumentError: it is no valid baseline.
        OutputError: it cannot be locked or written.
    """
    with locked(path):
        before = read_bytes(path, BASELINE.max_bytes)
        text = render_baseline_json(parse_baseline(before, str(path)), str(path))
        if stored_bytes(path, text) == before:
            return False
        write_text(path, text)
    return True


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise DocumentError(str(path), f"cannot be read: {error}") from None


def _refuse_strays(paths: Iterable[Path], folder: Path) -> None:
    """Refuse what is no file of the folder: whoever made a link would choose what is read, and a pipe never ends."""
    for path in paths:
        target = path.resolve()
        if not target.is_relative_to(folder.resolve()):
            raise DocumentError(str(path), "is a symbolic link that leads out of its folder", hint="put the file there")
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise DocumentError(str(path), "is no regular file")


def _is_baseline_name(name: str) -> bool:
    """Tell whether a file of a folder of baselines is one by its name; README.md and hidden files are not."""
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def _searched(candidates: Iterable[StoredBaseline], gpu: Gpu, place: Path) -> BaselineSearch:
    judged = [(identity_differences(one.baseline.gpu, gpu), one) for one in candidates]
    matching = [one for differences, one in judged if not differences]
    if len(matching) > 1:
        first, second = matching[0].path, matching[1].path
        message = f"is a baseline of the same GPU as {first}"
        raise DocumentError(str(second), message, hint="merge the two, or delete one")
    # Of equally distant ones, that of a GPU of this name says most.
    differences, nearest = min(
        judged,
        key=lambda pair: (len(pair[0]), pair[1].baseline.gpu.name != gpu.name, pair[1].path.name),
        default=((), None),
    )
    found = matching[0] if matching else None
    return BaselineSearch(
        found=found,
        nearest=None if found else nearest,
        differences=() if found else differences,
        searched=tuple(one.path for _, one in judged),
        place=place,
    )
