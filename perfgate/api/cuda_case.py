"""A kernel of one's own in a ``.cu`` file: launch geometry, arguments, reference; the rest follows from them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.api.arrays import Array, InOut, Input, Output
from perfgate.api.axes import case_id
from perfgate.api.comparing import compared
from perfgate.api.digest import digesting
from perfgate.api.filling import fill_input, poison_scan
from perfgate.core.case import AbsentCase, Case, MemoryLevel, Timing, Unit, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Buffer, Kernel, Toolbox, Verification, Workload
from perfgate.errors import ConfigurationError
from perfgate.suite.filling import poisoning
from perfgate.suite.sizes import STREAM_OVER_L2, DoesNotFitError, buffer_sets, usable_bytes

# Beyond it a rotation takes longer than a sample; arrays that small are read from the cache anyway.
_MOST_SETS = 256
# Outputs that are copied to the host and compared, in every launch; one buffer set at least. Further ones, which the
# same kernel writes, are only scanned for what was left unwritten.
_COMPARED_BYTES = 16 * 2**20

Dimensions = int | tuple[int, ...]
Argument = Array | np.generic
Reference = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """A kernel, how it is launched and on what."""

    source: str
    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Argument, ...]
    reference: Reference | None
    tolerance: float
    sets: int
    shared_bytes: int = 0
    defines: Mapping[str, int | str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(one for one in self.args if isinstance(one, Array))

    @property
    def set_bytes(self) -> int:
        return sum(one.buffer_bytes for one in self.arrays)

    def kernel(self, toolbox: Toolbox) -> Kernel:
        if self.options:
            return toolbox.kernel(self.source, self.function, defines=self.defines, options=self.options)
        return toolbox.kernel(self.source, self.function, defines=self.defines)


def cuda_case(
    gpu: Gpu,
    name: str,
    *,
    source: str | Path,
    function: str,
    grid: Dimensions,
    block: Dimensions,
    args: Sequence[Argument],
    reference: Reference | None,
    axes: Mapping[str, Any] | None = None,
    tolerance: float | None = None,
    work_flop: int = 0,
    read_bytes: int | None = None,
    write_bytes: int | None = None,
    pipe: str | None = None,
    memory_level: MemoryLevel = MemoryLevel.DRAM,
    sets: int | None = None,
    shared_bytes: int = 0,
    defines: Mapping[str, int | str] | None = None,
    options: Sequence[str] = (),
    graph: bool = False,
    unit: Unit = Unit.SECONDS,
    gated: bool = True,
    margin: float | None = None,
    version: int = 1,
) -> Case | AbsentCase:
    """Return the case of a kernel in a ``.cu`` file.

    Args:
        gpu: the GPU at hand: how many buffer sets it takes to beat its L2 follows from it.
        name: ``family.name``; with ``axes`` the id becomes ``family.name[axis=value,...]``.
        source: path, absolute or relative to the file that calls this.
        function: name of the kernel; it must be ``extern "C"``.
        grid: one to three dimensions.
        block: the same.
        args: Input, Output, InOut and numpy scalars (``np.uint32(n)``), in the order of the kernel's parameters.
        reference: from the values of Input and InOut in their order to what Output and InOut must hold (one
            array, or a tuple); None checks only that every float was written.
        axes: one combination of ``api.axes``.
        tolerance: largest relative error; by default some roundings of the least exact output type.
        work_flop: floating-point operations of one execution, 2 per fused multiply-add.
        read_bytes: compulsory traffic; by default every Input and InOut once.
        write_bytes: the same of every Output and InOut.
        pipe: compute unit whose roof applies, e.g. ``"fp32"`` or ``"bf16-tensor"``.
        memory_level: where the bytes come from; ``L2`` together with ``sets=1`` measures a kernel on warm data.
        sets: buffer sets that executions rotate over; by default 16 times the L2 cache, 256 at most.
        shared_bytes: dynamic shared memory of the launch.
        defines: macros.
        options: of the compiler, e.g. ``"-I/usr/local/cutlass/include"``.
        graph: time replays of a graph of executions: for kernels that take less time than their launch.
        unit: judge in seconds or in SM cycles.
        gated: whether it is judged, or only reported.
        margin: relative change that counts as slower; a policy's own goes first.
        version: raised to make older baselines not comparable.

    Raises:
        ConfigurationError: an argument makes no sense; names it.
    """
    identity = case_id(name, axes or {})
    caller = inspect.currentframe()
    path = _source_path(source, caller.f_back.f_code.co_filename if caller and caller.f_back else "")
    _refuse_unfit(identity, args, reference)
    launch = _Launch(
        source=str(path),
        function=function,
        grid=_three(identity, "grid", grid),
        block=_three(identity, "block", block),
        args=tuple(args),
        reference=reference,
        tolerance=_tolerance(args) if tolerance is None else tolerance,
        sets=1,
        shared_bytes=shared_bytes,
        defines=defines or {},
        options=tuple(options),
    )
    try:
        count = _set_count(gpu, launch.set_bytes, sets)
    except DoesNotFitError as error:
        return AbsentCase(id=identity, reason=str(error))
    reads, writes = _traffic(launch.arrays)
    return Case(
        id=identity,
        version=version,
        work=Work(
            work_flop=work_flop,
            read_bytes=reads if read_bytes is None else read_bytes,
            write_bytes=writes if write_bytes is None else write_bytes,
            footprint_bytes=count * launch.set_bytes,
            dtype=launch.arrays[0].dtype if launch.arrays else None,
            pipe=pipe,
            memory_level=memory_level,
        ),
        prepare=partial(_prepared, replace(launch, sets=count)),
        sources=(str(path),),
        timing=Timing.REPLAY if graph else Timing.EVENTS,
        gated=gated,
        unit=unit,
        margin=margin,
    )


def _source_path(source: str | Path, calling_file: str) -> Path:
    path = Path(source)
    return path if path.is_absolute() else Path(calling_file).resolve().parent / path


def _three(identity: str, what: str, given: Dimensions) -> tuple[int, int, int]:
    sizes: tuple[Any, ...] = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(one, (int, np.integer)) and one >= 1 for one in sizes):
        raise ConfigurationError(f"{identity}: {what}={given!r} is not one to three whole numbers from 1 up")
    one, two, three = (*map(int, sizes), 1, 1)[:3]
    return one, two, three


def _refuse_unfit(identity: str, args: Sequence[Argument], reference: Reference | None) -> None:
    for place, argument in enumerate(args):
        if not isinstance(argument, (Input, Output, np.generic)):
            raise ConfigurationError(
                f"{identity}: argument {place} is a {type(argument).__name__}",
                hint="pass Input, Output, InOut or a numpy scalar such as np.uint32(7): a plain number has no width",
            )
    if reference is not None and not any(isinstance(one, (Output, InOut)) for one in args):
        raise ConfigurationError(f"{identity}: there is a reference but no Output or InOut to compare with it")


def _tolerance(args: Sequence[Argument]) -> float:
    return max((one.element.tolerance for one in args if isinstance(one, (Output, InOut))), default=0.0)


def _set_count(gpu: Gpu, set_bytes: int, asked: int | None) -> int:
    """Return the number of buffer sets: as asked, or enough to beat the L2 cache within a quarter of the memory.

    Raises:
        DoesNotFitError: not even one fits.
    """
    most = usable_bytes(gpu) // set_bytes if set_bytes else _MOST_SETS
    if most < (asked or 1):
        message = f"{asked or 1} x {set_bytes} bytes are more than a quarter of the memory"
        raise DoesNotFitError(message)
    if asked is not None:
        return max(1, asked)
    return min(buffer_sets(gpu, set_bytes, STREAM_OVER_L2), most, _MOST_SETS) if set_bytes else 1


def _traffic(arrays: Sequence[Array]) -> tuple[int, int]:
    reads = sum(one.size_bytes for one in arrays if isinstance(one, Input))
    writes = sum(one.size_bytes for one in arrays if isinstance(one, (Output, InOut)))
    return reads, writes


def _prepared(launch: _Launch, toolbox: Toolbox) -> Workload:
    kernel = launch.kernel(toolbox)
    sets = [_BufferSet(launch, toolbox, index, kernel) for index in range(launch.sets)]
    outputs = [pair for one in sets for pair in one.written(Output)]
    unwritten = poison_scan(toolbox, outputs)
    poison = poisoning(toolbox, [buffer for _, buffer in outputs])
    return Workload(
        executions=tuple(one.execute for one in sets),
        poison=poison,
        verify=lambda: _verification(launch, toolbox, sets, unwritten, poison),
        outputs=tuple(buffer for _, buffer in sets[0].written(Output)),
        # Of state that went on changing nothing is known.
        digest=None
        if any(isinstance(one, InOut) for one in launch.args)
        else digesting(toolbox, [buffer for _, buffer in outputs]),
    )


class _BufferSet:
    """The arrays of one execution, and the kernel bound to them."""

    def __init__(self, launch: _Launch, toolbox: Toolbox, index: int, kernel: Kernel) -> None:
        self._launch = launch
        self._toolbox = toolbox
        self._index = index
        self._buffers = {
            place: (one, toolbox.buffer(one.buffer_bytes))
            for place, one in enumerate(launch.args)
            if isinstance(one, Array)
        }
        self.fill(Input)
        bound = [self._buffers[place][1] if place in self._buffers else one for place, one in enumerate(launch.args)]
        self.execute = kernel.bind(
            grid=launch.grid, block=launch.block, args=tuple(bound), shared_bytes=launch.shared_bytes
        )

    def fill(self, kind: type[Input]) -> None:
        """Fill the inputs of a kind."""
        for place, (declared, buffer) in self._buffers.items():
            if isinstance(declared, kind):
                seed = self._index * len(self._launch.args) + place
                fill_input(self._toolbox, declared, buffer, seed, self._launch.source)

    def written(self, *kinds: type[Array]) -> list[tuple[Array, Buffer]]:
        """Return the arrays of some kinds with their memory."""
        return [pair for pair in self._buffers.values() if isinstance(pair[0], kinds)]

    def values(self, *kinds: type[Array]) -> list[np.ndarray]:
        """Read the arrays of some kinds."""
        return [
            one.element.decoded(self._toolbox.read(buffer, one.element.storage, one.count)).reshape(one.sizes)
            for one, buffer in self.written(*kinds)
        ]


def _verification(
    launch: _Launch, toolbox: Toolbox, sets: list[_BufferSet], unwritten: Callable[[], str], poison: Callable[[], None]
) -> Verification:
    left = unwritten()
    if left:
        return Verification(passed=False, error=float("nan"), tolerance=launch.tolerance, detail=left)
    if launch.reference is None:
        return Verification(passed=True, error=0.0, tolerance=0.0, detail="written; there is no reference")
    has_state = any(isinstance(one, InOut) for one in launch.args)
    if has_state:
        # What has run for a while has no reference: filled anew, and run once.
        poison()
    set_bytes = sum(one.size_bytes for one in launch.arrays if isinstance(one, (Output, InOut)))
    count = max(1, min(len(sets), _COMPARED_BYTES // max(1, set_bytes)))
    found = Verification(passed=True, error=0.0, tolerance=launch.tolerance, detail="nothing to compare")
    for index, one in enumerate(sets[:count]):
        if has_state:
            one.fill(InOut)
        inputs = one.values(Input)
        if has_state:
            one.execute()
            toolbox.synchronize()
        expected = launch.reference(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        actual = one.values(Output, InOut)
        if len(expected) != len(actual):
            raise ConfigurationError(f"the reference returns {len(expected)} arrays for {len(actual)} outputs")
        pairs = [
            (f"output {place} of buffer set {index}", values, np.asarray(wanted))
            for place, (values, wanted) in enumerate(zip(actual, expected, strict=True))
        ]
        found = compared(pairs, launch.tolerance)
        if not found.passed:
            return found
    return found
