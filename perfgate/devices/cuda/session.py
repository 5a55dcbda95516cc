"""One launch on a CUDA device: the LaunchSession of core.device, in a fresh process."""

import contextlib
import functools
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.case import Case, Suite, Timing, Unit
from perfgate.core.device import SampleBatch, Telemetry
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification, Workload
from perfgate.devices.cuda.compiler import CodeCache, found_compiler
from perfgate.devices.cuda.driver import device_uuid, driver, found_device, libcuda, primary_context
from perfgate.devices.cuda.graph import Graph
from perfgate.devices.cuda.identity import identified_gpu
from perfgate.devices.cuda.memory import Arena
from perfgate.devices.cuda.ncu import MARK
from perfgate.devices.cuda.numa import stay_near
from perfgate.devices.cuda.nvml import Nvml, closing_nvml
from perfgate.devices.cuda.peer import Peer
from perfgate.devices.cuda.timing import QUEUE_LIMIT, StreamTimer
from perfgate.devices.cuda.toolbox import CudaToolbox
from perfgate.devices.cuda.verified import VerifiedOutputs
from perfgate.devices.cuda.watch import LeakWatch, refuse_misuse
from perfgate.errors import ConfigurationError, DeviceError

_NON_BLOCKING = 1
# Beside the declared footprint a case has small buffers of its own: partial sums, verification vectors.
_SPARE_BYTES = 64 * 2**20
# A graph of fewer executions spends a notable part of its time on being launched.
_GRAPH_EXECUTIONS = 64
# Somebody's execution, or a replay, is several commands: fewer of them fill the queue, and how many is not known.
_FIRST_LIMIT = QUEUE_LIMIT // 8
# By how much fewer are queued after a batch that filled it all the same.
_FEWER = 8


def rotation(executions: Sequence[Callable[[], None]]) -> tuple[Callable[[], None], ...]:
    """Return whole rotations over the buffer sets, enough for a graph."""
    return tuple(executions) * max(1, -(-_GRAPH_EXECUTIONS // len(executions)))


def _run_all(commands: Sequence[Callable[[], None]]) -> None:
    for command in commands:
        command()


def _empty_caches() -> None:
    """Have frameworks give back the memory that they keep for themselves: the next case needs it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    cupy = sys.modules.get("cupy")
    if cupy is not None and hasattr(cupy, "get_default_memory_pool"):
        cupy.get_default_memory_pool().free_all_blocks()


def architecture(compute_capability: str) -> str:
    """Return the compiler's name of an architecture: ``"sm_90a"`` for ``"9.0"``, where WGMMA needs the a."""
    number = compute_capability.replace(".", "")
    return f"sm_{number}a" if number == "90" else f"sm_{number}"


class CudaOpenCase:
    """A prepared case.

    Args:
        case: what it is.
        workload: its executions.
        timer: of the stream.
        stream: that it is timed on.
        graph: a rotation of its executions, for a case whose replays are timed.
        verified: outputs that earlier launches have verified.
    """

    def __init__(
        self,
        case: Case,
        workload: Workload,
        timer: StreamTimer,
        stream: Any,
        graph: Graph | None = None,
        verified: VerifiedOutputs | None = None,
    ) -> None:
        self._verified = verified
        self._case = case
        self._workload = workload
        self._timer = timer
        self._stream = stream
        self._commands = workload.executions if graph is None else (graph.replay,)
        self._turn = 0
        self._is_several_commands = workload.is_foreign or graph is not None
        self._queue_limit = _FIRST_LIMIT if self._is_several_commands else QUEUE_LIMIT
        self._leaks = LeakWatch(case.id) if workload.is_foreign else None
        self._per_command = 1 if graph is None else len(rotation(workload.executions))

    @property
    def sets(self) -> int:
        """Executions that are repeated together: buffer sets, or the nodes of a graph."""
        return self._per_command * len(self._commands)

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        """See core.device.OpenCase."""
        count = max(1, executions // self._per_command)
        with _driver_errors(self._case.id):
            batch = self._batch(count, samples)
            while batch.spin_timed_out and self._is_several_commands and self._queue_limit > 1:
                self._queue_limit = max(1, self._queue_limit // _FEWER)
                batch = self._batch(count, samples)
            if self._leaks is not None:
                self._leaks.look(executions * samples)
                if batch.host_bound:
                    # What allocates waits for the host: it is the leak that has to be named.
                    self._leaks.refuse_leak()
        return batch

    def _batch(self, count: int, samples: int) -> SampleBatch:
        batch = self._timer.time_batch(
            self._case.timing,
            self._commands,
            self._turn,
            count=count,
            samples=samples,
            queue_limit=self._queue_limit,
        )
        self._turn = (self._turn + count * samples) % len(self._commands)
        return batch

    def poison(self) -> None:
        """See core.device.OpenCase."""
        with _driver_errors(self._case.id):
            self._workload.poison()
            self._stream.synchronize()

    def execute(self) -> None:
        """Execute once and wait: for a profiler, which needs no rotation."""
        with _driver_errors(self._case.id):
            self._workload.executions[0]()
            self._stream.synchronize()

    def verify(self) -> Verification:
        """See core.device.OpenCase."""
        with _driver_errors(self._case.id):
            if self._leaks is not None:
                self._leaks.refuse_leak()
            self._stream.synchronize()
            verified, digesting = self._verified, self._workload.digest
            if verified is None or digesting is None:
                return self._workload.verify()
            digest = digesting()
            found = verified.known(self._case.id, digest)
            if found is None:
                found = self._workload.verify()
                if found.passed:
                    verified.keep(self._case.id, digest, found)
            return found


class CudaSession:
    """A launch session; made by ``opened_session``."""

    def __init__(
        self,
        *,
        suite: Suite,
        toolbox: CudaToolbox,
        timer: StreamTimer,
        arena: Arena,
        stream: Any,
        nvml: Nvml,
        verified: VerifiedOutputs | None = None,
    ):
        self._verified = verified
        self._cases = {case.id: case for case in suite.cases}
        self._toolbox = toolbox
        self._timer = timer
        self._arena = arena
        self._stream = stream
        self._nvml = nvml
        self._code: dict[str, str | None] = {}

    @property
    def ways(self) -> dict[str, tuple[Timing, Unit]]:
        """How each case is timed, and what it is judged in."""
        return {case_id: (case.timing, case.unit) for case_id, case in self._cases.items()}

    def add_case(self, case: Case) -> None:
        """Take in a case that no suite holds, e.g. one that a test makes."""
        self._cases[case.id] = case

    @property
    def toolbox(self) -> CudaToolbox:
        """What cases are prepared with, and their stream."""
        return self._toolbox

    @contextlib.contextmanager
    def open_case(self, case_id: str) -> Iterator[CudaOpenCase]:
        """See core.device.LaunchSession."""
        case = self._cases[case_id]
        with _driver_errors(case_id):
            self._arena.reset(case.work.footprint_bytes + _SPARE_BYTES)
            self._toolbox.begin()
            workload = case.prepare(self._toolbox)
        graph: Graph | None = None
        try:
            with _driver_errors(case_id):
                self._refuse_constant_data(case, len(workload.executions))
                if workload.is_foreign:
                    refuse_misuse(case_id, workload, self._toolbox, self._timer)
                else:
                    # A first call may load code, and the driver loads none while the spin kernel holds the stream: the
                    # first batch of cuBLAS' product waited for the kernel's timeout.
                    _run_all(workload.executions)
                    self._stream.synchronize()
                if case.timing is Timing.REPLAY:
                    graph = Graph(self._toolbox.stream, functools.partial(_run_all, rotation(workload.executions)))
                self._note_code(case)
            yield CudaOpenCase(case, workload, self._timer, self._stream, graph, self._verified)
        finally:
            with contextlib.suppress(driver().Error):
                self._stream.synchronize()
            if graph is not None:
                graph.close()
            with _driver_errors(case_id):
                workload.close()
                self._toolbox.end()
            _empty_caches()

    def _note_code(self, case: Case) -> None:
        # A library, or else the first source, is what is timed; what fills and checks its buffers does not count.
        timed = case.library or next(iter(case.sources), None)
        code = self._toolbox.code_sha256(timed) if timed else ()
        self._code[case.id] = hashlib.sha256("".join(code).encode()).hexdigest() if code else None

    def _refuse_constant_data(self, case: Case, sets: int) -> None:
        """Refuse a case whose inputs were left constant.

        Raises:
            ConfigurationError: less data varies than one rotation reads.
        """
        work = case.work
        read_bytes = min(work.read_bytes * sets, max(0, work.footprint_bytes - work.write_bytes * sets))
        varied_bytes = self._toolbox.varied_bytes() if read_bytes else 0
        if varied_bytes < read_bytes:
            raise ConfigurationError(
                f"{case.id} reads constant data: {varied_bytes} bytes of its buffers vary, {read_bytes} are read",
                hint="fill every input with random data: a GPU is faster on constants",
            )

    def self_test(self) -> float | None:
        """See core.device.LaunchSession."""
        with _driver_errors("self-test"):
            return self._timer.self_test()

    def telemetry(self) -> Telemetry:
        """See core.device.LaunchSession."""
        return self._nvml.telemetry()

    def energy_j(self) -> float | None:
        """See core.device.LaunchSession."""
        return self._nvml.energy_j()

    def code_sha256(self, case_id: str) -> str | None:
        """See core.device.LaunchSession."""
        return self._code.get(case_id)

    @contextlib.contextmanager
    def profiled(self) -> Iterator[None]:
        """Have an attached profiler look at what is executed inside; a kernel that does nothing comes first.

        Raises:
            DeviceError: the driver has no profiler control.
        """
        mark = self._toolbox.kernel("launch.cu", MARK).bind(grid=(1, 1, 1), block=(1, 1, 1), args=())
        library = libcuda()
        if library.cuProfilerStart() != 0:
            raise DeviceError("the driver does not start an attached profiler")
        try:
            mark()
            yield
        finally:
            self._stream.synchronize()
            library.cuProfilerStop()


@contextlib.contextmanager
def opened_session(
    selector: str, make_suite: Any, cache_folder: Path, verified: VerifiedOutputs | None = None
) -> Iterator[CudaSession]:
    """Open a launch session on a device.

    Args:
        selector: ``""``, an index or a UUID, as in ``devices.cuda.driver.found_device``.
        make_suite: function from the GPU to its Suite.
        cache_folder: where compiled kernels are kept.
        verified: outputs that earlier launches have verified; None compares all of this one's.

    Raises:
        DeviceError, CompileError: the device, its context or the timing kernels cannot be had.
    """
    began_s = time.monotonic()
    index = found_device(selector)
    uuid = device_uuid(index)
    stay_near(index)
    with closing_nvml(uuid) as nvml, primary_context(index):
        drv = driver()
        gpu: Gpu = identified_gpu(index, nvml)
        stream = drv.Stream(_NON_BLOCKING)
        cache = CodeCache(cache_folder, found_compiler(), architecture(gpu.compute_capability or ""))
        arena = Arena()
        peer = Peer(index)
        toolbox = CudaToolbox(gpu=gpu, stream=stream, cache=cache, arena=arena, peer=peer)
        timing = drv.module_from_buffer(cache.cubin("timing.cu", {}).code)
        timer = StreamTimer(stream, timing, gpu.sm_count or 1, began_s)
        try:
            yield CudaSession(
                suite=make_suite(gpu),
                toolbox=toolbox,
                timer=timer,
                arena=arena,
                stream=stream,
                nvml=nvml,
                verified=verified,
            )
        finally:
            with contextlib.suppress(drv.Error):
                arena.close()
                peer.close()


@contextlib.contextmanager
def _driver_errors(place: str) -> Iterator[None]:
    """Turn the driver's errors into DeviceErrors that name the case."""
    try:
        yield
    except driver().Error as error:
        raise DeviceError(
            f"{place}: {error}", hint="run the case under compute-sanitizer if the kernel is yours"
        ) from error
