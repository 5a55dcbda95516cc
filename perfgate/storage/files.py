"""Files read within bounds and written whole: a reader sees the old content or the new, never a part."""

import contextlib
import errno
import glob
import gzip
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from perfgate.errors import DocumentError, OutputError

# An update rewrites one small file; whoever holds the lock this long has stopped.
LOCK_TIMEOUT_S = 30.0
LOCK_NAME = ".perfgate.lock"
_TEMPORARY_SUFFIX = ".part"


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """Read at most ``max_bytes`` of a file, and one more if there are more: the parser refuses those.

    Raises:
        DocumentError: it does not exist, cannot be read, or says that it is larger.
    """
    try:
        with path.open("rb") as stream:
            state = os.fstat(stream.fileno())
            if stat.S_ISREG(state.st_mode) and state.st_size > max_bytes:
                raise too_large(str(path), max_bytes)
            return stream.read(max_bytes + 1)
    except FileNotFoundError:
        raise DocumentError(str(path), "does not exist") from None
    except IsADirectoryError:
        raise DocumentError(str(path), "is a directory, not a document") from None
    except (OSError, ValueError) as error:
        raise DocumentError(str(path), f"cannot be read: {_reason(error)}") from None


def too_large(source: str, max_bytes: int) -> DocumentError:
    """Return the error of a document that is larger than its kind may be."""
    return DocumentError(source, f"is larger than {max_bytes} bytes, the most that a document of this kind may have")


def write_text(path: Path, text: str) -> None:
    """Replace a file's content by a rename: whole or not at all, on the disk when this returns.

    Text is UTF-8, gzipped when the name ends in ``.gz``. A symbolic link is followed within its
    folder; one that leads out of it is refused, since whoever made the link would choose what is
    overwritten.

    Raises:
        OutputError: it cannot be written there; nothing is left behind.
    """
    data = stored_bytes(path, text)
    target = _target(path)
    temporary = target.with_name(f"{_temporary_stem(target)}{secrets.token_hex(6)}{_TEMPORARY_SUFFIX}")
    try:
        try:
            _write_new(temporary, data)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _flush_folder(target.parent)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space" if full else "check the folder and its permissions"
        raise OutputError(f"{path} cannot be written: {_reason(error)}", hint=hint) from error


def make_folder(path: Path) -> Path:
    """Make a folder and those above it, where they are not there; return it.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        hint = "check the path and its permissions"
        raise OutputError(f"the folder {path} cannot be made: {_reason(error)}", hint=hint) from error
    return path


def stored_bytes(path: Path, text: str) -> bytes:
    """Return what ``write_text`` writes: UTF-8, gzipped without name and time, so that equal texts are equal files."""
    data = text.encode()
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of the folder of ``path`` against every other perfgate that updates a file in it.

    The folder is made when it is missing, and what a killed writer of ``path`` left is removed. The
    lock file is hidden and stays: removing it would let two processes hold two locks of one name.

    Raises:
        OutputError: the lock cannot be made, or another process holds it for LOCK_TIMEOUT_S.
    """
    import filelock

    target = _target(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(target.with_name(LOCK_NAME), timeout=LOCK_TIMEOUT_S)
        lock.acquire()
    except filelock.Timeout:
        message = f"another perfgate has been updating {target.parent} for {LOCK_TIMEOUT_S:.0f} s"
        raise OutputError(message, hint="wait for it, or end it if it hangs") from None
    except (OSError, NotImplementedError) as error:
        message = f"{target.parent} cannot be locked for an update: {_reason(error)}"
        raise OutputError(message, hint="check the folder and its permissions") from error
    try:
        for leftover in target.parent.glob(f"{glob.escape(_temporary_stem(target))}*{_TEMPORARY_SUFFIX}"):
            leftover.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _target(path: Path) -> Path:
    """Resolve where a path leads, refusing what must not be overwritten."""
    try:
        target, folder = path.resolve(), path.parent.resolve()
        is_directory = target.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise OutputError(f"{path} cannot be written: {_reason(error)}", hint="check the path") from error
    if is_directory:
        raise OutputError(f"{path} cannot be written: it is a directory", hint="name a file")
    if target.is_symlink():  # Python 3.13 resolves links that go round in circles to one of them
        raise OutputError(f"{path} cannot be written: its links go round in circles", hint="remove the link")
    if not target.is_relative_to(folder):
        message = f"{path} cannot be written: it is a symbolic link to {target}, outside its folder"
        raise OutputError(message, hint="remove the link or name the file itself")
    return target


def _temporary_stem(target: Path) -> str:
    return f".{target.name[:100]}."


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _flush_folder(folder: Path) -> None:
    """Make the rename last; file systems that cannot flush a folder say EINVAL."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
