"""Where the files that ship beside the code are: kernels, schemas, baselines and data.

An installed wheel carries the top-level folders inside the package; a checkout and an editable
install have them beside it. Both are found from this file alone, so that no stale copy left in
site-packages by another install can win.
"""

from pathlib import Path

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
