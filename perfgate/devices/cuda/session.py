"""One launch on a CUDA device: the LaunchSession of core.device, in a fresh process."""

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfgate.core.case import Case, Suite, Timing
from perfgate.core.device import SampleBatch, Telemetry
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Verification, Workload
from perfgate.devices.cuda.compiler import CodeCache, found_compiler
from perfgate.devices.cuda.driver import device_uuid, driver, found_device, libcuda, primary_context
from perfgate.devices.cuda.identity import identified_gpu
from perfgate.devices.cuda.memory import Arena
from perfgate.devices.cuda.ncu import MARK
from perfgate.devices.cuda.nvml import Nvml, closing_nvml
from perfgate.devices.cuda.timing import StreamTimer
from perfgate.devices.cuda.toolbox import CudaToolbox
from perfgate.errors import ConfigurationError, DeviceError

_NON_BLOCKING = 1
# Beside the declared footprint a case has small buffers of its own: partial sums, verification vectors.
_SPARE_BYTES = 64 * 2**20


def architecture(compute_capability: str) -> str:
    """Return the compiler's name of an architecture: ``"sm_90a"`` for ``"9.0"``, where WGMMA needs the a."""
    number = compute_capability.replace(".", "")
    return f"sm_{number}a" if number == "90" else f"sm_{number}"


class CudaOpenCase:
    """A prepared case."""

    def __init__(self, case: Case, workload: Workload, timer: StreamTimer, stream: Any) -> None:
        self._case = case
        self._workload = workload
        self._timer = timer
        self._stream = stream
        self._turn = 0

    @property
    def sets(self) -> int:
        """Buffer sets that executions rotate over."""
        return len(self._workload.executions)

    def time_batch(self, *, executions: int, samples: int) -> SampleBatch:
        """See core.device.OpenCase."""
        with _driver_errors(self._case.id):
            batch = self._timer.time_batch(
                self._case.timing, self._workload.executions, self._turn, count=executions, samples=samples
            )
        self._turn = (self._turn + executions * samples) % self.sets
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
            return self._workload.verify()


class CudaSession:
    """A launch session; made by ``opened_session``."""

    def __init__(
        self, *, suite: Suite, toolbox: CudaToolbox, timer: StreamTimer, arena: Arena, stream: Any, nvml: Nvml
    ):
        self._cases = {case.id: case for case in suite.cases}
        self._toolbox = toolbox
        self._timer = timer
        self._arena = arena
        self._stream = stream
        self._nvml = nvml
        self._code: dict[str, str | None] = {}

    @property
    def timings(self) -> dict[str, Timing]:
        """How each case is timed."""
        return {case_id: case.timing for case_id, case in self._cases.items()}

    @contextlib.contextmanager
    def open_case(self, case_id: str) -> Iterator[CudaOpenCase]:
        """See core.device.LaunchSession."""
        case = self._cases[case_id]
        with _driver_errors(case_id):
            self._arena.reset(case.work.footprint_bytes + _SPARE_BYTES)
            self._toolbox.begin()
            workload = case.prepare(self._toolbox)
            self._refuse_constant_data(case, len(workload.executions))
        # The first source is the one that is timed; what fills and checks its buffers does not count.
        code = self._toolbox.code_sha256(case.sources[0]) if case.sources else ()
        self._code[case_id] = hashlib.sha256("".join(code).encode()).hexdigest() if code else None
        try:
            yield CudaOpenCase(case, workload, self._timer, self._stream)
        finally:
            with contextlib.suppress(driver().Error):
                self._stream.synchronize()

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

    def self_test(self) -> None:
        """See core.device.LaunchSession."""
        with _driver_errors("self-test"):
            self._timer.self_test()

    def telemetry(self) -> Telemetry:
        """See core.device.LaunchSession."""
        return self._nvml.telemetry()

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
def opened_session(selector: str, make_suite: Any, cache_folder: Path) -> Iterator[CudaSession]:
    """Open a launch session on a device.

    Args:
        selector: ``""``, an index or a UUID, as in ``devices.cuda.driver.found_device``.
        make_suite: function from the GPU to its Suite.
        cache_folder: where compiled kernels are kept.

    Raises:
        DeviceError, CompileError: the device, its context or the timing kernels cannot be had.
    """
    began_s = time.monotonic()
    index = found_device(selector)
    uuid = device_uuid(index)
    with closing_nvml(uuid) as nvml, primary_context(index):
        drv = driver()
        gpu: Gpu = identified_gpu(index, nvml)
        stream = drv.Stream(_NON_BLOCKING)
        cache = CodeCache(cache_folder, found_compiler(), architecture(gpu.compute_capability or ""))
        arena = Arena()
        toolbox = CudaToolbox(gpu=gpu, stream=stream, cache=cache, arena=arena)
        timing = drv.module_from_buffer(cache.cubin("timing.cu", {}).code)
        timer = StreamTimer(stream, timing, gpu.sm_count or 1, began_s)
        try:
            yield CudaSession(
                suite=make_suite(gpu), toolbox=toolbox, timer=timer, arena=arena, stream=stream, nvml=nvml
            )
        finally:
            with contextlib.suppress(drv.Error):
                arena.close()


@contextlib.contextmanager
def _driver_errors(place: str) -> Iterator[None]:
    """Turn the driver's errors into DeviceErrors that name the case."""
    try:
        yield
    except driver().Error as error:
        raise DeviceError(
            f"{place}: {error}", hint="run the case under compute-sanitizer if the kernel is yours"
        ) from error
