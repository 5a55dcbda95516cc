from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from perfgate.core.gpu import Environment, Gpu, identity_differences, unknown_identity_fields
from perfgate.devices.cuda import identity
from perfgate.devices.cuda.identity import chip_hash, cpu_model, identified_gpu, surrounding_environment
from perfgate.devices.cuda.nvml import Nvml
from perfgate.storage.documents import render_run_json
from tests.factories import make_run
from tests.unit.devices.cuda.fake_nvml import H200_READINGS, FakeNvml

UUID = "GPU-12345678-1234-1234-1234-123456789abc"
ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 132,
    "GLOBAL_MEMORY_BUS_WIDTH": 6016,
    "MEMORY_CLOCK_RATE": 3_201_000,
    "CLOCK_RATE": 1_980_000,
    "L2_CACHE_SIZE": 62_914_560,
    "ECC_ENABLED": 1,
    "INTEGRATED": 0,
}


class FakeError(Exception):
    pass


def fake_driver(
    name: str = "NVIDIA H200", attributes: dict[str, int] | None = None, refused: str = "", peers: bool = False
) -> Any:
    attributes = ATTRIBUTES if attributes is None else attributes

    def attribute(key: str) -> int:
        if key == refused:
            raise FakeError("invalid argument")
        return attributes[key]

    device = SimpleNamespace(
        name=lambda: name,
        compute_capability=lambda: (9, 0),
        total_memory=lambda: 150_109_880_320,
        get_attribute=attribute,
        can_access_peer=lambda other: peers,
    )

    class Device:
        def __new__(cls, index: int) -> Any:
            assert index in (0, 1)
            return device

        count = staticmethod(lambda: 2)

    return SimpleNamespace(
        Error=FakeError,
        Device=Device,
        device_attribute=SimpleNamespace(**{one: one for one in attributes}),
        get_driver_version=lambda: 13000,
        get_version=lambda: (13, 0, 0),
    )


def identified(
    monkeypatch: pytest.MonkeyPatch, module: Any | None = None, nvml: Nvml | None = None, uuid: str | None = UUID
) -> Gpu:
    monkeypatch.setattr(identity, "driver", lambda: module or fake_driver())
    monkeypatch.setattr(identity, "whole_gpu_uuid", lambda index: uuid)
    return identified_gpu(1, nvml or Nvml(UUID, FakeNvml({UUID: H200_READINGS})))


def test_identified_gpu__reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = identified(monkeypatch)
    assert gpu == Gpu(
        name="NVIDIA H200",
        compute_capability="9.0",
        sm_count=132,
        memory_bytes=150_109_880_320,
        memory_bus_bits=6016,
        memory_clock_hz=3.201e9,
        sm_clock_max_hz=1.98e9,
        l2_bytes=62_914_560,
        ecc_enabled=True,
        integrated=False,
        power_limit_w=700.0,
        pci_device_id="0x233510de",
        pci_subsystem_id="0x18be10de",
        board_part_number="692-2G520-0282-000",
        chip=chip_hash(UUID, None),
    )
    assert unknown_identity_fields(gpu) == ()


def test_identified_gpu__without_nvml_knows_what_cuda_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = identified(monkeypatch, nvml=Nvml(UUID, None))
    assert set(unknown_identity_fields(gpu)) == {"pci_device_id", "pci_subsystem_id", "board_part_number"}
    assert gpu.power_limit_w is None
    assert gpu.chip == chip_hash(UUID, None)


def test_identified_gpu__knows_what_joins_it_to_another_but_is_no_other_gpu_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = identified(monkeypatch, fake_driver(peers=True))
    assert gpu.peer_link is not None
    assert gpu.peer_link.startswith(("nvlink-", "pcie"))
    assert identity_differences(identified(monkeypatch), gpu) == ()


@pytest.mark.parametrize(
    ("attribute", "field"),
    [
        ("MULTIPROCESSOR_COUNT", "sm_count"),
        ("GLOBAL_MEMORY_BUS_WIDTH", "memory_bus_bits"),
        ("MEMORY_CLOCK_RATE", "memory_clock_hz"),
        ("CLOCK_RATE", "sm_clock_max_hz"),
        ("L2_CACHE_SIZE", "l2_bytes"),
        ("ECC_ENABLED", "ecc_enabled"),
        ("INTEGRATED", "integrated"),
    ],
)
def test_identified_gpu__what_cannot_be_read_is_none(
    monkeypatch: pytest.MonkeyPatch, attribute: str, field: str
) -> None:
    unknown_to_pycuda = {name: value for name, value in ATTRIBUTES.items() if name != attribute}
    for module in (fake_driver(refused=attribute), fake_driver(attributes=unknown_to_pycuda)):
        assert getattr(identified(monkeypatch, module), field) is None


def test_identified_gpu__a_clock_of_zero_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA 13 and vGPUs answer 0 for clocks that they do not tell."""
    gpu = identified(monkeypatch, fake_driver(attributes=ATTRIBUTES | {"MEMORY_CLOCK_RATE": 0, "CLOCK_RATE": 0}))
    assert (gpu.memory_clock_hz, gpu.sm_clock_max_hz) == (None, None)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "1g.10gb"),
        ("NVIDIA H200 MIG 1g.18gb+me", "1g.18gb+me"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "3g.20gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb", "1c.2g.20gb"),
        ("NVIDIA H100 80GB HBM3", None),
        ("NVIDIA MIGHTY 9000", None),
    ],
)
def test_identified_gpu__a_mig_profile_is_read_of_the_name(
    monkeypatch: pytest.MonkeyPatch, name: str, profile: str | None
) -> None:
    gpu = identified(monkeypatch, fake_driver(name))
    assert gpu.mig_profile == profile
    assert gpu.chip == chip_hash(UUID, profile)


@pytest.mark.parametrize("value", ["", "   ", 17])
def test_identified_gpu__an_empty_board_number_is_unknown(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    nvml = Nvml(UUID, FakeNvml({UUID: H200_READINGS | {"BoardPartNumber": value}}))
    assert identified(monkeypatch, nvml=nvml).board_part_number is None


def test_chip_hash__tells_chips_and_instances_apart() -> None:
    hashes = [chip_hash(UUID, None), chip_hash(UUID, "1g.10gb"), chip_hash(UUID, "2g.20gb"), chip_hash(UUID[:-1], None)]
    assert len(set(hashes)) == 4
    assert chip_hash(UUID.upper(), None) == chip_hash(UUID, None)
    assert chip_hash(None, None) is None
    assert chip_hash(None, "1g.10gb") is None


def test_chip_hash__stays_what_it_is() -> None:
    """Baselines name chips by it: another hash would make every chip a stranger."""
    assert chip_hash(UUID, None) == "5b0361c722a1"


def test_documents__never_hold_the_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = identified(monkeypatch)
    text = render_run_json(make_run({"launch.gap": [1e-6]}, gpu=gpu))
    for part in (UUID, UUID.removeprefix("GPU-"), UUID[4:12]):
        assert part.lower() not in text.lower()
    assert str(asdict(gpu)).count("123456789abc") == 0


def test_surrounding_environment__is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "driver", fake_driver)
    for name in identity.RECORDED_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    found = surrounding_environment(Nvml(UUID, FakeNvml({UUID: H200_READINGS})), "nvcc 13.0.88", "13.1.0")
    assert (found.driver_version, found.cuda_driver_version, found.cuda_toolkit_version) == (
        "580.159.04",
        "13.0",
        "13.0",
    )
    assert found.cublas_version == "13.1.0"
    assert (found.compiler, found.nvml_tier, found.vbios_version) == ("nvcc 13.0.88", 1, "96.00.CF.00.01")
    assert (found.visible_gpus, found.variables) == (2, None)


def test_surrounding_environment__names_neither_host_nor_user_nor_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "driver", fake_driver)
    for name in ("platform.node", "socket.gethostname"):
        monkeypatch.setattr(name, lambda: "runner-7")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/home/alice/mps")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("CUDA_MODULE_LOADING", "x" * 500)
    found = surrounding_environment(Nvml(UUID, None), None, None)
    assert found.variables is not None
    assert "CUDA_MPS_PIPE_DIRECTORY=set" in found.variables
    assert "CUDA_LAUNCH_BLOCKING=1" in found.variables
    assert len(found.variables) < 300
    text = str(asdict(found))
    assert "alice" not in text
    assert "runner-7" not in text


@pytest.mark.parametrize(
    ("text", "model"),
    [("processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum\nmodel name\t: other\n", "Intel(R) Xeon(R) Platinum")],
)
def test_cpu_model__is_the_first_that_linux_names(monkeypatch: pytest.MonkeyPatch, text: str, model: str) -> None:
    monkeypatch.setattr(identity.Path, "read_text", lambda self, **_: text)
    assert cpu_model() == model


def test_cpu_model__elsewhere_is_what_python_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Any, **_: Any) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(identity.Path, "read_text", missing)
    monkeypatch.setattr("platform.processor", lambda: "arm")
    assert cpu_model() == "arm"


def test_environment__has_no_field_for_host_or_user() -> None:
    assert not {"host", "hostname", "user", "path", "uuid", "serial"} & set(Environment.__dataclass_fields__)
    assert not {"uuid", "serial", "serial_number"} & set(Gpu.__dataclass_fields__)
