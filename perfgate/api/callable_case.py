"""Anything that enqueues work on a stream: PyTorch, Triton, CuPy, Numba, PyCUDA, a bound C++ function."""

import contextlib
import inspect
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.api.axes import case_id
from perfgate.api.comparing import compared
from perfgate.api.device_arrays import DeviceArray, device_array, host_values
from perfgate.api.digest import digesting
from perfgate.api.stream import Stream
from perfgate.core.case import Case, Timing, Unit, Work
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.errors import ConfigurationError, DeviceError, PerfgateError
from perfgate.suite.filling import poisoning

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Execution:
    """What a set-up hands over.

    Attributes:
        run: enqueues one execution on the stream and returns; several of them, one a buffer set, are taken in turn.
        outputs: the device arrays that the first of them writes whole, of any framework; poisoned before, compared
            after. Without them nothing is verified.
        reference: what they must hold: one array, or a tuple, on the host or the device; called once, after the
            timing. None checks only that every float was written.
        tolerance: largest relative error; by default some roundings of the least exact output type.
    """

    run: Run | Sequence[Run]
    outputs: Sequence[Any] = ()
    reference: Callable[[], Any] | None = None
    tolerance: float | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """Its executions, one a buffer set."""
        return (self.run,) if callable(self.run) else tuple(self.run)


Setup = Callable[..., "Run | Execution | Iterator[Run | Execution]"]


def callable_case(
    name: str,
    setup: Setup,
    *,
    work: Work | None = None,
    axes: Mapping[str, Any] | None = None,
    sources: Sequence[str | Path] = (),
    graph: bool = False,
    unit: Unit = Unit.SECONDS,
    gated: bool = True,
    margin: float | None = None,
    version: int = 1,
) -> Case:
    """Return the case of a callable.

    Args:
        name: ``family.name``; with ``axes`` the id becomes ``family.name[axis=value,...]``.
        setup: called once a launch as ``setup(stream, **axes)``. It makes the data and returns what runs, or
            yields it and tears down after the yield, as a pytest fixture does. A context manager that is open at
            the yield stays open: ``with torch.cuda.stream(torch.cuda.ExternalStream(stream.handle)):``.
        work: FLOP and bytes of one execution; without it there are no rates.
        axes: one combination of ``api.axes``.
        sources: files whose change is a change of this case; by default the one that ``setup`` is defined in.
        graph: time replays of a graph of executions: for work that takes less time than its launch. The
            callable must be capturable.
        unit: judge in seconds or in SM cycles.
        gated: whether it is judged, or only reported.
        margin: relative change that counts as slower; a policy's own goes first.
        version: raised to make older baselines not comparable.

    Raises:
        ConfigurationError: the id or the set-up makes no sense.
    """
    identity = case_id(name, axes or {})
    if not callable(setup):
        raise ConfigurationError(f"{identity}: setup is a {type(setup).__name__}, not a function")
    own = inspect.getsourcefile(inspect.unwrap(setup)) if inspect.isroutine(setup) else None
    files = tuple(str(Path(one).resolve()) for one in (sources or ([own] if own else [])))
    return Case(
        id=identity,
        version=version,
        work=work or Work(),
        prepare=partial(_prepared, identity, setup, dict(axes or {})),
        sources=files,
        timing=Timing.REPLAY if graph else Timing.EVENTS,
        gated=gated,
        unit=unit,
        margin=margin,
    )


def _prepared(identity: str, setup: Setup, point: Mapping[str, Any], toolbox: Toolbox) -> Workload:
    stream = Stream(toolbox.stream, getattr(toolbox, "native_stream", None))
    with named_errors(identity, "set-up"):
        made = setup(stream, **point)
        generator = made if inspect.isgenerator(made) else None
        handed = next(generator, None) if generator is not None else made
    execution = handed if isinstance(handed, Execution) else Execution(handed)  # type: ignore[arg-type]
    try:
        return _workload(identity, execution, toolbox, partial(_torn_down, identity, generator))
    except BaseException:
        _torn_down(identity, generator)
        raise


def _workload(identity: str, execution: Execution, toolbox: Toolbox, close: Callable[[], None]) -> Workload:
    if not _is_runnable(execution):
        raise ConfigurationError(
            f"{identity}: its set-up hands over {execution.run!r}",
            hint="return or yield a function without arguments, or an Execution",
        )
    outputs = [
        device_array(one, f"{identity}: output {place}") for place, one in enumerate(_several(execution.outputs))
    ]
    if execution.reference is not None and not outputs:
        raise ConfigurationError(f"{identity}: there is a reference but no outputs to compare with it")
    return Workload(
        executions=tuple(_named(identity, run) for run in execution.runs),
        poison=poisoning(toolbox, outputs),
        verify=partial(_verification, identity, execution, outputs, toolbox),
        close=close,
        is_foreign=True,
        outputs=tuple(outputs),
        digest=digesting(toolbox, outputs),
    )


def _is_runnable(execution: Execution) -> bool:
    given = execution.run
    return callable(given) or (isinstance(given, (tuple, list)) and bool(given) and all(map(callable, given)))


def _named(identity: str, run: Run) -> Callable[[], None]:
    """Wrap an execution so that what it raises names the case; costs the host 0.1 µs."""

    def execute() -> None:
        try:
            run()
        except Exception as error:
            raise _failure(identity, "an execution", error) from error

    return execute


def _verification(
    identity: str, execution: Execution, outputs: Sequence[DeviceArray], toolbox: Toolbox
) -> Verification:
    if not outputs:
        return Verification(
            passed=True, error=0.0, tolerance=0.0, detail="it declares no outputs: nothing was verified"
        )
    actual = [one.values(toolbox) for one in outputs]
    for place, (values, declared) in enumerate(zip(actual, outputs, strict=True)):
        unwritten = int(np.count_nonzero(_poisoned(values))) if declared.element.is_float else 0
        if unwritten and execution.reference is None:
            detail = f"output {place}: {unwritten} of {values.size} elements are NaN, as they were before"
            return Verification(passed=False, error=float("nan"), tolerance=0.0, detail=detail)
    if execution.reference is None:
        return Verification(passed=True, error=0.0, tolerance=0.0, detail="written; there is no reference")
    with named_errors(identity, "the reference"):
        expected = _several(execution.reference())
        wanted = [host_values(one, toolbox, f"{identity}: the reference") for one in expected]
    if len(wanted) != len(actual):
        raise ConfigurationError(f"{identity}: the reference gives {len(wanted)} arrays for {len(actual)} outputs")
    tolerance = execution.tolerance
    if tolerance is None:
        tolerance = max(one.element.tolerance for one in outputs)
    pairs = [(f"output {place}", *pair) for place, pair in enumerate(zip(actual, wanted, strict=True))]
    return compared(pairs, tolerance)


def _poisoned(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.isnan(values))


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _torn_down(identity: str, generator: Any) -> None:
    if generator is None:
        return
    with named_errors(identity, "tear-down"):
        if next(generator, _OVER) is not _OVER:
            generator.close()
            raise ConfigurationError(f"{identity}: its set-up yields twice", hint="yield once; tear down after it")


_OVER = object()


@contextlib.contextmanager
def named_errors(identity: str, what: str) -> Iterator[None]:
    """Turn whatever somebody's code raises into an error that names the case, the place and a missing package."""
    try:
        yield
    except PerfgateError:
        raise
    except Exception as error:
        raise _failure(identity, what, error) from error


def _failure(identity: str, what: str, error: Exception) -> PerfgateError:
    if isinstance(error, PerfgateError):
        return error
    if isinstance(error, ModuleNotFoundError):
        return ConfigurationError(
            f"{identity}: {what} needs the package {error.name}, which is not installed here{raised_at(error)}",
            hint=f"install it into the environment that perfgate runs in: {error.name}",
        )
    return DeviceError(f"{identity}: {what} raised {type(error).__name__}: {error}{raised_at(error)}")


def raised_at(error: BaseException) -> str:
    """Return `` (suite.py:12)``: the last place outside of perfgate and installed packages; "" where there is none."""
    own = str(Path(__file__).resolve().parent.parent) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    outside = [one for one in frames if not one.filename.startswith((own, "<")) and "site-packages" not in one.filename]
    return f" ({Path(outside[-1].filename).name}:{outside[-1].lineno})" if outside else ""
