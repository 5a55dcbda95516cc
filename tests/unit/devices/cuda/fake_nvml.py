"""NVML as the module ``pynvml`` offers it, of GPUs that are found by UUID only."""

from types import SimpleNamespace
from typing import Any


class FakeNvmlError(Exception):
    """What the binding raises: NotSupported, NoPermission, FunctionNotFound, ..."""


class FakeNvml:
    """Readings by UUID; ``failing`` names functions and what they raise, or "*" for all but init.

    Every function that asks by index fails the test: CUDA_VISIBLE_DEVICES renumbers CUDA's devices alone.
    """

    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_NVLINK_MAX_LINKS = 4

    def __init__(
        self, gpus: dict[str, dict[str, Any]], *, failing: dict[str, Exception] | None = None, takes_bytes: bool = False
    ) -> None:
        self.gpus = gpus
        self.failing = failing or {}
        self.takes_bytes = takes_bytes
        self.calls: list[str] = []
        self.is_shut_down = False
        self.system = {"DriverVersion": "580.159.04", "ConfComputeState": SimpleNamespace(ccFeature=0)}

    def nvmlInit(self) -> None:  # noqa: N802
        self._fails("nvmlInit")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self._fails("nvmlShutdown")
        self.is_shut_down = True

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        raise AssertionError("NVML's indexes are not CUDA's")

    def nvmlDeviceGetHandleByUUID(self, uuid: Any) -> Any:  # noqa: N802
        self._fails("nvmlDeviceGetHandleByUUID")
        if isinstance(uuid, bytes) is not self.takes_bytes:
            raise TypeError("bytes or integer address expected instead of str instance")
        text = uuid.decode() if isinstance(uuid, bytes) else uuid
        if text not in self.gpus:
            raise FakeNvmlError("Not Found")
        return text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvmlDeviceGet"):
            return lambda handle, *args: self._reading(name, handle, args)
        if name.startswith("nvmlSystemGet"):
            return lambda: self._system(name)
        raise AttributeError(name)

    def _system(self, name: str) -> Any:
        self._fails(name)
        return self.system[name.removeprefix("nvmlSystemGet")]

    def _reading(self, name: str, handle: str, args: tuple[Any, ...]) -> Any:
        self._fails(name)
        readings = self.gpus[handle]
        short = name.removeprefix("nvmlDeviceGet")
        if short not in readings:
            raise FakeNvmlError("Not Supported")
        value = readings[short]
        return value(*args) if callable(value) else value

    def _fails(self, name: str) -> None:
        self.calls.append(name)
        error = self.failing.get(name)
        if error is None and name != "nvmlInit":
            error = self.failing.get("*")
        if error is not None:
            raise error


def field_values(values: dict[int, int], refused: tuple[int, ...] = ()) -> Any:
    """The function FieldValues: values by number; what is refused or unknown has a status."""

    def read(numbers: list[int]) -> list[Any]:
        return [
            SimpleNamespace(
                fieldId=number,
                nvmlReturn=0 if number in values and number not in refused else 3,
                value=SimpleNamespace(ullVal=values.get(number, 0)),
            )
            for number in numbers
        ]

    return read


H200_READINGS: dict[str, Any] = {
    "BoardPartNumber": "692-2G520-0282-000",
    "PciInfo": SimpleNamespace(pciDeviceId=0x233510DE, pciSubSystemId=0x18BE10DE),
    "EnforcedPowerLimit": 700_000,
    "VbiosVersion": "96.00.CF.00.01",
    "TemperatureV": lambda sensor: 41,
    "Temperature": lambda sensor: 40,
    "ClockInfo": lambda kind: 3201,
    "PowerUsage": 123_328,
    "TotalEnergyConsumption": 5_000_000,
    "ComputeRunningProcesses": [SimpleNamespace(pid=17), SimpleNamespace(pid=18)],
    "RemappedRows": (1, 0, False, False),
    "TotalEccErrors": lambda kind, counter: 2 if kind == 0 else 0,
    "CurrPcieLinkGeneration": 5,
    "MaxPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkWidth": 16,
    "NvLinkState": lambda link: int(link < 2),
    "NvLinkErrorCounter": lambda link, counter: {(1, 1): 3, (1, 2): 500}.get((link, counter), 0),
    "MPSComputeRunningProcesses": [],
    "MigMode": [0, 0],
    "VirtualizationMode": 1,
    "FieldValues": field_values({74: 7_050_000_000, 76: 0, 269: 0, 270: 0, 271: 0, 82: 39, 94: 0}),
}
