"""A launch on a driver in virtual time: opened, measured by the loop, closed on every way out."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perfgate.core.case import Case, Suite, Timing, Unit, Work
from perfgate.core.device import LaunchSession
from perfgate.core.toolbox import Toolbox, Verification, Workload
from perfgate.devices.cuda import memory, session, timing, toolbox
from perfgate.devices.cuda.cublas import WORKSPACE_BYTES
from perfgate.devices.cuda.nvml import Nvml
from perfgate.devices.cuda.session import CudaSession, architecture, opened_session, rotation
from perfgate.devices.cuda.verified import VerifiedOutputs
from perfgate.errors import ConfigurationError, DeviceError, DeviceMemoryError, WrongOutputError
from perfgate.measure.loop import CaseLoop, Settings
from tests.factories import H200
from tests.unit.devices.cuda.fake_cuda import FakeCuda, FakeError, Function, Stream

COPY = "bandwidth.copy[bytes=4KiB]"
SIZE_BYTES = 4096
DURATIONS_S = {"copy": 50e-6, "empty": 1.3e-6}


class Compiler:
    name = "fake 1"

    def compile(self, source: Path, architecture: str, options: tuple[str, ...]) -> bytes:
        return f"{source.name} {architecture} {options}".encode()


def copy_case(
    *, data: np.ndarray | None = None, passed: bool = True, closed: Callable[[], None] = lambda: None, **changes: Any
) -> Case:
    """A copy between two buffers, of two buffer sets."""
    values = np.random.default_rng(1).random(SIZE_BYTES // 4, dtype=np.float32) if data is None else data

    def prepare(box: Toolbox) -> Workload:
        kernel = box.kernel("bandwidth.cu", "copy")
        executions = []
        for _ in range(2):
            source, target = box.buffer(SIZE_BYTES), box.buffer(SIZE_BYTES)
            box.write(source, values)
            box.write(target, np.zeros_like(values))
            executions.append(kernel.bind(grid=(1, 1, 1), block=(256, 1, 1), args=(source, target)))
        return Workload(
            executions=tuple(executions),
            poison=lambda: None,
            verify=lambda: Verification(passed=passed, error=0.0 if passed else 9.0, tolerance=1.0, detail="copied"),
            close=closed,
        )

    fields: dict[str, Any] = {
        "id": COPY,
        "version": 1,
        "work": Work(read_bytes=SIZE_BYTES, write_bytes=SIZE_BYTES, footprint_bytes=4 * SIZE_BYTES),
        "prepare": prepare,
        "sources": ("bandwidth.cu",),
    }
    return Case(**(fields | changes))


class Bench:
    """Opens sessions on a fake device."""

    def __init__(self, cuda: FakeCuda, folder: Path) -> None:
        self.cuda = cuda
        self.folder = folder
        self.log: list[str] = []

    @contextlib.contextmanager
    def opened(self, *cases: Case) -> Iterator[CudaSession]:
        suite = Suite(name="default", cases=cases)
        with opened_session("", lambda gpu: suite, self.folder) as found:
            yield found


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    cuda: Any = FakeCuda()
    made = Bench(cuda, tmp_path)
    cuda.Stream = lambda flags: Stream(cuda, flags)

    def module(code: bytes) -> Any:
        return SimpleNamespace(get_function=lambda name: Function(cuda, DURATIONS_S.get(name, 0.0), name=name))

    cuda.module_from_buffer = module

    @contextlib.contextmanager
    def context(index: int) -> Iterator[None]:
        made.log.append(f"context of {index}")
        try:
            yield
        finally:
            made.log.append("popped")

    for place in (session, toolbox, memory, timing):
        monkeypatch.setattr(place, "driver", lambda: cuda)
    for place in (session, timing):
        monkeypatch.setattr(place, "time", cuda.host)
    monkeypatch.setattr(session, "stay_near", lambda index: frozenset())
    monkeypatch.setattr(session, "found_device", lambda selector: 0)
    monkeypatch.setattr(session, "device_uuid", lambda index: "GPU-1")
    monkeypatch.setattr(session, "closing_nvml", lambda uuid: contextlib.nullcontext(Nvml(None, None)))
    monkeypatch.setattr(session, "primary_context", context)
    monkeypatch.setattr(session, "identified_gpu", lambda index, nvml: H200)
    monkeypatch.setattr(session, "found_compiler", Compiler)
    return made


def loop_of(opened: CudaSession) -> CaseLoop:
    return CaseLoop(opened, Settings(), lambda case_id, phase: None, lambda duration_s: None)


def test_session__keeps_the_protocol_and_is_measured_by_the_loop(bench: Bench) -> None:
    with bench.opened(copy_case()) as found:
        kept: LaunchSession = found
        kept.self_test()
        measured = loop_of(found).measure(COPY, Timing.EVENTS)
        assert found.ways == {COPY: (Timing.EVENTS, Unit.SECONDS)}
        assert len(found.code_sha256(COPY) or "") == 64
    times_s = [time_s for block in measured.launch.blocks for time_s in block.times_s]
    assert times_s == pytest.approx([50e-6] * 50, rel=1e-6)
    assert measured.plan.executions_per_sample * 50e-6 >= 5e-3
    assert measured.plan.executions_per_sample % 2 == 0  # whole rotations over the buffer sets
    assert measured.launch.settled
    assert all(block.valid and block.sm_clock_hz for block in measured.launch.blocks)


def test_session__runs_on_a_stream_of_its_own(bench: Bench) -> None:
    with bench.opened(copy_case()):
        assert [stream.flags for stream in bench.cuda.streams] == [1]  # CU_STREAM_NON_BLOCKING


@pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
def test_session__frees_its_memory_before_its_context_on_every_way_out(
    bench: Bench, error: type[BaseException] | None
) -> None:
    def failing() -> None:
        if error is not None:
            raise error

    with (
        contextlib.suppress(ZeroDivisionError, KeyboardInterrupt),
        bench.opened(copy_case()) as found,
        found.open_case(COPY),
    ):
        assert bench.cuda.memory.allocated > 64 * 2**20
        failing()
    assert bench.log == ["context of 0", "popped"]
    stamps_bytes = 2 * 16 * H200.sm_count  # type: ignore[operator]
    assert bench.cuda.memory.allocated == stamps_bytes  # the timer's, freed with the context


def test_open_case__tears_down_what_was_set_up_also_after_a_failure(bench: Bench) -> None:
    closed: list[int] = []

    def failing() -> None:
        raise ZeroDivisionError

    with bench.opened(copy_case(closed=lambda: closed.append(1))) as found:
        with found.open_case(COPY):
            pass
        with pytest.raises(ZeroDivisionError), found.open_case(COPY):
            failing()
    assert closed == [1, 1]


def test_open_case__refuses_constant_data(bench: Bench) -> None:
    """Zeros run a product 13 % faster: a case whose inputs were forgotten would look good."""
    zeros = np.zeros(SIZE_BYTES // 4, dtype=np.float32)
    with (
        bench.opened(copy_case(data=zeros)) as found,
        pytest.raises(ConfigurationError, match=r"reads constant data: 0 bytes of its buffers vary"),
        found.open_case(COPY),
    ):
        pass


def test_open_case__an_error_of_the_driver_names_the_case(bench: Bench) -> None:
    def prepare(box: Toolbox) -> Workload:
        raise FakeError("an illegal memory access was encountered")

    with (
        bench.opened(copy_case(prepare=prepare)) as found,
        pytest.raises(DeviceError, match=r"bandwidth\.copy.*illegal memory access") as raised,
        found.open_case(COPY),
    ):
        pass
    assert "compute-sanitizer" in raised.value.hint


def test_open_case__without_memory_is_told_apart_from_other_failures(bench: Bench) -> None:
    bench.cuda.memory.free_bytes = 2**20
    with bench.opened(copy_case()) as found, pytest.raises(DeviceMemoryError), found.open_case(COPY):
        pass


def test_measure__a_wrong_output_has_no_time(bench: Bench) -> None:
    with bench.opened(copy_case(passed=False)) as found, pytest.raises(WrongOutputError, match="wrong output"):
        loop_of(found).measure(COPY, Timing.EVENTS)


def test_verify__compares_no_output_again_that_an_earlier_launch_verified(bench: Bench, tmp_path: Path) -> None:
    compared: list[str] = []
    made = copy_case()

    def case(digest: str) -> Case:
        def prepare(box: Toolbox) -> Workload:
            workload = made.prepare(box)

            def verify() -> Verification:
                compared.append(digest)
                return workload.verify()

            return replace(workload, verify=verify, digest=lambda: digest)

        return replace(made, prepare=prepare)

    for kept, digest in ((None, "ab"), (tmp_path, "ab"), (tmp_path, "ab"), (tmp_path, "cd")):
        suite = Suite(name="default", cases=(case(digest),))
        verified = None if kept is None else VerifiedOutputs(kept)
        opening = opened_session("", lambda _, suite=suite: suite, tmp_path, verified)  # type: ignore[misc]
        with opening as found, found.open_case(COPY) as opened:
            assert opened.verify().passed
    assert compared == ["ab", "ab", "cd"]


def test_verify__a_wrong_output_is_not_kept(bench: Bench, tmp_path: Path) -> None:
    wrong = copy_case(passed=False)
    suite = Suite(
        name="default",
        cases=(replace(wrong, prepare=lambda box: replace(wrong.prepare(box), digest=lambda: "ab")),),
    )
    for _ in range(2):
        verified = VerifiedOutputs(tmp_path)
        with opened_session("", lambda gpu: suite, tmp_path, verified) as found, found.open_case(COPY) as opened:
            assert not opened.verify().passed


def test_measure__an_error_of_a_kernel_while_it_is_timed_names_the_case(bench: Bench) -> None:
    def faulting() -> None:
        raise FakeError("the launch timed out and was terminated")

    def prepare(box: Toolbox) -> Workload:
        good = Verification(passed=True, error=0.0, tolerance=0.0, detail="")
        return Workload(executions=(faulting,), poison=lambda: None, verify=lambda: good)

    empty = copy_case(id="launch.gap", prepare=prepare, work=Work(), sources=())
    with bench.opened(empty) as found, pytest.raises(DeviceError, match=r"launch\.gap: the launch timed out"):
        loop_of(found).measure("launch.gap", Timing.EVENTS)


def test_code_sha256__is_of_the_timed_source_alone(bench: Bench) -> None:
    def prepare(box: Toolbox) -> Workload:
        box.kernel("data.cu", "fill")
        return copy_case().prepare(box)

    helped = copy_case(id="bandwidth.helped", prepare=prepare)
    sourceless = copy_case(id="bandwidth.sourceless", sources=())
    with bench.opened(copy_case(), helped, sourceless) as found:
        for case_id in (COPY, "bandwidth.helped", "bandwidth.sourceless"):
            assert found.code_sha256(case_id) is None
            with found.open_case(case_id):
                pass
        assert found.code_sha256(COPY) == found.code_sha256("bandwidth.helped")
        assert found.code_sha256("bandwidth.sourceless") is None


def test_code_sha256__of_a_library_is_of_its_version(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        version = "13.1.0"

        def product(self, dtype: str, shape: Any, operands: Any, workspace: Any, stream: int) -> Callable[[], None]:
            assert (dtype, shape, stream) == ("bf16", (1, 2, 3), bench.cuda.streams[0].handle)
            assert workspace.size_bytes == WORKSPACE_BYTES
            return lambda: None

    def prepare(box: Toolbox) -> Workload:
        inner = copy_case().prepare(box)
        return replace(inner, executions=box.library_products("bf16", (1, 2, 3), [(None, None, None)] * 2))

    monkeypatch.setattr(toolbox, "required_cublaslt", Library)
    twin = copy_case(id="gemm.twin", prepare=prepare, library="cuBLASLt", sources=("data.cu",))
    with bench.opened(twin) as found, found.open_case("gemm.twin"):
        pass
    version = hashlib.sha256(b"13.1.0").hexdigest()
    assert found.code_sha256("gemm.twin") == hashlib.sha256(version.encode()).hexdigest()


@pytest.mark.parametrize(
    ("capability", "name"), [("9.0", "sm_90a"), ("8.0", "sm_80"), ("10.0", "sm_100"), ("12.0", "sm_120")]
)
def test_architecture__is_the_compilers_name(capability: str, name: str) -> None:
    assert architecture(capability) == name


@pytest.mark.parametrize(("sets", "length"), [(1, 64), (2, 64), (3, 66), (64, 64), (100, 100)])
def test_rotation__is_whole(sets: int, length: int) -> None:
    executions = [lambda: None for _ in range(sets)]
    assert len(rotation(executions)) == length
    assert length % sets == 0


def test_open_case__a_first_call_that_loads_code_waits_for_no_spin_kernel(bench: Bench) -> None:
    """The driver loads code only while nothing runs: a first call behind the spin kernel ends by its timeout."""

    def prepare(box: Toolbox) -> Workload:
        inner = copy_case().prepare(box)
        loaded: list[bool] = []

        def execute() -> None:
            if not loaded:
                loaded.append(True)
                box.synchronize()
            inner.executions[0]()

        return replace(inner, executions=(execute,))

    with bench.opened(copy_case(prepare=prepare)) as found:
        begin_s = bench.cuda.host.monotonic()
        measured = loop_of(found).measure(COPY, Timing.EVENTS)
        assert bench.cuda.host.monotonic() - begin_s < timing.SPIN_TIMEOUT_S
    assert measured.launch.settled
