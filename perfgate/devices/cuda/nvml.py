"""NVML, every call of it optional: what the driver's management library says of one GPU.

Found by UUID, never by index: CUDA_VISIBLE_DEVICES renumbers CUDA's devices, not NVML's. Tier 0:
no NVML; tier 1: readable; tier 2: clocks locked by us and confirmed.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from perfgate.core.device import Telemetry
from perfgate.core.run import Health
from perfgate.devices.cuda.xids import XidWatch

# NVML_FI_DEV_CLOCKS_EVENT_REASON_*: cumulative nanoseconds (field 74 grew by 7.05e9 in 7.1 s of a capped GEMM).
_CLOCK_EVENT_FIELDS = {
    74: "sw_power_cap",
    76: "sync_boost",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
_MEMORY_TEMPERATURE_FIELD = 82
_PCIE_REPLAY_FIELD = 94
# NVML_NVLINK_ERROR_DL_REPLAY and _RECOVERY. The CRC counters (2 and 3) grow on sound links that carry nothing: by 4
# to 7 a second on two H200s, and a link repeats what failed its CRC.
_NVLINK_ERROR_COUNTERS = (0, 1)


class Nvml:
    """NVML's view of one GPU; every reading is None where it cannot be had.

    Args:
        uuid: CUDA's UUID of the device, ``"GPU-..."`` or ``"MIG-..."``.
        library: the module ``pynvml`` or a stand-in; None when there is none.
    """

    def __init__(self, uuid: str | None, library: Any | None) -> None:
        self._library: Any = library
        self._handle: Any = None
        self._whole_gpu: Any = None
        self._xids: XidWatch | None = None
        self.note: str | None = None
        if library is None:
            self.note = "nvidia-ml-py is not installed"
            return
        try:
            library.nvmlInit()
            if uuid is not None:
                self._handle = _handle_by_uuid(library, uuid)
                self._whole_gpu = _whole_gpu(library, self._handle) if uuid.startswith("MIG-") else None
            else:
                self.note = "the device's UUID is unknown"
        except Exception as error:  # every failure of an optional library means tier 0
            self.note = str(error)

    @property
    def tier(self) -> int:
        """0: nothing can be read; 1: readable."""
        return 0 if self._handle is None else 1

    def watch_xids(self) -> None:
        """Collect Xid errors from now on, for ``health``."""
        if self._handle is not None and self._xids is None:
            self._xids = XidWatch(self._library, self._whole_gpu or self._handle)

    def close(self) -> None:
        """Release the library; later readings are None."""
        if self._xids is not None:
            self._xids.close()
            self._xids = None
        self._handle = self._whole_gpu = None
        if self._library is not None:
            with contextlib.suppress(Exception):
                self._library.nvmlShutdown()

    def read(self, name: str, *args: Any) -> Any:
        """Call ``nvmlDeviceGet<name>``; None where it is missing, refused or fails.

        What NVML does not answer of a MIG instance (board, power, clocks) is that of its GPU.
        """
        for handle in (self._handle, self._whole_gpu):
            # NotSupported, NoPermission, GpuIsLost, a missing symbol: all mean "unknown".
            with contextlib.suppress(Exception):
                if handle is not None:
                    return _decoded(getattr(self._library, f"nvmlDeviceGet{name}")(handle, *args))
        return None

    def system(self, name: str) -> Any:
        """Call ``nvmlSystemGet<name>``."""
        if self._handle is None:
            return None
        try:
            return _decoded(getattr(self._library, f"nvmlSystemGet{name}")())
        except Exception:
            return None

    def change(self, name: str, *args: Any) -> str | None:
        """Call ``nvmlDevice<name>``, which changes the GPU; return why it failed, None when it did not."""
        if self._handle is None:
            return self.note or "NVML is not open"
        try:
            getattr(self._library, f"nvmlDevice{name}")(self._handle, *args)
        except Exception as error:  # the message of the library says which: no permission, not supported
            return str(error)
        return None

    def constant(self, name: str) -> Any:
        """Return a constant of the library, None where this version lacks it."""
        return getattr(self._library, name, None) if self._library is not None else None

    def fields(self, *numbers: int) -> dict[int, int]:
        """Read field values; a field that the GPU lacks is absent from the result."""
        values = self.read("FieldValues", list(numbers)) or []
        return {int(value.fieldId): int(value.value.ullVal) for value in values if getattr(value, "nvmlReturn", 1) == 0}

    def telemetry(self) -> Telemetry:
        """Read the counters that a case is framed by."""
        counters = self.fields(*_CLOCK_EVENT_FIELDS)
        return Telemetry(
            at_s=time.monotonic(),
            temperature_c=self.temperature_c(),
            memory_clock_hz=_scaled(self.read("ClockInfo", 2), 1e6),
            power_w=_scaled(self.read("PowerUsage"), 1e-3),
            clock_events_s={_CLOCK_EVENT_FIELDS[number]: value * 1e-9 for number, value in counters.items()},
        )

    def energy_j(self) -> float | None:
        """Read the cumulative energy."""
        return _scaled(self.read("TotalEnergyConsumption"), 1e-3)

    def temperature_c(self) -> float | None:
        """Temperature of the GPU: the newer call first, the deprecated one where it is missing."""
        value = self.read("TemperatureV", 0)
        if value is None:
            value = self.read("Temperature", 0)
        return None if value is None else float(value)

    def active_nvlinks(self) -> int | None:
        """Number of NVLink links that are up."""
        return self._nvlinks(lambda link: self.read("NvLinkState", link))

    def process_ids(self) -> frozenset[int] | None:
        """Process ids of compute processes on this GPU (host ids, also inside a container)."""
        found = self.read("ComputeRunningProcesses")
        return None if found is None else frozenset(int(process.pid) for process in found)

    def health(self) -> Health:
        """Read the health block."""
        fields = self.fields(_MEMORY_TEMPERATURE_FIELD, _PCIE_REPLAY_FIELD)
        remapped = self.read("RemappedRows")
        mig = self.read("MigMode")
        return Health(
            temperature_c=self.temperature_c(),
            memory_temperature_c=_scaled(fields.get(_MEMORY_TEMPERATURE_FIELD) or None, 1.0),
            power_w=_scaled(self.read("PowerUsage"), 1e-3),
            remapped_rows_correctable=None if remapped is None else int(remapped[0]),
            remapped_rows_uncorrectable=None if remapped is None else int(remapped[1]),
            remap_pending=None if remapped is None else bool(remapped[2]),
            remap_failed=None if remapped is None else bool(remapped[3]),
            ecc_corrected=self._ecc("NVML_MEMORY_ERROR_TYPE_CORRECTED"),
            ecc_uncorrected=self._ecc("NVML_MEMORY_ERROR_TYPE_UNCORRECTED"),
            pcie_generation=self.read("CurrPcieLinkGeneration"),
            pcie_generation_max=self.read("MaxPcieLinkGeneration"),
            pcie_width=self.read("CurrPcieLinkWidth"),
            pcie_width_max=self.read("MaxPcieLinkWidth"),
            pcie_replays=fields.get(_PCIE_REPLAY_FIELD),
            nvlink_links_active=self.active_nvlinks(),
            nvlink_errors=self._nvlinks(self._nvlink_errors),
            mig_enabled=None if mig is None else mig[0] == 1,
            mps_active=self._mps(),
            confidential_computing=self._confidential_computing(),
            virtualization=_virtualization(self.read("VirtualizationMode")),
            xids=None if self._xids is None else self._xids.seen(),
        )

    def _ecc(self, kind: str) -> int | None:
        code, counter = self.constant(kind), self.constant("NVML_VOLATILE_ECC")
        if code is None or counter is None:
            return None
        value = self.read("TotalEccErrors", code, counter)
        return None if value is None else int(value)

    def _nvlinks(self, reading: Callable[[int], int | None]) -> int | None:
        """Add up a reading over all links that have it."""
        count = self.constant("NVML_NVLINK_MAX_LINKS") or 0
        known = [value for link in range(int(count)) if (value := reading(link)) is not None]
        return sum(known) if known else None

    def _nvlink_errors(self, link: int) -> int | None:
        """Replays and recoveries of a link."""
        counts = [self.read("NvLinkErrorCounter", link, counter) for counter in _NVLINK_ERROR_COUNTERS]
        known = [int(count) for count in counts if count is not None]
        return sum(known) if known else None

    def _mps(self) -> bool | None:
        """Whether processes share the GPU through the multi-process service."""
        found = self.read("MPSComputeRunningProcesses")
        return None if found is None else bool(found)

    def _confidential_computing(self) -> bool | None:
        state = self.system("ConfComputeState")
        feature = getattr(state, "ccFeature", None)
        return None if feature is None else int(feature) != 0


def opened_nvml(uuid: str | None) -> Nvml:
    """Open NVML for a device, or the empty stand-in where the library or the driver's part is missing."""
    try:
        import pynvml
    except ImportError:
        return Nvml(uuid, None)
    return Nvml(uuid, pynvml)


@contextlib.contextmanager
def closing_nvml(uuid: str | None) -> Iterator[Nvml]:
    """Open NVML and release it at the end."""
    nvml = opened_nvml(uuid)
    try:
        yield nvml
    finally:
        nvml.close()


def _handle_by_uuid(library: Any, uuid: str) -> Any:
    """Accept text or bytes: versions of the binding differ."""
    try:
        return library.nvmlDeviceGetHandleByUUID(uuid)
    except TypeError:
        return library.nvmlDeviceGetHandleByUUID(uuid.encode())


def _whole_gpu(library: Any, instance: Any) -> Any:
    try:
        return library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)
    except Exception:
        return None


def _decoded(value: Any) -> Any:
    """Versions of the binding return text or bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else float(value) * factor


def _virtualization(mode: Any) -> str | None:
    names = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host-vgpu", 4: "host-vsga"}
    return None if mode is None else names.get(int(mode), str(mode))
