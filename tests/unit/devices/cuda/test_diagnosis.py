"""What ``doctor`` says of a CUDA device: every look is on its own."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.finding import Condition, Finding, exit_code
from perfgate.devices.cuda import diagnosis
from perfgate.devices.cuda.diagnosis import cuda_findings
from perfgate.devices.cuda.identity import RECORDED_VARIABLES
from perfgate.devices.cuda.nvml import Nvml
from perfgate.errors import DeviceError, ExitCode, NoDeviceError
from tests.factories import H200
from tests.unit.devices.cuda.fake_nvml import H200_READINGS, FakeNvml

UUID = "GPU-1"
Found = Callable[..., dict[str, Finding]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Found:
    """Looks at a healthy H200, changed as a test says; findings by name."""

    def call(
        *,
        readings: dict[str, Any] | None = None,
        nvml: Nvml | None = None,
        gpu: Any = H200,
        missing: Exception | None = None,
        compiler: Exception | None = None,
        session: Exception | None = None,
        cache: Path | None = None,
        user: int = 0,
        variables: dict[str, str] | None = None,
    ) -> dict[str, Finding]:
        known = {
            "MaxClockInfo": lambda kind: 3201,
            "SupportedGraphicsClocks": lambda memory: [345, 1980],
        } | H200_READINGS
        opened = nvml or Nvml(UUID, FakeNvml({UUID: known | (readings or {})}))

        def found_device(selector: str) -> int:
            if missing is not None:
                raise missing
            return 0

        def found_compiler() -> Any:
            if compiler is not None:
                raise compiler
            return SimpleNamespace(name="nvcc 13.0.88")

        @contextlib.contextmanager
        def opened_session(*_: Any) -> Iterator[Any]:
            if session is not None:
                raise session
            yield SimpleNamespace(self_test=lambda: None)

        device = SimpleNamespace(Device=SimpleNamespace(count=lambda: 1))
        for name, value in {
            "found_device": found_device,
            "device_uuid": lambda index: UUID,
            "closing_nvml": lambda uuid: contextlib.nullcontext(opened),
            "driver": lambda: device,
            "identified_gpu": lambda index, nvml: gpu,
            "found_compiler": found_compiler,
            "opened_session": opened_session,
        }.items():
            monkeypatch.setattr(diagnosis, name, value)
        monkeypatch.setattr("os.geteuid", lambda: user)
        for name in RECORDED_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in (variables or {}).items():
            monkeypatch.setenv(name, value)
        return {one.name: one for one in cuda_findings("", cache or tmp_path / "cache", lambda gpu: None)}

    return call


def test_findings__of_a_healthy_gpu_all_work(found: Found) -> None:
    looks = found()
    assert {one.condition for one in looks.values()} == {Condition.WORKS}
    assert exit_code(tuple(looks.values())) is ExitCode.PASSED
    assert "NVIDIA H200, compute capability 9.0, 132 SMs" in looks["GPU"].result
    assert looks["identity"].result == f"board {H200.board_part_number}, chip {H200.chip}"


def test_findings__never_show_the_uuid(found: Found) -> None:
    assert UUID not in str(found())


def test_findings__without_a_gpu_say_what_to_do_and_go_on(found: Found) -> None:
    looks = found(missing=NoDeviceError("PyCUDA cannot be imported: No module named 'pycuda'", hint="x"))
    assert looks["GPU"].condition is Condition.BROKEN
    assert "pip install 'perfgate[cuda]'" in looks["GPU"].remedy
    assert looks["compiler"].condition is Condition.WORKS
    assert exit_code(tuple(looks.values())) is ExitCode.DEVICE
    other = found(missing=NoDeviceError("no NVIDIA driver", hint="install one"))
    assert other["GPU"].remedy == "install one"


def test_findings__without_nvml_are_limited_not_broken(found: Found) -> None:
    looks = found(nvml=Nvml(UUID, None))
    assert looks["NVML"].condition is Condition.LIMITED
    assert "pip install nvidia-ml-py" in looks["NVML"].remedy
    assert looks["clock lock"].condition is Condition.LIMITED
    assert exit_code(tuple(looks.values())) is ExitCode.PASSED


@pytest.mark.parametrize(
    ("readings", "name", "condition", "text"),
    [
        ({"RemappedRows": (1, 0, True, False)}, "memory", Condition.BROKEN, "pending"),
        ({"RemappedRows": (1, 1, False, True)}, "memory", Condition.BROKEN, "failed"),
        ({"CurrPcieLinkWidth": 8}, "PCIe", Condition.LIMITED, "width 8 of 16"),
        ({"FieldValues": lambda numbers: []}, "clock events", Condition.LIMITED, "not readable"),
        ({"SupportedGraphicsClocks": lambda memory: []}, "clock lock", Condition.LIMITED, "no clocks listed"),
    ],
)
def test_findings__name_what_nvml_tells_of_the_hardware(
    found: Found, readings: dict[str, Any], name: str, condition: Condition, text: str
) -> None:
    look = found(readings=readings)[name]
    assert look.condition is condition
    assert text in look.result
    assert look.consequence


def test_findings__an_unknown_board_limits_what_is_comparable(found: Found) -> None:
    look = found(gpu=replace(H200, board_part_number=None))["identity"]
    assert look.condition is Condition.LIMITED
    assert look.result == "unknown: board_part_number"


def test_findings__the_clock_lock_needs_root(found: Found) -> None:
    assert found(user=1000)["clock lock"].condition is Condition.LIMITED
    assert found(user=0)["clock lock"].condition is Condition.WORKS


def test_findings__a_failing_part_leaves_the_others_alone(found: Found, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    looks = found(
        compiler=DeviceError("no CUDA compiler", hint="install one"),
        session=DeviceError("self-test failed", hint="is a profiler active?"),
        cache=tmp_path / "file" / "cache",
    )
    assert (looks["compiler"].condition, looks["compiler"].remedy) == (Condition.BROKEN, "install one")
    assert (looks["self-test"].condition, looks["self-test"].remedy) == (Condition.BROKEN, "is a profiler active?")
    assert looks["compile cache"].condition is Condition.LIMITED
    assert "Not a directory" in looks["compile cache"].result
    assert looks["GPU"].condition is Condition.WORKS


def test_findings__name_variables_that_are_unset_for_launches(found: Found) -> None:
    look = found(variables={"CUDA_LAUNCH_BLOCKING": "1"})["variables"]
    assert look.condition is Condition.LIMITED
    assert look.remedy == "unset CUDA_LAUNCH_BLOCKING"


def test_findings__whatever_is_limited_or_broken_says_what_follows(found: Found) -> None:
    for looks in (found(), found(nvml=Nvml(UUID, None)), found(compiler=DeviceError("x", hint="y"))):
        for one in looks.values():
            assert bool(one.consequence) is (one.condition is not Condition.WORKS), one
