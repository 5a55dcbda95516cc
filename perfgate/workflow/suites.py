"""Own suites: Python files with a function ``suite`` from a GPU to cases, loaded in a process of their own.

What such a file does (import a framework, end the process, shadow a module) happens to a launch or to
the process that describes its cases, never to the one that judges.
"""

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from perfgate.api.callable_case import raised_at
from perfgate.core.case import AbsentCase, Case, Suite
from perfgate.core.gpu import Gpu
from perfgate.errors import ConfigurationError, PerfgateError
from perfgate.suite import built_in_suite

ENTRY = "suite"
_SHAPE = f"a suite is a Python file with a function {ENTRY}(gpu) that returns or yields cases; see docs/own-kernels.md"
_INSTALLED = {"site-packages", "dist-packages"}
LFS_HINT = "git lfs install; git lfs pull"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def is_own(name: str) -> bool:
    """Tell whether a suite's name is a path to one's own, not that of a built-in suite."""
    return name.endswith(".py") or "/" in name


def chosen_suites(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the built-in suite of the names given, "" where only own ones are, and the absolute paths of own ones.

    Raises:
        ConfigurationError: two built-in suites.
    """
    own = tuple(str(Path(name).absolute()) for name in names if is_own(name))
    built_in = [name for name in names if not is_own(name)]
    if len(set(built_in)) > 1:
        raise ConfigurationError(
            f"--suite names {' and '.join(built_in)}", hint="one built-in suite, any number of own"
        )
    return built_in[0] if built_in else ("" if own else "default"), tuple(dict.fromkeys(own))


def joined_suite(name: str, own: Iterable[str], gpu: Gpu) -> Suite:
    """Return a built-in suite and own ones as one.

    Args:
        name: of the built-in suite; "" for none.
        own: paths of own suites.
        gpu: the GPU at hand.

    Raises:
        ConfigurationError: a suite cannot be loaded, or two cases have one id.
    """
    parts = [built_in_suite(name, gpu)] if name else []
    parts += [loaded_suite(Path(path), gpu) for path in own]
    try:
        return Suite(
            name=" + ".join(part.name for part in parts),
            cases=tuple(case for part in parts for case in part.cases),
            absent=tuple(case for part in parts for case in part.absent),
        )
    except ValueError as error:
        raise ConfigurationError(str(error), hint="give each case an id of its own") from None


def loaded_suite(path: Path, gpu: Gpu) -> Suite:
    """Load one's own suite: its folder comes first on the module path, as for a script.

    Raises:
        ConfigurationError: it does not exist or cannot be imported, lacks a package, or defines no cases; says where.
    """
    module = _imported(path)
    entry = getattr(module, ENTRY, None)
    if not callable(entry):
        raise ConfigurationError(f"suite {path} has no function {ENTRY}(gpu)", hint=_SHAPE)
    try:
        made = entry(gpu)
        entries = (*made.cases, *made.absent) if isinstance(made, Suite) else tuple(made)
    except Exception as error:
        raise _failure(path, f"{ENTRY}(gpu)", error) from error
    strange = [one for one in entries if not isinstance(one, (Case, AbsentCase))]
    if strange:
        raise ConfigurationError(
            f"suite {path}: {ENTRY}(gpu) gives a {type(strange[0]).__name__}, not a case", hint=_SHAPE
        )
    if not entries:
        raise ConfigurationError(f"suite {path} has no cases", hint=_SHAPE)
    try:
        return Suite(
            name=path.name,
            cases=tuple(one for one in entries if isinstance(one, Case)),
            absent=tuple(one for one in entries if isinstance(one, AbsentCase)),
        )
    except ValueError as error:
        raise ConfigurationError(f"suite {path}: {error}", hint="give each case an id of its own") from None


def enter_folder(folder: str) -> None:
    """Work in a folder from now on: relative paths and modules are found there, and not where the parent works."""
    if not folder:
        return
    here = os.path.realpath(Path.cwd())
    if here == os.path.realpath(folder) and folder in sys.path:
        return
    sys.path[:] = [one for one in sys.path if one and os.path.realpath(one) != here]
    os.chdir(folder)
    sys.path.insert(0, folder)


def local_modules(top: Path) -> tuple[Path, ...]:
    """Return the files under a folder that loaded modules came from; installed packages and perfgate itself apart."""
    found = set()
    for module in tuple(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str) and _is_local(os.path.dirname(name), top):  # noqa: PTH120 - of thousands, six times
            found.add(Path(name).resolve())
    return tuple(sorted(found))


@functools.cache
def _is_local(folder: str, top: Path) -> bool:
    """Whether a module's folder lies under another, apart from packages, Python's own modules and perfgate."""
    path = Path(folder).resolve()
    if not path.is_relative_to(top) or _INSTALLED & set(path.parts):
        return False
    paths = sysconfig.get_paths()
    apart = [Path(paths[one]).resolve() for one in ("stdlib", "platstdlib", "purelib", "platlib")]
    apart.append(Path(__file__).resolve().parent.parent)
    return not any(path.is_relative_to(one) for one in apart)


def installed_modules() -> tuple[str, ...]:
    """Return the packages of site-packages that are loaded, by their own names."""
    found = set()
    for name, module in tuple(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if "." not in name and isinstance(path, str) and _INSTALLED & set(Path(path).parts):
            found.add(name)
    return tuple(sorted(found))


def import_ahead(folder: str, suites: Iterable[str], modules: Iterable[str]) -> None:
    """Import what a launch will: its suites, as it does itself, then packages that their set-ups import.

    What fails is left to the launch to tell.
    """
    enter_folder(folder)
    for path in suites:
        with contextlib.suppress(PerfgateError):
            _imported(Path(path))
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def refuse_foreign_modules(forbidden: str) -> None:
    """Refuse modules that were loaded from the other side of a comparison.

    Raises:
        ConfigurationError: names the first; both sides would measure the same code.
    """
    if not forbidden:
        return
    top = Path(forbidden).resolve()
    found = local_modules(top)
    if found:
        raise ConfigurationError(
            f"the base's suite imports {found[0].relative_to(top)} from the working tree: both sides would measure the"
            " same code",
            hint="import it from the suite's own folder or the repository's top, not from an editable install;"
            " or build and install it beside each side with --build",
        )


def refuse_pointer(path: Path) -> None:
    """Refuse a file that Git LFS has not put there.

    Raises:
        ConfigurationError: it is a pointer.
    """
    try:
        with path.open("rb") as file:
            is_pointer = file.read(len(_LFS_POINTER)) == _LFS_POINTER
    except OSError:
        return
    if is_pointer:
        raise ConfigurationError(f"{path} is a pointer of Git LFS, not the file", hint=LFS_HINT)


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigurationError(f"suite {path} does not exist", hint="name a Python file, or a built-in suite")
    refuse_pointer(path)
    whole = path.resolve()
    if str(whole.parent) not in sys.path:
        sys.path.insert(0, str(whole.parent))
    # Two suites may have one file name; a dataclass or a pickle in one finds its module by this name.
    name = f"perfgate_suite_{abs(hash(str(whole))):x}_{whole.stem}"
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, whole)
    if specification is None or specification.loader is None:
        raise ConfigurationError(f"suite {path} is not Python", hint=_SHAPE)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _import_failure(path, error) from error
    return module


def _import_failure(path: Path, error: BaseException) -> BaseException:
    if isinstance(error, SyntaxError):
        place = f"{Path(error.filename or path).name}:{error.lineno}"
        return ConfigurationError(f"suite {path} is not Python: {error.msg} ({place})")
    # An interruption stays one.
    return _failure(path, "import", error) if isinstance(error, (Exception, SystemExit)) else error


def _failure(path: Path, what: str, error: BaseException) -> PerfgateError:
    if isinstance(error, PerfgateError):
        return ConfigurationError(f"suite {path}: {error.message}{raised_at(error)}", hint=error.hint)
    if isinstance(error, ModuleNotFoundError):
        return ConfigurationError(
            f"suite {path} needs the package {error.name}, which is not installed here{raised_at(error)}",
            hint=f"install it into the environment that perfgate runs in ({sys.executable} -m pip install ...)",
        )
    kind: Any = type(error).__name__
    return ConfigurationError(f"suite {path}: {what} raised {kind}: {error}{raised_at(error)}")
