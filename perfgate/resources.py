"""Where the files that ship beside the code are: kernels, schemas, baselines and data.

An installed wheel carries the top-level folders inside the package; a checkout and an editable
install have them beside it. Both are found from this file alone, so that no stale copy left in
site-packages by another install can win.
"""

import re
from pathlib import Path

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """Return the folder ``name`` ("kernels", "schemas", "baselines"): inside the package, else beside it.

    Raises:
        FileNotFoundError: neither exists; the installation is incomplete.
    """
    for folder in (_PACKAGE / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    message = f"perfgate's folder {name!r} is missing beside {_PACKAGE}: the installation is incomplete"
    raise FileNotFoundError(message)


def data_folder() -> Path:
    """Return the folder of data files that belong to the code: GPU table, recorded sessions."""
    return _PACKAGE / "data"


def cache_folder() -> Path:
    """Return the folder of this user's compiled kernels."""
    from platformdirs import user_cache_path

    return user_cache_path("perfgate") / "kernels"


def kernel_files(source: str) -> tuple[Path, ...]:
    """Return a kernel source and the headers that it includes with quotes, and theirs, each once.

    Args:
        source: an absolute path, or a file of the kernels folder.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(source)
    path = path if path.is_absolute() else resource_folder("kernels") / source
    if not path.is_file():
        message = f"kernel source {source} does not exist: a source is an absolute path or a file of the kernels folder"
        raise FileNotFoundError(message)
    found: dict[Path, None] = {}
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
