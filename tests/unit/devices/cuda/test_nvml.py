from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.run import Health
from perfgate.devices.cuda.nvml import Nvml, closing_nvml, opened_nvml
from tests.unit.devices.cuda.fake_nvml import H200_READINGS, FakeNvml, FakeNvmlError, field_values

UUID = "GPU-12345678-1234-1234-1234-123456789abc"
ERRORS = [
    FakeNvmlError("Not Supported"),
    FakeNvmlError("Insufficient Permissions"),
    FakeNvmlError("Function Not Found"),
    FakeNvmlError("GPU is lost"),
    AttributeError("module 'pynvml' has no attribute"),
    TypeError("missing argument"),
    OSError("libnvidia-ml.so.1: cannot open shared object file"),
]


def h200(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (H200_READINGS | changes).items() if value is not None}


def test_health__is_read_whole() -> None:
    health = Nvml(UUID, FakeNvml({UUID: h200()})).health()
    assert health == Health(
        temperature_c=41.0,
        memory_temperature_c=39.0,
        power_w=pytest.approx(123.328),
        remapped_rows_correctable=1,
        remapped_rows_uncorrectable=0,
        remap_pending=False,
        remap_failed=False,
        ecc_corrected=2,
        ecc_uncorrected=0,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        pcie_replays=0,
        nvlink_links_active=2,
        nvlink_errors=3,
        mig_enabled=False,
        mps_active=False,
        confidential_computing=False,
        virtualization="passthrough",
    )


def test_telemetry__counters_are_seconds_and_joules() -> None:
    telemetry = Nvml(UUID, FakeNvml({UUID: h200()})).telemetry()
    assert telemetry.clock_events_s == {
        "sw_power_cap": pytest.approx(7.05),
        "sync_boost": 0.0,
        "sw_thermal": 0.0,
        "hw_thermal": 0.0,
        "hw_power_brake": 0.0,
    }
    assert telemetry.power_w == pytest.approx(123.328)
    assert (telemetry.memory_clock_hz, telemetry.temperature_c) == (3.201e9, 41.0)


def test_energy__is_in_joules_and_unknown_where_it_is_refused() -> None:
    assert Nvml(UUID, FakeNvml({UUID: h200()})).energy_j() == pytest.approx(5000.0)
    assert Nvml(UUID, FakeNvml({UUID: h200(TotalEnergyConsumption=None)})).energy_j() is None


def test_telemetry__a_counter_that_the_gpu_lacks_is_absent_not_zero() -> None:
    values = field_values({74: 10**9, 269: 5, 270: 5}, refused=(270,))
    telemetry = Nvml(UUID, FakeNvml({UUID: h200(FieldValues=values)})).telemetry()
    assert set(telemetry.clock_events_s) == {"sw_power_cap", "sw_thermal"}


@pytest.mark.parametrize("name", sorted(H200_READINGS))
@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_nvml__any_call_may_fail(name: str, error: Exception) -> None:
    nvml = Nvml(UUID, FakeNvml({UUID: h200()}, failing={f"nvmlDeviceGet{name}": error}))
    whole = Nvml(UUID, FakeNvml({UUID: h200()})).health()
    health = nvml.health()
    nvml.telemetry()
    nvml.process_ids()
    assert nvml.read(name) is None
    changed = {one.name for one in fields(Health) if getattr(health, one.name) != getattr(whole, one.name)}
    assert all(getattr(health, field) is None for field in changed) or name == "TemperatureV"


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_nvml__where_every_call_fails_nothing_is_known(error: Exception) -> None:
    nvml = Nvml(UUID, FakeNvml({UUID: h200()}, failing={"*": error}))
    assert nvml.tier == 0
    assert nvml.note == str(error)
    assert nvml.health() == Health()
    assert nvml.process_ids() is None
    assert nvml.system("DriverVersion") is None
    assert nvml.telemetry().clock_events_s == {}
    nvml.close()


def test_nvml__that_cannot_be_initialised_is_tier_0_and_says_why() -> None:
    fake = FakeNvml({UUID: h200()}, failing={"nvmlInit": FakeNvmlError("Driver/library version mismatch")})
    nvml = Nvml(UUID, fake)
    assert (nvml.tier, nvml.note) == (0, "Driver/library version mismatch")
    assert nvml.health() == Health()


def test_nvml__without_the_binding_is_tier_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    nvml = opened_nvml(UUID)
    assert (nvml.tier, nvml.note) == (0, "nvidia-ml-py is not installed")
    assert nvml.health() == Health()
    assert nvml.constant("NVML_VOLATILE_ECC") is None
    assert nvml.change("SetGpuLockedClocks", 1, 1) == "nvidia-ml-py is not installed"
    nvml.close()


def test_nvml__a_uuid_that_cuda_does_not_tell_is_never_guessed() -> None:
    nvml = Nvml(None, FakeNvml({UUID: h200()}))
    assert (nvml.tier, nvml.note) == (0, "the device's UUID is unknown")


def test_nvml__the_device_is_found_by_uuid_among_several() -> None:
    gpus = {"GPU-other": h200(BoardPartNumber="other"), UUID: h200()}
    assert Nvml(UUID, FakeNvml(gpus)).read("BoardPartNumber") == "692-2G520-0282-000"


@pytest.mark.parametrize("takes_bytes", [False, True])
def test_nvml__the_binding_may_take_text_or_bytes(takes_bytes: bool) -> None:
    assert Nvml(UUID, FakeNvml({UUID: h200()}, takes_bytes=takes_bytes)).tier == 1


@pytest.mark.parametrize("value", ["692-2G520-0282-000", b"692-2G520-0282-000"])
def test_read__the_binding_may_return_text_or_bytes(value: str | bytes) -> None:
    nvml = Nvml(UUID, FakeNvml({UUID: h200(BoardPartNumber=value)}))
    assert nvml.read("BoardPartNumber") == "692-2G520-0282-000"
    fake = FakeNvml({UUID: h200()})
    fake.system["DriverVersion"] = b"550.90"  # type: ignore[assignment]
    assert Nvml(UUID, fake).system("DriverVersion") == "550.90"


def test_read__bytes_that_are_no_text_do_not_raise() -> None:
    assert Nvml(UUID, FakeNvml({UUID: h200(BoardPartNumber=b"\xff692")})).read("BoardPartNumber") == "\ufffd692"


def test_temperature__the_newer_call_first_then_the_older() -> None:
    assert Nvml(UUID, FakeNvml({UUID: h200()})).temperature_c() == 41.0
    assert Nvml(UUID, FakeNvml({UUID: h200(TemperatureV=None)})).temperature_c() == 40.0


@pytest.mark.parametrize("name", ["NVML_MEMORY_ERROR_TYPE_CORRECTED", "NVML_VOLATILE_ECC", "NVML_NVLINK_MAX_LINKS"])
def test_constant__a_version_of_the_binding_may_lack_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delattr(FakeNvml, name)
    nvml = Nvml(UUID, FakeNvml({UUID: h200()}))
    assert nvml.constant(name) is None
    nvml.health()


@pytest.mark.parametrize(("mode", "text"), [(0, "none"), (2, "vgpu"), (99, "99")])
def test_health__an_unknown_mode_is_shown_as_it_is(mode: int, text: str) -> None:
    assert Nvml(UUID, FakeNvml({UUID: h200(VirtualizationMode=mode)})).health().virtualization == text


def test_nvml__of_a_mig_instance_asks_its_gpu_for_what_the_instance_does_not_tell() -> None:
    instance = {"DeviceHandleFromMigDeviceHandle": UUID, "ComputeRunningProcesses": [SimpleNamespace(pid=5)]}
    nvml = Nvml("MIG-1", FakeNvml({UUID: h200(), "MIG-1": instance}))
    assert nvml.tier == 1
    assert nvml.read("BoardPartNumber") == "692-2G520-0282-000"
    assert nvml.process_ids() == {5}
    assert Nvml("MIG-1", FakeNvml({UUID: h200(), "MIG-1": {}})).read("BoardPartNumber") is None


def test_closing_nvml__releases_it_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml({UUID: h200()})
    monkeypatch.setitem(__import__("sys").modules, "pynvml", fake)

    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), closing_nvml(UUID) as nvml:
        failing()
    assert fake.is_shut_down
    assert nvml.tier == 0


def test_change__returns_why_it_failed() -> None:
    fake: Any = FakeNvml({UUID: h200()})
    fake.nvmlDeviceSetGpuLockedClocks = lambda handle, low, high: None
    assert Nvml(UUID, fake).change("SetGpuLockedClocks", 1200, 1200) is None

    def refused(handle: Any) -> None:
        raise FakeNvmlError("Insufficient Permissions")

    fake.nvmlDeviceResetGpuLockedClocks = refused
    assert Nvml(UUID, fake).change("ResetGpuLockedClocks") == "Insufficient Permissions"
