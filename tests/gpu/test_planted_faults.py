"""Faults planted into cases on a real GPU: each must be refused, marked or found, never reported as a time."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from perfgate.core.case import Case, Suite, Timing, Work
from perfgate.core.gpu import Gpu
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.core.validity import BEYOND_THEORETICAL, bandwidth_fraction
from perfgate.errors import ConfigurationError, DeviceError, WrongOutputError
from perfgate.measure.loop import CaseLoop, MeasuredCase, Settings
from perfgate.suite import built_in_suite

pytestmark = pytest.mark.gpu

COPY = "bandwidth.copy"
# Two medians of one case in one process agree within this on an idle H200.
SAME = 0.002

Prepare = Callable[[Toolbox], Workload]


def _wrapped(case: Case, change: Callable[[Toolbox, Workload], Workload]) -> Case:
    def prepare(toolbox: Toolbox) -> Workload:
        return change(toolbox, case.prepare(toolbox))

    return replace(case, prepare=prepare)


def _delayed(execution: Callable[[], None], delay_s: float) -> Callable[[], None]:
    def execute() -> None:
        end_s = time.perf_counter() + delay_s
        while time.perf_counter() < end_s:
            pass
        execution()

    return execute


def _on_another_stream(_: Toolbox, workload: Workload) -> Workload:
    """Everything is enqueued on a stream that nobody times; PyCUDA's launches are redirected through a new binding."""
    from perfgate.devices.cuda.driver import driver

    other = driver().Stream(1)

    def redirected(execution: Callable[[], None]) -> Callable[[], None]:
        # The bound call is `lambda: call(grid, block, stream, *values, shared_size=...)`: put another stream in.
        cells = dict(zip(execution.__code__.co_freevars, execution.__closure__ or (), strict=True))
        call, grid, block = (cells[name].cell_contents for name in ("call", "grid", "block"))
        values, shared = cells["values"].cell_contents, cells["shared_bytes"].cell_contents
        return lambda: call(grid, block, other, *values, shared_size=shared)

    return replace(workload, executions=tuple(redirected(one) for one in workload.executions))


def _silent(_: Toolbox, workload: Workload) -> Workload:
    """Executes nothing: the outputs stay poisoned."""
    return replace(workload, executions=tuple((lambda: None) for _ in workload.executions))


# Every thread reads its words of `source` again and again, from the cache after the first time.
READ_AGAIN = """
extern "C" __global__ void read_again(const uint4* source, uint4* target, unsigned long long count, unsigned times) {
    unsigned sum = 0;
    for (unsigned time = 0; time < times; ++time) {
        for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            unsigned x, y, z, w;
            asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(source + i));
            sum += x ^ y ^ z ^ w;
        }
    }
    if (sum == 0x5EED) target->x = sum;
}
"""
RESIDENT_BYTES, RESIDENT_TIMES = 8 * 2**20, 64
RESIDENT_WORK = Work(read_bytes=RESIDENT_TIMES * RESIDENT_BYTES, footprint_bytes=RESIDENT_BYTES)


def _resident(case: Case, source_file: Path) -> Case:
    """Reads 8 MiB again and again, and claims that it came from memory."""

    def prepare(toolbox: Toolbox) -> Workload:
        source, target = toolbox.buffer(RESIDENT_BYTES), toolbox.buffer(16)
        toolbox.write(source, np.random.default_rng(1).integers(0, 2**32, RESIDENT_BYTES // 4, dtype=np.uint32))
        execution = toolbox.kernel(str(source_file), "read_again").bind(
            grid=(264, 1, 1),
            block=(512, 1, 1),
            args=(source, target, np.uint64(RESIDENT_BYTES // 16), np.uint32(RESIDENT_TIMES)),
        )
        fine = Verification(passed=True, error=0.0, tolerance=0.0, detail="not looked at")
        return Workload(executions=(execution,), poison=lambda: None, verify=lambda: fine)

    return replace(case, id="planted.resident", work=RESIDENT_WORK, prepare=prepare)


def _constant(case: Case) -> Case:
    def change(toolbox: Toolbox, workload: Workload) -> Workload:
        for buffer in toolbox._buffers:  # type: ignore[attr-defined]
            toolbox.write(buffer, np.zeros(buffer.size_bytes // 4, dtype=np.uint32))
        return workload

    return _wrapped(case, change)


def _empty_in_events(suite: Suite) -> Case:
    gap = next(case for case in suite.cases if case.timing is Timing.GAP)
    return replace(gap, id="planted.empty", timing=Timing.EVENTS)


def _planted(source_file: Path, gpu: Gpu) -> Suite:
    suite = built_in_suite("default", gpu)
    copy = next(case for case in suite.cases if case.id.startswith(COPY))
    slow = _wrapped(
        copy,
        lambda _, workload: replace(workload, executions=tuple(_delayed(one, 100e-6) for one in workload.executions)),
    )
    return Suite(
        name="planted",
        cases=(
            replace(copy, id="planted.copy"),
            replace(slow, id="planted.slow_interpreter"),
            replace(_wrapped(copy, _silent), id="planted.silent"),
            replace(_wrapped(copy, _on_another_stream), id="planted.other_stream"),
            replace(_constant(copy), id="planted.constant"),
            replace(copy, id="planted.overcounted", work=replace(copy.work, read_bytes=4 * copy.work.read_bytes)),
            _resident(copy, source_file),
            _empty_in_events(suite),
        ),
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., MeasuredCase]]:
    from perfgate.devices.cuda.session import opened_session

    cache: Path = tmp_path_factory.mktemp("cache")
    source_file = cache / "read_again.cu"
    source_file.write_text(READ_AGAIN)
    with opened_session("", partial(_planted, source_file), cache) as session:
        session.self_test()

        def measure(case_id: str, settings: Settings | None = None) -> MeasuredCase:
            loop = CaseLoop(session, settings or Settings(retries=1), lambda *_: None, lambda _: None)
            return loop.measure(case_id, Timing.EVENTS)

        yield measure


def _median_s(measured_case: MeasuredCase) -> float:
    times = [one for block in measured_case.launch.valid_blocks for one in block.times_s]
    return float(np.median(times))


def _copy_work(gpu: Gpu) -> Work:
    return next(case.work for case in built_in_suite("default", gpu).cases if case.id.startswith(COPY))


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    from perfgate.devices.cuda.device import CudaDevice

    return CudaDevice("").gpu


def test_slow_interpreter__leaves_gpu_times_unchanged(measured: Callable[..., MeasuredCase]) -> None:
    plain, slow = _median_s(measured("planted.copy")), _median_s(measured("planted.slow_interpreter"))
    print(f"plain {plain * 1e6:.2f} us, 100 us of Python before each launch {slow * 1e6:.2f} us")
    assert abs(slow / plain - 1) < SAME


def test_kernel_that_writes_nothing__is_wrong_output(measured: Callable[..., MeasuredCase]) -> None:
    with pytest.raises((WrongOutputError, DeviceError)):
        measured("planted.silent")


def test_work_on_another_stream__is_never_a_time(measured: Callable[..., MeasuredCase], gpu: Gpu) -> None:
    from perfgate.devices.cuda.driver import driver

    try:
        result = measured("planted.other_stream")
    except (DeviceError, WrongOutputError) as error:
        print(error)
        return
    finally:  # what nobody waited for must not run beside the next test
        driver().Context.synchronize()
    fraction = bandwidth_fraction(_copy_work(gpu), Timing.EVENTS, _median_s(result), gpu)
    assert fraction is not None
    assert fraction > BEYOND_THEORETICAL


def test_constant_inputs__are_refused(measured: Callable[..., MeasuredCase]) -> None:
    with pytest.raises(ConfigurationError, match="constant"):
        measured("planted.constant")


def test_overcounted_bytes__are_beyond_physics(measured: Callable[..., MeasuredCase], gpu: Gpu) -> None:
    work = replace(_copy_work(gpu), read_bytes=4 * _copy_work(gpu).read_bytes)
    fraction = bandwidth_fraction(work, Timing.EVENTS, _median_s(measured("planted.overcounted")), gpu)
    assert fraction is not None
    assert fraction > BEYOND_THEORETICAL


def test_cache_resident_footprint__is_beyond_physics(measured: Callable[..., MeasuredCase], gpu: Gpu) -> None:
    fraction = bandwidth_fraction(RESIDENT_WORK, Timing.EVENTS, _median_s(measured("planted.resident")), gpu)
    print(f"cache-resident read: {fraction} of the theoretical DRAM bandwidth")
    assert fraction is not None
    assert fraction > BEYOND_THEORETICAL


def test_host_bound_case__is_refused(measured: Callable[..., MeasuredCase]) -> None:
    with pytest.raises(DeviceError, match="waited for the host"):
        measured("planted.empty")


def test_unsettled_warm_up__is_said(measured: Callable[..., MeasuredCase]) -> None:
    impossible = Settings(settled_times=0.0, settled_clock=0.0, warm_up_longest_s=0.2)
    assert not measured("planted.copy", impossible).launch.settled
